"""The one place where files and folders are written: there whole or not at all, and never through somebody's link.

What is new is written beside its place, under a random name that nobody has, synced to the disk, then renamed. So a
link in a folder that came from elsewhere is replaced, and what it leads to stays as it is; only a path that a user
names for a result leads on to where it points.
"""

import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from dpmpn.errors import DpmpnError, RunError
from dpmpn.files.held import (
    LEFTOVER,
    LOCK,
    NOT_THROUGH_LINKS,
    held_beside,
    open_new_file,
    open_new_folder,
    remove_leftovers,
)

Write = Callable[[IO[bytes]], object]
"""Fills an open file."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_LINKS = 40  # as Linux follows
_MAX_JSON_BYTES = 1 << 26  # manifests are small; what is larger is not one


def write_whole(path: Path, write: Write) -> None:
    """Let `write` fill a file, then put it in the place of `path`; the mode of what was there stays."""
    write_together({path: write})


def write_together(files: Mapping[Path, Write], instead_of: Iterable[Path] = ()) -> None:
    """Write files of one folder beside their places, then remove others and put these in place.

    In this order a crash may leave a few of the new files alone, but never new ones beside those they replace.
    """
    path = next(iter(files))
    folder = path.parent
    try:
        with ExitStack() as opened:
            remove_leftovers(folder)
            written = []
            for path, write in files.items():
                written.append((path, opened.enter_context(_written_beside(path, write))))
            for path in instead_of:
                path.unlink(missing_ok=True)
            for path, temporary in written:
                os.replace(temporary, path)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    sync(folder)


def write_named(path: Path, write: Write) -> None:
    """Write a file that a user named: what a link leads to is replaced, and what is no file, such as a pipe, filled."""
    try:
        if (handle := _open_already(path)) is not None:
            with open(os.dup(handle), "wb") as file:  # goes on after what was printed there
                write(file)
        elif path.exists() and not path.is_file():
            with path.open("wb") as file:
                write(file)
        else:
            write_whole(Path(os.path.realpath(path)), write)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, values: Any) -> None:
    """Write values as JSON."""
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda file: file.write(encoded(text)))


def encoded(text: str) -> bytes:
    """Text in UTF-8; a file name in it that is not is text with lone surrogates, of which JSON knows the escapes."""
    return text.encode("utf-8", errors="backslashreplace")


def scratch_file() -> IO[bytes]:
    """A file without a name for what is too much for the memory; it goes with the process."""
    with disk_errors():
        return tempfile.TemporaryFile()


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to fill in a folder of our own, such as one that `whole_folder` gives; there must be none."""
    with disk_errors(), path.open("xb") as file:
        yield file


def new_folder(path: Path) -> Path:
    """A new folder within one of our own."""
    path.mkdir()
    return path


@contextmanager
def named_folder(path: Path) -> Iterator[None]:
    """A folder that a user named, made if it is not there; if nothing comes into it, it goes again."""
    is_new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):
                path.rmdir()  # only if it is empty


def own_folder(path: Path) -> Path:
    """A folder within one of ours, made if it is not there; never a link to another."""
    path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link to another folder", str(path))
    return path


def append(path: Path, line: bytes) -> None:
    """Add a whole line to a file or, where the disk is full, nothing."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | NOT_THROUGH_LINKS, 0o666)
        with open(handle, "ab", buffering=0) as file:
            before, left = file.tell(), line
            try:
                while left := left[file.write(left) :]:
                    pass  # the rest of a line that fitted in part; the next write says why
            except OSError:
                file.truncate(before)
                raise
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def continued(path: Path, start: int) -> Iterator[IO[bytes]]:
    """A file to go on with after so many bytes; the rest of it goes."""
    with open(os.open(path, os.O_RDWR | os.O_CREAT | NOT_THROUGH_LINKS, 0o666), "r+b") as file:
        file.seek(start)
        file.truncate()
        yield file


def put_in_place(path: Path, place: Path) -> None:
    """Give a whole file or folder its name, in the place of what had it."""
    sync(path)
    os.replace(path, place)
    sync(place.parent)


def remove(path: Path) -> None:
    """Remove a file or a link, if it is there."""
    path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Remove a folder, as far as that is possible; of a link, the link alone."""
    if path.is_symlink():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


