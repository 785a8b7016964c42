"""Ends a process just before its n-th change of a folder, or copies the folder before each: a power cut at every step.

Changes are files opened for writing, synced, renamed, removed or cut, and folders made or removed. Where a file that
is still beside its place is about to be synced, half of it is cut off first: the rest had not reached the disk.
"""

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forked_cli import Ended, ForkedCli

_CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "os.symlink",
    "os.chmod",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_UNFINISHED = ".partial"


def install(point: int, folder: str) -> None:
    """Kill this process before its n-th change of a folder, counted from 1."""
    root, seen = os.path.realpath(folder), 0

    def count() -> bool:
        nonlocal seen
        seen += 1
        return seen == point

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if _is_change(root, event, arguments) and count():
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        if _below(root, path) and count():
            if _UNFINISHED in path and os.path.isfile(path):
                os.truncate(path, os.path.getsize(path) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        plain(handle)

    plain, os.fsync = os.fsync, fsync
    sys.addaudithook(watch)


def copy_before_changes(folder: str, copies: str) -> None:
    """Work in a folder, and copy it before each of its changes: what a kill at that moment would leave."""
    os.chdir(folder)
    root, plain, is_copying = os.path.realpath(folder), os.fsync, False

    def copy() -> None:
        nonlocal is_copying
        is_copying = True
        shutil.copytree(root, f"{copies}/{len(os.listdir(copies)):04}", symlinks=True)
        is_copying = False

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if not is_copying and _is_change(root, event, arguments):
            copy()

    def fsync(handle: int) -> None:
        if _below(root, os.readlink(f"/proc/self/fd/{handle}")):
            copy()
        plain(handle)

    os.fsync = fsync
    sys.addaudithook(watch)


def stand_in(folder: str) -> None:
    """Work in a folder."""
    os.chdir(folder)


def crashes(
    cli: ForkedCli, folder: Path, *arguments: object, first: int = 1, **options: Any
) -> Iterator[tuple[int, Ended]]:
    """Run a command again and again, killed before its 1st, 2nd, ... change of a folder, until one comes to its end.

    Yields each point and how that process ended; what is done to the folder between two is the caller's.
    """
    point, code = first, -signal.SIGKILL
    while code == -signal.SIGKILL:
        ended = cli.run(*arguments, before=("crash_points", "install", point, str(folder)), **options)
        yield point, ended
        point, code = point + 1, ended.code


def _is_change(root: str, event: str, arguments: tuple[Any, ...]) -> bool:
    if event == "open":
        return bool(arguments[2] & _WRITING) and _below(root, arguments[0])
    return event in _CHANGES and any(_below(root, argument) for argument in arguments[:2])


def _below(root: str, path: Any) -> bool:
    if isinstance(path, bytes | str | os.PathLike):
        found = os.path.abspath(os.fsdecode(path))
        return found == root or found.startswith(root + os.sep)
    return False
