"""A run killed with SIGKILL at any moment goes on with the losses of an unbroken run."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dpmpn.train.run_folder import RunFolder, read_lines

SCRIPT = Path(__file__).with_name("killed_runs.py")


def trained(path, threads, moments):
    """Run the script; how each session ended, and the run."""
    command = [sys.executable, str(SCRIPT), str(path), str(threads), json.dumps(moments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), RunFolder.open(path)


def outcome(run):
    """What must not depend on where a run was broken off: all lines of metrics but their times."""
    times = {"seconds", "cpu_seconds", "queries_per_s"}
    return [{k: v for k, v in line.items() if k not in times} for line in read_lines(run.metrics)]


def same_weights(one, other, which):
    pairs = zip(one.model(which).parameters(), other.model(which).parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.fixture(scope="module", params=[1, 2])
def unbroken(request, tmp_path_factory):
    threads = request.param
    ends, run = trained(tmp_path_factory.mktemp("unbroken") / "run", threads, [])
    assert ends == [0]
    return threads, run


def check(unbroken, tmp_path, moments):
    threads, expected = unbroken
    ends, run = trained(tmp_path / "run", threads, moments)
    assert ends[-1] == 0
    assert signal.SIGKILL in ends[:-1]
    assert outcome(run) == outcome(expected)
    assert len(outcome(run)) > 5
    for which in ("best", "last"):
        assert same_weights(run, expected, which)
    assert len(list(run.path.glob("*.safetensors"))) == 2
    assert [file.name for file in run.path.glob(".*")] == [".lock"]


def test_killed_around_every_change_of_a_file(unbroken, tmp_path):
    # Moments count within a session, so that these sessions together pass first files, checkpoints,
    # lines of metrics, validations with and without a new best, and deletions.
    numbers = (1, 2, 3, 4, 6, 7, 9, 11, 12, 13, 70, 101, 151, 304)
    moments = [(n, "before" if n % 2 else "after") for n in numbers]
    check(unbroken, tmp_path, moments if unbroken[0] == 1 else moments[::3])


def test_killed_from_outside_at_any_time(unbroken, tmp_path):
    check(unbroken, tmp_path, [(wait, "milliseconds") for wait in (0, 3, 11, 24, 51, 102)])
