"""`dpmpn complete` from end to end on a tiny graph: what it prints, writes and refuses."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from tiny_family import FACTS, TINY, Call

COLUMNS = [
    *("rank", "head", "relation", "tail", "probability", "probability_low", "probability_high"),
    *("attention", "right", "of", "support", "through"),
]


def test_the_table_for_people(call: Call, trained: Path) -> None:
    result = call("complete", trained, "--top", 4)
    assert result.code == 0, result.err
    header = next(line for line in result.out.splitlines() if line.startswith("rank"))
    assert header.split() == [
        "rank",
        "head",
        "relation",
        "tail",
        "probability",
        "right",
        "on",
        "validation",
        "because",
    ]
    assert "1 validation fact; calibration error of first answers" in result.out
    assert "% of " in result.out
    why = call("complete", trained, "--top", 2, "--why").out
    assert why.count("Why ") == 2
    assert "because" not in why


def test_json_and_file(call: Call, trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "facts.jsonl"
    result = call("complete", trained, "--top", 5, "--out", out, "--json", "-", "--relation", "father")
    report = json.loads(result.out)
    assert list(report["facts"][0]) == COLUMNS
    assert [fact["rank"] for fact in report["facts"]] == [1, 2, 3, 4, 5]
    assert {fact["relation"] for fact in report["facts"]} == {"father"}
    assert pl.read_ndjson(out)["tail"].to_list() == [fact["tail"] for fact in report["facts"]]
    assert set(report["calibration"]) == {
        *("questions", "asked", "facts"),
        *("expected_calibration_error_before", "expected_calibration_error_after"),
        *("expected_calibration_error_of_first_before", "expected_calibration_error_of_first_after"),
    }
    stated = {tuple(fact) for fact in FACTS}
    assert not stated & {(fact["head"], fact["relation"], fact["tail"]) for fact in report["facts"]}
    again = call("complete", trained, "--top", 5, "--out", out)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "exists already" in again.err


def test_many_facts_in_a_file_are_not_all_printed(call: Call, trained: Path, tmp_path: Path) -> None:
    result = call("complete", trained, "--top", 25, "--out", tmp_path / "facts.csv", "--held-out")
    assert "25 facts in" in result.out
    assert "the first 20 are shown" in result.out
    assert "held out" in result.out
    assert pl.read_csv(tmp_path / "facts.csv").columns == [*COLUMNS, "held_out"]


def test_probabilities_are_measured_once(call: Call, trained: Path) -> None:
    kept = trained / "calibration.json"
    call("complete", trained, "--top", 1, "--recalibrate")
    before = kept.stat().st_mtime_ns
    call("complete", trained, "--top", 1)
    assert kept.stat().st_mtime_ns == before
    call("complete", trained, "--top", 1, "--ask-attending-from-per-step", 2)
    assert kept.stat().st_mtime_ns != before


def test_the_drawing(call: Call, trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    result = call("complete", trained, "--top", 1, "--reliability", tmp_path / "drawing.svg")
    assert result.code == 0
    assert (tmp_path / "drawing.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--heads", "some"], "'like', 'stated' or 'all'"),
        (["--relation", "fathr"], "did you mean 'father'"),
        (["--head-type", "person"], "no types"),
        (["--min-probability", "2"], "from 0 to 1"),
        (["--top", "0"], "--top"),
        (["--out", "facts.xls"], ".csv, .tsv, .jsonl"),
        (["--reliability", "drawing.bmp"], ".svg or .png"),
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


def test_where_no_fact_is_probable_enough_the_best_is_told(call: Call, trained: Path) -> None:
    result = call("complete", trained, "--min-probability", "1")
    assert result.code == 0
    assert "no missing fact is as probable as 1; the best has 0." in result.out
    assert "no missing facts were found" not in result.out


def test_without_validation_facts_it_says_so(call: Call, family: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unmeasured"
    folder.mkdir()
    shutil.copy(family / "train.txt", folder)
    call("train", folder, "--out", tmp_path / "run", *TINY)
    result = call("complete", tmp_path / "run", "--top", 3)
    assert result.code == 0
    assert "no validation facts" in result.out
    assert "attention" in result.out
    refused = call("complete", tmp_path / "run", "--reliability", tmp_path / "drawing.svg")
    assert refused.code == 2
    assert "needs validation facts" in refused.err
