"""`dpmpn explain-eval` says in a table and in JSON how true explanations are, and in a sentence what is missing."""

import json
from pathlib import Path

import pytest
from tiny_family import FACTS, TINY, Call

from dpmpn.cli import output


def test_a_table_with_its_words_explained(call: Call, trained: Path) -> None:
    result = call("explain-eval", trained, "--split", "train", "--sample", 5)
    assert result.code == 0
    assert "family, train: 5 of 44 questions" in result.out
    for word in ("explanation", "random", "shortest", "Fidelity+", "Fidelity-", "HΔR@5", "bootstrap"):
        assert word in result.out
    assert "all kept" in result.out
    assert "as `dpmpn explain` shows them" in result.out
    assert "±0" not in result.out and "±<" not in result.out  # of five answers


def test_intervals_of_enough_answers(call: Call, trained: Path) -> None:
    result = call("explain-eval", trained, "--split", "train", "--sample", 20)
    assert "±0." in result.out
    assert "±0.00" not in result.out


def test_other_explanations_are_not_called_those_of_explain(call: Call, trained: Path) -> None:
    result = call("explain-eval", trained, "--split", "train", "--sample", 2, "--kept-paths", 1)
    assert "here of 1 path at most, fewer if they carry 0.9 of the attention" in result.out
    assert "as `dpmpn explain` shows them" not in result.out
    assert "1 facts" not in result.out


@pytest.mark.parametrize("width", [80, 40])
def test_a_narrow_terminal_gets_two_tables_with_whole_cells(
    call: Call, trained: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    wide = call("explain-eval", trained, "--split", "train", "--sample", 12).out
    assert "Are they needed?" not in wide
    monkeypatch.setattr(output, "_PLAIN_WIDTH", width)
    narrow = call("explain-eval", trained, "--split", "train", "--sample", 12).out
    assert narrow.count("Are they needed?") == narrow.count("Are they enough?") > 0
    assert [row.split() for row in narrow.splitlines() if row.startswith("evidence")][:2] == [
        ["evidence", "facts", "Fidelity+", "lost", "rank", "worse", "HΔR@5", "facts@5"],
        ["evidence", "facts", "sparsity", "Fidelity-", "rank", "kept"],
    ]
    assert _cells(wide) == _cells(narrow)
    assert width < 80 or all(len(line) <= width for line in narrow.splitlines())


def _cells(shown: str) -> set[str]:
    """What stands in the rows of explanations."""
    rows = [line.split() for line in shown.splitlines() if line.startswith(("explanation ", "all kept "))]
    return {cell for row in rows for cell in row if cell[0] in "-0123456789"}


def test_json_and_the_seed(call: Call, trained: Path, tmp_path: Path) -> None:
    reports = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ("--split", "train", "--sample", 5, "--seed", seed, "--json", tmp_path / name)
        assert call("explain-eval", trained, *options).code == 0
        report = json.loads((tmp_path / name).read_text("utf-8"))
        assert report.pop("seconds") > 0 and report.pop("seed") == seed
        reports.append(report)
    assert reports[0] == reports[1]
    assert reports[0] != reports[2]
    assert reports[0]["groups"]["all"]["evidence"]["random"]["sufficiency"]["fidelity_minus"]["mean"] <= 1


def test_json_alone_on_standard_output(call: Call, trained: Path) -> None:
    result = call(
        "explain-eval", trained, "--sample", 1, "--kept-paths", 1, "--kept-share", 0.5, "--json", "-"
    )
    report = json.loads(result.out)
    assert (report["kept_paths"], report["kept_share"]) == (1, 0.5)


@pytest.mark.parametrize("share", [0, -1, 1.5, "nan"])
def test_a_share_that_is_none_is_refused(call: Call, trained: Path, share: float) -> None:
    result = call("explain-eval", trained, "--kept-share", share)
    assert result.code == 2 and "--kept-share" in result.err


def test_a_run_without_test_facts_says_what_to_do(call: Call, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    (data / "train.txt").write_text("".join("\t".join(fact) + "\n" for fact in FACTS))
    assert call("train", data, "--out", out, *TINY).code == 0
    result = call("explain-eval", out)
    assert result.code == 2
    assert "has no test triples to ask about; use --split train" in result.err
    assert call("explain-eval", out, "--split", "train", "--sample", 2).code == 0
