"""`dpmpn predict` with a file of questions, with labels, and with facts added or removed."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tiny_family import Call

from dpmpn.ask import answer_files
from dpmpn.reasoner.reasoner import Reasoner


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.csv"
    path.write_text("head,relation,inverse,note\nchild0,mother,,mine\nmother0,mother,true,\n")
    return path


def test_all_questions_of_a_file(call: Call, trained: Path, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.csv"
    result = call("predict", trained, "--queries", questions, "--out", out, "--top", 2, "--any-role")
    assert result.code == 0
    assert "2 of 2 questions answered" in result.out
    assert f"4 rows in {out}" in result.out
    answers = pl.read_csv(out)
    assert answers["note"].to_list() == ["mine", "mine", None, None]
    single = json.loads(
        call(
            "predict", trained, "mother0", "mother", "--inverse", "--top", 2, "--any-role", "--json", "-"
        ).out
    )
    rows = answers.filter(pl.col("query") == 2)
    assert rows["answer"].to_list() == [answer["answer"] for answer in single]
    assert rows["score"].to_list() == pytest.approx([a["score"] for a in single], rel=1e-4)


def test_the_report_as_json(call: Call, trained: Path, questions: Path, tmp_path: Path) -> None:
    with questions.open("a") as file:
        file.write("nobody,mother,,\n")
    command = ["predict", trained, "--queries", questions, "--out", tmp_path / "a.jsonl", "--json", "-"]
    report = json.loads(call(*command, "--skip-unknown", "--why").out)
    assert (report["questions"], report["answered"], report["unknown"]) == (3, 2, 1)
    assert report["out"] == str(tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert report["rows"] == len(rows)
    assert all(row["why"] for row in rows[:-1])
    assert rows[-1]["problem"] == "unknown entity 'nobody'"


def test_what_was_left_out_is_said(call: Call, trained: Path, questions: Path, tmp_path: Path) -> None:
    with questions.open("a") as file:
        file.write("nobody,mother,,\n")
    command = ["predict", trained, "--queries", questions, "--out", tmp_path / "a.csv"]
    refused = call(*command)
    assert refused.code == 2
    assert f"unknown entity 'nobody'; {questions}, row 3;" in refused.err
    assert "--skip-unknown" in refused.err
    assert "1 was left out" in call(*command, "--skip-unknown").out


def test_a_stopped_run_says_how_to_go_on(
    call: Call, trained: Path, questions: Path, tmp_path: Path, monkeypatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    command = ["predict", trained, "--queries", questions, "--out", tmp_path / "a.csv"]
    with monkeypatch.context() as patch:
        patch.setattr(answer_files.Answerer, "answer", stopped)
        result = call(*command)
    assert result.code == 130
    assert "run the same command again" in result.err
    assert call(*command).code == 0
    again = call(*command)
    assert again.code == 2
    assert "already exists" in again.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give HEAD and RELATION, or --queries FILE"),
        (["child0"], "give HEAD and RELATION, or --queries FILE"),
        (["child0", "mother", "--out", "a.csv"], "--out goes with --queries"),
        (["child0", "mother", "--skip-unknown"], "--skip-unknown goes with --queries"),
        (["--queries", "q.csv"], "--queries needs --out"),
        (["child0", "mother", "--queries", "q.csv", "--out", "a.csv"], "not both; leave out 'child0'"),
        (["--queries", "q.csv", "--out", "a.csv", "--inverse"], "a column 'inverse'"),
        (["--queries", "no.csv", "--out", "a.csv"], "no such file"),
        (["--queries", "q.csv", "--out", "a.doc"], "end it in .csv"),
        (["--queries", "q.csv", "--out", "no/a.csv"], "make it or choose another --out"),
    ],
)
def test_wrong_combinations(
    call: Call, trained: Path, tmp_path: Path, monkeypatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.csv").write_text("head,relation\nchild0,mother\n")
    result = call("predict", trained, *arguments)
    assert result.code == 2
    assert says in result.err
    assert result.err.startswith("dpmpn: ") and result.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["q.csv"]


def test_facts_can_be_added_and_removed(call: Call, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("baby\tmother\tmother0\n")
    (tmp_path / "other.csv").write_text("head,relation,tail\nbaby,father,father0\n")
    (tmp_path / "fewer.tsv").write_text("child0\tmother\tmother0\n")
    changes = ["--add", tmp_path / "more.tsv", "--add", tmp_path / "other.csv"]
    shown = call("predict", trained, "baby", "mother", *changes)
    assert shown.code == 0, shown.err
    assert "2 facts added, 1 new entity: baby" in shown.out.splitlines()
    assert "through new" in shown.out and "100%" in shown.out
    assert "known" in shown.out
    removed = call("predict", trained, "child0", "mother", "--remove", tmp_path / "fewer.tsv", "--json", "-")
    assert not any(answer["known"] for answer in json.loads(removed.out))
    assert "through new" not in call("predict", trained, "child0", "mother").out


def test_what_became_of_the_changes_is_told(call: Call, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("".join(f"baby{i}\tmother\tmother0\n" for i in range(5)))
    shown = call("predict", trained, "baby0", "mother", "--add", tmp_path / "more.tsv")
    assert "5 facts added, 5 new entities: baby0, baby1, baby2 and 2 more" in shown.out.splitlines()
    (tmp_path / "fewer.tsv").write_text("child7\tfather\tfather7\nchild7\tfather\tfather0\n")
    shown = call("predict", trained, "child0", "mother", "--remove", tmp_path / "fewer.tsv")
    said = "0 facts removed, 2 were not there to be removed (1 is held out, so not in the graph)"
    assert said in shown.out.splitlines()
    (tmp_path / "one.tsv").write_text("child0\tmother\tmother0\n")
    shown = call("predict", trained, "child0", "mother", "--add", tmp_path / "one.tsv", "--json", "-")
    assert "0 facts added, 1 was there already" in shown.err and isinstance(json.loads(shown.out), list)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("four.csv", b"a,b,c,d\ne,f,g,h\n", "not clear; write the columns head, relation and tail"),
        ("two.tsv", b"a\tb\n", "head, relation and tail"),
        ("short.tsv", b"a\tb\tc\nd\te\n", "line 2"),
        ("bytes.tsv", b"a\tb\tc\nd\te\t\xff\n", "line 2"),
        ("text.parquet", b"a\tb\tc\n", "text.parquet"),
        ("bad.jsonl", b'{"head": "a", "relation": "r", "tail": "b"}\n{"head"\n', "line 2"),
    ],
)
def test_mistakes_in_changes_advise_nothing_this_command_does_not_have(
    call: Call, trained: Path, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    for option in ("--add", "--remove"):
        result = call("predict", trained, "child0", "mother", option, tmp_path / name)
        assert result.code == 2 and result.err.count("\n") == 1
        assert says in result.err
        assert "--" not in result.err
        assert ";" in result.err  # something is advised


def test_labels_are_shown_beside_identifiers(
    call: Call, trained: Path, tmp_path: Path, monkeypatch, questions: Path
) -> None:
    load = Reasoner.load

    def labelled(run_dir: Path, **settings: str) -> Reasoner:
        reasoner = load(run_dir, **settings)
        graph = reasoner.dataset.graph
        frame = pl.DataFrame({"id": ["mother0"], "name": ["Ada"], "description": [None], "type": [None]})
        frame = frame.cast(pl.String)
        entities = graph.entities.labelled(frame)
        reasoner.__dict__["dataset"] = replace(reasoner.dataset, graph=replace(graph, entities=entities))
        return reasoner

    monkeypatch.setattr(Reasoner, "load", labelled)
    shown = call("predict", trained, "child0", "mother", "--why")
    assert "identifier" in shown.out
    row = next(line for line in shown.out.splitlines() if "mother0" in line)
    assert "Ada" in row
    questions.write_text("head,relation,inverse\nADA,mother,true\nchild0,mother,\n")
    assert call("predict", trained, "--queries", questions, "--out", tmp_path / "a.csv").code == 0
    answers = pl.read_csv(tmp_path / "a.csv")
    assert dict(answers.select("answer", "label").iter_rows())["mother0"] == "Ada"
    assert dict(answers.select("answer", "label").iter_rows())["child0"] == "child0"
