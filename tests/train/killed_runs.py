"""Trains runs in forked processes that kill themselves at chosen moments; started by test_resume_after_kill.

A fork costs no imports, and is safe because this process itself computes nothing.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import conftest
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train


def kill_at(moment: int, when: str) -> None:
    """SIGKILL this process just before or just after its n-th change of a file in the run folder."""
    seen = 0

    def counted(change):
        def wrapper(*args, **kwargs):
            nonlocal seen
            seen += 1
            if seen == moment and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = change(*args, **kwargs)
            if seen == moment and when == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapper

    os.replace = counted(os.replace)
    os.fsync = counted(os.fsync)
    Path.unlink = counted(Path.unlink)
    json.dumps = counted(json.dumps)  # a line of metrics


def session(path: str, config, moment: int | None, when: str) -> int:
    """Train in a forked process; its signal, or 0 where it came to the end."""
    child = os.fork()
    if child == 0:
        if moment is not None and when in ("before", "after"):
            kill_at(moment, when)
        run = RunFolder.open(path)
        train(run, run.dataset(), config, resume=True)
        os._exit(0)
    if when == "milliseconds":
        wait_for_checkpoint(Path(path) / "checkpoint.json")
        time.sleep(moment / 1000)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def wait_for_checkpoint(manifest: Path) -> None:
    """Wait until training writes its next checkpoint, for 30 seconds at most."""
    begun, before = time.monotonic(), manifest.stat().st_mtime_ns if manifest.exists() else None
    while time.monotonic() < begun + 30 and (not manifest.exists() or manifest.stat().st_mtime_ns == before):
        time.sleep(0.001)


def main() -> None:
    """Read from the command line threads, and for each run its path and the moments at which its sessions end."""
    threads, runs = int(sys.argv[1]), json.loads(sys.argv[2])
    # Batches of 16 are split between threads; the last one of an epoch is too small for it.
    config = conftest.small_config(threads=threads, batch_size=7 if threads == 1 else 16)
    ends = []
    for path, moments in runs:
        RunFolder.create(path, conftest.small_dataset(), config)
        sessions = [*moments, (None, "never")]
        ends.append([session(path, config, moment, when) for moment, when in sessions])
    print(json.dumps(ends))


if __name__ == "__main__":
    main()
