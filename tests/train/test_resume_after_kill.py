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


def outcome(run):
    """What must not depend on where a run was broken off: all lines of metrics but their times."""
    times = {"seconds", "cpu_seconds", "queries_per_s"}
    return [{k: v for k, v in line.items() if k not in times} for line in read_lines(run.metrics)]


def same_weights(one, other, which):
    pairs = zip(one.model(which).parameters(), other.model(which).parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# Moments count within a session, so that these sessions together pass first files, checkpoints,
# lines of metrics, validations with and without a new best, and deletions.
NUMBERS = (1, 2, 3, 4, 6, 7, 9, 11, 12, 13, 70, 101, 151, 304)
AROUND_CHANGES = [(n, "before" if n % 2 else "after") for n in NUMBERS]
FROM_OUTSIDE = [(wait, "milliseconds") for wait in (0, 3, 11, 24, 51, 102)]


@pytest.fixture(scope="module", params=[1, 2])
def runs(request, tmp_path_factory):
    """By the name of a run, how its sessions ended, and the run; one process for all, as it imports for seconds."""
    threads, folder = request.param, tmp_path_factory.mktemp("killed")
    around = AROUND_CHANGES if threads == 1 else AROUND_CHANGES[::3]
    moments = {"unbroken": [], "around changes": around, "from outside": FROM_OUTSIDE}
    asked = json.dumps([(str(folder / name), when) for name, when in moments.items()])
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(threads), asked], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout.splitlines()[-1])
    return {name: (end, RunFolder.open(folder / name)) for name, end in zip(moments, ends, strict=True)}


def check(unbroken, killed):
    (unbroken_ends, expected), (ends, run) = unbroken, killed
    assert unbroken_ends == [0]
    assert ends[-1] == 0
    assert signal.SIGKILL in ends[:-1]
    assert outcome(run) == outcome(expected)
    assert len(outcome(run)) > 5
    for which in ("best", "last"):
        assert same_weights(run, expected, which)
    assert len(list(run.path.glob("*.safetensors"))) == 2
    assert [file.name for file in run.path.glob(".*")] == [".lock"]


def test_killed_around_every_change_of_a_file(runs):
    check(runs["unbroken"], runs["around changes"])


def test_killed_from_outside_at_any_time(runs):
    check(runs["unbroken"], runs["from outside"])
