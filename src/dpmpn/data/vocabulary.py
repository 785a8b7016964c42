"""Names and their ids: an immutable list that finds a name or a label fast and suggests near ones when it cannot."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, overload
from unicodedata import is_normalized

import numpy as np
import polars as pl

from dpmpn.data.names import normal, normal_names
from dpmpn.data.near_names import NearNames, near_names
from dpmpn.errors import DataError, UnknownName, WrongType, shown

TYPES_APART = " | "  # between the types of an entity that has several
_SHOWN_TYPES = 3
_AMBIGUOUS = -1
_SHOWN_AMBIGUOUS = 5
_FEW = 1000  # names that are found one by one sooner than all names are listed


class Names(Sequence[str]):
    """An immutable list of texts in one block of bytes, as it lies on the disk, found there without reading it all.

    UTF-8, a line break after each text, and where each begins; may be mapped.
    """

    def __init__(self, text: np.ndarray, offsets: np.ndarray) -> None:
        self.text = text  # uint8
        self.offsets = offsets  # int64, names + 1
        self._bytes = text.data  # of which slices are cheap

    @classmethod
    def of(cls, column: pl.Series) -> "Names":
        """Pack names."""
        offsets = np.zeros(len(column) + 1, np.int64)
        np.cumsum(column.str.len_bytes().to_numpy() + np.int64(1), out=offsets[1:])
        text = "".join(column.str.join("\n").to_list()) + "\n" if len(column) else ""
        return cls(np.frombuffer(text.encode(), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._decoded(int(self.offsets[index]), int(self.offsets[index + 1]))

    def __iter__(self) -> Iterator[str]:
        return (self._decoded(start, end) for start, end in pairwise(self.offsets.tolist()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Names, (np.array(self.text), np.array(self.offsets))  # not what is mapped, but what it holds

    def are_normal(self) -> bool:
        """Whether all are in Unicode's composed form; a million names take 0.1 s, if they are ASCII none."""
        # No character composes with a line break.
        return (
            not len(self.text)
            or self.text.max() < 128
            or is_normalized("NFC", str(self._bytes, "utf-8", "replace"))
        )

    def find(self, name: str) -> int:
        """Position of a name among names in ascending order, -1 where it is not among them."""
        # Code points and their UTF-8 bytes sort alike.
        at = bisect_left(range(len(self)), name.encode(errors="replace"), key=self._packed)
        return at if at < len(self) and self[at] == name else -1

    def _packed(self, index: int) -> bytes:
        return bytes(self._bytes[self.offsets[index] : self.offsets[index + 1] - 1])

    def _decoded(self, start: int, end: int) -> str:
        try:
            return str(self._bytes[start : end - 1], "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"a name is not UTF-8 ({error}): build the graph again") from error


class Vocabulary:
    """An immutable list of distinct names, with labels where there are any; the id of a name is its position."""

    def __init__(self, names: Sequence[str] | pl.Series) -> None:
        try:
            column = names if isinstance(names, pl.Series) else pl.Series(names, dtype=pl.String)
        except UnicodeEncodeError as error:
            raise DataError(f"name {error.object!r:.120} cannot be written as UTF-8; rename it") from error
        self.packed = Names.of(column)
        self.labels: pl.DataFrame | None = (
            None  # name, description and type, a row per id; null where not known
        )
        # Polars compares texts by their bytes, which is the order of code points.
        self.ascending = bool((column.slice(1) > column.head(max(len(column) - 1, 0))).all())
        if not self.ascending and column.n_unique() < len(column):
            name = column.filter(column.is_duplicated())[0]
            first, second = (column == name).arg_true()[:2]
            raise DataError(f"name '{name}' occurs twice (ids {first} and {second}): names must be distinct")

    @classmethod
    def opened(cls, packed: Names, ascending: bool, labels: pl.DataFrame | None = None) -> "Vocabulary":
        """A vocabulary of saved names, which were distinct when they were saved."""
        vocabulary = cls.__new__(cls)
        vocabulary.packed, vocabulary.ascending, vocabulary.labels = packed, ascending, labels
        return vocabulary

    @classmethod
    def numbered(cls, count: int) -> "Vocabulary":
        """Make a vocabulary in which every id is its own name."""
        return cls(pl.int_range(count, eager=True).cast(pl.String))

    def in_memory(self) -> "Vocabulary":
        """The same names without their file."""
        packed = Names(self.packed.text.copy(), self.packed.offsets.copy())
        return Vocabulary.opened(packed, self.ascending, self.labels)

    def labelled(self, frame: pl.DataFrame) -> "Vocabulary":
        """The same names with their labels, from a frame of all: id, name, description and type."""
        names = normal_names(pl.Series("id", self.names, pl.String)).to_frame()
        labels = names.join(_merged(frame), on="id", how="left", maintain_order="left").drop("id")
        is_any = any(column.null_count() < len(column) for column in labels)
        return Vocabulary.opened(self.packed, self.ascending, labels if is_any else None)

    def extended(self, new: Sequence[str]) -> "Vocabulary":
        """The same names with more after them."""
        vocabulary = Vocabulary([*self.names, *new])
        if self.labels is not None:
            vocabulary.labels = pl.concat([self.labels, self.labels.clear(len(new))])
        return vocabulary

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names in the order of their ids."""
        return tuple(self.packed)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _folded_ids(self) -> dict[str, int]:
        return _numbered_once([_without_case(name) for name in self.names])

    @cached_property
    def _label_ids(self) -> dict[str, int]:
        return _numbered_once([label and normal(label) for label in self._label_list()])

    @cached_property
    def _folded_label_ids(self) -> dict[str, int]:
        return _numbered_once([label and _without_case(label) for label in self._label_list()])

    @cached_property
    def _respelled(self) -> dict[str, int]:
        """Ids by normal names, of those stored otherwise: graphs that earlier versions made keep their names."""
        if self.packed.are_normal():
            return {}
        spelled = ((normal(name), name, i) for i, name in enumerate(self.names))
        return {normal_name: i for normal_name, name, i in spelled if normal_name != name}

    @cached_property
    def _near(self) -> NearNames:
        return NearNames(self._texts(None))

    def _texts(self, among: int | None) -> Sequence[str]:
        """Names and labels of the first ids."""
        names = self.names[:among]
        labels = [label for label in self._label_list()[:among] if label is not None]
        return [*names, *labels] if labels else names

    def __len__(self) -> int:
        return len(self.packed)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) >= 0

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} names)"

    def name(self, id: int) -> str:
        """Name of an id."""
        if not 0 <= id < len(self):
            raise DataError(f"id {id} is outside 0..{len(self) - 1}")
        return self.packed[id]

    def id(self, text: str, kind: str = "entity", suggested: int | None = None) -> int:
        """Id of a name or a label; another spelling of its case is accepted where only one fits.

        An error suggests near names, among the first `suggested` ones where that is given.
        """
        if not isinstance(text, str):
            raise WrongType(f"{kind} names are texts, not {shown(text)} ({type(text).__name__})")
        found = self.find(text)
        if found >= 0:
            return found
        if self.is_ambiguous(text):
            raise DataError(self._ambiguous_message(text, kind))
        raise UnknownName(kind, text, self.near(text, suggested))

    def find(self, text: str) -> int:
        """Id of a name or a label as `id` finds it, -1 where none or several fit."""
        found = self._find(text)
        if found >= 0:
            return found
        folded = _without_case(text)
        found = self._label_ids.get(normal(text), -1)
        found = found if found >= 0 else self._folded_ids.get(folded, -1)
        return found if found >= 0 else self._folded_label_ids.get(folded, -1)

    def is_ambiguous(self, text: str) -> bool:
        """Whether `find` finds nothing because the text is the label of several."""
        return self.find(text) < 0 and _without_case(text) in self._folded_label_ids

    def ids(self, names: pl.Series) -> np.ndarray:
        """Id of each of many names (labels do not count), -1 where there is no such name."""
        if len(names) < _FEW and self.ascending:
            return np.array([self._find(name) for name in names.to_list()], np.int64)
        known = pl.DataFrame(
            {"name": self.names, "id": np.arange(len(self))}, {"name": pl.String, "id": pl.Int64}
        )
        ids = _joined(names, known)
        others = (ids < 0).nonzero()[0]
        spelled = normal_names(names.gather(others).cast(pl.String))
        if self._respelled or (spelled != names.gather(others)).any():
            more = pl.DataFrame(
                {"name": list(self._respelled), "id": list(self._respelled.values())}, known.schema
            )
            ids[others] = _joined(
                spelled, pl.concat([known, more]).unique("name", keep="first", maintain_order=True)
            )
        return ids

    def near(self, name: str, among: int | None = None) -> list[str]:
        """Up to three names or labels that look like this one, nearest first; of the first `among` ids if given."""
        if among is None:
            return self._near.find(name)
        return near_names(name, self._texts(among))

    @property
    def has_labels(self) -> bool:
        """Whether any id has a label."""
        return self.labels is not None and self.labels["name"].null_count() < len(self)

    def label(self, id: int) -> str:
        """What to show for an id: its label, or its name where it has none."""
        return (self.labels["name"][id] if self.labels is not None else None) or self.name(id)

    def describe(self, id: int) -> str | None:
        """Description of an id, where there is one."""
        return self.labels["description"][id] if self.labels is not None else None

    @property
    def types(self) -> pl.Series | None:
        """Type of each id, several joined by " | "; None where nothing has a type."""
        types = self.labels["type"] if self.labels is not None else None
        return None if types is None or types.null_count() == len(types) else types

    def of_type(self, type: str) -> np.ndarray:
        """Ids of a type, ascending; case does not matter."""
        if self.types is None:
            raise DataError("this graph has no types; import it with --labels FILE that has a column 'type'")
        parts = self.types.str.split(TYPES_APART)
        wanted = normal(type).lower()
        found = parts.list.eval(pl.element().str.to_lowercase() == wanted).list.any().fill_null(False)
        if not found.any():
            raise _unknown_type(type, parts.explode().drop_nulls())
        return found.arg_true().to_numpy().astype(np.int64)

    def _find(self, name: str) -> int:
        """Id of a name, in whichever form of Unicode it is given or stored."""
        found = self._find_stored(name)
        if found >= 0:
            return found
        spelled = normal(name)
        found = self._find_stored(spelled) if spelled != name else -1
        return found if found >= 0 else self._respelled.get(spelled, -1)

    def _find_stored(self, name: str) -> int:
        return self.packed.find(name) if self.ascending else self._ids.get(name, -1)

    def _label_list(self) -> list[str | None]:
        return self.labels["name"].to_list() if self.labels is not None else []

    def _ambiguous_message(self, text: str, kind: str) -> str:
        folded = _without_case(text)
        found = [i for i, label in enumerate(self._label_list()) if label and _without_case(label) == folded]
        shown = [f"{self.name(i)} ({self.describe(i) or self.label(i)})" for i in found[:_SHOWN_AMBIGUOUS]]
        more = f" and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        return (
            f"'{text}' is the label of several: {', '.join(shown)}{more}; give the identifier of the {kind}"
        )


def _without_case(text: str) -> str:
    return normal(text).casefold()


def _joined(names: pl.Series, known: pl.DataFrame) -> np.ndarray:
    wanted = pl.DataFrame({"name": names.cast(pl.String)})
    return (
        wanted.join(known, on="name", how="left", maintain_order="left")["id"].fill_null(-1).to_numpy().copy()
    )


def _merged(frame: pl.DataFrame) -> pl.DataFrame:
    """One row an identifier: the first name and description that are not empty, and all types."""
    frame = frame.with_columns(normal_names(frame[column]) for column in frame.columns)
    texts = [pl.col(column).replace("", None) for column in ("name", "description", "type")]
    types = pl.col("type").drop_nulls().unique(maintain_order=True).str.join(TYPES_APART).replace("", None)
    rows = frame.select("id", *texts).group_by("id", maintain_order=True)
    return rows.agg(pl.col("name", "description").drop_nulls().first(), types)


def _unknown_type(type: str, types: pl.Series) -> UnknownName:
    """The error that names types like this one, or else the most frequent ones; `types` are those of all ids."""
    counts = types.alias("type").value_counts().sort("count", "type", descending=[True, False])
    near = near_names(type, counts["type"].sort().to_list())
    most = ", ".join(f"'{name}'" for name in counts["type"].head(_SHOWN_TYPES))
    return UnknownName("type", type, near, "" if near else f"the most frequent types are {most}")


def _numbered_once(texts: Sequence[str | None]) -> dict[str, int]:
    """Position of each text, `_AMBIGUOUS` where it stands at several."""
    ids: dict[str, int] = {}
    for i, text in enumerate(texts):
        if text is not None:
            ids[text] = _AMBIGUOUS if text in ids else i
    return ids
