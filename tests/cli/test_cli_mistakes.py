"""Every mistake ends with one line on standard error and exit code 2, and near names where there are some."""

import os
import signal
from pathlib import Path

import pytest
from tiny_family import TINY, Call


def assert_mistake(call: Call, *arguments: object, says: list[str]) -> None:
    result = call(*arguments)
    assert result.code == 2, result
    assert result.err.startswith("dpmpn: ")
    assert result.err.count("\n") == 1
    for text in says:
        assert text in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--n-dim", 3], ["--n-dim'", "--n-dims"]),
        (["--n-dims", "many"], ["n_dims", "whole number", "many"]),
        (["--n-dims", "0"], ["n_dims", "from 1 to"]),
        (["--softmax", "hard"], ["softmax", "'edge' or 'pair'"]),
        (["--preset", "countrys"], ["unknown preset 'countrys'", "countries"]),
        (["--preset", "nowhere/x.toml"], ["nowhere/x.toml"]),
        (["--max-minutes", "0"], ["--max-minutes"]),
        (["--max-queries", "0"], ["--max-queries"]),
        (["--device", "abacus"], ["device", "cpu"]),
        (["--from", "any-graph", "--resume"], ["--from", "--resume"]),
        (["--from", "any-graph", "--preset", "countries"], ["--from", "--preset"]),
        (["--from", "any-graph", "--model", "strong"], ["--from", "--model strong"]),
        (["--from", "any-graph", "--n-dims", "3"], ["n_dims", "any-graph", "leave it out"]),
        (["--from", "any-grap"], ["any-grap is not there", "any-graph"]),
    ],
)
def test_wrong_options_of_train(call: Call, tmp_path: Path, options: list[object], says: list[str]) -> None:
    assert_mistake(call, "train", "countries", "--out", tmp_path / "run", *options, says=says)
    assert not (tmp_path / "run").exists()


def test_unknown_dataset(call: Call, tmp_path: Path) -> None:
    says = ["unknown dataset 'countris'", "'countries'"]
    assert_mistake(call, "train", "countris", "--out", tmp_path / "run", says=says)
    assert_mistake(call, "bench", "countris", says=says)


def test_what_is_neither_a_dataset_nor_a_file_is_said_to_be_none(call: Call, tmp_path: Path) -> None:
    says = ["unknown dataset", "facts.cvs", "no file or folder of this name"]
    assert_mistake(call, "train", tmp_path / "facts.cvs", says=says)


def test_the_folder_of_a_dataset_is_no_run(call: Call, family: Path, tmp_path: Path) -> None:
    imported = tmp_path / "family"
    assert call("import", family, "--out", imported).code == 0
    for dataset in (family, imported):
        for command in (("evaluate",), ("predict", "child0", "mother"), ("complete",)):
            says = [
                f"{dataset} is a dataset, not a run",
                f"any-graph --on {dataset}",
                f"`dpmpn train {dataset}`",
            ]
            assert_mistake(call, command[0], dataset, *command[1:], says=says)


def test_folder_without_triples(call: Call, tmp_path: Path) -> None:
    assert_mistake(call, "train", tmp_path, "--out", tmp_path / "run", says=["train.txt"])


@pytest.mark.parametrize("command", [("evaluate",), ("predict", "child0", "mother")])
def test_missing_run_folder(call: Call, tmp_path: Path, command: tuple[str, ...]) -> None:
    name, *rest = command
    assert_mistake(call, name, tmp_path / "nothing", *rest, says=["nothing", "not a folder"])
    assert_mistake(call, name, tmp_path, *rest, says=["config.json"])


def test_unknown_head_and_relation(call: Call, trained: Path) -> None:
    assert_mistake(call, "predict", trained, "chld0", "mother", says=["unknown entity 'chld0'", "'child0'"])
    assert_mistake(call, "predict", trained, "child0", "mothr", says=["unknown relation 'mothr'", "'mother'"])


def test_unknown_split(call: Call, trained: Path) -> None:
    assert_mistake(call, "evaluate", trained, "--split", "exam", says=["unknown split 'exam'", "'test'"])


def test_a_run_is_not_overwritten(call: Call, family: Path, trained: Path) -> None:
    assert_train_refused(call, family, trained, ["--resume"], [])


def test_resuming_something_else(call: Call, family: Path, trained: Path, tmp_path: Path) -> None:
    assert_mistake(call, "train", family, "--out", tmp_path / "no", "--resume", says=["not a folder"])
    assert_mistake(call, "train", "countries", "--out", trained, "--resume", says=["'family'", "'countries'"])
    assert_mistake(
        call, "train", family, "--out", trained, "--resume", "--preset", "wn18", says=["--preset", "--resume"]
    )
    assert_train_refused(call, family, trained, ["n_dims"], ["--resume", "--n-dims", "7"])


def assert_train_refused(call: Call, family: Path, out: Path, says: list[str], options: list[str]) -> None:
    """Refused after the dataset was introduced on standard output."""
    result = call("train", family, "--out", out, *options)
    assert result.code == 2
    assert result.err.startswith("dpmpn: ") and result.err.count("\n") == 1
    assert all(text in result.err for text in says)


def test_json_that_cannot_be_written(call: Call, trained: Path, tmp_path: Path) -> None:
    result = call("predict", trained, "child0", "mother", "--json", tmp_path / "no" / "x.json")
    assert result.code == 2
    assert result.err.startswith("dpmpn: cannot write")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tarin"], ["tarin", "train"]),
        (["train"], ["DATASET_OR_FOLDER"]),
        (["predict", "somewhere"], ["HEAD"]),
        (["evaluate", "somewhere", "--n-dims", "3"], ["--n-dims"]),
        (["bench", "countries", "--seconds", "-1"], ["--seconds"]),
    ],
)
def test_wrong_use(call: Call, arguments: list[str], says: list[str]) -> None:
    assert_mistake(call, *arguments, says=says)


def test_no_out_folder_can_be_made(call: Call, family: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = call("train", family, "--out", tmp_path / "file" / "run", *TINY)
    assert result.code == 2 and result.err.startswith("dpmpn: ") and result.err.count("\n") == 1


def test_interruption_outside_training(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("dpmpn.cli.datasets.list_datasets", interrupt)
    result = call("datasets")
    assert result.code == 130 and result.err.startswith("dpmpn: interrupted;")
