"""Files and folders that are there whole or not at all: written beside, synced to the disk, then renamed.

And folders that one process at a time writes in.
"""

import errno
import glob
import hashlib
import json
import math
import os
import re
import shutil
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dpmpn.errors import DpmpnError, RunError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

TEMPORARY_SUFFIX = ".partial"
LOCK = ".lock"
"""Stays in the folder: to remove it would let two processes lock two files of that name."""
_TEMPORARY = "dpmpn-held-"  # begins the name of each temporary folder
_JUST_MADE = 10.0  # seconds in which a folder may not be locked yet
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MAX_JSON_BYTES = 1 << 26  # manifests are small; what is larger is not one


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file in the same folder, then put it in the place of `path`."""
    temporary = path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
    try:
        with disk_errors():
            write(temporary)
        sync(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    sync(path.parent)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which takes its name only once everything in it is on the disk.

    The name may be that of an empty folder. What killed processes of this machine left beside it is removed.
    """
    # A folder that a shell stands in would be gone from under it.
    if folder.name in ("", "..") or (folder.exists() and folder.samefile(Path.cwd())):
        raise RunError(f"{folder} cannot be replaced by a new folder while you stand in it; name a new one")
    _refuse_used(folder)
    if os.path.lexists(folder.parent) and not folder.parent.is_dir():
        raise RunError(f"cannot write {folder}: {folder.parent} is not a folder; choose another --out")
    temporary = folder.with_name(f".{folder.name}.{socket.gethostname()}-{os.getpid()}{TEMPORARY_SUFFIX}")
    made = False
    try:  # around all of it: a signal may end this between any two steps
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(folder)
        temporary.mkdir()
        made = True
        yield temporary
        for path in sorted(temporary.rglob("*")):
            sync(path)
        sync(temporary)
        _refuse_used(folder)
        os.rename(temporary, folder)
        sync(folder.parent)
    except OSError as error:
        if made and error.filename is not None and not _is_within(error.filename, temporary, folder.parent):
            raise  # a file that was read
        raise _cannot_write(folder, error) from error
    except RunError as error:
        if isinstance(error.__cause__, OSError):  # of a file whose name means nothing to a user
            raise _cannot_write(folder, error.__cause__) from error
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for a while: it goes when it is cleaned up, and at the latest when this process ends.

    Those of killed processes are removed: a folder is locked as long as the process that made it lives, or one that it
    forked.
    """
    try:
        _remove_abandoned()
        folder = tempfile.TemporaryDirectory(prefix=_TEMPORARY)
        if fcntl is not None:
            handle = os.open(folder.name, os.O_RDONLY)
            weakref.finalize(folder, os.close, handle)
            with suppress(OSError):  # not on every disk
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return folder
    except OSError as error:
        raise RunError(
            f"no temporary folder can be made ({error.strerror or error}); set TMPDIR to one you can write to"
        ) from error


def _remove_abandoned() -> None:
    if fcntl is None:
        return
    for path in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        with suppress(OSError):  # of somebody else, gone, or in use
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                found = os.fstat(handle)
                if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _JUST_MADE:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
            finally:
                os.close(handle)


@contextmanager
def disk_errors() -> Iterator[None]:
    """Raise what polars says of a disk, such as that it is full, as the OSError that Python would raise."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def write_json(path: Path, values: Any) -> None:
    """Write values as JSON."""
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    # A file name in it that is not UTF-8 is text with lone surrogates, which JSON knows by the same escapes as Python.
    content = text.encode("utf-8", errors="backslashreplace")
    write_whole(path, lambda temporary: temporary.write_bytes(content))


