"""The datasets known by name: where they lie, which preset fits, how large they were published, and their download.

A downloaded folder takes its name only when all its files are there and right.
"""

import errno
import os
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from dpmpn.data.near_names import near_names
from dpmpn.data.web import NotThere, Remote, download, split_password
from dpmpn.errors import DataError, UnknownName
from dpmpn.files import named_folder, own_folder, put_in_place, remove, sha256_of
from dpmpn.files.held import TEMPORARY_SUFFIX, locked

ROOT_VARIABLE = "DPMPN_DATA"
MIRROR_VARIABLE = "DPMPN_MIRROR"
_IGNORED = str.maketrans("", "", "-_ /\\")
Progress = Callable[[int, int], None]
"""Called with how many bytes are there, and how many there will be."""


class Counts(NamedTuple):
    """How many entities, relations and triples a dataset has; inverses are not counted."""

    entities: int
    relations: int
    train: int
    valid: int
    test: int


@dataclass(frozen=True)
class ListedFile:
    """A file as it must be; `packed` is the same one gzipped, which will do as well."""

    name: str
    bytes: int
    sha256: str
    packed: "ListedFile | None" = None


@dataclass(frozen=True)
class Listing:
    """The files of a dataset, and the address they lie below."""

    files: tuple[ListedFile, ...]
    licence: str
    base: str | None  # ends with a slash
    why: str  # why there is no base


@dataclass(frozen=True)
class Entry:
    """A dataset known by name."""

    name: str
    location: str  # below the root folder; below the package for the bundled one
    kind: str  # "paper", "task", "extra", "scale" (not a benchmark) or "bundled"
    preset: str | None = None
    published: Counts | None = None
    note: str = ""

    def folder(self) -> Path | None:
        """Folder of the dataset; where it is in none of the roots, where $DPMPN_DATA would have it."""
        if self.kind == "bundled":
            return Path(__file__).parent / self.location
        found = (root / self.location for root in roots() if (root / self.location).is_dir())
        wanted = roots()[0] / self.location if os.environ.get(ROOT_VARIABLE) else None
        return next(found, wanted)

    def existing_folder(self) -> Path:
        """Folder of the dataset, which must be there."""
        folder = self.folder()
        if folder is None:
            raise DataError(
                f"${ROOT_VARIABLE} is not set, and {default_root()} has no dataset '{self.name}'; {self._advice()}"
            )
        if not folder.is_dir():
            raise DataError(f"dataset '{self.name}' is not here: {folder} is not a folder; {self._advice()}")
        return folder

    def can_be_fetched(self) -> bool:
        """Whether `dpmpn datasets fetch` knows where to get it: an address of its own, or that of a mirror."""
        listed = listing(self.location)
        on_mirror = listed is not None and listed.files and os.environ.get(MIRROR_VARIABLE)
        return listed is not None and (listed.base is not None or bool(on_mirror))

    def _advice(self) -> str:
        if self.kind == "bundled":
            return "it comes with the package, so install the package again"
        advice = f"point ${ROOT_VARIABLE} to the folder that holds '{self.location}'"
        if self.can_be_fetched():
            advice = f"fetch it with `dpmpn datasets fetch {self.name}`, or {advice}"
        return f"{advice}. {self.note}" if self.note else advice


class DatasetRow(NamedTuple):
    """A line of the table of datasets; `folder` is None where the data is not found."""

    name: str
    preset: str | None
    folder: Path | None
    kind: str
    can_be_fetched: bool


def _entry(location: str, values: dict[str, Any]) -> Entry:
    name, published = values.get("name", location), values.get("published")
    counts = Counts(**published) if published else None
    return Entry(name, location, values["kind"], values.get("preset"), counts, values.get("note", ""))


_VALUES = tomllib.loads((Path(__file__).parent / "datasets.toml").read_text("utf-8"))
_ENTRIES = tuple(_entry(location, values) for location, values in _VALUES.items())

DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def _simplified(name: str) -> str:
    return name.translate(_IGNORED).casefold()


_BY_PLAIN_NAME = {
    _simplified(spelling): entry
    for entry in _ENTRIES
    for spelling in (entry.name, entry.location, entry.location.rpartition("/")[2])
}


def find_dataset(name: str) -> Entry | None:
    """Entry of a name, ignoring case, dashes, underscores, spaces and slashes; None where there is none."""
    return _BY_PLAIN_NAME.get(_simplified(name))


def known_dataset(name: str, hint: str = "`dpmpn datasets` lists them") -> Entry:
    """Entry of a name, which must exist; the hint says what else to do where no other name is like it."""
    entry = find_dataset(name)
    if entry is None:
        near = [_BY_PLAIN_NAME[plain].name for plain in near_names(_simplified(name), list(_BY_PLAIN_NAME))]
        raise UnknownName("dataset", name, list(dict.fromkeys(near)), hint)
    return entry


def list_datasets() -> list[DatasetRow]:
    """All known datasets and where they were found."""
    found = [(e, folder if (folder := e.folder()) and folder.is_dir() else None) for e in _ENTRIES]
    return [DatasetRow(e.name, e.preset, folder, e.kind, e.can_be_fetched()) for e, folder in found]


