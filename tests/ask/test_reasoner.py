"""The Python face: the public names, fitting, asking, measuring, saving, and the examples of the pages."""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import dpmpn
from dpmpn.data.leakage import joined_pairs
from dpmpn.suitable_config import suitable_config

ROOT = Path(__file__).parents[2]
TINY = dict(n_dims=6, n_steps_in_agnn=3, batch_size=10, threads=1, n_epochs=1)
TRAIN = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(8)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(8)),
    *((f"child{i}", "father", f"father{i}") for i in range(6)),
]
VALID = [("child6", "father", "father6")]
TEST = [("child7", "father", "father7")]


@pytest.fixture(scope="module")
def family() -> dpmpn.Dataset:
    return dpmpn.dataset_from_tuples(TRAIN, VALID, TEST, "family")


@pytest.fixture(scope="module")
def reasoner(family: dpmpn.Dataset) -> dpmpn.Reasoner:
    return dpmpn.Reasoner(**TINY).fit(family)


def test_the_public_names() -> None:
    assert set(dpmpn.__all__) == {
        *("load_dataset", "dataset_from_tuples", "Dataset", "KnowledgeGraph", "Config", "load_preset"),
        *("dataset_from", "SplitChoice"),
        *("Reasoner", "Prediction", "Predictions", "PredictionBatch", "Explanation", "WhyNot"),
        *("Pattern", "LearntPatterns"),
        *("DpmpnError", "DataError", "UnknownName", "ConfigError", "RunError"),
    }
    assert all(hasattr(dpmpn, name) for name in dpmpn.__all__)
    assert all(getattr(dpmpn, name).__doc__ for name in dpmpn.__all__)


def test_predictions_are_a_sequence_and_a_frame(reasoner: dpmpn.Reasoner) -> None:
    predictions = reasoner.predict("child0", "mother", top=3, any_role=True)
    assert len(predictions) == 3
    assert predictions[0].rank == 1
    assert [p.answer for p in predictions if p.known] in (["mother0"], [])
    assert predictions[0].score >= predictions[1].score
    frame = predictions.to_frame()
    assert frame.columns == [
        *("answer", "score", "rank", "known", "label", "through_unseen", "held_out", "probability"),
        *("probability_low", "probability_high", "probability_if_missing", "cases"),
    ]
    assert frame["answer"].to_list() == [p.answer for p in predictions]
    assert frame.schema["known"] == pl.Boolean
    assert frame["label"].to_list() == frame["answer"].to_list()
    assert frame["through_unseen"].to_list() == [0.0] * 3
    assert "1. " in repr(predictions)


def test_scores_of_all_answers_add_up_to_one(family: dpmpn.Dataset, reasoner: dpmpn.Reasoner) -> None:
    total = sum(p.score for p in reasoner.predict("child0", "mother", top=1000, any_role=True))
    assert 0 < total < 1  # the stronger model has a prior for entities it did not come to
    paper = dpmpn.Reasoner(**TINY, model="paper").fit(family)
    total = sum(p.score for p in paper.predict("child0", "mother", top=1000, any_role=True))
    assert total == pytest.approx(1, abs=1e-4)


def test_inverse_and_new(reasoner: dpmpn.Reasoner) -> None:
    every = {"top": 100, "any_role": True}
    backward = reasoner.predict("mother0", "mother", inverse=True, **every)
    assert [p.answer for p in backward if p.known] == ["child0"]
    assert [p.answer for p in backward] == [
        p.answer for p in reasoner.predict("mother0", "mother_inv", **every)
    ]
    new = reasoner.predict("mother0", "mother", inverse=True, new=True, **every)
    assert new and not any(p.known for p in new)
    assert len(new) == len(backward) - 1


@pytest.mark.parametrize("any_role", [False, True])
@pytest.mark.parametrize(("number", "split"), [(6, "valid"), (7, "test")])
def test_held_out_facts_are_marked_and_are_not_new(
    reasoner: dpmpn.Reasoner, number: int, split: str, any_role: bool
) -> None:
    child, father = f"child{number}", f"father{number}"
    for question, answer in ((("father", False), father), (("father", True), child)):
        head = child if answer == father else father
        asked = {"inverse": question[1], "top": 100, "any_role": any_role}
        predictions = reasoner.predict(head, question[0], **asked)
        assert not any(p.known for p in predictions)
        assert {p.answer: p.held_out for p in predictions if p.held_out} == {answer: split}
        assert predictions.to_frame().filter(pl.col("held_out") != "")["answer"].to_list() == [answer]
        assert f"{answer}  " in repr(predictions) and repr(predictions).count("held out") == 1
        new = reasoner.predict(head, question[0], new=True, **asked)
        assert bool(new) is any_role  # of a family, no one else fits
        assert [p.answer for p in new] == [p.answer for p in predictions if p.answer != answer]
        assert [p.rank for p in new] == list(range(1, len(new) + 1))


