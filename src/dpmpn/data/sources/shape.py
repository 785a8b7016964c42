"""Whether a table is long (a fact a row) or wide (an item a row, column names are relations), and its rows as facts."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from dpmpn.data.names import AROUND
from dpmpn.data.sources.base import COLUMNS, PROVENANCE, TIME, ReadOptions
from dpmpn.data.sources.columns import (
    column_position,
    find_columns,
    looks_like_names,
    names_shown,
    output_names,
    positions_by_alias,
    unclear_columns,
)
from dpmpn.errors import DataError

Rows = Sequence[Sequence[str | None]]
"""Some of the first rows of a table, as text."""
SAMPLED = 1000
"""Rows of a table in memory, or of Parquet, from which it is found out what it is."""

_LIST_SEPARATORS = ";|"
_LONG_TEXT = 50  # characters, on average
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?([eE][+-]?\d+)?\s*[%€$£]?|[€$£]\s*\d[\d,]*(\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?[./]\d\d?[./]\d{2,4}")
_ADDRESS = re.compile(r"https?://\S+")
_NO_SEPARATOR = "none"


class Shape(NamedTuple):
    """Which columns of a table are read, and what they are."""

    positions: tuple[int, ...]  # of columns that every row must fill
    names: tuple[str, ...]  # head, relation, tail (and time); of a wide table head (and time)
    further: tuple[int, ...] = ()  # of columns that may be empty: those that are relations of a wide table
    relations: tuple[str, ...] = ()  # what they are called
    separators: tuple[str, ...] = ()  # between several values in one of their cells; "" where there is one
    notes: tuple[str, ...] = ()  # what was decided, in sentences
    kept: tuple[
        int, ...
    ] = ()  # of columns that say something of the fact, such as its source; they may be empty
    kept_names: tuple[str, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether a row is an item."""
        return bool(self.further)

    @property
    def all_positions(self) -> tuple[int, ...]:
        """Of all columns that are read."""
        return self.positions + self.further + self.kept

    @property
    def all_names(self) -> tuple[str, ...]:
        """What the columns are called until facts are made of them."""
        further = tuple(f"further {number}" for number in range(len(self.further)))
        return self.names + further + self._kept_columns

    @property
    def _kept_columns(self) -> tuple[str, ...]:
        return tuple(f"kept {number}" for number in range(len(self.kept)))

    def facts(self, rows: pl.DataFrame, numbers: Sequence[int]) -> tuple[pl.DataFrame, Sequence[int]]:
        """The facts of some rows, and the numbers of the rows they stand on; an empty cell is none."""
        if not self.is_wide:
            return self._with_provenance(rows), numbers
        parts = []
        rows = rows.with_row_index("row")
        cells = zip(self.all_names[len(self.names) :], self.relations, self.separators, strict=True)
        for column, relation, separator in cells:
            tail = pl.col(column).str.split(separator) if separator else pl.col(column)
            part = rows.select("row", *self.names, pl.lit(relation).alias("relation"), tail.alias("tail"))
            part = part.explode("tail") if separator else part
            part = part.with_columns(pl.col("tail").str.strip_chars(AROUND))
            parts.append(part.filter(pl.col("tail").str.len_bytes() > 0))
        facts = pl.concat(parts).sort("row", maintain_order=True)
        ordered = (*COLUMNS, TIME) if TIME in self.names else COLUMNS
        return facts.select(ordered), np.asarray(numbers, np.int64)[facts["row"].to_numpy()].tolist()

    def _with_provenance(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The facts of rows with what the further columns say of them."""
        if not self.kept:
            return rows
        columns = self._kept_columns
        said = pl.struct(
            pl.col(column).alias(name) for column, name in zip(columns, self.kept_names, strict=True)
        )
        is_any = pl.any_horizontal(pl.col(column).str.len_bytes() > 0 for column in columns)
        return rows.select(*self.names, pl.when(is_any).then(said.struct.json_encode()).alias(PROVENANCE))


def rows_of(columns: Sequence[pl.Series]) -> Rows:
    """Columns of text as rows."""
    return list(zip(*(column.to_list() for column in columns), strict=True))


def find_shape(
    where: str,
    seen: Sequence[str],
    named: bool,
    options: ReadOptions,
    sample: Callable[[], Rows],  # the first rows, where names do not tell
    separated: bool = False,
) -> Shape:
    """What to read of a table; `seen` are the names of its columns, or its first row."""
    if _is_wide(where, seen, named, options, sample):
        return _wide_shape(where, seen, named, options, sample())
    positions = find_columns(where, seen, named, options, separated)
    kept = _kept(seen, positions) if named else ()
    names = tuple(seen[at].strip() for at in kept)
    notes = (f"kept as provenance of each fact: {names_shown(names)}",) if kept else ()
    return Shape(positions, output_names(options), notes=notes, kept=kept, kept_names=names)


def _kept(seen: Sequence[str], positions: tuple[int, ...]) -> tuple[int, ...]:
    """The columns beside head, relation and tail that have a name, and one of their own."""
    names = [name.strip() for name in seen]
    others = (at for at in range(len(names)) if at not in positions[: len(COLUMNS)])
    return tuple(at for at in others if names[at] and names.count(names[at]) == 1)


def _is_wide(
    where: str, seen: Sequence[str], named: bool, options: ReadOptions, sample: Callable[[], Rows]
) -> bool:
    """As it was asked for; else only where it is clear: named columns, none like head or tail, distinct items."""
    if options.wide is not None:
        return options.wide
    time = [] if options.time_column is None else [column_position(where, options.time_column, seen, named)]
    others = [at for at in range(len(seen)) if at not in time]
    words = [at for at in others if len(seen[at].strip()) > 1 and not seen[at].strip().isdecimal()]
    if not named or options.columns is not None or positions_by_alias(seen, time) or looks_like_names(seen):
        return False
    if len(others) < len(COLUMNS) or len(words) < len(others):
        return False
    rows = sample()
    items = _values(rows, others[0])
    are_distinct = len(items) == len(rows) and len(set(items)) == len(items) > 0
    if len(others) > len(COLUMNS) and not are_distinct:
        raise unclear_columns(where, seen, others, named)
    seconds = _values(rows, others[1])
    is_constant = len(seconds) > 1 and len(set(seconds)) == 1  # as a column of one relation would be
    return are_distinct and not (len(others) == len(COLUMNS) and is_constant)


def _wide_shape(where: str, seen: Sequence[str], named: bool, options: ReadOptions, rows: Rows) -> Shape:
    if not named:
        raise DataError(
            f"{where}: a wide table needs the names of its columns in the first row ({names_shown(seen)}); write "
            "them there, or give --header"
        )
    time = [] if options.time_column is None else [column_position(where, options.time_column, seen, named)]
    given = [column_position(where, column, seen, named) for column in options.columns or ()]
    item = given[0] if given else next((at for at in range(len(seen)) if at not in time), 0)
    taken = [at for at in given[1:] or range(len(seen)) if at != item and at not in time]
    left_out = {} if given[1:] else {at: why for at in taken if (why := _why_left_out(seen[at], rows, at))}
    taken = [at for at in taken if at not in left_out]
    if not taken:
        raise DataError(
            f"{where}: a wide table has a column of items and others that say something of them, but here are only "
            f"{names_shown(seen)}; name those to take with --columns {seen[item].strip()},..."
        )
    separators = tuple(_separator(options, rows, at) for at in taken)
    notes = _notes(seen, item, taken, left_out, separators)
    names = ("head", TIME) if time else ("head",)
    relations = tuple(seen[at].strip() for at in taken)
    return Shape((item, *time), names, tuple(taken), relations, separators, notes)


def _why_left_out(name: str, rows: Rows, at: int) -> str:
    """Why a column makes poor entities: one that is named all the same is taken."""
    values = _values(rows, at)
    if not name.strip():
        return "has no name"
    if not values:
        return ""
    differ = len(set(values)) > len(values) / 2
    for pattern, kind in ((_NUMBER, "numbers"), (_DATE, "dates"), (_ADDRESS, "addresses")):
        if all(pattern.fullmatch(value) for value in values):
            return kind if differ or any("." in value for value in values) else ""
    return "long text" if differ and sum(map(len, values)) > _LONG_TEXT * len(values) else ""


def _separator(options: ReadOptions, rows: Rows, at: int) -> str:
    """What stands between several values in one cell of a column; found where a part stands in another cell, too."""
    if options.cell_separator is not None:
        return "" if options.cell_separator == _NO_SEPARATOR else options.cell_separator
    values = _values(rows, at)
    for separator in _LIST_SEPARATORS:
        parts = [[part.strip() for part in value.split(separator)] for value in values]
        counts = Counter(part for each in parts for part in set(each) if part)
        if any(len(each) > 1 and all(each) and max(counts[part] for part in each) > 1 for each in parts):
            return separator
    return ""


def _notes(
    seen: Sequence[str], item: int, taken: list[int], left_out: dict[int, str], separators: tuple[str, ...]
) -> tuple[str, ...]:
    names = [name.strip() for name in seen]
    said = [
        f"read as a wide table: an item in each row, named in the column '{names[item]}'; the other columns are "
        f"relations ({names_shown([names[at] for at in taken])}); if each row is a fact, give --no-wide"
    ]
    if left_out:
        reasons = ", ".join(f"'{names[at]}' ({why})" for at, why in left_out.items())
        example = next(iter(left_out))
        said.append(
            f"columns left out, because their values make poor entities: {reasons}; to take one, name the item's "
            "column and all that you want, such as "
            f"--columns {names[item]},{names[taken[0]]},{names[example] or example + 1}"
        )
    for separator in sorted({each for each in separators if each}):
        split = [names[at] for at, each in zip(taken, separators, strict=True) if each == separator]
        said.append(
            f"cells of {names_shown(split)} were split at '{separator}'; give --cell-separator none to keep them whole"
        )
    return tuple(said)


def _values(rows: Rows, at: int) -> list[str]:
    """What stands in a column, without what is empty."""
    return [value.strip() for row in rows if at < len(row) and (value := row[at]) and value.strip()]
