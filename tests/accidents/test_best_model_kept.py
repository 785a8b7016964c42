"""A better model is never replaced by a worse one, and training goes on only with the facts it began with."""

import json
import shutil
from pathlib import Path

import pytest
from accident_data import SETTINGS, outcome, weights, write_facts
from forked_cli import ForkedCli
from one_line import is_refused

from dpmpn.data.importer import load_dataset
from dpmpn.errors import RunError
from dpmpn.train.checkpoint import best_kept
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and path.name != ".lock"}


def claim(run: Path, mrr: float, position: int = 44) -> None:
    """Say of the best model that its validation was so good, after so many queries."""
    manifest = json.loads((run / "best.json").read_text())
    manifest["validation"].update(mrr=mrr, position=position)
    (run / "best.json").write_text(json.dumps(manifest))


def test_without_a_checkpoint_training_does_not_begin_over_the_best_model(
    cli: ForkedCli, family: Path, trained: Path
) -> None:
    (trained / "checkpoint.json").unlink()
    before = contents(trained)
    for options in (["--resume"], ["--resume", "--epochs", "2"]):
        ended = cli.run("train", family, "--out", trained, *options)
        assert is_refused(ended, "no checkpoint.json", "another --out")
        assert "starts over" not in ended.out
        assert contents(trained) == before
    (trained / "best.json").unlink()  # weights alone may be the best, too
    assert is_refused(cli.run("train", family, "--out", trained, "--resume"), "no checkpoint.json")
    run = RunFolder.open(trained)
    with pytest.raises(RunError, match="no checkpoint"):
        train(run, run.dataset(), run.config)


def test_a_run_without_any_weights_says_that_it_begins_anew(
    cli: ForkedCli, family: Path, trained: Path
) -> None:
    for path in [*trained.glob("best*"), *trained.glob("checkpoint*")]:
        path.unlink()
    ended = cli.run("train", family, "--out", trained, "--resume")
    assert ended.code == 0 and "starts over" in ended.out
    weights(trained, "best")


def test_an_older_checkpoint_does_not_replace_a_better_model(
    cli: ForkedCli, family: Path, trained: Path
) -> None:
    claim(trained, 1.0)
    before = weights(trained, "best")
    ended = cli.run("train", family, "--out", trained, "--resume", "--json", "-")
    assert ended.code == 0, ended
    assert weights(trained, "best") == before
    assert json.loads(ended.out)["best"]["mrr"] == 1.0
    assert not json.loads((trained / "metrics.jsonl").read_text().splitlines()[-1])["best"]


def test_a_worse_model_is_replaced(cli: ForkedCli, family: Path, trained: Path) -> None:
    claim(trained, 0.0)
    checkpoint = json.loads((trained / "checkpoint.json").read_text())
    checkpoint["best"]["mrr"] = 0.0
    (trained / "checkpoint.json").write_text(json.dumps(checkpoint))
    before = weights(trained, "best")
    assert cli.run("train", family, "--out", trained, "--resume").code == 0
    assert weights(trained, "best") != before
    kept = best_kept(trained)
    assert kept is not None and kept.mrr > 0


def test_a_best_model_older_than_the_checkpoint_is_the_one_to_surpass(
    cli: ForkedCli, family: Path, trained: Path
) -> None:
    claim(trained, 0.0, position=10)  # as from a copy of an earlier day
    checkpoint = json.loads((trained / "checkpoint.json").read_text())
    checkpoint["best"]["mrr"] = 1.0
    (trained / "checkpoint.json").write_text(json.dumps(checkpoint))
    before = weights(trained, "best")
    ended = cli.run("train", family, "--out", trained, "--resume", "--max-queries", 30, "--json", "-")
    assert ended.code == 0, ended
    kept = best_kept(trained)
    assert kept is not None and kept.mrr == json.loads(ended.out)["best"]["mrr"] > 0
    assert weights(trained, "best") != before


