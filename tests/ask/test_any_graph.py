"""The model that comes with the package, on graphs of all kinds: that it answers, whatever it answers."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmpn
from dpmpn.errors import ConfigError, DataError, RunError, UnknownName
from dpmpn.reasoner.reasoner import Reasoner

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
PETS = [(f"child{i}", "pet", f"dog{i}") for i in range(6)]


@pytest.fixture(scope="module")
def pretrained() -> Reasoner:
    return Reasoner.pretrained(threads=1)


@pytest.fixture(scope="module")
def family(pretrained: Reasoner) -> Reasoner:
    return pretrained.on(FACTS)


def answers(reasoner: Reasoner, head: str = "child7", relation: str = "father") -> dict[str, float]:
    predictions = reasoner.predict(head, relation, top=100, any_role=True)
    return {each.answer: round(each.score, 5) for each in predictions}


def test_facts_of_any_kind_are_one_graph(pretrained: Reasoner, family: Reasoner, tmp_path: Path) -> None:
    frame = pd.DataFrame(FACTS, columns=["head", "relation", "tail"])
    frame.to_csv(tmp_path / "facts.csv", index=False)
    folder = tmp_path / "folder"
    folder.mkdir()
    frame.to_csv(folder / "train.tsv", index=False, sep="\t")
    expected = answers(family)
    assert "father7" in expected
    for facts in (frame, str(tmp_path / "facts.csv"), folder, dpmpn.dataset_from_tuples(FACTS)):
        assert answers(pretrained.on(facts)) == expected
    assert len(family.dataset.train) == len(FACTS)  # nothing was held out


def test_without_a_graph_it_says_what_to_do(pretrained: Reasoner) -> None:
    for ask in (
        lambda: pretrained.predict("a", "r"),
        lambda: pretrained.with_facts(FACTS),
        lambda: pretrained.evaluate(),
        lambda: pretrained.dataset,
    ):
        with pytest.raises(RunError, match=r'Reasoner.pretrained\(\).on\("facts.csv"\)'):
            ask()


def test_all_that_a_reasoner_does(family: Reasoner) -> None:
    explanation = family.explain("child7", "father", "father7")
    assert explanation.answer.answer == "father7" and "child7" in explanation.text()
    last = family.predict("child7", "father", top=100, any_role=True)[-1].answer
    assert last in family.why_not("child7", "father", last).text()
    assert answers(family, "father7", "husband") != answers(family, "father7", "father")
    inverse = family.predict("mother7", "mother", top=100, inverse=True)
    assert "child7" in {each.answer for each in inverse}
    new = family.predict("child0", "father", new=True, any_role=True)
    assert new and all(not each.known for each in new)
    assert answers(family.in_memory()) == answers(family) == answers(copy.deepcopy(family))
    with pytest.raises(UnknownName, match="did you mean 'mother'"):
        family.predict("child7", "mothr")


def test_held_out_facts_are_asked_and_filtered(pretrained: Reasoner) -> None:
    """Also those of entities and relations that no fact of the graph has."""
    test = [("child7", "father", "father7"), ("stranger", "mother", "mother0"), ("child0", "aunt", "mother1")]
    dataset = dpmpn.dataset_from_tuples(FACTS, valid=[("child6", "father", "father6")], test=test)
    report = pretrained.on(dataset).evaluate()
    assert report["triples"] == 3 and report["queries"] == 6 and report["unseen"] == 1
    assert 0 < report["both"]["realistic"]["mrr"] <= 1
    asked = pretrained.on(dataset)
    assert not asked.graph.has_edge(*dataset.valid[0].tolist())
    (held_out,) = [a for a in asked.predict("child6", "father", top=100) if a.answer == "father6"]
    assert held_out.held_out == "valid"


def test_new_facts_of_new_entities_and_relations(family: Reasoner, pretrained: Reasoner) -> None:
    more = family.with_facts(add=[*PETS, ("child9", "mother", "mother7")], remove=FACTS[:1])
    assert more.changes is not None
    assert more.changes.new_relations == ("pet",) and "dog0" in more.changes.new_entities
    anew = pretrained.on([*FACTS[1:], *PETS, ("child9", "mother", "mother7")])
    for question in (("child7", "father"), ("child9", "father"), ("child7", "pet")):
        changed, fresh = answers(more, *question), answers(anew, *question)
        assert changed.keys() == fresh.keys()
        np.testing.assert_allclose(list(changed.values()), [fresh[name] for name in changed], atol=2e-5)
    assert "pet" not in family.graph.relation_names
    assert "pet" in more.with_facts(remove=PETS).graph.relation_names


def test_labels_of_relations_outlive_a_new_one(family: Reasoner, tmp_path: Path) -> None:
    (tmp_path / "labels.tsv").write_text("id\tname\nfather\thas father\nfather0\tBob\n")
    more = family.with_labels(tmp_path / "labels.tsv").with_facts(add=PETS)
    names = more.graph.relation_names
    assert names.label(names.id("father")) == "has father" and names.id("has father") == names.id("father")
    assert more.graph.entities.label(more.graph.entities.id("father0")) == "Bob"


def test_a_trained_model_still_refuses_new_relations(tmp_path: Path) -> None:
    trained = Reasoner(model="strong", n_dims=4, threads=1, n_steps_in_agnn=2, n_epochs=0.5)
    trained.fit(dpmpn.dataset_from_tuples(FACTS))
    with pytest.raises(UnknownName, match="a relation the model does not know needs training"):
        trained.with_facts(add=PETS)
    (left_out,) = trained.predict("child7", "father").notes  # nothing of what its graph lets expect
    assert left_out.startswith("not shown") and trained.expectations is None
    assert trained.predict("child7", "father", any_role=True).notes == ()


def test_saved_it_need_not_be(pretrained: Reasoner, family: Reasoner, tmp_path: Path) -> None:
    for reasoner in (pretrained, family):
        with pytest.raises(RunError, match="need not be saved"):
            reasoner.save(tmp_path / "saved")
    sent = pickle.loads(pickle.dumps(pretrained))
    assert answers(sent.on(FACTS)) == answers(family)
    with pytest.raises(RunError, match="make it again there"):
        pickle.dumps(family)


def test_settings_for_asking(pretrained: Reasoner) -> None:
    narrow = Reasoner.pretrained(threads=1, ask_attending_to_per_step=1, ask_attending_from_per_step=1)
    assert narrow.config.asking_horizon().max_attending_to_per_step == 1
    assert answers(narrow.on(FACTS)) != answers(pretrained.on(FACTS))
    with pytest.raises(ConfigError, match="unknown"):
        Reasoner.pretrained(no_such_setting=1)


def test_weights_of_ones_own(family: Reasoner, tmp_path: Path) -> None:
    from dpmpn.train.pretrained import shipped, write_pretrained

    folder = tmp_path / "weights"
    folder.mkdir()
    write_pretrained(folder, shipped().model, shipped().config, {})
    own = Reasoner.pretrained(folder, threads=1)
    assert answers(own.on(FACTS)) == answers(family) == answers(pickle.loads(pickle.dumps(own)).on(FACTS))
    with pytest.raises(RunError, match=r"weights\.json"):
        Reasoner.pretrained(tmp_path)


def test_more_relations_than_memory_holds_are_refused(
    pretrained: Reasoner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpmpn.models.any_graph.statistics.memory_budget", lambda _: 2**20)
    asked = pretrained.on([("a", f"r{i}", "b") for i in range(200)])
    with pytest.raises(ConfigError, match=r"400 relations, inverses among them.*head, relation and tail"):
        asked.predict("a", "r0")


@pytest.mark.parametrize("facts", [5, None, "nowhere", "nowhere.csv", [], [("a", "r")], np.zeros(3)])
def test_what_is_no_graph_is_refused(pretrained: Reasoner, facts: object) -> None:
    with pytest.raises((DataError, TypeError)) as refused:
        pretrained.on(facts)
    assert isinstance(refused.value, dpmpn.DpmpnError)
