"""Every command from end to end on a tiny graph: what it prints, and the JSON keys others rely on."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_family import FACTS, HELD_OUT, TINY, Call

from dpmpn.cli.output import Output, table
from dpmpn.config import all_settings
from dpmpn.data.registry import DATASETS
from dpmpn.train.run_folder import RunFolder

SCORES = {"mrr", "hits_at_1", "hits_at_3", "hits_at_10"}


def test_help_is_quick_and_lists_the_commands() -> None:
    started = time.monotonic()
    command = [sys.executable, "-c", "from dpmpn.cli.main import run; run(['--help'])"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert time.monotonic() - started < 10  # a second; ten on a busy machine
    assert all(name in result.stdout for name in ("datasets", "train", "evaluate", "predict", "bench"))


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, dpmpn.cli.main; sys.exit('torch' in sys.modules or any('dpmpn.lab' in m for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_setting_is_an_option_with_its_help(call: Call, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    shown = call("train", "--help-all").out
    for leaf in all_settings():
        assert "--" + leaf.key.replace("_", "-") in shown
        assert leaf.help in shown
    assert "--epochs" in shown and "--max-queries" in shown


@pytest.mark.parametrize("command", ["train", "pretrain", "bench"])
def test_the_help_of_a_command_with_many_settings_shows_those_often_used(
    call: Call, monkeypatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    brief, whole = (
        re.findall(r"^│\W+(--[\w-]+)", call(command, text).out, re.M) for text in ("--help", "--help-all")
    )
    assert {"--seed", "--threads", "--help-all"} < set(brief) < set(whole)
    assert len(brief) < 15 and len(whole) > 35
    assert "--batch-size" in whole and "--batch-size" not in brief
    if command == "train":
        assert len([name for name in brief if not name.startswith("--help")]) == 10
        assert {"--preset", "--json", "--memory-budget-mb"} < set(whole)


def test_options_that_the_help_leaves_out_work(call: Call, family: Path, tmp_path: Path) -> None:
    result = call("train", family, "--out", tmp_path / "run", "--batch-size", "many")
    assert (result.code, "batch_size" in result.err) == (2, True)


def test_datasets(call: Call) -> None:
    listed = json.loads(call("datasets", "--json", "-").out)
    assert [row["name"] for row in listed] == list(DATASETS)
    assert all(set(row) == {"name", "kind", "preset", "folder"} for row in listed)
    assert "WN18RR" in call("datasets").out


def test_training_says_what_it_chose_and_what_to_do_next(call: Call, family: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = call(
        "train", family, "--out", out, *TINY, "--max-queries", 20, "--json", tmp_path / "result.json"
    )
    assert result.code == 0
    (told,) = [line for line in result.out.splitlines() if line.startswith("settings: ")]
    assert "model=paper, n_dims=6, " in told and told.endswith("--verbose lists all, with reasons")
    assert " = " not in result.out
    assert f"dpmpn evaluate {out}" in result.out
    head, relation, _ = HELD_OUT["test"][0]
    assert (
        f"To ask it: dpmpn predict {out} {head} {relation} --why; in the browser: dpmpn serve {out}\n"
        in result.out
    )
    report = json.loads((tmp_path / "result.json").read_text())
    assert report["position"] == 20
    assert report["stopped_because"] == "complete"
    assert RunFolder.open(out).config.model.n_dims == 6


def test_training_says_why_it_chose_what_it_did(call: Call, family: Path, tmp_path: Path) -> None:
    out = call("train", family, "--out", tmp_path / "run", *TINY, "--max-queries", 20, "--verbose").out
    assert "\n  n_dims = 6: given\n" in out and "n_dims = 32" not in out
    assert "\n  leak_removal = pairs: " in out
    preset = ("--preset", "countries", "--n-dims", 6, "--max-queries", 20, "--verbose")
    out = call("train", family, "--out", tmp_path / "other", *preset).out
    assert "settings: preset countries: model=paper, n_dims=6, " in out
    assert "\n  batch_size = 64\n" in out and "\n  n_dims = 6: given\n" in out


def test_a_question_is_shown_with_the_names_of_the_graph(call: Call, trained: Path) -> None:
    shown = call("predict", trained, "CHILD7", "Father", "--top", 1)
    assert shown.out.startswith("<child7, father, ?>\n"), shown
    assert call("predict", trained, "FATHER7", "father", "--inverse").out.startswith("<?, father, father7>\n")


def test_a_run_goes_on(call: Call, family: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert call("train", family, "--out", out, *TINY, "--max-queries", 20).code == 0
    result = call("train", family, "--out", out, "--resume", "--epochs", 3, "--json", "-")
    report = json.loads(result.out)
    assert report["position"] == report["total"] == 3 * 44


def test_interrupted_training_says_how_to_go_on(family: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-c", "from dpmpn.cli.main import run; run()", "train", str(family)]
    command += ["--out", str(out), *TINY, "--epochs", "1000000", "--patience", "none"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    while not (out / "best.json").exists():  # the first validation is over
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"Continue with: dpmpn train {family} --out {out} --resume" in printed
    assert RunFolder.open(out).has_weights()


def test_evaluation_has_the_keys_others_rely_on(call: Call, trained: Path) -> None:
    result = call("evaluate", trained, "--per-relation", "--json", "-")
    report = json.loads(result.out)
    assert result.code == 0
    for direction in ("both", "tail", "head"):
        for ties in ("realistic", "optimistic", "pessimistic"):
            assert set(report[direction][ties]) == SCORES
            assert all(0 <= score <= 1 for score in report[direction][ties].values())
        assert 0 <= report[direction]["coverage"] <= 1
    assert report["coverage"] == report["both"]["coverage"]
    assert report["split"] == "test"
    assert set(report["per_relation"]) == {"father"}


def test_evaluation_for_people(call: Call, trained: Path) -> None:
    shown = call("evaluate", trained, "--split", "valid").out
    assert "1 validation fact; 2 questions" in shown
    assert "realistic" not in shown and "MRR" in shown and "coverage" in shown
    assert "realistic" in call("evaluate", trained, "--split", "valid", "--ties").out


def test_training_ends_with_how_good_the_model_is(call: Call, tmp_path: Path) -> None:
    result = call("train", "countries", "--out", tmp_path / "run", "--max-queries", 64, "--json", "-")
    report = json.loads(result.out)["report"]
    assert report["split"] == "test" and report["triples"] == 220 and len(report["per_relation"]) > 3


def test_the_horizon_for_asking_can_be_changed(call: Call, trained: Path) -> None:
    result = call("evaluate", trained, "--ask_attending_from_per_step", 7, "--json", "-")
    assert json.loads(result.out)["horizon"]["max_attending_from_per_step"] == 7


def test_predictions_have_the_keys_others_rely_on(call: Call, trained: Path) -> None:
    answers = json.loads(call("predict", trained, "child0", "mother", "--json", "-").out)
    keys = {"answer", "score", "rank", "known", "label", "through_unseen", "held_out", "probability"}
    keys |= {"probability_low", "probability_high", "probability_if_missing", "cases"}
    assert all(set(answer) == keys for answer in answers)
    assert [answer["rank"] for answer in answers] == list(range(1, len(answers) + 1))
    assert [a["score"] for a in answers] == sorted((a["score"] for a in answers), reverse=True)
    assert [a["answer"] for a in answers if a["known"]] == ["mother0"]


def test_known_answers_can_be_left_out(call: Call, trained: Path) -> None:
    answers = json.loads(
        call("predict", trained, "child0", "mother", "--new", "--any-role", "--json", "-").out
    )
    assert answers and "mother0" not in [answer["answer"] for answer in answers]
    assert answers[0]["rank"] == 1


def test_held_out_answers_are_marked_and_left_out_with_the_known(call: Call, trained: Path) -> None:
    asked = ["predict", trained, "child7", "father", "--top", 100]
    shown = next(line for line in call(*asked).out.splitlines() if "father7" in line)
    assert shown.endswith("held out")
    answers = json.loads(call(*asked, "--json", "-").out)
    assert [(a["answer"], a["held_out"]) for a in answers if a["held_out"]] == [("father7", "test")]
    new = json.loads(call(*asked, "--new", "--json", "-").out)
    assert "father7" not in [answer["answer"] for answer in new] and len(new) == len(answers) - 1


def test_inverse_questions(call: Call, trained: Path) -> None:
    answers = json.loads(call("predict", trained, "mother0", "mother", "--inverse", "--json", "-").out)
    assert [a["answer"] for a in answers if a["known"]] == ["child0"]


def test_predictions_for_people_with_their_reasons(call: Call, trained: Path) -> None:
    shown = call("predict", trained, "Child0", "mother", "--top", 2, "--why").out
    assert "<child0, mother, ?>" in shown  # by the graph's name, not as it was typed
    assert "Why " in shown and "%" in shown
    answers = json.loads(call("predict", trained, "child0", "mother", "--why", "--json", "-").out)
    assert all(0 < path["share"] <= 1.001 for answer in answers for path in answer["why"])
    assert ["child0", "mother", "mother0"] in [f for a in answers for p in a["why"] for f in p["facts"]]


def test_a_name_with_colons_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Output(None).say("a:dog:b")
    shown = table("name")
    shown.add_row("a:cat:b")
    Output(None).show(shown)
    out = capsys.readouterr().out
    assert "a:dog:b" in out and "a:cat:b" in out


def test_a_swapped_head_and_relation_are_told_apart(call: Call, trained: Path) -> None:
    result = call("predict", trained, "father", "child7")
    assert result.code == 2 and "'father' is a relation and 'child7' an entity" in result.err


def test_the_question_is_shown_with_the_names_of_the_graph(call: Call, trained: Path) -> None:
    assert "<child7, father, ?>" in call("predict", trained, "CHILD7", "Father").out


def test_a_file_is_trained_on_without_any_option(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kin.v2.csv").write_text("".join(",".join(fact) + "\n" for fact in FACTS))
    result = call("train", "kin.v2.csv", *TINY, "--max-queries", 20)
    assert result.code == 0 and "runs/kin" in result.out
    assert call("predict", "runs/kin", "child0", "mother").code == 0
    again = call("train", "kin.v2.csv", *TINY)
    assert again.code == 2 and "runs/kin already holds a run" in again.err


@pytest.mark.parametrize("named", ["facts.csv", "countries"])
@pytest.mark.parametrize(
    "words",
    [["predict", "x", "y"], ["explain", "x", "y"], ["complete"], ["evaluate"], ["serve"], ["calibrate"]],
    ids=lambda words: str(words[0]),
)
def test_facts_in_the_place_of_a_run_are_told_what_to_do_with(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("facts.csv").write_text("".join(",".join(fact) + "\n" for fact in FACTS))
    result = call(words[0], named, *words[1:])
    assert result.code == 2 and result.err.count("\n") == 1
    assert f"any-graph --on {named}" in result.err and f"`dpmpn train {named}`" in result.err
