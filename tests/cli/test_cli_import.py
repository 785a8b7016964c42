"""`dpmpn import`: from files nobody cleaned to a trained model that is asked by labels."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_family import FACTS, HELD_OUT, TINY, Call

from dpmpn.data.importer import load_dataset

EVERYTHING = [*FACTS, *HELD_OUT["valid"], *HELD_OUT["test"]]


def write_csv(path: Path) -> Path:
    lines = ["when;object;subject;predicate"] + [f'2020;"{t}";{h};"{r}"' for h, r, t in EVERYTHING]
    path.write_text("\r\n".join(lines) + "\r\n")
    return path


def test_from_a_file_with_labels_to_an_answer(call: Call, tmp_path: Path) -> None:
    labels = tmp_path / "names.tsv"
    labels.write_text("id\tname\ttype\nchild0\tKarl\tperson\nfather0\tHans\tperson\nfather\tis child of\t\n")
    graph, run = tmp_path / "graph", tmp_path / "run"
    facts = write_csv(tmp_path / "facts.csv")
    made = call("import", facts, "--labels", labels, "--out", graph, "--json", tmp_path / "report.json")
    assert made.code == 0, made.err
    assert "facts.csv: 24 read" in made.out and "24 entities, 3 relations" in made.out
    assert json.loads((tmp_path / "report.json").read_text())["labels"] == {"entities": 2, "relations": 1}
    assert call("train", graph, "--out", run, *TINY).code == 0
    asked = call("predict", run, "karl", "is child of", "--json", "-")
    assert asked.code == 0, asked.err
    answers = {answer["answer"]: answer for answer in json.loads(asked.out)}
    assert answers["father0"]["label"] == "Hans"
    shown = call("predict", run, "child0", "father", "--why")
    assert "Hans" in shown.out and "father0" in shown.out


def test_a_folder_of_splits(call: Call, family: Path, tmp_path: Path) -> None:
    assert call("import", family, "--out", tmp_path / "graph").code == 0
    found, expected = load_dataset(tmp_path / "graph"), load_dataset(family)
    assert found.graph.entities.names == expected.graph.entities.names
    for split in ("train", "valid", "test"):
        assert sorted(found.split(split).tolist()) == sorted(expected.split(split).tolist())


def test_given_validation_and_packed_lines(call: Call, tmp_path: Path) -> None:
    text = "".join("\t".join(fact) + "\n" for fact in FACTS) + "lonely\n"
    (tmp_path / "facts.tsv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "valid.jsonl").write_text(json.dumps(HELD_OUT["valid"][0]) + "\n")
    arguments = [
        "import",
        tmp_path / "facts.tsv.gz",
        "--valid",
        tmp_path / "valid.jsonl",
        "--out",
        tmp_path / "g",
    ]
    refused = call(*arguments)
    assert refused.code == 2 and "line 23" in refused.err and "--skip-bad" in refused.err
    assert not (tmp_path / "g").exists()
    made = call(*arguments, "--skip-bad")
    assert made.code == 0, made.err
    assert "1 left out" in made.out and "line 23" in made.out
    assert "22 train, 1 valid, 0 test" in made.out and "split: as given" in made.out


def test_columns_by_name_and_position(call: Call, tmp_path: Path) -> None:
    facts = write_csv(tmp_path / "facts.csv")
    for n, columns in enumerate(("subject,predicate,object", "3,4,2")):
        made = call("import", facts, "--columns", columns, "--split", "none", "--out", tmp_path / f"g{n}")
        assert made.code == 0, made.err
        assert "24 train, 0 valid" in made.out
        assert "nothing is held out" in made.out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--split", "half"], "--split must be random, time or none, not 'half'"),
        (["--columns", "a,b"], "must name three columns"),
        (["--columns", "a,b,c"], "'a'"),
        (["--valid-share", "0.6", "--test-share", "0.5"], "leave facts to train on"),
        (["--split", "time"], "--time-column"),
        (["--time-column", "when"], "--split time"),
        (["--split", "time", "--time-column", "when", "--valid", "x.csv"], "without --valid and --test"),
        (["--labels", "nowhere.tsv"], "nowhere.tsv"),
        (["--query", "@nowhere.sql"], "nowhere.sql"),
        (["--format", "word"], "word"),
    ],
)
def test_mistakes(call: Call, tmp_path: Path, options: list[str], says: str) -> None:
    result = call("import", write_csv(tmp_path / "facts.csv"), "--out", tmp_path / "g", *options)
    assert result.code == 2 and says in result.err and result.err.count("\n") == 1, result
    assert not (tmp_path / "g").exists()


def test_labels_that_fit_nothing_and_unseen_entities_are_said(call: Call, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("xchild0\tKarl\n")
    (tmp_path / "valid.csv").write_text("head,relation,tail\nnobody,father,father1\n")
    made = call(
        *("import", write_csv(tmp_path / "facts.csv"), "--valid", tmp_path / "valid.csv"),
        *("--labels", tmp_path / "names.tsv", "--out", tmp_path / "my graph"),
    )
    assert made.code == 0, made.err
    assert "labels: 0 of 25 entities" in made.out and "'xchild0'" in made.out
    assert "1 fact of valid with an entity or a relation that no training fact has" in made.out
    assert f"dpmpn train '{tmp_path}/my graph' --out 'runs/my graph'" in made.out


def test_a_folder_with_one_split_twice(call: Call, tmp_path: Path) -> None:
    text = "".join("\t".join(fact) + "\n" for fact in FACTS)
    (tmp_path / "train.txt").write_text(text)
    (tmp_path / "train.pickle").write_bytes(b"\x80\x04.")
    assert call("import", tmp_path, "--out", tmp_path / "g").code == 0
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(text.encode()))
    twice = call("import", tmp_path, "--out", tmp_path / "g2")
    assert twice.code == 2 and "train.txt and train.txt.gz" in twice.err


def test_names_cannot_command_a_terminal(call: Call, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "facts.csv")
    path.write_text(path.read_text().replace("father0", "fa\x1b[2Jther0"))
    assert call("import", path, "--out", tmp_path / "g").code == 0
    assert call("train", tmp_path / "g", "--out", tmp_path / "run", *TINY).code == 0
    shown = call("predict", tmp_path / "run", "child0", "father", "--why")
    assert "fa\\x1b[2Jther0" in shown.out and "\x1b[2J" not in shown.out
    assert "\x1b" not in call("predict", tmp_path / "run", "no\x1b[2Jbody", "father").err


def test_as_a_module(tmp_path: Path) -> None:
    facts = write_csv(tmp_path / "facts.csv")
    command = [sys.executable, "-m", "dpmpn", "import", str(facts), "--out", str(tmp_path / "g")]
    assert subprocess.run(command, capture_output=True).returncode == 0
