"""Files and folders that a process holds: locks of the kernel, which end with the process, however that ends.

They are seen by everyone who sees the file, whatever machine or container a process believes to be in. What is written
beside its place is locked: what has such a name and no lock was left by a killed process.
"""

import errno
import fcntl
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from dpmpn.errors import DpmpnError, RunError

LOCK = ".lock"
"""Stays in the folder: to remove it would let two processes lock two files of that name."""
TEMPORARY_SUFFIX = ".partial"
LEFTOVER = re.compile(rf"\.dpmpn-[0-9a-f]{{16}}\{TEMPORARY_SUFFIX}")
_TEMPORARY = "dpmpn-held-"  # begins the name of each temporary folder
_JUST_MADE = 10.0  # seconds in which a folder may not be locked yet
NOT_THROUGH_LINKS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_own(path: Path) -> bool:
    """Whether a file is there under this name alone: no link, which could lead to a file of somebody else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


@contextmanager
def holding(folder: Path, name: str = LOCK, shared: bool = False) -> Iterator[None]:
    """Keep other processes from writing in a folder; those that only read are not held up.

    Several may hold it together, if each of them says that it is shared.
    """

    def taken(holder: str) -> RunError:
        return RunError(f"{folder} is in use by another process{holder}; wait for it or choose another --out")

    path = folder / name
    with ExitStack() as held:
        try:
            held.enter_context(locked(path, taken, shared))
        except OSError as error:
            reason = (
                "it is a link, which you can remove"
                if error.errno == errno.ELOOP
                else error.strerror or error
            )
            raise RunError(f"cannot write {path}: {reason}; choose another --out") from error
        yield


@contextmanager
def waiting_for(path: Path) -> Iterator[None]:
    """Hold the lock of a file, made if it is not there, as soon as no other process has it: for a moment's work."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NOT_THROUGH_LINKS, 0o666)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}; choose another --out") from error
    with open(handle, "r+b", buffering=0):
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def locked(path: Path, taken: Callable[[str], DpmpnError], shared: bool = False) -> Iterator[None]:
    """Hold the lock of a file, made if it is not there; `taken` says that another process has it, and which."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | NOT_THROUGH_LINKS, 0o666), "r+b", buffering=0) as file:
        if not _lock(file.fileno(), fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            raise taken(_holder(file))
        if is_own(path):  # who holds it, or one of those who do, is only for the message above
            with suppress(OSError):
                file.truncate(0)
                file.write(f"{os.getpid()} {socket.gethostname()}\n".encode())
        yield


def _holder(file: IO[bytes]) -> str:
    """Who wrote a lock file last, as far as it says."""
    try:
        pid, host = file.read(1000).decode().split()
    except (OSError, ValueError):
        return ""
    return f" (pid {int(pid)} on host {host:.80})" if pid.isdecimal() else ""


def _lock(handle: int, how: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file or folder until it is closed, or this process ends; False where another process has it."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def held_beside(folder: Path, open_new: Callable[[Path], int]) -> Iterator[tuple[int, Path]]:
    """A new file or folder of a name that nobody has, locked, so that nobody takes it for a leftover.

    In the end it is removed, unless it was renamed.
    """
    while True:
        path = folder / f".dpmpn-{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
        handle, is_others = -1, False
        try:  # around making it, too: a signal may end this right after
            try:
                handle = open_new(path)
            except FileExistsError:
                is_others = True
                continue
            if _is_held(handle, path):
                yield handle, path
                return
        finally:
            if not is_others:
                _discard(path)
            if handle >= 0:
                os.close(handle)


def _discard(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _is_held(handle: int, path: Path) -> bool:
    """Whether what was just made is ours: another process may have removed it before it was locked."""
    try:
        is_locked = _lock(handle)
    except OSError:  # a disk without locks, where nobody removes what is not locked either
        is_locked = True
    try:
        return is_locked and os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def open_new_file(path: Path) -> int:
    """A new file, open."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NOT_THROUGH_LINKS, 0o666)


def open_new_folder(path: Path) -> int:
    """A new folder, open."""
    path.mkdir()
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | NOT_THROUGH_LINKS)
    except FileNotFoundError:  # taken for a leftover, as nobody held it yet
        return open_new_folder(path)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left in a folder: what nobody holds a lock of."""
    with os.scandir(folder) as entries:
        left = [entry for entry in entries if LEFTOVER.fullmatch(entry.name)]
    for entry in left:
        kind = os.O_RDONLY | os.O_DIRECTORY if entry.is_dir(follow_symlinks=False) else os.O_RDWR
        with suppress(OSError):  # gone already, a link, somebody else's, or on a disk without locks
            handle = os.open(entry.path, kind | NOT_THROUGH_LINKS)
            try:
                if _lock(handle):
                    shutil.rmtree(entry.path) if kind & os.O_DIRECTORY else os.unlink(entry.path)
            finally:
                os.close(handle)


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for a while: it goes when it is cleaned up, and at the latest when this process ends.

    Those of killed processes are removed: a folder is locked as long as the process that made it lives, or one that it
    forked.
    """
    try:
        remove_abandoned()
        folder = tempfile.TemporaryDirectory(prefix=_TEMPORARY)
        handle = os.open(folder.name, os.O_RDONLY)
        weakref.finalize(folder, os.close, handle)
        with suppress(OSError):  # not on every disk
            _lock(handle)
        return folder
    except OSError as error:
        raise RunError(
            f"no temporary folder can be made ({error.strerror or error}); set TMPDIR to one you can write to"
        ) from error


def remove_abandoned() -> None:
    """Remove the temporary folders of killed processes."""
    for path in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        with suppress(OSError):  # of somebody else, gone, or on a disk without locks
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | NOT_THROUGH_LINKS)
            try:
                found = os.fstat(handle)
                is_old = time.time() - found.st_mtime > _JUST_MADE
                if found.st_uid == os.geteuid() and is_old and _lock(handle):
                    shutil.rmtree(path)
            finally:
                os.close(handle)
