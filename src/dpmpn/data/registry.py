"""The datasets known by name: where they lie, which preset fits, how large they were published, what to download."""

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dpmpn.data.vocabulary import near_names
from dpmpn.errors import DataError, UnknownName

ROOT_VARIABLE = "DPMPN_DATA"
MIRROR_VARIABLE = "DPMPN_MIRROR"
_IGNORED = str.maketrans("", "", "-_ /\\")


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

    @property
    def can_be_fetched(self) -> bool:
        """Whether there is an address, its own or that of a mirror."""
        return self.base is not None or bool(self.files and os.environ.get(MIRROR_VARIABLE))


@dataclass(frozen=True)
class Entry:
    """A dataset known by name."""

    name: str
    location: str  # below the root folder; below the package for the bundled one
    kind: str  # "paper", "task", "extra", "scale" (not a benchmark) or "bundled"
    preset: str | None = None
    aliases: tuple[str, ...] = ()
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
        """Whether `dpmpn datasets fetch` knows where to get it."""
        listed = listing(self.location) if self.kind != "bundled" else None
        return listed is not None and listed.can_be_fetched

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
    published = Counts(**values["published"]) if "published" in values else None
    aliases = location, location.rpartition("/")[2]
    return Entry(
        values.get("name", location),
        location,
        values["kind"],
        values.get("preset"),
        aliases,
        published,
        values.get("note", ""),
    )


_VALUES = tomllib.loads((Path(__file__).parent / "datasets.toml").read_text("utf-8"))
_ENTRIES = tuple(_entry(location, values) for location, values in _VALUES.items())

DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def _simplified(name: str) -> str:
    return name.translate(_IGNORED).casefold()


_BY_PLAIN_NAME = {
    _simplified(spelling): entry for entry in _ENTRIES for spelling in (entry.name, *entry.aliases)
}


def find_dataset(name: str) -> Entry | None:
    """Entry of a name, ignoring case, dashes, underscores, spaces and slashes; None where there is none."""
    return _BY_PLAIN_NAME.get(_simplified(name))


def known_dataset(name: str) -> Entry:
    """Entry of a name, which must exist."""
    entry = find_dataset(name)
    if entry is None:
        near = [_BY_PLAIN_NAME[plain].name for plain in near_names(_simplified(name), list(_BY_PLAIN_NAME))]
        hint = "`dpmpn datasets` lists them; a folder with train.txt is a dataset too"
        raise UnknownName("dataset", name, list(dict.fromkeys(near)), hint)
    return entry


def list_datasets() -> list[DatasetRow]:
    """All known datasets and where they were found."""
    return [DatasetRow(e.name, e.preset, _found(e.folder()), e.kind, e.can_be_fetched()) for e in _ENTRIES]


def roots() -> list[Path]:
    """The folders datasets are looked for in; the first one is where they are fetched to."""
    given = os.environ.get(ROOT_VARIABLE)
    return [Path(given), default_root()] if given else [default_root()]


def default_root() -> Path:
    """The folder of this user's datasets."""
    given = os.environ.get("XDG_DATA_HOME", "")
    # Relative ones are to be ignored, says the XDG specification.
    return Path(given if os.path.isabs(given) else os.path.expanduser("~/.local/share")) / "dpmpn"


def _found(folder: Path | None) -> Path | None:
    return folder if folder is not None and folder.is_dir() else None


def listing(location: str) -> Listing | None:
    """What can be downloaded to a location below the data folder; None for what comes with the package."""
    return _table().get(location)


@cache
def _table() -> dict[str, Listing]:
    return {location: _listing(values) for location, values in _VALUES.items() if "files" in values}


def _listing(value: dict[str, Any]) -> Listing:
    files = tuple(_listed_file(**file) for file in value["files"])
    return Listing(files, value["licence"], value.get("base"), value.get("why", ""))


def _listed_file(name: str, bytes: int, sha256: str, packed: dict[str, Any] | None = None) -> ListedFile:
    return ListedFile(name, bytes, sha256, ListedFile(f"{name}.gz", **packed) if packed else None)
