"""The command on a tiny graph: what it writes, how it goes on, what it refuses."""

import csv
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from dpmpn.cli.lab import compare
from dpmpn.cli.main import run
from dpmpn.errors import DataError, RunError, Stopped
from dpmpn.evaluate.metrics import TITLES
from dpmpn.lab.compare.comparison import Comparison, Conditions
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS
from dpmpn.lab.figures import PublishedRow

FAST = ["--models", "distmult,transe", "--budget", "0.005", "--threads", "1"]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def call_it(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            run(["compare", *(str(argument) for argument in arguments)])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out + err

    return call_it


@pytest.fixture(scope="session")
def folder(families, tmp_path_factory) -> Path:
    """The dataset as files."""
    place = tmp_path_factory.mktemp("data") / "families"
    place.mkdir()
    names, relations = families.graph.entities.names, families.graph.relation_names.names
    for split in ("train", "valid", "test"):
        rows = families.split(split).tolist()
        lines = [f"{names[head]}\t{relations[relation]}\t{names[tail]}\n" for head, relation, tail in rows]
        (place / f"{split}.txt").write_text("".join(lines))
    return place


def test_writes_everything_and_goes_on(call, folder, tmp_path):
    out = tmp_path / "out"
    code, said = call(folder, "--out", out, *FAST, "--json", tmp_path / "report.json")
    assert code == 0, said
    assert "4 models x 0.005 min" in said

    report = json.loads((out / "compare.json").read_text())
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert [model["name"] for model in report["models"]] == ["dpmpn", "strong", "distmult", "transe"]
    for model in report["models"]:
        result = model["result"]
        assert result["seconds"] >= 0.3
        assert result["test"]["both"]["queries"] == 6
        assert 0 < result["test"]["both"]["realistic"]["mrr"] <= 1
        assert result["curve"][-1]["seconds"] == result["seconds"]
        assert model["machine"]["cores"] >= 1 and model["versions"]["torch"]
        assert ("pykeen" in model["versions"]) is not model["is_own"]
    with (out / "compare.csv").open() as file:
        rows = list(csv.DictReader(file))
    best_first = [float(row["mrr"]) for row in rows]
    assert best_first == sorted(best_first, reverse=True)
    assert {row["model"] for row in rows} == {"dpmpn", "strong", "distmult", "transe"}
    table = (out / "compare.md").read_text()
    assert (
        "**DPMPN**" in table
        and "**dpmpn strong**" in table
        and "| TransE |" in table
        and "trained here" in table
    )
    assert (out / "compare.svg").read_text().startswith("<?xml")
    assert (out / "compare.png").read_bytes().startswith(b"\x89PNG")

    kept = (out / "models" / "dpmpn.json").read_bytes()
    (out / "models" / "distmult.json").unlink()
    code, said = call(folder, "--out", out, *FAST)
    assert code == 0, said
    assert "dpmpn: finished before" in said and "transe: finished before" in said
    assert "1 model x 0.005 min" in said
    assert (out / "models" / "dpmpn.json").read_bytes() == kept
    assert (out / "models" / "distmult.json").exists()

    code, said = call(folder, "--out", out, *FAST, "--seed", 4)
    assert code == 2 and "seed = 0, now it is 4" in said and "dpmpn.json" in said


def test_an_interrupted_comparison_keeps_what_is_finished(families, tmp_path):
    conditions = Conditions(families, 0.002, 0, 1, 0)
    finished = []
    with pytest.raises(Stopped):
        Comparison(conditions, ["distmult"], tmp_path).run(
            end=lambda entrant, _: finished.append(entrant.name), stop=lambda: bool(finished)
        )
    assert finished == ["dpmpn"]
    again = Comparison(conditions, ["distmult"], tmp_path)
    assert list(again.finished) == ["dpmpn"]
    assert [entrant.name for entrant in again.left()] == ["strong", "distmult"]
    assert "DPMPN" in (tmp_path / "compare.md").read_text()


def test_published_rows_are_marked(families, tmp_path, monkeypatch):
    shown = {"mrr": "43.7 (.1)"}
    rows = [
        PublishedRow(system, {**dict.fromkeys(TITLES), "mrr": 43.7}, "someone", False, shown)
        for system in ("M-Walk", "RotatE")
    ]
    monkeypatch.setattr("dpmpn.lab.compare.report.published_rows", lambda dataset: rows)
    Comparison(Conditions(families, 0.002, 0, 1, 0), [], tmp_path).run()
    table = (tmp_path / "compare.md").read_text()
    assert "| M-Walk (published) | 43.7 (.1) | - |" in table
    assert "RotatE" not in table  # there is a library to train it with


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "transe,transx"], "unknown model 'transx' in --models; there are transe, transr"),
        (["--budget", "0"], "'--budget' must be"),
        (["--budget", "nan"], "'--budget' must be"),
    ],
)
def test_mistakes(call, folder, tmp_path, arguments, message):
    code, said = call(folder, "--out", tmp_path / "out", *arguments)
    assert code == 2 and message in said
    assert not (tmp_path / "out").exists()


def test_without_pykeen_it_says_how_to_get_it(call, folder, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pykeen"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pykeen", None)
    code, said = call(folder, "--out", tmp_path / "out", *FAST)
    assert code == 2 and "pip install 'dpmpn[baselines]'" in said


def test_our_model_alone_needs_no_pykeen(call, folder, tmp_path, monkeypatch):
    version = metadata.version
    monkeypatch.setitem(sys.modules, "pykeen.models", None)
    monkeypatch.setattr(metadata, "version", lambda name: version({"pykeen": "not there"}.get(name, name)))
    code, said = call(
        folder, "--out", tmp_path / "out", "--models", "", "--budget", "0.002", "--threads", "1"
    )
    assert code == 0, said
    assert "| **DPMPN** |" in (tmp_path / "out" / "compare.md").read_text()


def test_models_added_later_join_the_earlier_ones(families, tmp_path):
    conditions = Conditions(families, 0.002, 0, 1, 0)
    Comparison(conditions, ["transe"], tmp_path).run()
    earlier = (tmp_path / "models" / "transe.json").read_bytes()
    report = Comparison(conditions, ["distmult"], tmp_path).run()
    assert {model["name"] for model in report["models"]} == {"dpmpn", "strong", "distmult", "transe"}
    assert "| TransE |" in (tmp_path / "compare.md").read_text()
    assert (tmp_path / "models" / "transe.json").read_bytes() == earlier
    for name in ("dpmpn", "strong"):
        (tmp_path / "models" / f"{name}.json").unlink()
    with pytest.raises(RunError, match=r"transe\.json was made with seed = 0, now it is 1"):
        Comparison(replace(conditions, seed=1), ["rotate"], tmp_path)


def test_one_way_tasks_are_refused(families):
    with pytest.raises(DataError, match="one way"):
        Conditions(replace(families, both_directions=False), 1, 0, 1, 0)


def test_the_help_names_every_embedding_model():
    named = compare.__doc__.partition("Embedding models are ")[2].partition(".")[0]
    assert re.findall(r"[\w-]+", re.sub(r"\sand\s", ", ", named)) == list(EMBEDDING_MODELS)