def test_without_validation_the_longer_training_is_the_better(
    cli: ForkedCli, family: Path, tmp_path: Path
) -> None:
    facts, run = shutil.copytree(family, tmp_path / "family"), tmp_path / "run"
    (facts / "valid.txt").unlink()
    assert cli.run("train", facts, "--out", run, *SETTINGS, "--max-queries", 10).code == 0
    early = shutil.copytree(run, tmp_path / "early")
    assert cli.run("train", facts, "--out", run, "--resume", "--max-queries", 30).code == 0
    before = weights(run, "best")
    for path in run.glob("checkpoint*"):
        path.unlink()
    for path in early.glob("checkpoint*"):
        shutil.copy(path, run)
    assert cli.run("train", facts, "--out", run, "--resume", "--max-queries", 20).code == 0
    assert weights(run, "best") == before
    assert cli.run("train", facts, "--out", run, "--resume", "--max-queries", 40).code == 0
    assert weights(run, "best") != before


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda run: (run / "best.json").unlink(), "best.json is missing, but not its"),
        (lambda run: (run / "best.json").write_text("{"), "best.json cannot be read"),
        (lambda run: next(run.glob("best-*")).unlink(), "is missing, but best.json names it"),
        (lambda run: next(run.glob("best-*")).write_bytes(b""), "has 0 bytes"),
    ],
)
def test_a_best_model_that_cannot_be_judged_is_left_alone(
    cli: ForkedCli, family: Path, trained: Path, harm, says: str
) -> None:
    harm(trained)
    before = contents(trained)
    assert is_refused(cli.run("train", family, "--out", trained, "--resume"), says)
    assert contents(trained) == before


def test_the_first_best_model_never_stands_without_a_checkpoint(
    cli: ForkedCli, family: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    rare = ["--checkpoint-every-seconds", "1e6"]
    options = [*SETTINGS, *rare, "--validate-every-queries", "10"]
    whole = cli.run("train", family, "--out", tmp_path / "whole", *options, "--max-queries", 30)
    assert whole.code == 0, whole
    before = ("killing_saves", "kill_after_best")
    assert cli.run("train", family, "--out", run, *options, "--max-queries", 30, before=before).code == -9
    assert weights(run, "best") and not list(run.glob("*.partial"))
    weights(run, "checkpoint")
    assert cli.run("train", family, "--out", run, "--resume", "--max-queries", 30).code == 0
    assert outcome(run) == outcome(tmp_path / "whole")


def test_what_is_said_after_a_full_disk_is_true(cli: ForkedCli, family: Path, tmp_path: Path) -> None:
    """Where nothing was saved yet, --resume is not said to go on."""
    run = tmp_path / "run"
    options = [*SETTINGS, "--max-queries", 20]
    ended = cli.run("train", family, "--out", run, *options, largest_file=2500)
    assert is_refused(ended, "free some space and begin again with --resume: nothing is saved yet")
    assert not list(run.glob("*.safetensors"))
    again = cli.run("train", family, "--out", run, "--resume", "--max-queries", 20)
    assert again.code == 0 and "starts over" in again.out


def test_other_facts_under_the_same_name_are_refused(
    cli: ForkedCli, family: Path, trained: Path, tmp_path: Path
) -> None:
    before = contents(trained)
    facts = {
        split: (family / f"{split}.txt").read_text().splitlines() for split in ("train", "valid", "test")
    }
    (tmp_path / "other").mkdir()

    def other(**changes: list[str]) -> Path:
        folder = tmp_path / "other" / "family"
        shutil.rmtree(folder, ignore_errors=True)
        splits = {
            split: [tuple(line.split("\t")) for line in lines] for split, lines in (facts | changes).items()
        }
        return write_facts(folder, **splits)

    more = [*facts["train"], "child0\tmother\tmother1"]
    swapped = [*facts["train"][:-1], "child5\tfather\tfather4"]
    named = [line.replace("child0", "child00") for line in facts["train"]]
    for changes, says in (
        ({"train": more}, "22 train facts then, 23 now"),
        ({"train": swapped}, "other train facts"),
        ({"train": named}, "entities 'child0' then, 'child00' now"),
        ({"test": facts["valid"]}, "other test facts"),
        ({"valid": facts["test"]}, "other valid facts"),
    ):
        ended = cli.run("train", other(**changes), "--out", trained, "--resume")
        assert is_refused(ended, says, "another --out"), says
        assert contents(trained) == before
    same = other(train=facts["train"][::-1])  # the order of a file's lines is not what it says
    assert cli.run("train", same, "--out", trained, "--resume", "--max-queries", 20).code == 0
    dataset = load_dataset(other(train=more))
    run = RunFolder.open(trained)
    with pytest.raises(RunError, match="23 now"):
        train(run, dataset, run.config, resume=True)


def test_a_run_goes_on_where_its_dataset_is_not(cli: ForkedCli, trained: Path, tmp_path: Path) -> None:
    ended = cli.run("train", tmp_path / "family", "--out", trained, "--resume")
    assert ended.code == 0 and "is not here to compare with" in ended.out
    assert is_refused(
        cli.run("train", tmp_path / "kin", "--out", trained, "--resume"), "is a run on 'family'"
    )
