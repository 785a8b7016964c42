"""`dpmpn patterns` shows what a model has learnt: as a table, as JSON and drawn."""

import json
from pathlib import Path

from tiny_family import Call


def test_a_relation_as_table_json_and_drawing(call: Call, trained: Path, tmp_path: Path) -> None:
    record, drawing = tmp_path / "patterns.json", tmp_path / "patterns.svg"
    result = call("patterns", trained, "--relation", "father", "--json", record, "--draw", drawing)
    assert result.code == 0, result
    assert "<X, father, ?>: 6 facts asked for, each hidden" in result.out
    assert "X has father Y if X has a mother that has husband Y." in result.out
    assert f"drawn in {drawing}" in result.out
    (relation,) = json.loads(record.read_text("utf-8"))["relations"]
    assert relation["relation"] == "father" and relation["patterns"]
    for pattern in relation["patterns"]:
        assert pattern["relations"] and pattern["weight"] > 0
    assert drawing.read_text("utf-8").startswith("<svg ")


def test_json_goes_to_standard_output_alone(call: Call, trained: Path) -> None:
    result = call("patterns", trained, "--sample", 2, "--top", 1, "--inverse", "--json", "-")
    relations = json.loads(result.out)["relations"]
    assert [each["relation"] for each in relations] == ["father", "husband", "mother"]
    assert all(each["inverse"] and len(each["patterns"]) <= 1 for each in relations)


def test_mistakes_are_one_line(call: Call, trained: Path) -> None:
    for arguments, said in (
        (("--relation", "fathr"), "did you mean 'father'"),
        (("--sample", "0"), "--sample"),
        (("--relation", "father", "--top", "0"), "--top"),
    ):
        result = call("patterns", trained, *arguments)
        assert result.code == 2 and result.out == ""
        assert result.err.count("\n") == 1 and said in result.err
