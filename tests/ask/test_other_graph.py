"""A trained model asked on another graph: relations by name, any entities, and a reason where that cannot be."""

from pathlib import Path

import numpy as np
import pytest

import dpmpn
from dpmpn.data.dataset import Dataset
from dpmpn.data.inductive import inductive_split
from dpmpn.models import build_model
from dpmpn.models.strong.settings import StrongSettings

TINY = dict(n_dims=6, n_steps_in_agnn=3, batch_size=10, threads=1, n_epochs=1)
FAMILY = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
AUNTS = [("child0", "aunt", "mother1"), ("child1", "aunt", "mother0")]  # its id comes before the others'
HELD_OUT = [("child6", "father", "father6")]


def elsewhere(facts: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The same facts of other entities, whose ids are the same."""
    return [(f"other {head}", relation, f"other {tail}") for head, relation, tail in facts]


@pytest.fixture(scope="module")
def paper() -> dpmpn.Reasoner:
    return dpmpn.Reasoner(model="paper", **TINY).fit(
        dpmpn.dataset_from_tuples([*FAMILY, *AUNTS], name="family")
    )


@pytest.fixture(scope="module")
def other() -> Dataset:
    return dpmpn.dataset_from_tuples(elsewhere(FAMILY), test=elsewhere(HELD_OUT), name="others")


@pytest.fixture
def relations_alone(paper: dpmpn.Reasoner) -> dpmpn.Reasoner:
    """A reasoner whose model has no row for any entity; it is not asked anything."""
    reasoner = dpmpn.Reasoner.load(paper._fitted().path)
    model = build_model(paper.graph.n_entities, paper.graph.n_relations, StrongSettings(n_dims=6), 0)
    reasoner._trained = (model, paper.graph)
    return reasoner


def test_a_model_of_single_entities_says_why_not_and_what_to_do(paper, other) -> None:
    n_entities = paper.graph.n_entities
    with pytest.raises(dpmpn.ConfigError, match=rf"each of {n_entities} entities.*'others'.*--model strong"):
        paper.on(other)
    with pytest.raises(dpmpn.ConfigError, match="--model strong"):
        paper.with_facts(AUNTS[:1]).on(other)


def test_an_untrained_one_is_refused(other: Dataset) -> None:
    with pytest.raises(dpmpn.RunError, match="not been trained"):
        dpmpn.Reasoner().on(other)


def test_the_graph_has_the_relation_ids_of_the_training(relations_alone, paper, other) -> None:
    asked = relations_alone.on(other)
    known = paper.graph.relation_names
    assert other.graph.relation_names.id("father") != known.id("father")
    assert asked.graph.relation_names is known
    assert asked.graph.entities is other.graph.entities
    head, relation, tail = asked.dataset.test[0]
    assert known.name(int(relation)) == "father"
    assert asked.graph.entities.name(int(head)) == "other child6"
    assert asked.question_ids("other father0", "father", inverse=True)[1] == known.id("father_inv")
    assert np.array_equal(asked.dataset.queries("test")[1], [tail, known.id("father_inv"), head])


def test_the_reasoner_it_was_made_from_stays_as_it_is(relations_alone, paper, other) -> None:
    asked = relations_alone.on(other)
    assert asked.graph.entities.names[0] == "other child0"
    assert relations_alone.graph.entities.names == paper.graph.entities.names
    back = asked.on(paper.dataset)
    assert np.array_equal(back.graph.tails, paper.graph.tails)
    assert np.array_equal(back.graph.relations, paper.graph.relations)


def test_no_entity_is_more_unseen_than_another(relations_alone, other) -> None:
    asked = relations_alone.on(other)
    grown = asked.with_facts([("somebody", "father", "other father0")])
    assert asked.unseen is None and grown.unseen is None
    assert grown.changes.new_entities == ("somebody",) and asked.changes is None
    assert grown.engine.model is asked.engine.model is relations_alone._trained[0]


def test_mistakes(relations_alone, other, tmp_path: Path) -> None:
    with pytest.raises(dpmpn.UnknownName, match="unknown relation 'employer'"):
        relations_alone.on(dpmpn.dataset_from_tuples([("a", "employer", "b")]))
    with pytest.raises(dpmpn.UnknownName, match="needs training"):
        relations_alone.on(other).with_facts([("other child7", "employer", "x")])
    with pytest.raises(dpmpn.RunError, match="made by on or with_facts"):
        relations_alone.on(other).save(tmp_path / "copy")


@pytest.fixture(scope="module")
def strong() -> dpmpn.Reasoner:
    reasoner = dpmpn.Reasoner(model="strong", **TINY)
    return reasoner.fit(dpmpn.dataset_from_tuples([*FAMILY, *AUNTS], name="family"))


def found(reasoner: dpmpn.Reasoner, head: str, relation: str, inverse: bool = False) -> dict[str, float]:
    predictions = reasoner.predict(head, relation, top=100, inverse=inverse, any_role=True)
    return {p.answer.removeprefix("other "): p.score for p in predictions}


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("head", ["child0", "child7", "mother3", "father2"])
def test_who_entities_are_makes_no_difference(strong, other, head: str, inverse: bool) -> None:
    expected = strong.with_facts(remove=AUNTS)  # the same graph of those that were trained on
    asked = strong.on(other)
    for relation in ("mother", "father", "husband"):
        answers = found(asked, f"other {head}", relation, inverse)
        assert answers and answers == pytest.approx(found(expected, head, relation, inverse), rel=1e-5)


def test_answers_say_what_the_other_graph_states(strong, other) -> None:
    answers = {p.answer: p for p in strong.on(other).predict("other child6", "father", 100, any_role=True)}
    assert answers["other father6"].held_out == "test" and not answers["other father6"].known
    assert all(p.through_unseen == 0 for p in answers.values())
    known = strong.on(other).predict("other child0", "mother", top=100, any_role=True)
    assert [p.answer for p in known if p.known] == ["other mother0"]


def test_explanations_are_of_the_other_graph(strong, other) -> None:
    explanation = strong.on(other).explain("other child6", "father", "other father6")
    facts = {key.fact for key in explanation.key_facts}
    assert facts and all(head.startswith("other ") for head, _, _ in facts)


def test_new_entities_in_either_graph(strong, other) -> None:
    fact = [("somebody", "mother", "mother0")]
    assert found(strong.with_facts(fact), "somebody", "father")
    assert found(strong.on(other).with_facts(elsewhere(fact)), "other somebody", "father")


def test_evaluation_on_a_parted_dataset(strong) -> None:
    facts = [
        (f"{kind}{family}", relation, f"{target}{family}")
        for family in range(60)
        for kind, relation, target in (
            ("c", "mother", "m"),
            ("m", "husband", "f"),
            ("c", "father", "f"),
            ("d", "mother", "m"),
        )
    ]
    parted = inductive_split(dpmpn.dataset_from_tuples(facts, name="families"))
    reasoner = dpmpn.Reasoner(model="strong", **TINY).fit(parted.train)
    report = reasoner.on(parted.ask).evaluate("test")
    assert report["triples"] == len(parted.ask.test) and report["unseen"] == 0
    assert 0 < report["both"]["realistic"]["mrr"] <= 1
    assert reasoner.evaluate("test")["triples"] == len(parted.train.test)