def copy_folder(folder: Path, to: Path) -> None:
    """Copy what is in a folder, without its lock and what killed processes left in it."""
    with whole_folder(to) as copied:
        shutil.copytree(
            folder,
            copied,
            dirs_exist_ok=True,
            ignore=lambda _, names: {name for name in names if name == LOCK or LEFTOVER.fullmatch(name)},
        )


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which takes its name only once everything in it is on the disk.

    The name may be that of an empty folder.
    """
    # A folder that a shell stands in would be gone from under it.
    if folder.name in ("", "..") or (folder.exists() and folder.samefile(Path.cwd())):
        raise RunError(f"{folder} cannot be replaced while it is your current folder; name a new one")
    _refuse_used(folder)
    if os.path.lexists(folder.parent) and not folder.parent.is_dir():
        raise RunError(f"cannot write {folder}: {folder.parent} is not a folder; choose another --out")
    temporary: Path | None = None
    try:  # around all of it: a signal may end this between any two steps
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder.parent)
        with held_beside(folder.parent, open_new_folder) as (_, temporary):
            yield temporary
            for path in sorted(temporary.rglob("*")):
                sync(path)
            sync(temporary)
            _refuse_used(folder)
            os.rename(temporary, folder)
            sync(folder.parent)
    except OSError as error:
        if (
            temporary
            and error.filename is not None
            and not _is_within(error.filename, temporary, folder.parent)
        ):
            raise  # a file that was read
        raise _cannot_write(folder, error) from error
    except RunError as error:
        if isinstance(error.__cause__, OSError):  # of a file whose name means nothing to a user
            raise _cannot_write(folder, error.__cause__) from error
        raise


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


@contextmanager
def open_file(path: Path) -> Iterator[io.BufferedReader]:
    """A file to read, and nothing else: a pipe or a device in a folder from elsewhere may never come to an end."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a file", str(path))
        yield file


def read_json(path: Path, advice: str, error: type[DpmpnError] = RunError) -> dict[str, Any]:
    """Read a JSON object, all of whose numbers are finite; `advice` says what to do where it is missing or broken."""
    try:
        with open_file(path) as file:
            content = file.read(_MAX_JSON_BYTES + 1)
        if len(content) > _MAX_JSON_BYTES:
            raise error(f"{path} is too large to be what it should be; {advice}")
        values = json.loads(content, parse_float=_finite, parse_constant=_finite)
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
    with open_file(path) as file:
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
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _written_beside(path: Path, write: Write) -> Iterator[Path]:
    """A file beside a path, written and synced; it goes unless it is renamed."""
    with held_beside(path.parent, open_new_file) as (handle, temporary):
        with disk_errors(), open(handle, "wb", closefd=False) as file:
            write(file)
        _keep_mode(handle, path)
        os.fsync(handle)
        yield temporary


def _keep_mode(handle: int, path: Path) -> None:
    """Give a new file the owner and the mode of the one it replaces; a new name has what the umask says."""
    with suppress(FileNotFoundError):
        before = path.lstat()
        if stat.S_ISREG(before.st_mode):
            with suppress(PermissionError):
                os.fchown(handle, before.st_uid, before.st_gid)
            with suppress(PermissionError):
                os.fchmod(handle, stat.S_IMODE(before.st_mode) & 0o777)


def _open_already(path: Path) -> int | None:
    """What /dev/stdout, /dev/fd/3 and the like stand for, also behind links; None of other paths."""
    for _ in range(_MOST_LINKS):
        is_ours = re.fullmatch(rf"/dev/fd|/proc/{os.getpid()}(/task/\d+)?/fd", os.path.realpath(path.parent))
        if is_ours and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return None


def _refuse_used(folder: Path) -> None:
    """Refuse a name that is taken, unless by an empty folder."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise RunError(f"{folder} already exists and is not empty; choose another --out or remove it first")


def _cannot_write(folder: Path, error: OSError) -> RunError:
    free = "free some space or " if error.errno in _FULL else ""
    return RunError(f"cannot write {folder}: {error.strerror or error}; {free}choose another --out")


def _is_within(filename: Any, temporary: Path, parent: Path) -> bool:
    path = Path(os.fsdecode(filename))
    return path == parent or path.is_relative_to(temporary)
