"""Datasets of the registry, downloaded: a folder takes its name only when all its files are there and right."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from dpmpn.data.download import NotThere, Remote, download
from dpmpn.data.registry import (
    MIRROR_VARIABLE,
    ROOT_VARIABLE,
    Entry,
    ListedFile,
    Listing,
    known_dataset,
    listing,
    roots,
)
from dpmpn.data.web import split_password
from dpmpn.errors import DataError
from dpmpn.files import TEMPORARY_SUFFIX, sha256_of, sync

Progress = Callable[[int, int], None]
"""Called with how many bytes are there, and how many there will be."""


@dataclass(frozen=True)
class Fetched:
    """Where a dataset is now."""

    name: str
    folder: Path
    is_new: bool  # False where it was there already
    bytes: int
    licence: str = ""


def fetch_dataset(
    name: str, to: Path | None = None, mirror: str | None = None, progress: Progress | None = None
) -> Fetched:
    """Download a dataset of the registry into a folder of datasets, $DPMPN_DATA where none is given.

    A mirror is the address of such a folder, used instead of the listed addresses; checksums stay the same.
    """
    entry = known_dataset(name)
    listed = listing(entry.location)
    if entry.kind == "bundled" or listed is None:
        return Fetched(entry.name, entry.existing_folder(), False, 0)
    found = None if to is not None else entry.folder()
    folder = found if found is not None else (to or roots()[0]) / entry.location
    try:
        # Looked for before anything is written: the folder may be read-only.
        files = _files_there(entry, listed, folder)
        if is_new := files is None:
            base, authorization = _base(entry, listed, mirror or os.environ.get(MIRROR_VARIABLE))
            with _lock(entry, folder):
                files = _files_there(entry, listed, folder)  # another process may have just ended
                if is_new := files is None:
                    report = progress or (lambda done, total: None)
                    files = _assemble(base, authorization, listed, folder, report)
    except OSError as error:
        raise DataError(_cannot_write(folder, error)) from error
    return Fetched(entry.name, folder, is_new, sum(file.bytes for file in files or ()), listed.licence)


def _base(entry: Entry, listed: Listing, mirror: str | None) -> tuple[str, str | None]:
    """Address below which the files lie, and the header with a mirror's user and password."""
    if not listed.files or (mirror is None and listed.base is None):
        names = ", ".join(file.name for file in listed.files) or "train.txt, valid.txt and test.txt"
        from_mirror = "give --mirror, or " if listed.files else ""
        raise DataError(
            f"'{entry.name}' cannot be fetched: {listed.why}; {from_mirror}put {names} into a folder "
            f"'{entry.location}' below ${ROOT_VARIABLE}"
        )
    if mirror is None:
        return str(listed.base), None
    try:
        if "?" in mirror or "#" in mirror:  # of a password that is not quoted, perhaps
            raise ValueError
        address, authorization = split_password(mirror)
    except ValueError as error:
        shown = mirror.rpartition("@")[2]
        raise DataError(
            f"the mirror '{shown}' is not a web address such as https://host/folder; check --mirror"
        ) from error
    return f"{address.rstrip('/')}/{quote(entry.location)}/", authorization


@contextmanager
def _lock(entry: Entry, folder: Path) -> Iterator[None]:
    """Keep other processes off a folder; the lock ends with the process, however it ends."""
    from filelock import FileLock, Timeout

    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        # The file stays: one that is deleted could be locked by two processes.
        with FileLock(folder.with_name(f".{folder.name}.lock"), timeout=0):
            yield
    except Timeout as error:
        raise DataError(
            f"'{entry.name}' is being fetched into {folder} by another process; wait for it to end"
        ) from error


def _files_there(entry: Entry, listed: Listing, folder: Path) -> list[ListedFile] | None:
    """The files where all are there and right, None where there is nothing; anything else is left alone."""
    if not listed.files or not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    files = []
    for file in listed.files:
        kept = _kept(file, folder)
        if kept is None:
            raise DataError(
                f"{folder} is there already, but {file.name} is missing in it or is not the one of '{entry.name}'; "
                "move the folder away to fetch the dataset"
            )
        files.append(kept)
    return files


def _assemble(
    base: str, authorization: str | None, listed: Listing, folder: Path, progress: Progress
) -> list[ListedFile]:
    """Download what is missing beside the folder, then give it the folder's name."""
    partial = folder.with_name(folder.name + TEMPORARY_SUFFIX)
    partial.mkdir(exist_ok=True)
    files = list(listed.files)
    _check_space(partial, sum(file.bytes for file in files))
    for position, file in enumerate(files):
        done, total = (sum(f.bytes for f in some) for some in (files[:position], files))
        kept = _kept(file, partial)
        files[position] = kept or _get(base, authorization, file, partial, done, total, progress)
    names = {file.name for file in files}
    for path in partial.iterdir():
        if path.name not in names:  # the beginning of a file that came gzipped in the end
            path.unlink()
    sync(partial)
    os.rename(partial, folder)
    sync(folder.parent)
    return files


def _get(
    base: str,
    authorization: str | None,
    file: ListedFile,
    folder: Path,
    done: int,
    total: int,
    progress: Progress,
) -> ListedFile:
    """Download a file, or the same one gzipped where only that is there."""
    remote = Remote(base + quote(file.name), file.bytes, file.sha256, authorization)
    try:
        download(remote, folder / file.name, lambda position: progress(done + position, total))
    except NotThere:
        if file.packed is None:
            raise
        total += file.packed.bytes - file.bytes
        return _get(base, authorization, file.packed, folder, done, total, progress)
    return file


def _kept(file: ListedFile, folder: Path) -> ListedFile | None:
    """The file, or the same one gzipped, where it is in the folder and right."""
    path = folder / file.name
    if path.is_file() and path.stat().st_size == file.bytes and sha256_of(path) == file.sha256:
        return file
    return _kept(file.packed, folder) if file.packed is not None else None


def _check_space(partial: Path, needed: int) -> None:
    there = sum(path.stat().st_size for path in partial.iterdir())
    if shutil.disk_usage(partial).free < needed - there:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _cannot_write(folder: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "make room and run the same command again, what has come is kept; or choose another disk with --to"
    else:
        advice = "choose another folder with --to"
    return f"cannot write {folder}: {error.strerror or error}; {advice}"
