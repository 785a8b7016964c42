"""One process at a time trains in a run folder; the kernel frees the folder when that process ends, however it ends."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpmpn.errors import RunError

LOCK = ".lock"
"""Stays in the folder: to remove it would let two processes lock two files of that name."""


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Keep other processes from training in a folder; those that only read are not held up."""
    from filelock import FileLock, Timeout

    path = folder / LOCK
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(
            f"{folder} is in use by another process{_holder(path)}; wait for it or choose another --out"
        ) from None
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}; choose another --out") from error
    try:
        with suppress(OSError):  # who holds it is only for the message above
            path.write_text(f"{os.getpid()} {socket.gethostname()}\n", "utf-8")
        yield
    finally:
        lock.release()


def _holder(path: Path) -> str:
    """Who wrote the lock file last, as far as it says."""
    try:
        pid, host = path.read_text("utf-8").split()
    except (OSError, ValueError):
        return ""
    return f" (pid {int(pid)} on host {host:.80})" if pid.isdecimal() else ""
