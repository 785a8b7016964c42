"""`dpmpn pretrain`: what it says, what it leaves, how it goes on, and what it refuses."""

import json
import shutil
from pathlib import Path

import pytest
from test_cli_mistakes import assert_mistake
from tiny_family import Call

SMALL = [
    *("--n-dims", "4", "--n-steps-in-agnn", "2", "--n-relation-layers", "1", "--threads", "1"),
    *("--batch-size", "4", "--questions", "16"),
]


@pytest.fixture
def neighbours(tmp_path: Path) -> Path:
    """A file of facts to validate on."""
    path = tmp_path / "neighbours.tsv"
    path.write_text(
        "".join(f"house{i}\tbeside\thouse{i + 1}\nhouse{i + 1}\tnear\thouse{i}\n" for i in range(20))
    )
    return path


def test_weights_of_many_graphs(call: Call, family: Path, neighbours: Path, tmp_path: Path) -> None:
    out, result = tmp_path / "weights", tmp_path / "result.json"
    ended = call("pretrain", family, "--validate", neighbours, "--out", out, "--json", result, *SMALL)
    assert ended.code == 0, ended
    assert "train on family: 22 facts, 24 entities and 3 relations" in ended.out
    assert "validate on neighbours.tsv: 40 facts" in ended.out
    assert "validation MRR" in ended.out and f"dpmpn predict {out} --on FACTS" in ended.out
    report = json.loads(result.read_text())
    assert report["stopped_because"] == "complete" and report["position"] >= 16
    assert report["validation"]["graphs"][0]["name"] == "neighbours.tsv"
    assert {"weights.safetensors", "weights.json", "MODEL_CARD.md", "log.jsonl"} <= {
        f.name for f in out.iterdir()
    }
    answered = call("predict", out, "--on", family, "child0", "mother", "--threads", "1")
    assert answered.code == 0, answered


def test_it_goes_on_with_the_settings_it_had(call: Call, family: Path, tmp_path: Path) -> None:
    out = tmp_path / "weights"
    assert call("pretrain", family, "--out", out, *SMALL).code == 0
    assert_mistake(call, "pretrain", family, "--out", out, *SMALL, says=[str(out), "--resume"])
    ended = call("pretrain", family, "--out", out, "--resume", "--questions", "32")
    assert ended.code == 0, ended
    assert json.loads((out / "weights.json").read_text())["card"]["questions"] >= 32
    other = ["pretrain", family, "--out", out, "--resume"]
    assert_mistake(call, *other, "--n-dims", "8", says=[str(out), "n_dims = 4", "cannot become 8"])
    assert_mistake(call, *other, "--validate", family, says=["given twice"])


def test_it_begins_with_weights_that_are_there(call: Call, family: Path, tmp_path: Path) -> None:
    first, out = tmp_path / "first", tmp_path / "weights"
    assert call("pretrain", family, "--out", first, *SMALL).code == 0
    few = ["--questions", "4", "--threads", "1", "--batch-size", "4"]
    ended = call("pretrain", family, "--from", first, "--out", out, *few)
    assert ended.code == 0, ended
    made = json.loads((out / "weights.json").read_text())
    assert made["card"]["start"]["name"] == "first" and made["config"]["model"]["n_dims"] == 4
    assert "began with the weights of first" in (out / "MODEL_CARD.md").read_text()
    new = ["pretrain", family, "--from", first, "--out"]
    assert_mistake(call, *new, out, "--resume", says=["--from cannot go with --resume"])
    assert_mistake(call, *new, tmp_path / "other", "--n-dims", "8", says=["'n_dims' is 4", "cannot become 8"])
    assert_mistake(
        call,
        "pretrain",
        family,
        "--from",
        family,
        "--out",
        tmp_path / "other",
        says=[str(family), "--from takes"],
    )


def test_validation_facts_that_would_change_the_splits_are_refused(
    call: Call, family: Path, tmp_path: Path
) -> None:
    """Where they are apart from all others, other facts are hidden."""
    graph, out = tmp_path / "graph", tmp_path / "weights"
    graph.mkdir()
    shutil.copy(family / "train.txt", graph)
    assert call("pretrain", graph, "--out", out, *SMALL).code == 0
    shutil.copy(family / "valid.txt", graph)
    assert_mistake(call, "pretrain", graph, "--out", out, "--resume", says=[str(out), "graph"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--questions", "0"], ["questions", "from 1 to"]),
        (["--hide-pairs", "1.5"], ["hide_pairs", "from 0 to 1"]),
        (["--least-hidden", "0.6"], ["least_hidden", "0.6", "most_hidden"]),
        (["--learning-rate", "fast"], ["learning_rate", "fast"]),
        (["--max-minutes", "0"], ["--max-minutes"]),
        (["--batches-per-update", "1000"], ["batches_per_update", "64"]),
        (["--model", "strong"], ["--model"]),
        (["--relation-vectors", "turned"], ["--relation-vectors"]),
        (["--resume"], ["no pretraining.json", "leave out --resume"]),
    ],
)
def test_wrong_options(call: Call, family: Path, tmp_path: Path, options: list[str], says: list[str]) -> None:
    assert_mistake(call, "pretrain", family, "--out", tmp_path / "weights", *options, says=says)
    assert not (tmp_path / "weights").exists()


def test_wrong_graphs(call: Call, family: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "weights"]
    assert_mistake(call, "pretrain", "countris", *out, says=["unknown dataset 'countris'", "'countries'"])
    assert_mistake(call, "pretrain", family, family, *out, says=[str(family), "given twice"])
    assert_mistake(call, "pretrain", family, "--out", family, says=[str(family), "not empty"])
    assert_mistake(call, "pretrain", *out, says=["GRAPH"])
    assert not (tmp_path / "weights").exists()
