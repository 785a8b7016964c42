"""The table of what can be downloaded: for each dataset its files, their sizes, checksums and addresses."""

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MIRROR_VARIABLE = "DPMPN_MIRROR"


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


def listing(location: str) -> Listing | None:
    """What can be downloaded to a location below the data folder; None for what comes with the package."""
    return _table().get(location)


@cache
def _table() -> dict[str, Listing]:
    values = tomllib.loads((Path(__file__).parent / "downloads.toml").read_text("utf-8"))
    return {location: _listing(value) for location, value in values.items()}


def _listing(value: dict[str, Any]) -> Listing:
    files = tuple(_file(**file) for file in value["files"])
    return Listing(files, value["licence"], value.get("base"), value.get("why", ""))


def _file(name: str, bytes: int, sha256: str, packed: dict[str, Any] | None = None) -> ListedFile:
    return ListedFile(name, bytes, sha256, ListedFile(f"{name}.gz", **packed) if packed else None)
