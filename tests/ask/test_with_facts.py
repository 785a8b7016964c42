"""Asking on a changed graph: the answers of a graph built so from the start, and what new entities did to them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmpn
from dpmpn.engine.engine import Engine
from dpmpn.models import build_model

TINY = dict(
    model="paper",
    n_dims=6,
    n_dims_att=4,
    n_steps_in_agnn=3,
    n_steps_in_ignn=1,
    batch_size=10,
    threads=1,
    n_epochs=1,
)
TRAIN = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
UNTRAINED = ("child9", "mother", "mother9")  # known by name, of no training fact
NAMES = sorted({name for head, _, tail in TRAIN for name in (head, tail)})
QUESTIONS = [(head, relation) for head in NAMES[::4] for relation in ("mother", "father", "husband_inv")]

fact = st.tuples(st.sampled_from(NAMES), st.sampled_from(["mother", "father"]), st.sampled_from(NAMES))
changes = st.lists(fact, max_size=6, unique=True)


@pytest.fixture(scope="module")
def reasoner() -> dpmpn.Reasoner:
    return dpmpn.Reasoner(**TINY).fit(dpmpn.dataset_from_tuples(TRAIN, test=[UNTRAINED], name="family"))


def every_answer(reasoner: dpmpn.Reasoner, head: str, relation: str) -> dpmpn.Predictions:
    return reasoner.predict(head, relation, top=100, any_role=True)


def answers(reasoner: dpmpn.Reasoner, questions=QUESTIONS) -> list[list[dpmpn.Prediction]]:
    return [list(every_answer(reasoner, head, relation)) for head, relation in questions]


@settings(max_examples=10, deadline=None, derandomize=True)
@given(add=changes, remove=changes)
def test_a_change_and_its_inverse_restore_the_answers(reasoner, add, remove) -> None:
    before = answers(reasoner)
    add = [f for f in add if f not in TRAIN]
    remove = [f for f in remove if f in TRAIN]
    new = [("stranger", "mother", "mother0"), ("child0", "father", "stranger")]
    changed = reasoner.with_facts(add=[*add, *new], remove=remove)
    assert changed.changes.added == len(add) + 2 and changed.changes.removed == len(remove)
    restored = changed.with_facts(add=remove, remove=[*add, *new])
    assert answers(restored) == before
    assert answers(reasoner) == before


@settings(max_examples=10, deadline=None, derandomize=True)
@given(add=changes, remove=changes)
def test_it_answers_as_a_graph_built_so_from_the_start(reasoner, add, remove) -> None:
    changed = reasoner.with_facts(add, remove)
    facts = [*(f for f in TRAIN if f not in remove), *add]
    entities, relations = reasoner.graph.entities, reasoner.graph.relation_names
    ids = [(entities.id(h), relations.id(r), entities.id(t)) for h, r, t in facts]
    n_forward = reasoner.graph.n_forward
    graph = dpmpn.KnowledgeGraph.from_ids(
        np.array(ids, np.int64).reshape(-1, 3), entities, list(relations.names[:n_forward])
    )
    built = Engine(reasoner.engine.model, graph, reasoner.engine.config)
    heads = np.array([entities.id(head) for head, _ in QUESTIONS])
    asked = np.array([relations.id(relation) for _, relation in QUESTIONS])
    expected = built.answer(built.asking_batch(heads, asked))
    found = changed.engine.answer(changed.engine.asking_batch(heads, asked))
    assert np.array_equal(found.nodes, expected.nodes)
    assert np.array_equal(found.attention.numpy(), expected.attention.numpy())


def test_several_changes_one_after_another_equal_one(reasoner: dpmpn.Reasoner) -> None:
    first, second = ("child6", "father", "new father"), ("new mother", "husband", "new father")
    removed = TRAIN[0]
    at_once = reasoner.with_facts([first, second], [removed])
    one_by_one = reasoner.with_facts([first]).with_facts(remove=[removed]).with_facts([second])
    assert one_by_one.graph.entities.names[-2:] == ("new father", "new mother")
    asked = [*QUESTIONS, ("new mother", "husband"), ("new father", "father_inv")]
    assert answers(one_by_one, asked) == answers(at_once, asked)


def test_the_same_alone_and_in_a_batch(reasoner: dpmpn.Reasoner) -> None:
    changed = reasoner.with_facts([("stranger", "mother", "mother0"), ("child0", "father", "stranger")])
    engine, names = changed.engine, changed.graph.entities
    asked = [*QUESTIONS, ("stranger", "father")]
    heads = np.array([names.id(head) for head, _ in asked])
    relations = np.array([changed.graph.relation_names.id(relation) for _, relation in asked])
    together = engine.answer(engine.asking_batch(heads, relations))
    for q, alone in enumerate(answers(changed, asked)):
        part = slice(together.offsets[q], together.offsets[q + 1])
        found = dict(zip(together.nodes[part].tolist(), together.attention[part].tolist(), strict=True))
        assert {names.id(p.answer): p.score for p in alone} == pytest.approx(found, rel=1e-4, abs=1e-7)


def test_added_facts_are_known_and_removed_ones_are_not(reasoner: dpmpn.Reasoner) -> None:
    changed = reasoner.with_facts(
        add=[("child7", "father", "father7")], remove=[("child0", "mother", "mother0")]
    )
    assert [p.answer for p in every_answer(changed, "child7", "father") if p.known] == ["father7"]
    assert not any(p.known for p in every_answer(changed, "child0", "mother"))
    assert [p.answer for p in every_answer(reasoner, "child0", "mother") if p.known] == ["mother0"]
    assert not any(p.known for p in every_answer(reasoner, "child7", "father"))
    assert len(changed.dataset.train) == len(TRAIN)
    assert changed.evaluate("train", limit=3)["triples"] == 3


def test_answers_say_what_depends_on_unseen_entities(reasoner: dpmpn.Reasoner) -> None:
    changed = reasoner.with_facts([("stranger", "mother", "mother0"), ("child0", "father", "stranger")])
    assert all(p.through_unseen == 1 for p in every_answer(changed, "stranger", "father"))
    from_child = {p.answer: p for p in every_answer(changed, "child0", "father")}
    assert from_child["stranger"].through_unseen == 1
    assert 0 < from_child["child0"].through_unseen < 1
    assert "unseen" in repr(every_answer(changed, "stranger", "father"))
    assert all(p.through_unseen == 0 for p in every_answer(changed, "child4", "father"))
    assert all(p.through_unseen == 0 for p in every_answer(reasoner, "child0", "father"))
    frame = every_answer(changed, "child0", "father").to_frame()
    assert frame["through_unseen"].max() == 1
    assert every_answer(changed, "child0", "father").why("stranger")[-1].facts


def test_changes_without_new_entities_make_nothing_unseen(reasoner) -> None:
    changed = reasoner.with_facts([("child7", "father", "father7")])
    assert all(p.through_unseen == 0 for p in every_answer(changed, "child7", "father"))


def test_a_name_without_a_training_fact_is_unseen(reasoner: dpmpn.Reasoner) -> None:
    assert list(every_answer(reasoner, "child9", "mother")) == []
    changed = reasoner.with_facts([("child9", "father", "father0")])
    assert changed.changes.new_entities == ()
    assert all(p.through_unseen == 1 for p in every_answer(changed, "child9", "mother"))


def test_a_new_answer_is_unseen_where_relations_have_no_inverses(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\n")
    (tmp_path / "graph.txt").write_text("a\tr\tb\nb\ts\ta\n")
    (tmp_path / "sort_test.pairs").write_text("thing$a,thing$b: +")
    task = dpmpn.Reasoner(**TINY).fit(dpmpn.load_dataset(tmp_path)).with_facts([("a", "r", "new")])
    parts = {p.answer: p.through_unseen for p in task.predict("a", "r")}
    assert parts["new"] == 1 and parts["b"] == 0
    assert {p.answer for p in task.predict("a", "r") if p.known} == {"b", "new"}
    assert list(task.predict("new", "s")) == []


def test_files_and_mistakes(reasoner: dpmpn.Reasoner, tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("child7\tfather\tfather7\n", "utf-8")
    assert reasoner.with_facts(tmp_path / "more.tsv").changes.added == 1
    with pytest.raises(dpmpn.UnknownName, match="needs training"):
        reasoner.with_facts([("child7", "employer", "father7")])
    with pytest.raises(dpmpn.RunError, match="with_facts cannot be saved"):
        reasoner.with_facts().save(tmp_path / "copy")
    with pytest.raises(dpmpn.RunError, match="not been trained"):
        dpmpn.Reasoner().with_facts([TRAIN[0]])


def test_training_anew_leaves_changed_reasoners_alone(reasoner: dpmpn.Reasoner) -> None:
    again = dpmpn.Reasoner(**TINY).fit(reasoner.dataset)
    changed = again.with_facts([("stranger", "mother", "mother0")])
    before = answers(changed)
    changed.__dict__.pop("engine")
    again.fit(replace(reasoner.dataset, train=reasoner.dataset.train[:9]))
    assert answers(changed) == before
    assert changed.fit(reasoner.dataset).changes is None
    assert answers(changed) == answers(reasoner)


def test_weights_are_those_of_the_training(reasoner: dpmpn.Reasoner) -> None:
    changed = reasoner.with_facts([("stranger", "mother", "mother0")])
    fresh = build_model(reasoner.graph.n_entities, reasoner.graph.n_relations, reasoner.config.model, 0)
    weights = changed.engine.model.agnn.attend.weight
    assert weights is reasoner.engine.model.agnn.attend.weight
    assert not np.array_equal(weights.detach().numpy(), fresh.agnn.attend.weight.detach().numpy())