def test_a_held_out_fact_that_is_added_is_known(reasoner: dpmpn.Reasoner) -> None:
    every = {"top": 100, "any_role": True}
    added = reasoner.with_facts(add=[("child7", "father", "father7")]).predict("child7", "father", **every)
    assert [p.answer for p in added if p.known] == ["father7"]
    assert not any(p.held_out for p in added)
    removed = reasoner.with_facts(remove=[("child0", "mother", "mother0")])
    new = removed.predict("child0", "mother", new=True, **every)
    assert new and not any(p.known or p.held_out for p in new)


def test_why(reasoner: dpmpn.Reasoner) -> None:
    predictions = reasoner.predict("child0", "mother", top=100)
    assert predictions.why() == predictions.why(predictions[0].answer)
    (path,) = predictions.why("mother0", top=1)
    assert path.share <= 1.001 and path.labels == ()
    assert path.text == "; ".join(" ".join(fact) for fact in path.facts)
    with pytest.raises(dpmpn.UnknownName):
        predictions.why("mother00")


def test_labels_are_shown_and_understood() -> None:
    labels = pl.DataFrame({"id": ["mother0", "child0"], "name": ["Ada", "Byron"]}).with_columns(
        description=pl.lit(None, pl.String), type=pl.lit(None, pl.String)
    )
    family = dpmpn.dataset_from_tuples(TRAIN, name="family")
    named = family.graph.entities.labelled(labels)
    reasoner = dpmpn.Reasoner(**TINY).fit(replace(family, graph=replace(family.graph, entities=named)))
    predictions = reasoner.predict("Byron", "mother", top=100, any_role=True)
    shown = {p.answer: p.label for p in predictions}
    assert shown["mother0"] == "Ada" and shown["father0"] == "father0"
    assert "Ada (mother0)" in repr(predictions) and "father0 (" not in repr(predictions)
    assert predictions.why("Ada") == predictions.why("mother0")
    path = next(path for path in predictions.why("Ada", top=10) if len(path.facts) == 1)
    assert path.facts == (("child0", "mother", "mother0"),)
    assert path.labels == (("Byron", "mother", "Ada"),)
    assert path.text == "Byron mother Ada" and repr(path) == f"Path({path.share:.0%}: Byron mother Ada)"


def test_a_head_without_facts_has_no_answers() -> None:
    lonely = dpmpn.dataset_from_tuples(TRAIN, test=[("nobody", "mother", "no one")])
    reasoner = dpmpn.Reasoner(**TINY).fit(lonely)
    predictions = reasoner.predict("nobody", "mother")
    assert len(predictions) == 0 and predictions.why() == []
    assert repr(predictions) == "no answers"
    assert predictions.to_frame().height == 0
    assert predictions.why("mother0") == []


def test_a_graph_of_one_entity() -> None:
    reasoner = dpmpn.Reasoner(**TINY).fit(dpmpn.dataset_from_tuples([("a", "r", "a")]))
    (only,) = reasoner.predict("a", "r")
    assert (only.answer, only.known) == ("a", True)
    assert only.score == pytest.approx(1)
    assert list(reasoner.predict("a", "r", new=True)) == []
    assert list(reasoner.with_facts(remove=[("a", "r", "a")]).predict("a", "r")) == []
    assert {p.answer for p in reasoner.with_facts(add=[("a", "r", "b")]).predict("b", "r")} == {"a", "b"}


def test_evaluate(reasoner: dpmpn.Reasoner) -> None:
    report = reasoner.evaluate("test", per_relation=True)
    assert report["queries"] == 2
    assert set(report["both"]["realistic"]) == {"mrr", "hits_at_1", "hits_at_3", "hits_at_10"}
    assert report["coverage"] == report["both"]["coverage"]
    assert reasoner.evaluate("train", limit=3)["triples"] == 3


