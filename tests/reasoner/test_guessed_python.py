"""What people guess of the Python face works: frames, files and rows to fit, lists to ask, parameters to search."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid

import dpmpn
from dpmpn import DataError, Reasoner, SplitChoice, dataset_from, progress
from dpmpn.errors import RunError, WrongType
from dpmpn.train.run_folder import run_path

FACTS = [
    *((f"child{i}", "mother", f"mother{i}") for i in range(9)),
    *((f"mother{i}", "husband", f"father{i}") for i in range(9)),
    *((f"child{i}", "father", f"father{i}") for i in range(8)),
]
COLUMNS = ["head", "relation", "tail"]
SETTINGS: dict[str, Any] = {
    **{"model": "strong", "n_dims": 4, "threads": 1},
    **{"n_steps_in_agnn": 2, "n_epochs": 0.5},
}


@pytest.fixture(scope="module")
def reasoner() -> Reasoner:
    return Reasoner(**SETTINGS).fit(dataset_from(FACTS, split=SplitChoice("none")))


def graph_of_facts() -> nx.DiGraph:
    graph = nx.DiGraph()
    for head, relation, tail in FACTS:
        graph.add_edge(head, tail, relation=relation)
    return graph


@pytest.mark.parametrize(
    "facts",
    [
        FACTS,
        pd.DataFrame(FACTS, columns=COLUMNS),
        pl.DataFrame(FACTS, schema=COLUMNS, orient="row"),
        pl.DataFrame(FACTS, schema=COLUMNS, orient="row").to_arrow(),
        graph_of_facts(),
    ],
    ids=["rows", "pandas", "polars", "arrow", "networkx"],
)
def test_facts_of_any_kind_are_trained_on(facts: Any) -> None:
    fitted = Reasoner(**SETTINGS).fit(facts)
    assert fitted.graph.n_entities == 27
    assert len(fitted.dataset.valid) and len(fitted.predict("child8", "father"))


def test_a_file_of_facts_is_trained_on(tmp_path: Path) -> None:
    pl.DataFrame(FACTS, schema=COLUMNS, orient="row").write_csv(tmp_path / "facts.csv")
    assert Reasoner(**SETTINGS).fit(tmp_path / "facts.csv").graph.n_forward == 3


def test_several_heads_are_answered_as_each_alone(reasoner: Reasoner) -> None:
    heads = [f"child{i}" for i in range(9)] * 3  # more than are asked together
    batch = reasoner.predict(heads, "father", top=3, any_role=True)
    assert len(batch) == len(heads)
    for head, answers in zip(heads, batch, strict=True):
        alone = reasoner.predict(head, "father", top=3, any_role=True)
        assert [p.answer for p in answers] == [p.answer for p in alone]
        assert answers.explain().question.head == head
    frame = batch.to_frame()
    assert frame["head"].unique(maintain_order=True).to_list() == heads[:9]
    assert batch.to_pandas()["answer"].tolist() == frame["answer"].to_list()
    assert "<child0, father, ?>" in repr(batch) and "and 17 more questions" in repr(batch)
    assert len(batch[:2]) == 2


def test_a_question_is_shown_with_the_names_of_the_graph(reasoner: Reasoner) -> None:
    batch = reasoner.predict(["CHILD0"], " Father ", top=1)
    assert repr(batch).startswith("<child0, father, ?>  ")
    assert repr(reasoner.predict(["father0"], "FATHER", inverse=True)).startswith("<?, father, father0>  ")
    assert batch[0].question.head == "child0" and "&lt;child0, father, ?&gt;" in batch[0]._repr_html_()
    assert "<child0, father, ?>" in repr(batch[0].explain()) and ", score 0." in repr(batch[0].explain())


def test_columns_of_frames_are_lists_of_names(reasoner: Reasoner) -> None:
    for heads in (pd.Series(["child0", "child1"]), pl.Series(["child0", "child1"])):
        assert len(reasoner.predict(heads, ["father", "mother"])) == 2


def test_questions_that_are_none_are_refused_by_a_sentence(reasoner: Reasoner) -> None:
    with pytest.raises(DataError, match="2 heads and 1 relations: give one relation"):
        reasoner.predict(["child0", "child1"], ["father"])
    with pytest.raises(WrongType, match="'head' 2 must be a text, not 5"):
        reasoner.predict(["child0", 5], "father")  # type: ignore[list-item]
    assert not len(reasoner.predict([], "father")) and repr(reasoner.predict([], "father")) == "no questions"


@pytest.mark.parametrize("any_role", [False, True])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_questions_becomes_a_frame_of_answers(
    reasoner: Reasoner, kind: Any, any_role: bool
) -> None:
    asked = {
        "note": ["a", "b", "c"],
        "head": ["child8", "father1", "child8"],
        "relation": ["father", "father", "mother"],
        "inverse": [False, True, False],
    }
    answers = reasoner.predict(kind(asked), top=2, any_role=any_role)
    assert isinstance(answers, kind)
    rows = answers.to_dict("records") if kind is pd.DataFrame else answers.to_dicts()
    for number, (head, relation, inverse) in enumerate(
        zip(asked["head"], asked["relation"], asked["inverse"], strict=True), start=1
    ):
        own = [row for row in rows if row["query"] == number]
        alone = reasoner.predict(head, relation, top=2, inverse=inverse, any_role=any_role)
        assert [row["answer"] for row in own] == [p.answer for p in alone]
        assert {row["note"] for row in own} == {"abc"[number - 1]}


def test_frames_that_hold_no_questions_are_refused_by_a_sentence(reasoner: Reasoner) -> None:
    question = {"head": ["child0"], "relation": ["father"]}
    with pytest.raises(DataError, match="no column 'relation'"):
        reasoner.predict(pd.DataFrame({"head": ["child0"]}))
    with pytest.raises(DataError, match="column 'rank' would clash"):
        reasoner.predict(pl.DataFrame({**question, "rank": [1]}))
    with pytest.raises(DataError, match="row 2 of the questions: the head is None"):
        reasoner.predict(pl.DataFrame({"head": ["child0", None], "relation": ["father"] * 2}))
    with pytest.raises(DataError, match="must hold True or False"):
        reasoner.predict(pl.DataFrame({**question, "inverse": ["no"]}))
    with pytest.raises(dpmpn.UnknownName, match="chld0"):
        reasoner.predict(pl.DataFrame({**question, "head": ["chld0"]}))
    with pytest.raises(WrongType, match="'relation' is missing"):
        reasoner.predict("child0")
    with pytest.raises(WrongType, match="leave out 'relation'"):
        reasoner.predict(pl.DataFrame(question), "father")


def test_what_is_shown_says_what_it_is(reasoner: Reasoner) -> None:
    assert repr(Reasoner()) == "Reasoner(not trained)"
    pretrained = Reasoner.load("any-graph")
    assert repr(pretrained) == "Reasoner(pre-trained, without a graph)"
    asked = pretrained.on(FACTS)
    assert repr(asked) == "Reasoner(any-graph, pre-trained, on mine: 27 entities, 3 relations, 26 facts)"
    assert repr(reasoner) == "Reasoner(strong, trained, on mine: 27 entities, 3 relations, 26 facts)"
    assert "not trained" in Reasoner()._repr_html_() and "pre-trained" in asked._repr_html_()
    odd = pretrained.on([*FACTS, ("child8", "father", "<b>Max</b>")])
    for shown in (odd.predict("child8", "father", top=30), odd.predict(["child8"], "father", top=30)):
        html = shown._repr_html_()
        assert "<table" in html and "&lt;b&gt;Max" in html and "<b>Max" not in html


def test_a_reasoner_shows_its_graph_and_how_good_it_is_in_a_notebook(reasoner: Reasoner) -> None:
    shown = Reasoner.load("demo")._repr_html_()
    assert "<td>countries: 1,026 entities, 13 relations, 2,984 facts</td>" in shown
    assert "<td>153 validation facts and 220 test facts</td>" in shown
    assert re.search(r"<th>validation MRR</th><td>0\.[0-9]{3}</td>", shown)
    assert "<th>probabilities</th><td>measured</td>" in shown
    untested = reasoner._repr_html_()
    assert "<td>nothing</td>" in untested and "MRR" not in untested and "unknown" in untested
    named = Reasoner.load("any-graph").on(dataset_from(FACTS, name="<b>"))
    assert "&lt;b&gt;: 27" in named._repr_html_() and "<b>" not in named._repr_html_()


def test_missing_facts_are_listed_with_what_supports_them(reasoner: Reasoner) -> None:
    facts = reasoner.complete("father", top=5)
    assert set(facts["relation"]) == {"father"} and len(facts) <= 5
    assert not set(facts.select(COLUMNS).iter_rows()) & set(FACTS)
    assert all(facts["support"].list.len() > 0)
    assert facts["probability"].null_count() == len(facts)  # too few facts are held out to measure
    assert facts.equals(reasoner.complete(["father"], top=5))


def test_missing_facts_are_those_of_the_command(tmp_path: Path) -> None:
    run, relation = tmp_path / "run", "in_subregion"
    shutil.copytree(run_path("demo"), run)
    (run / "calibration.json").unlink()
    asked = Reasoner.load(run, threads=1)
    facts = asked.complete(relation, top=7, held_out=True, out=tmp_path / "facts.parquet", progress=False)
    assert (run / "calibration.json").exists(), "what was measured is kept in the run"
    kept = (run / "calibration.json").stat()
    command = ["complete", run, "--relation", relation, "--top", "7", "--held-out", "--threads", "1"]
    command += ["--json", tmp_path / "facts.json"]
    subprocess.run([sys.executable, "-m", "dpmpn", *map(str, command)], check=True, capture_output=True)
    assert (run / "calibration.json").stat().st_mtime_ns == kept.st_mtime_ns, "nothing is measured again"
    told = json.loads((tmp_path / "facts.json").read_text("utf-8"))["facts"]
    assert len(told) == 7 and [fact["tail"] for fact in told] == facts["tail"].to_list()
    assert [fact["probability"] for fact in told] == pytest.approx(facts["probability"].to_list(), rel=1e-4)
    assert pl.read_parquet(tmp_path / "facts.parquet").equals(facts)


def test_missing_facts_are_asked_for_in_words_that_exist(reasoner: Reasoner) -> None:
    with pytest.raises(dpmpn.UnknownName, match="fathr"):
        reasoner.complete("fathr")
    with pytest.raises(dpmpn.ConfigError, match="'heads' must be 'like', 'stated' or 'all', not 'some'"):
        reasoner.complete(heads="some")
    with pytest.raises(dpmpn.ConfigError, match="'top'"):
        reasoner.complete(top=0)
    with pytest.raises(dpmpn.RunError, match="has not been trained"):
        Reasoner().complete()


def test_scikit_learn_copies_and_sets_parameters() -> None:
    reasoner = Reasoner(**SETTINGS)
    assert reasoner.get_params() == {"config": None, **SETTINGS}
    assert clone(reasoner).get_params() == reasoner.get_params()
    for params in ParameterGrid({"n_dims": [4, 6]}):
        fitted = clone(reasoner).set_params(**params).fit(FACTS)
        assert fitted.config.model.n_dims == params["n_dims"]
    with pytest.raises(dpmpn.ConfigError, match="n_dim"):
        reasoner.set_params(n_dim=3)


def test_scikit_learn_searches_over_parameters() -> None:
    folds = KFold(2, shuffle=True, random_state=0)  # else a fold lacks whole relations
    search = GridSearchCV(Reasoner(**SETTINGS), {"n_dims": [4, 6]}, cv=folds, error_score="raise").fit(FACTS)
    assert search.best_estimator_.config.model.n_dims == search.best_params_["n_dims"]
    assert all(0 < score <= 1 for score in search.cv_results_["mean_test_score"])
    assert len(search.best_estimator_.predict("child8", "father"))


def test_a_score_is_the_mean_reciprocal_rank_of_facts() -> None:
    fitted = Reasoner(**SETTINGS).fit(dataset_from(FACTS))
    test = [
        tuple(names.name(int(i)) for names, i in zip(_vocabularies(fitted), row, strict=True))
        for row in fitted.dataset.test
    ]
    whole = fitted.evaluate()["both"]["realistic"]["mrr"]
    assert fitted.score() == pytest.approx(whole) and fitted.score(test) == pytest.approx(whole)
    unknown = [("nobody", "father", "nowhere")]
    assert fitted.score(test + unknown) == pytest.approx(whole * len(test) / (len(test) + 1))
    assert fitted.score(unknown) == 0


def _vocabularies(fitted: Reasoner) -> tuple[Any, Any, Any]:
    return fitted.graph.entities, fitted.graph.relation_names, fitted.graph.entities


def test_a_copy_of_a_pre_trained_reasoner_begins_from_its_model() -> None:
    copied = clone(Reasoner.pretrained(n_epochs=0.5))
    assert copied._start is not None and copied.get_params()["n_epochs"] == 0.5


def test_what_was_trained_is_forgotten_when_parameters_change(reasoner: Reasoner) -> None:
    other = Reasoner(**SETTINGS).fit(FACTS)
    with pytest.raises(dpmpn.RunError, match="has not been trained"):
        other.set_params(n_dims=6).predict("child0", "father")


def test_the_pre_trained_model_is_loaded_by_its_name() -> None:
    assert Reasoner.load("any-graph").on(FACTS).predict("child8", "father")


def test_the_shipped_run_is_loaded_by_its_name_unless_there_is_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = Reasoner.load("demo")
    assert shipped.predict("Serbia", "in_subregion")[0].answer == "Southern Europe"
    assert not list(tmp_path.iterdir())
    (tmp_path / "demo").mkdir()
    with pytest.raises(dpmpn.RunError, match=r"demo has no config\.json"):
        Reasoner.load("demo")


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    told = subprocess.run(
        [sys.executable, "-m", "dpmpn", "--version"], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"dpmpn {version('dpmpn')}\n" and dpmpn.__version__ == version("dpmpn")


def test_what_takes_long_shows_how_far_it_is_where_somebody_watches(
    reasoner: Reasoner, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_SECONDS_UNTIL_SHOWN", 0)

    def shown(work: Callable[[], Any]) -> str:
        screen.seek(0), screen.truncate()
        work()
        return screen.getvalue()

    for what, work in {
        "trained": lambda **how: Reasoner(**SETTINGS).fit(FACTS, **how),
        "asked": lambda **how: reasoner.evaluate("train", **how),
        "explained": lambda **how: reasoner.complete(top=3, **how),
    }.items():
        assert what in shown(work)
        assert not shown(partial(work, progress=False))


def test_a_file_of_facts_is_not_loaded_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("a,r,b\n")
    with pytest.raises(RunError, match=r"is a file, not the folder of a run; .*Reasoner\(\)\.fit\("):
        Reasoner.load(tmp_path / "facts.csv")
