"""The option --on: the graph it names is loaded and asked, and what cannot be asked so is refused in one line."""

import json
from pathlib import Path

import pytest
from tiny_family import FACTS, Call

from dpmpn.data.dataset import Dataset
from dpmpn.reasoner.reasoner import Reasoner

ASKING = [("evaluate",), ("predict", "child0", "mother"), ("explain", "child0", "mother")]


@pytest.fixture
def others(tmp_path: Path) -> Path:
    """A folder of triples of the family's relations and of nobody of the family."""
    folder = tmp_path / "others"
    folder.mkdir()
    rows = [f"other {head}\t{relation}\tother {tail}\n" for head, relation, tail in FACTS]
    (folder / "train.txt").write_text("".join(rows))
    (folder / "test.txt").write_text("other child7\tfather\tother father7\n")
    return folder


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The datasets that a model was asked on, which is the paper's and stays on its own graph."""
    names: list[str] = []

    def on(reasoner: Reasoner, dataset: Dataset) -> Reasoner:
        names.append(dataset.name)
        return reasoner

    monkeypatch.setattr(Reasoner, "on", on)
    return names


@pytest.mark.parametrize("command", ASKING)
def test_the_papers_model_is_refused(
    call: Call, trained: Path, others: Path, command: tuple[str, ...]
) -> None:
    name, *rest = command
    result = call(name, trained, *rest, "--on", others)
    assert result.code == 2 and result.out == ""
    assert result.err.count("\n") == 1
    assert "'others'" in result.err and "--model strong" in result.err


@pytest.mark.parametrize("command", ASKING)
def test_a_graph_that_is_not_there(call: Call, trained: Path, command: tuple[str, ...]) -> None:
    name, *rest = command
    result = call(name, trained, *rest, "--on", "countris")
    assert result.code == 2 and "unknown dataset 'countris'" in result.err


@pytest.mark.parametrize("command", ASKING)
def test_the_named_graph_is_asked(call: Call, trained: Path, others: Path, named, command) -> None:
    name, *rest = command
    result = call(name, trained, *rest, "--on", others)
    assert result.code == 0, result.err
    assert named == ["others"]
    assert result.out.startswith("asking about ")
    json.loads(call(name, trained, *rest, "--on", others, "--json", "-").out)  # and nothing beside it


def test_questions_of_a_file(call: Call, trained: Path, others: Path, named, tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("head,relation\nchild0,mother\n")
    options = ["--queries", tmp_path / "asked.csv", "--out", tmp_path / "answers.csv", "--on", others]
    assert call("predict", trained, *options).code == 0
    assert named == ["others"]


def test_another_run_is_a_graph_too(call: Call, trained: Path, named) -> None:
    assert call("evaluate", trained, "--on", trained).code == 0
    assert named == ["family"]


def test_a_strong_model_from_end_to_end(call: Call, family: Path, others: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    sizes = [
        "--n-dims",
        "6",
        "--n-steps-in-agnn",
        "3",
        "--batch-size",
        "8",
        "--epochs",
        "1",
        "--threads",
        "1",
    ]
    assert call("train", family, "--out", run, "--model", "strong", *sizes).code == 0
    report = json.loads(call("evaluate", run, "--on", others, "--json", "-").out)
    assert report["on"] == "others" and report["triples"] == 1
    shown = call("predict", run, "other child7", "father", "--on", others, "--top", 100)
    assert shown.code == 0 and "other father7" in shown.out and "held out" in shown.out
    assert "other child7" in call("explain", run, "other child7", "father", "--on", others).out
    unknown = call("predict", run, "child7", "father", "--on", others)
    assert unknown.code == 2 and "unknown entity 'child7'" in unknown.err
    added = tmp_path / "more.tsv"
    added.write_text("somebody\tmother\tother mother0\n")
    assert call("predict", run, "somebody", "father", "--on", others, "--add", added).code == 0
