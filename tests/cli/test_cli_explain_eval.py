"""`dpmpn explain-eval` says in a table and in JSON how true explanations are, and in a sentence what is missing."""

import json
from pathlib import Path

import pytest
from tiny_family import FACTS, TINY, Call


def test_a_table_with_its_words_explained(call: Call, trained: Path) -> None:
    result = call("explain-eval", trained, "--split", "train", "--sample", 5)
    assert result.code == 0
    assert "family, train: 5 of 44 questions" in result.out
    for word in ("explanation", "random", "shortest", "Fidelity+", "Fidelity-", "HΔR@5", "bootstrap"):
        assert word in result.out
    assert "all kept" in result.out


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
