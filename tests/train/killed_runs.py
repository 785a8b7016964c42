"""Trains a run in forked processes that kill themselves at chosen moments; started by test_resume_after_kill.

A fork costs no imports, and is safe because this process itself computes nothing.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import conftest
from dpmpn.train import metrics
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
    metrics.json.dumps = counted(metrics.json.dumps)


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
    path, threads, moments = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    # Batches of 16 are split between threads; the last one of an epoch is too small for it.
    config = conftest.small_config(threads=threads, batch_size=7 if threads == 1 else 16)
    RunFolder.create(path, conftest.small_dataset(), config)
    ends = [session(path, config, moment, when) for moment, when in moments]
    print(json.dumps([*ends, session(path, config, None, "never")]))


if __name__ == "__main__":
    main()
