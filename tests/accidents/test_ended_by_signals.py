"""SIGINT, SIGTERM and SIGHUP end training with a checkpoint, other commands at once; no helper process is left."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from accident_data import outcome, weights
from forked_cli import ForkedCli, Running

from dpmpn.cli.signals import stoppable, terminable
from dpmpn.errors import Stopped

ENDLESS = ["--resume", "--epochs", 1_000_000]


def wait_until(condition: Callable[[], object], running: Running | None = None) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "this did not come within a minute"
        assert running is None or running.is_running(), running.wait()
        time.sleep(0.01)


def started(cli: ForkedCli, family: Path, run: Path, *options: object) -> Running:
    """A training that goes on, after its first checkpoint."""
    before = (run / "checkpoint.json").stat().st_mtime_ns
    running = cli.start("train", family, "--out", run, *ENDLESS, *options)
    wait_until(lambda: (run / "checkpoint.json").stat().st_mtime_ns != before, running)
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_training_ends_with_a_checkpoint_and_says_how_to_go_on(
    cli: ForkedCli, family: Path, trained: Path, number: signal.Signals
) -> None:
    running = started(cli, family, trained)
    running.send(number)
    ended = running.wait()
    assert ended.code == 128 + number
    assert ended.err == ""
    position = int(re.search(r"Interrupted after ([\d,]+) of", ended.out)[1].replace(",", ""))
    assert f"Continue with: dpmpn train {family} --out {trained} --resume" in ended.out
    assert f'"position": {position},' in (trained / "checkpoint.json").read_text()
    outcome(trained)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_gone(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_is_left(cli: ForkedCli, family: Path, trained: Path, number: signal.Signals) -> None:
    running = started(cli, family, trained, "--threads", 2)
    workers = children_of(running.pid)
    assert len(workers) == 1
    running.send(number)
    ended = running.wait()
    assert ended.code == (-number if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: all(map(is_gone, workers)))
    assert ended.err == (running.folder / "err").read_text() == ""
    weights(trained, "checkpoint")


def test_a_signal_for_parent_and_worker_alike(cli: ForkedCli, family: Path, trained: Path) -> None:
    """As a service manager sends it: to every process that belongs to the service."""
    running = started(cli, family, trained, "--threads", 2)
    for pid in (*children_of(running.pid), running.pid):
        os.kill(pid, signal.SIGTERM)
    ended = running.wait()
    assert (ended.code, ended.err) == (143, "")
    assert "Continue with" in ended.out


def test_a_terminal_that_is_closed(family: Path, trained: Path) -> None:
    """The shell's window is gone: SIGHUP comes, and nothing can be printed any more."""
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-c", "from dpmpn.cli.main import run; run()", "train", str(family)]
        os.execv(sys.executable, [*command, "--out", str(trained), *map(str, ENDLESS)])
    before = (trained / "checkpoint.json").stat().st_mtime_ns
    while (trained / "checkpoint.json").stat().st_mtime_ns == before:
        os.read(terminal, 1 << 16)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP
    outcome(trained)


def test_other_commands_say_what_ended_them(cli: ForkedCli, family: Path) -> None:
    running = cli.start("bench", family, "--seconds", 60)
    wait_until(lambda: Path(f"/proc/{running.pid}/stat").read_text().split()[13] != "0", running)
    time.sleep(0.3)
    running.send(signal.SIGTERM)
    ended = running.wait()
    assert (ended.code, ended.err) == (
        143,
        "dpmpn: ended by SIGTERM; files written so far are complete: run the same command again\n",
    )


def test_other_commands_clean_up_and_end() -> None:
    cleaned = False
    with (
        pytest.raises(Stopped, match=r"ended by SIGTERM; .* run the same command again") as caught,
        terminable(),
    ):
        try:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(5)
        finally:
            cleaned = True
    assert cleaned
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_second_signal_ends_at_once() -> None:
    with stoppable() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGTERM)
        assert stop() and stop.exit_code == 143
        with pytest.raises(Stopped, match="interrupted"):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped, match="SIGHUP"):
            signal.raise_signal(signal.SIGHUP)
        assert stop.exit_code == 143


def test_signals_that_were_to_be_ignored_still_are() -> None:
    """As under nohup."""
    code = (
        "import signal\n"
        "from dpmpn.cli.signals import stoppable, terminable\n"
        "with terminable(), stoppable() as stop:\n"
        "    signal.raise_signal(signal.SIGHUP)\n"
        "    print(stop())"
    )
    command = ["nohup", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (0, "False\n"), done


def test_a_signal_in_a_finaliser_is_not_lost() -> None:
    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)  # what is raised in here goes nowhere

    began = time.monotonic()
    with pytest.raises(Stopped), terminable():
        Finalised()
        while time.monotonic() - began < 10:
            time.sleep(0.01)
    assert time.monotonic() - began < 10


def test_a_signal_that_a_library_makes_an_error_of_is_still_one() -> None:
    with pytest.raises(Stopped, match="interrupted"), terminable():
        try:
            signal.raise_signal(signal.SIGINT)
        except Stopped as stopped:  # as compiled libraries do
            raise TypeError("'<unprintable str object>' is not a Polars data type") from stopped
    with pytest.raises(TypeError), terminable():
        raise TypeError