def read_json(path: Path, advice: str, error: type[DpmpnError] = RunError) -> dict[str, Any]:
    """Read a JSON object, all of whose numbers are finite; `advice` says what to do where it is missing or broken."""
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            raise error(f"{path} is too large to be what it should be; {advice}")
        values = json.loads(path.read_bytes(), parse_float=_finite, parse_constant=_finite)
    except FileNotFoundError as missing:
        raise error(f"{path} is missing; {advice}") from missing
    except (OSError, ValueError, RecursionError) as broken:
        raise error(f"{path} cannot be read ({str(broken) or 'nested too deep'}); {advice}") from broken
    if not isinstance(values, dict):
        raise error(f"{path} does not hold a JSON object; {advice}")
    return values


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.40} is not a finite number")
    return value


def check_version(
    path: Path, values: Mapping[str, Any], format: str, version: int, advice: str, error: type[DpmpnError]
) -> None:
    """Refuse a manifest of another format or version than the one this program writes."""
    found = values.get("version")
    if values.get("format") != format:
        raise error(f"{path} is of format {values.get('format')!r:.60}, not '{format}'; {advice}")
    if type(found) is int and found > version:
        raise error(
            f"{path} was written by a newer dpmpn (version {found} of the format; this one reads {version}): "
            "update dpmpn"
        )
    if type(found) is not int or found != version:
        raise error(f"{path} is version {found!r:.60} of the format, this dpmpn reads {version}; {advice}")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprints(folder: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of files in a folder, for its manifest."""
    with ThreadPoolExecutor() as threads:  # hashing runs outside the interpreter's lock
        digests = threads.map(sha256_of, (folder / name for name in names))
        return {
            name: {"bytes": (folder / name).stat().st_size, "sha256": digest}
            for name, digest in zip(names, digests, strict=True)
        }


def check_fingerprints(
    folder: Path, expected: Any, names: list[str], advice: str, error: type[DpmpnError]
) -> None:
    """Refuse a folder in which one of the named files is not the one its manifest describes."""
    if not isinstance(expected, dict):
        raise error(f"the manifest of {folder} does not list its files; {advice}")
    for name in names:
        path, wanted = folder / name, expected.get(name)
        if not isinstance(wanted, dict):
            raise error(f"the manifest of {folder} does not list {name}; {advice}")
        if not path.is_file():
            raise error(f"{path} is missing; {advice}")
        if path.stat().st_size != wanted.get("bytes"):
            size = path.stat().st_size
            raise error(f"{path} has {size} bytes instead of {wanted.get('bytes')!r:.40}; {advice}")
    try:
        found = fingerprints(folder, names)
    except OSError as broken:
        raise error(f"{folder} cannot be read ({broken}); {advice}") from broken
    for name in names:
        if found[name]["sha256"] != expected[name].get("sha256"):
            raise error(f"{folder / name} was changed: its SHA-256 is not the manifest's; {advice}")


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, survive a power cut."""
    if path.is_dir() and os.name != "posix":
        return  # elsewhere a folder cannot be synced
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_used(folder: Path) -> None:
    """Refuse a name that is taken, unless by an empty folder."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise RunError(f"{folder} exists already and is not empty; choose another --out or remove it first")


def _cannot_write(folder: Path, error: OSError) -> RunError:
    free = "free some space or " if error.errno in _FULL else ""
    return RunError(f"cannot write {folder}: {error.strerror or error}; {free}choose another --out")


def _is_within(filename: Any, temporary: Path, parent: Path) -> bool:
    path = Path(os.fsdecode(filename))
    return path == parent or path.is_relative_to(temporary)


def _remove_leftovers(folder: Path) -> None:
    host = socket.gethostname()
    for left in folder.parent.glob(f".{glob.escape(folder.name)}.{host}-*{TEMPORARY_SUFFIX}"):
        pid = left.name.removesuffix(TEMPORARY_SUFFIX).rpartition("-")[2]
        # In a container each process may have the same number: what bears our own is of one before.
        if pid.isdigit() and (int(pid) == os.getpid() or not _alive(int(pid))):
            shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        with suppress(PermissionError):  # of somebody else
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Keep other processes from writing in a folder; those that only read are not held up.

    The kernel frees the folder when this process ends, however it ends.
    """
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