def test_saved_and_loaded_it_answers_the_same(reasoner: dpmpn.Reasoner, tmp_path: Path) -> None:
    reasoner.save(tmp_path / "copy")
    loaded = dpmpn.Reasoner.load(tmp_path / "copy")
    assert loaded.config == reasoner.config
    before, after = (r.predict("child0", "father", any_role=True).to_frame() for r in (reasoner, loaded))
    assert before.equals(after)
    with pytest.raises(dpmpn.RunError, match="already exists"):
        reasoner.save(tmp_path / "copy")


def test_settings_for_asking_can_be_changed_when_loading(reasoner: dpmpn.Reasoner, tmp_path: Path) -> None:
    reasoner.save(tmp_path / "copy")
    loaded = dpmpn.Reasoner.load(tmp_path / "copy", ask_attending_from_per_step=1)
    assert loaded.evaluate("test")["horizon"]["max_attending_from_per_step"] == 1


def test_mistakes(reasoner: dpmpn.Reasoner) -> None:
    with pytest.raises(dpmpn.UnknownName, match="child0"):
        reasoner.predict("chld0", "mother")
    with pytest.raises(dpmpn.UnknownName, match="mother"):
        reasoner.predict("child0", "mothr")
    with pytest.raises(dpmpn.UnknownName) as error:
        reasoner.predict("child0", "mothers")
    assert error.value.near == ["mother", "father"]  # the inverse ones are the graph's own
    with pytest.raises(dpmpn.ConfigError, match="n_dims"):
        dpmpn.Reasoner(n_dim=3)
    with pytest.raises(dpmpn.ConfigError, match="unknown preset"):
        dpmpn.Reasoner("contries")
    with pytest.raises(dpmpn.RunError, match="not been trained"):
        dpmpn.Reasoner().predict("a", "b")


def test_a_relation_without_an_inverse_cannot_be_asked_backwards(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\n")
    (tmp_path / "graph.txt").write_text("a\tr\tb\nb\ts\ta\n")
    (tmp_path / "sort_test.pairs").write_text("thing$a,thing$b: +")
    task = dpmpn.Reasoner(**TINY).fit(dpmpn.load_dataset(tmp_path))
    with pytest.raises(dpmpn.DataError, match="no inverse"):
        task.predict("b", "r", inverse=True)


def test_progress_is_told(family: dpmpn.Dataset, tmp_path: Path) -> None:
    told = []
    dpmpn.Reasoner(**TINY).fit(family, out=tmp_path / "run", progress=told.append)
    assert told[-1].position == told[-1].total == 44
    assert (tmp_path / "run" / "config.json").exists()


def test_the_settings_that_suit_a_dataset(family: dpmpn.Dataset, tmp_path: Path) -> None:
    countries = dpmpn.load_dataset("countries")
    assert suitable_config(countries) == suitable_config(countries, "strong")
    assert suitable_config(countries)[0].model.name == "strong"
    assert suitable_config(countries, "paper") == (dpmpn.load_preset("countries"), ["preset countries"])
    config, reasons = suitable_config(family)
    assert config.model.n_dims == 32
    assert len(reasons) > 5
    (tmp_path / "countries").mkdir()
    (tmp_path / "countries" / "train.txt").write_text("a\tr\tb\n")
    assert len(suitable_config(dpmpn.load_dataset(tmp_path / "countries"))[1]) > 5


def test_joined_pairs() -> None:
    train = [("a", "r", "b"), ("c", "r", "d"), ("e", "r", "f")]
    valid = [("a", "s", "b"), ("d", "s", "c"), ("a", "s", "d"), ("f", "s", "a")]
    assert joined_pairs(dpmpn.dataset_from_tuples(train, valid)) == 0.5
    assert joined_pairs(dpmpn.dataset_from_tuples(train)) is None


def test_the_first_python_examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of the README, and the first of the page on Python, which trains, asks, explains, measures and saves."""
    readme, page = (
        re.findall(r"```python\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
        for name in ("README.md", "docs/python.md")
    )
    examples = [*readme, page[0]]
    assert readme and ".fit(dataset)" in page[0] and ".evaluate(" in page[0] and ".save(" in page[0]
    # As it stands, but trained for a moment only.
    quick = dpmpn.load_preset("countries").replace(
        n_epochs=0.02, validation_queries=20, n_dims=8, n_dims_att=4, max_attending_from_per_step=3, threads=1
    )
    monkeypatch.setattr("dpmpn.reasoner.reasoner.suitable_config", lambda dataset, model: (quick, []))
    monkeypatch.chdir(tmp_path)
    for example in examples:
        exec(compile(example, "example", "exec"), {})
