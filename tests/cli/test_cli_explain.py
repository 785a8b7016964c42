"""`dpmpn explain` tells, prints and writes why an answer was given, and answers every mistake with a sentence."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tiny_family import Call

from dpmpn.errors import ConfigError
from dpmpn.render.export import FORMAT, VERSION, schema
from dpmpn.render.formats import FORMATS
from dpmpn.wording import counted

FILES = [
    *("explanation.txt", "explanation.json"),
    *("patterns.csv", "paths.csv", "key_facts.csv", "nodes.csv", "edges.csv"),
]
DRAWN = ["explanation.svg", "explanation.png", "explanation.html", "full.dot", "pruned.dot"]


def test_the_text_is_printed(call: Call, trained: Path) -> None:
    result = call("explain", trained, "child0", "mother", "mother0", "--keep-fact")
    assert result.code == 0, result
    assert result.out.startswith("Question: <child0, mother, ?>\nAnswer: mother0, ")
    assert "The graph already states this fact." in result.out
    assert "Query: (child0, mother, mother0)\n\nSelected key edges, from the " in result.out
    assert result.err == ""


def test_without_an_answer_the_first_is_explained(call: Call, trained: Path) -> None:
    predicted = json.loads(call("predict", trained, "child7", "father", "--json", "-").out)
    result = call("explain", trained, "child7", "father", "--why-not", "mother0", "--why-not", "father7")
    assert f"Answer: {predicted[0]['answer']}, the first answer" in result.out
    assert "Why not mother0?\n" in result.out
    assert "Why not father7?\n" in result.out


def test_backwards(call: Call, trained: Path) -> None:
    result = call("explain", trained, "father0", "father", "child0", "--inverse")
    assert result.out.startswith("Question: <?, father, father0>\n")
    assert "Query: (child0, father, father0)" in result.out


def test_an_answer_without_attention_is_explained_away(call: Call, trained: Path) -> None:
    result = call("explain", trained, "child7", "father", "mother1")  # another family: not connected
    assert result.code == 0, result
    assert result.out.startswith("No attention reached mother1: this explains the first answer, ")
    assert "Why not mother1?\n" in result.out


@pytest.mark.parametrize(
    "options",
    [("--json", "-"), ("--format", "json"), ("--format", "csv"), ("--out", "why", "--format", "dot")],
)
def test_no_program_gets_the_record_of_another_answer(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("explain", trained, "child7", "father", "mother1", *options)
    assert (result.code, result.out) == (2, "")
    assert "no attention reached mother1" in result.err and '--why-not "mother1"' in result.err
    assert result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_json_goes_to_standard_output_alone(call: Call, trained: Path, tmp_path: Path) -> None:
    add = tmp_path / "add.tsv"
    add.write_text("head\trelation\ttail\nchild7\tfather\tfather7\n")
    result = call("explain", trained, "child7", "father", "father7", "--add", add, "--format", "json")
    record = json.loads(result.out)
    assert (record["format"], record["version"]) == (FORMAT, VERSION)
    assert record["answer"]["answer"] == "father7"
    assert record["answer"]["known"]
    assert "1 fact added" in result.err
    same = call("explain", trained, "child7", "father", "father7", "--add", add, "--json", "-")
    assert json.loads(same.out) == record
    target = tmp_path / "record.json"
    told = call("explain", trained, "child7", "father", "father7", "--add", add, "--json", target)
    assert json.loads(target.read_text("utf-8")) == record
    assert "Question: " in told.out


def test_patterns_and_graphviz_text_can_be_printed(call: Call, trained: Path) -> None:
    csv = call("explain", trained, "child0", "mother", "mother0", "--format", "csv", "--keep-fact")
    assert csv.out.startswith(
        "pattern,share,sentence,relations,n_instances,heads,answers,support,confidence,"
    )
    assert "child0 has mother mother0; this is the fact that was asked for." in csv.out
    dot = call("explain", trained, "child0", "mother", "mother0", "--format", "dot")
    assert dot.out.startswith("digraph explanation {")
    assert csv.err == dot.err == ""


def test_files_are_written_and_listed(call: Call, trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    result = call("explain", trained, "child0", "mother", "--out", tmp_path / "why")
    assert result.code == 0, result
    assert sorted(path.name for path in (tmp_path / "why").iterdir()) == sorted([*FILES, *DRAWN])
    assert f"written to {tmp_path / 'why'}: {', '.join([*FILES, *DRAWN])}" in result.out
    some = call("explain", trained, "child0", "mother", "--out", tmp_path / "some", "--format", "Text, json")
    assert some.code == 0, some
    assert sorted(path.name for path in (tmp_path / "some").iterdir()) == [
        "explanation.json",
        "explanation.txt",
    ]


def test_png_is_left_out_where_it_cannot_be_drawn(
    call: Call, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> dict[str, bytes]:
        raise ConfigError("PNG needs something that is not here")

    def drawn(*_: object) -> dict[str, bytes]:
        return {}

    for name, write in (("png", missing), ("svg", drawn), ("html", drawn)):
        monkeypatch.setitem(FORMATS, name, replace(FORMATS[name], write=write))
    result = call("explain", trained, "child0", "mother", "--out", tmp_path / "why")
    assert result.code == 0, result
    assert "without png: PNG needs something that is not here" in result.out
    assert (tmp_path / "why" / "explanation.json").exists()
    asked = call("explain", trained, "child0", "mother", "--out", tmp_path / "png", "--format", "png")
    assert (asked.code, asked.err) == (2, "dpmpn: PNG needs something that is not here\n")
    assert not (tmp_path / "png").exists()


def test_key_facts_can_be_taken_away(call: Call, trained: Path, tmp_path: Path) -> None:
    call("explain", trained, "child0", "father", "father0", "--format", "csv", "--out", tmp_path)
    key_facts = tmp_path / "key_facts.csv"
    result = call("predict", trained, "child0", "father", "--remove", key_facts)
    assert result.code == 0, result
    n_facts = key_facts.read_text("utf-8").count("\n") - 1
    assert result.out.startswith(f"{counted(n_facts, 'fact')} removed\n")


def test_facts_are_taken_away_and_the_answer_is_no_longer_known(
    call: Call, trained: Path, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.csv"
    facts.write_text("head,relation,tail\nchild0,father,father0\n")
    result = call("explain", trained, "child0", "father", "father0", "--remove", facts)
    assert result.code == 0, result
    assert result.out.startswith("1 fact removed\n")
    assert "The graph already states this fact." not in result.out


def test_what_if_a_fact_were_not_there_and_with_it(call: Call, trained: Path, tmp_path: Path) -> None:
    asked = ("explain", trained, "child7", "father", "father7")
    result = call(*asked, "--without", "mother7, husband, father7")
    assert result.code == 0, result
    removed, change = result.out.splitlines()[:2]
    assert removed == "1 fact removed" and change.startswith("father7: no attention reaches it; before, ")
    file = tmp_path / "facts.csv"
    file.write_text("head,relation,tail\nmother6,husband,father6\n")
    both = call(*asked, "--with", "child7, mother, mother6", "--remove", file)
    assert both.out.startswith("1 fact added, 1 removed\nfather7: ")
    quoted = call(*asked, "--without", '"mother7", husband, "father, the 7th"')
    assert quoted.code == 2 and "unknown entity 'father, the 7th'" in quoted.err


def test_deciding_facts_are_told_and_written(call: Call, trained: Path) -> None:
    asked = ("explain", trained, "child7", "father", "father7", "--decisive")
    text = call(*asked)
    assert text.code == 0, text
    assert "What decides, found by asking again on changed graphs:" in text.out
    record = json.loads(call(*asked, "--json", "-").out)
    jsonschema.validate(record, schema())
    assert "necessary" in record and "sufficient" in record
    for name in ("necessary", "sufficient"):
        assert (record[name] is None) == (record["decisive"][f"{name}_reason"] is not None)
    assert "necessary" not in json.loads(call(*asked[:-1], "--json", "-").out)


def test_a_stated_answer_is_explained_as_if_unknown(call: Call, trained: Path) -> None:
    asked = ("explain", trained, "child0", "father", "father0")
    unknown = call(*asked)
    assert "It was asked as if it did not" in unknown.out
    assert "child0, father, father0\n" not in unknown.out.partition("Selected key edges")[2]
    kept = call(*asked, "--keep-fact")
    assert "child0, father, father0\n" in kept.out.partition("Selected key edges")[2]


def test_labels_of_a_file(call: Call, trained: Path, tmp_path: Path) -> None:
    labels = tmp_path / "names.tsv"
    labels.write_text("id\tname\nmother0\tMaria\nmother\tis a child of\n")
    result = call("explain", trained, "child0", "is a child of", "Maria", "--labels", labels, "--keep-fact")
    assert result.code == 0, result
    assert "Answer: Maria (mother0), " in result.out
    assert "child0 is a child of Maria." in result.out


def test_the_summary_is_one_line(call: Call, trained: Path, tmp_path: Path) -> None:
    labels = tmp_path / "names.json"
    labels.write_text(json.dumps({"mother0": "Maria\nof the hills", "mother": "is a\nchild of"}))
    options = ("--labels", labels, "--out", tmp_path / "why", "--format", "text")
    result = call("explain", trained, "child0", "mother", "mother0", *options)
    assert result.code == 0, result
    summary, written = result.out.splitlines()
    assert summary.startswith("<child0, is a\\nchild of, ?> Maria\\nof the hills, number ")
    assert written.startswith("written to ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["chld0", "mother"], "unknown entity 'chld0'; did you mean 'child0'"),
        (["child0", "mothr"], "unknown relation 'mothr'; did you mean 'mother'"),
        (["child0", "mother", "mothr0"], "unknown entity 'mothr0'; did you mean 'mother0'"),
        (["child0", "mother", "--why-not", "mothr0"], "unknown entity 'mothr0'; did you mean 'mother0'"),
        (["child0", "mother", "--format", "pdf"], "unknown format 'pdf'; choose among text, json, csv"),
        (["child0", "mother", "--format", ","], "no format is named; choose among"),
        (
            ["child0", "mother", "--format", "svg"],
            "--format svg is written to a file: say where with --out DIR",
        ),
        (["child0", "mother", "--format", "json,csv"], "give --out DIR to write several"),
        (["child0", "mother", "--format", "dot", "--json", "-"], "cannot both be printed"),
        (["child0", "mother", "--n-dims", "3"], "No such option"),
        (["child0", "mother", "--without", "child0, mother"], "give head, relation and tail with commas"),
        (["child0", "mother", "--with", "child0, mothr, mother0"], "unknown relation 'mothr'"),
        (["child0"], "RELATION"),
    ],
)
def test_mistakes(call: Call, trained: Path, arguments: list[str], says: str) -> None:
    result = call("explain", trained, *arguments)
    assert result.code == 2, result
    assert says.lower() in result.err.lower()
    assert result.err.count("\n") == 1
    assert result.out == ""


def test_a_folder_that_cannot_be_made(call: Call, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = call("explain", trained, "child0", "mother", "--out", tmp_path / "file", "--format", "text")
    assert (result.code, result.err) == (
        2,
        f"dpmpn: {tmp_path / 'file'} is not a folder; choose another --out\n",
    )


def test_help_teaches(call: Call) -> None:
    result = call("explain", "--help")
    assert result.code == 0
    for word in ("For example", "--why-not", "--format", "--out", "key_facts.csv"):
        assert word in result.out