def roots() -> list[Path]:
    """The folders datasets are looked for in; the first one is where they are fetched to."""
    given = os.environ.get(ROOT_VARIABLE)
    return [Path(given), default_root()] if given else [default_root()]


def default_root() -> Path:
    """The folder of this user's datasets."""
    given = os.environ.get("XDG_DATA_HOME", "")
    # Relative ones are to be ignored, says the XDG specification.
    return Path(given if os.path.isabs(given) else os.path.expanduser("~/.local/share")) / "dpmpn"


def listing(location: str) -> Listing | None:
    """What can be downloaded to a location below the data folder; None for what comes with the package."""
    return _table().get(location)


@cache
def _table() -> dict[str, Listing]:
    return {
        location: Listing(
            tuple(_listed_file(**file) for file in values["files"]),
            values["licence"],
            values.get("base"),
            values.get("why", ""),
        )
        for location, values in _VALUES.items()
        if "files" in values
    }


def _listed_file(name: str, bytes: int, sha256: str, packed: dict[str, Any] | None = None) -> ListedFile:
    return ListedFile(name, bytes, sha256, ListedFile(f"{name}.gz", **packed) if packed else None)


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
    if listed is None:
        return Fetched(entry.name, entry.existing_folder(), False, 0)
    found = None if to is not None else entry.folder()
    folder = found if found is not None else (to or roots()[0]) / entry.location
    try:
        # Looked for before anything is written: the folder may be read-only.
        files = _files_there(entry, listed, folder)
        if is_new := files is None:
            remote = _remote(entry, listed, mirror or os.environ.get(MIRROR_VARIABLE))
            with _lock(entry, folder):
                files = _files_there(entry, listed, folder)  # another process may have just ended
                if is_new := files is None:
                    report = progress or (lambda done, total: None)
                    files = _assemble(remote, listed, folder, report)
    except OSError as error:
        raise DataError(_cannot_write(folder, error)) from error
    return Fetched(entry.name, folder, is_new, sum(file.bytes for file in files or ()), listed.licence)


def _remote(entry: Entry, listed: Listing, mirror: str | None) -> Callable[[ListedFile], Remote]:
    """Where a file lies, and what it must be; with the header of a mirror's user and password."""
    if not listed.files or (mirror is None and listed.base is None):
        names = ", ".join(file.name for file in listed.files) or "train.txt, valid.txt and test.txt"
        from_mirror = "give --mirror, or " if listed.files else ""
        raise DataError(
            f"'{entry.name}' cannot be fetched: {listed.why}; {from_mirror}put {names} into a folder "
            f"'{entry.location}' below ${ROOT_VARIABLE}"
        )
    if mirror is None:
        return lambda file: Remote(f"{listed.base}{quote(file.name)}", file.bytes, file.sha256)
    try:
        if "?" in mirror or "#" in mirror:  # of a password that is not quoted, perhaps
            raise ValueError
        address, authorization = split_password(mirror)
    except ValueError as error:
        shown = mirror.rpartition("@")[2]
        raise DataError(
            f"the mirror '{shown}' is not a web address such as https://host/folder; check --mirror"
        ) from error
    base = f"{address.rstrip('/')}/{quote(entry.location)}/"
    return lambda file: Remote(base + quote(file.name), file.bytes, file.sha256, authorization)


@contextmanager
def _lock(entry: Entry, folder: Path) -> Iterator[None]:
    """Keep other processes off a folder; the lock ends with the process, however it ends."""

    def taken(holder: str) -> DataError:
        return DataError(
            f"'{entry.name}' is being fetched into {folder} by another process{holder}; wait for it to end"
        )

    # The file stays: one that is deleted could be locked by two processes.
    with named_folder(folder.parent), locked(folder.with_name(f".{folder.name}.lock"), taken):
        yield


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
    remote: Callable[[ListedFile], Remote], listed: Listing, folder: Path, progress: Progress
) -> list[ListedFile]:
    """Download what is missing beside the folder, then give it the folder's name."""
    partial = folder.with_name(folder.name + TEMPORARY_SUFFIX)
    own_folder(partial)
    files = list(listed.files)
    _check_space(partial, sum(file.bytes for file in files))
    for position, file in enumerate(files):
        done, total = (sum(f.bytes for f in some) for some in (files[:position], files))
        files[position] = _kept(file, partial) or _get(remote, file, partial, done, total, progress)
    names = {file.name for file in files}
    for path in partial.iterdir():
        if path.name not in names:  # the beginning of a file that came gzipped in the end
            remove(path)
    put_in_place(partial, folder)
    return files


def _get(
    remote: Callable[[ListedFile], Remote],
    file: ListedFile,
    folder: Path,
    done: int,
    total: int,
    progress: Progress,
) -> ListedFile:
    """Download a file, or the same one gzipped where only that is there."""
    try:
        download(remote(file), folder / file.name, lambda position: progress(done + position, total))
    except NotThere:
        if file.packed is None:
            raise
        total += file.packed.bytes - file.bytes
        return _get(remote, file.packed, folder, done, total, progress)
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
