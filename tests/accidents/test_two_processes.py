"""Two processes on one run folder: one trains, the other is refused; whoever only reads is served."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest
from accident_data import SETTINGS, weights
from forked_cli import ForkedCli, Running

from dpmpn.errors import RunError
from dpmpn.files.held import holding
from dpmpn.train.run_folder import RunFolder

ENDLESS = ["--resume", "--epochs", 1_000_000]


def started(cli: ForkedCli, family: Path, run: Path) -> Running:
    """A training that goes on, after its first checkpoint."""
    before = (run / "checkpoint.json").stat().st_mtime_ns
    running = cli.start("train", family, "--out", run, *ENDLESS)
    while (run / "checkpoint.json").stat().st_mtime_ns == before:
        assert running.is_running(), running.wait()
        time.sleep(0.01)
    return running


def test_the_second_is_refused_and_a_killed_one_does_not_hold_the_folder(
    cli: ForkedCli, family: Path, trained: Path
) -> None:
    first = started(cli, family, trained)
    said = f"is in use by another process (pid {first.pid} on host {socket.gethostname()}); wait for it or choose"
    for options in (["--resume"], ENDLESS):
        second = cli.run("train", family, "--out", trained, *options)
        assert second.code == 2
        assert said in second.err and second.err.count("\n") == 1
    new = cli.run("train", family, "--out", trained, *SETTINGS)
    assert new.code == 2 and "already holds a run" in new.err
    assert first.is_running()
    first.send(signal.SIGKILL)
    assert first.wait().code == -signal.SIGKILL
    RunFolder.open(trained).model("last")  # opens as it is
    assert cli.run("train", family, "--out", trained, "--resume", "--epochs", 1).code == 0


def test_reading_goes_on_while_weights_are_replaced(cli: ForkedCli, family: Path, trained: Path) -> None:
    running = started(cli, family, trained)
    try:
        until, read = time.monotonic() + 2, set()
        while time.monotonic() < until:
            run = RunFolder.open(trained)
            run.model("best")
            read.add(float(run.model("last").entities.detach().sum()))
        assert len(read) > 3
        evaluated = cli.run("evaluate", trained)
        assert evaluated.code == 0, evaluated
        assert running.is_running()
    finally:
        running.send(signal.SIGKILL)
        running.wait()
    weights(trained, "checkpoint")


def test_a_folder_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), holding(tmp_path):
        with pytest.raises(RunError, match=f"pid {os.getpid()}"), holding(tmp_path):
            pass
        raise ZeroDivisionError
    with holding(tmp_path):
        pass


def test_a_lock_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="cannot write"), holding(tmp_path / "file"):
        pass
