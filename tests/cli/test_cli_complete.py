"""`dpmpn complete` from end to end on a tiny graph: what it prints, writes and refuses."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from tiny_family import TINY, Call

from dpmpn.reasoner.reasoner import Reasoner

COLUMNS = [
    *("rank", "head", "relation", "tail", "probability", "probability_low", "probability_high"),
    *("probability_if_missing", "cases", "score", "support", "through"),
]


def test_the_table_for_people(call: Call, trained: Path) -> None:
    result = call("complete", trained, "--top", 4, "--both-directions", "--heads", "all")
    assert result.code == 0, result.err
    header = next(line for line in result.out.splitlines() if line.startswith("rank"))
    assert header.split() == ["rank", "head", "relation", "tail", "score", "because"]
    assert "too few facts are held out to measure them" in result.out  # one validation fact
    of_demo = call("complete", "demo", "--top", 2).out
    header = next(line for line in of_demo.splitlines() if line.startswith("rank"))
    assert header.split()[4:] == ["probability", "95", "%", "interval", "cases", "because"]
    why = call("complete", "demo", "--top", 2, "--why").out
    assert why.count("Why ") == 2
    assert "because" not in why


def test_json_and_file(call: Call, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "facts.jsonl"
    result = call("complete", "demo", "--top", 5, "--out", out, "--json", "-", "--relation", "in_region")
    report = json.loads(result.out)
    assert list(report["facts"][0]) == COLUMNS
    assert [fact["rank"] for fact in report["facts"]] == [1, 2, 3, 4, 5]
    assert {fact["relation"] for fact in report["facts"]} == {"in_region"}
    assert pl.read_ndjson(out)["tail"].to_list() == [fact["tail"] for fact in report["facts"]]
    assert set(report["calibration"]) == {"questions", "asked", "cases", "expected_calibration_error"}
    graph = Reasoner.load("demo").graph
    for fact in report["facts"]:
        ids = (
            graph.entities.id(fact["head"]),
            graph.relation_names.id("in_region"),
            graph.entities.id(fact["tail"]),
        )
        assert graph.find_edges(*ids) < 0
    again = call("complete", "demo", "--top", 5, "--out", out)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "already exists" in again.err
    unmeasured = call("complete", trained, "--json", "-")
    assert json.loads(unmeasured.out)["calibration"] is None  # one validation fact


def test_many_facts_in_a_file_are_not_all_printed(call: Call, tmp_path: Path) -> None:
    result = call("complete", "demo", "--top", 25, "--out", tmp_path / "facts.csv", "--held-out")
    assert "25 facts in" in result.out
    assert "the first 20 are shown" in result.out
    assert "held out" in result.out
    assert pl.read_csv(tmp_path / "facts.csv").columns == [*COLUMNS, "held_out"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--heads", "some"], "'like', 'stated' or 'all'"),
        (["--relation", "fathr"], "did you mean 'father'"),
        (["--head-type", "person"], "no types"),
        (["--min-probability", "2"], "from 0 to 1"),
        (["--top", "0"], "--top"),
        (["--out", "facts.xls"], ".csv, .tsv, .jsonl"),
        (["--head-type", "person", "--out", "facts.csv"], "no types"),
    ],
)
def test_mistakes_end_with_one_line(
    call: Call,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("complete", trained, *arguments)
    assert result.code == 2
    assert result.err.startswith("dpmpn: ")
    assert result.err.count("\n") == 1
    assert says in result.err
    assert "measured" not in result.out
    assert not list(tmp_path.iterdir())


def test_where_no_fact_is_probable_enough_the_best_is_told(call: Call) -> None:
    result = call("complete", "demo", "--relation", "in_region", "--min-probability", "1")
    assert result.code == 0
    assert "no missing fact is as probable as 1; the best has " in result.out
    assert "no missing facts were found" not in result.out


def test_without_validation_facts_it_says_so(call: Call, family: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unmeasured"
    folder.mkdir()
    shutil.copy(family / "train.txt", folder)
    call("train", folder, "--out", tmp_path / "run", *TINY)
    result = call("complete", tmp_path / "run", "--top", 3)
    assert result.code == 0
    assert "too few facts are held out to measure them" in result.out
    refused = call("complete", tmp_path / "run", "--min-probability", 0.5)
    assert refused.code == 2
    assert "none were measured" in refused.err
