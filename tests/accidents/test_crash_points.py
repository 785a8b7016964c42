"""Training killed at every single step of its writing: the folder opens, and the run goes on as if nothing had been."""

import shutil
import signal
from pathlib import Path

import pytest
from accident_data import outcome, weights
from crash_points import crashes
from forked_cli import ForkedCli

from dpmpn.train.run_folder import RunFolder


@pytest.fixture(scope="module")
def unbroken(cli: ForkedCli, family: Path, trained_once: Path) -> tuple:
    run = shutil.copytree(trained_once, trained_once.with_name("unbroken"))
    assert cli.run("train", family, "--out", run, "--resume").code == 0
    return outcome(run)


def test_every_step_of_two_saves(cli: ForkedCli, trained: Path) -> None:
    """Saving alone, from the same state each time: what is there afterwards is the old or the new, whole."""
    before = weights(trained, "checkpoint")
    found, points = set(), 0
    untouched = shutil.copytree(trained, trained.with_name("untouched"))
    for point, ended in crashes(cli, trained, call=("crashing_saves", "save_both", str(trained))):
        assert ended.code in (0, -signal.SIGKILL), ended
        found.add((weights(trained, "checkpoint"), weights(trained, "best")))
        run = RunFolder.open(trained)
        run.model("last")
        run.model("best")
        shutil.rmtree(trained)
        shutil.copytree(untouched, trained)
        points = point
    assert points > 15
    assert len(found) == 3  # both old, one new, both new
    assert any(checkpoint == before for checkpoint, _ in found)


def test_every_step_of_a_session(cli: ForkedCli, family: Path, trained: Path, unbroken: tuple) -> None:
    """Each killed session goes on from where the one before was killed, and dies one step later."""
    points = 0
    for point, ended in crashes(cli, trained, "train", family, "--out", trained, "--resume"):
        assert ended.code in (0, -signal.SIGKILL), ended
        weights(trained, "checkpoint")
        weights(trained, "best")
        points = point
    assert points > 15
    assert outcome(trained) == unbroken
    assert len(list(trained.glob("*.safetensors"))) == 2
    assert [file.name for file in trained.glob(".*")] == [".lock"]


def test_every_step_of_making_a_run(cli: ForkedCli, tmp_path: Path) -> None:
    """A run folder is there whole or not at all, and what a killed process left does not stand in the way."""
    out, points = tmp_path / "runs" / "new", 0
    for point, ended in crashes(cli, out.parent, call=("crashing_saves", "make_run", str(out))):
        points = point
        if out.exists():
            assert RunFolder.open(out).dataset().name == "pair"
            break
        assert ended.code == -signal.SIGKILL, ended
    assert points > 20
    assert [path.name for path in out.parent.iterdir()] == ["new"]
