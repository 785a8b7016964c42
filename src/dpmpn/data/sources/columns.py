"""Which columns of a table are head, relation and tail, and its rows as facts, gaps refused or counted."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from dpmpn.data.names import AROUND
from dpmpn.data.sources.base import COLUMNS, LONGEST_LINE, TIME, Account, ReadOptions, Source, short
from dpmpn.errors import DataError
from dpmpn.wording import counted, one_line

# What people call them; compared in lower case, without a leading '#', '?' or ':' and what stands in brackets.
# Of several that could be a head, those of an earlier line mean it: {subject, predicate, object, source} has one.
_ALIASES: dict[str, tuple[str, str, str]] = {
    "head": (
        "head subject h s subj head_id subject_id head_entity",
        "source from src start source_id start_id from_id source_node start_node",
        "item entity node1 node_1 entity1 entity_1",
    ),
    "relation": (
        "relation predicate property r p rel pred relationship relation_id predicate_id property_id",
        "edge type edge_type relation_type",
        "label attribute",
    ),
    "tail": (
        "tail object t o obj tail_id object_id tail_entity",
        "target to dst end destination target_id end_id to_id target_node end_node",
        "value node2 node_2 entity2 entity_2",
    ),
}

_RELATION_ALONE = "relation predicate relationship relation_id predicate_id property_id"

_EXACT = 2.0**53  # floats below it are exact where they are whole
_HALF = re.compile("[\ud800-\udfff]")


def output_names(options: ReadOptions) -> tuple[str, ...]:
    """Columns of the batches a source gives."""
    return COLUMNS if options.time_column is None else (*COLUMNS, TIME)


def asks_for_names(options: ReadOptions) -> bool:
    """Whether columns are asked for by name, so that there must be a header."""
    return any(not name.isdecimal() for name in _wanted(options))


def has_all_names(names: Sequence[str], options: ReadOptions) -> bool:
    """Whether columns are asked for by name, and all are among these."""
    return asks_for_names(options) and all(
        name.isdecimal() or _matches(name, names) for name in _wanted(options)
    )


def positions_by_alias(names: Sequence[str], aside: Collection[int] = ()) -> tuple[int, int, int] | None:
    """Positions of head, relation and tail, where each is there once under one of its usual names."""
    found = _positions_by_role(names, aside)
    if any(len(positions) != 1 for positions in found.values()):
        return None
    head, relation, tail = (found[role][0] for role in COLUMNS)
    return head, relation, tail


def looks_like_names(fields: Sequence[str]) -> bool:
    """Whether usual names of two of head, relation and tail are among some fields; one letter is no name here.

    In the middle of three, a word that means nothing but a relation is enough.
    """
    plain = [_undecorated(field) for field in fields]
    if len(plain) == len(COLUMNS) and plain[1] in _RELATION_ALONE.split():
        return True
    long = [field if len(name) > 1 else "" for field, name in zip(fields, plain, strict=True)]
    return sum(map(bool, _positions_by_role(long).values())) >= 2


def find_columns(
    where: str, seen: Sequence[str], named: bool, options: ReadOptions, separated: bool = False
) -> tuple[int, ...]:
    """Positions of head, relation, tail and, where asked for, time; `seen` are the names or the first row."""
    time = [] if options.time_column is None else [column_position(where, options.time_column, seen, named)]
    if options.columns is not None:
        if len(options.columns) != len(COLUMNS):
            raise DataError(
                f"--columns gives {len(options.columns)} columns; give those of head, relation and tail"
            )
        found = [column_position(where, column, seen, named) for column in options.columns]
        if len(set(found)) != len(found):
            raise DataError(
                f"{where}: --columns {','.join(options.columns)} names a column twice; name three columns"
            )
        return (*found, *time)
    by_alias = positions_by_alias(seen, time) if named else None
    if by_alias:
        return (*by_alias, *time)
    others = [position for position in range(len(seen)) if position not in time]
    has = f"{where}: has {counted(len(seen), 'column')}" + (f" ({names_shown(seen)})" if seen else "")
    if len(others) < len(COLUMNS):
        raise DataError(
            f"{has}; write head, relation and tail on each line, or say with --separator what is between them"
            if separated
            else f"{has}; a fact has head, relation and tail: give all three"
        )
    if len(others) > len(COLUMNS):
        raise unclear_columns(where, seen, others, named)
    return (*(_in_order(seen, others) if named else others), *time)


def unclear_columns(where: str, seen: Sequence[str], others: list[int], named: bool) -> DataError:
    """The error of a table with more columns than a fact has, with the two readings of it and how to choose."""
    return DataError(
        f"{where}: has {counted(len(seen), 'column')} ({names_shown(seen)}), and which are head, relation and tail is "
        f"not clear; if each row is a fact, say it with --columns, such as --columns {_advised(seen, others, named)}; "
        "if each row is an item and the other columns say something of it, give --wide"
    )


def _wanted(options: ReadOptions) -> tuple[str, ...]:
    return (*(options.columns or ()), *([options.time_column] if options.time_column else []))


def _undecorated(name: str) -> str:
    """A name without its decoration, such as ':START_ID(Person)' has."""
    return re.sub(r"(?<=.)\([^()]*\)$", "", name.strip().lstrip("#?: ")).lower()


def _positions_by_role(names: Sequence[str], aside: Collection[int] = ()) -> dict[str, list[int]]:
    """Where head, relation and tail may be by their names."""
    plain = ["" if position in aside else _undecorated(name) for position, name in enumerate(names)]
    found: dict[str, list[int]] = {}
    for role, tiers in _ALIASES.items():
        by_tier = ([at for at, name in enumerate(plain) if name in aliases.split()] for aliases in tiers)
        found[role] = next(filter(None, by_tier), [])
    return found


def _in_order(names: Sequence[str], three: list[int]) -> list[int]:
    """Three columns as head, relation and tail: two that are known tell the third, else they are in this order."""
    found = _positions_by_role([names[position] for position in three])
    if sorted(map(len, found.values())) != [0, 1, 1]:
        return three
    (left,) = {0, 1, 2} - {position for positions in found.values() for position in positions}
    return [three[(found[role] or [left])[0]] for role in COLUMNS]


def _matches(column: str, names: Sequence[str]) -> list[int]:
    """Positions of a name; where it is not there as it is spelled, those that differ in case only."""
    stripped = [name.strip() for name in names]
    same = [position for position, name in enumerate(stripped) if name == column]
    return same or [p for p, name in enumerate(stripped) if name.casefold() == column.casefold()]


def column_position(where: str, column: str, seen: Sequence[str], named: bool) -> int:
    """Position from 0 of a column given by its name or its position from 1."""
    if column.isdecimal():
        if not 1 <= int(column[:9]) <= len(seen):
            columns = f"{counted(len(seen), 'column')} ({names_shown(seen)})"
            raise DataError(f"{where}: there is no column {column} in {columns}; check it")
        return int(column) - 1
    found = _matches(column, seen) if named else []
    if not found:
        raise DataError(
            f"{where}: there is no column '{column}' ({names_shown(seen)}); name one of these or its position"
        )
    if len(found) > 1:
        raise DataError(f"{where}: there are {len(found)} columns '{column}'; give the position instead")
    return found[0]


def _advised(seen: Sequence[str], others: list[int], named: bool) -> str:
    """What could be given as --columns: those that have a usual name, else the first ones."""
    by_role = _positions_by_role(seen) if named else {}
    usual = {role: positions[0] for role, positions in by_role.items() if set(positions[:1]) & set(others)}
    rest = (position for position in others if position not in usual.values())
    chosen = [usual[role] if role in usual else next(rest) for role in COLUMNS]
    names = [seen[position].strip() for position in chosen]
    if named and all(_is_plain(name) and len(_matches(name, seen)) == 1 for name in names):
        return ",".join(names)
    return ",".join(str(position + 1) for position in chosen)


def _is_plain(name: str) -> bool:
    """Whether a name can be given on the command line as it is."""
    return re.fullmatch(r"\w[\w.:-]{0,39}", name) is not None and not name.isdecimal()


def names_shown(seen: Sequence[str]) -> str:
    """Some names of columns in quotes."""
    shown = [name if len(name) <= 30 else name[:27] + "..." for name in seen[:8]]
    return ", ".join(f"'{one_line(name)}'" for name in shown) + (", ..." if len(seen) > 8 else "")


def has_empty(frame: pl.DataFrame) -> bool:
    """Whether any field is null, empty or white space."""
    lacking = pl.any_horizontal(no_text(name).fill_null(True) for name in frame.columns)
    return bool(frame.select(lacking.any()).item())


def no_text(name: str) -> pl.Expr:
    """Whether the fields of a column are empty, white space or byte order marks, hold a NUL, or have no end."""
    column = pl.col(name)
    is_empty = column.str.strip_chars(AROUND).str.len_bytes() == 0
    return is_empty | column.str.contains("\0", literal=True) | (column.str.len_bytes() > LONGEST_LINE)


def not_a_name(value: str | None) -> str:
    """What is wrong with a field of which `no_text` says that something is."""
    if value is not None and len(value.encode()) > LONGEST_LINE:
        return "is longer than 1 MiB"
    return "holds a NUL" if value and "\0" in value else "is empty or not text"


class Texts(NamedTuple):
    """A column as text: null where there is no name."""

    column: pl.Series
    wrong: Mapping[int, str] = MappingProxyType({})  # positions of what cannot be a name, and why it cannot


class RowSource(Source):
    """Rows of values, counted; numbers become text."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self.account = Account(name)
        self._options, self._rows = options, 0

    def position(self) -> tuple[int, int | None]:
        """Rows read; how many there are is not known."""
        return self._rows, None

    def _facts(self, rows: Sequence[Sequence[Any]], positions: Sequence[int]) -> pl.DataFrame:
        """The facts of some more rows, from the values in these positions."""
        columns = list(zip(*rows, strict=True))
        return self._whole_rows([texts_of_values(columns[at]) for at in positions], len(rows))

    def _whole_rows(self, columns: Sequence[Texts], n_rows: int) -> pl.DataFrame:
        """The facts of some more rows, from the columns head, relation, tail (and time)."""
        first, self._rows = self._rows + 1, self._rows + n_rows
        numbers, names = range(first, first + n_rows), output_names(self._options)
        facts, self._numbers = whole_rows(columns, self.account, self._options, numbers, names)
        return facts


def whole_rows(
    columns: Sequence[Texts],
    account: Account,
    options: ReadOptions,
    numbers: Sequence[int],
    names: Sequence[str],
    optional: Sequence[str] = (),
) -> tuple[pl.DataFrame, Sequence[int]]:
    """The rows in which all is text, and their `numbers`; others are refused or counted by what they lack first.

    Columns that are optional come last, and are null where there is no text.
    """
    named = zip((*names, *optional), columns, strict=True)
    facts = pl.DataFrame([texts.column.alias(name) for name, texts in named])
    facts = facts.with_columns(pl.when(~no_text(name)).then(pl.col(name)).alias(name) for name in optional)
    columns = columns[: len(names)]
    account.read += facts.height
    wrong = facts.select(no_text(name).fill_null(True) for name in names)
    rest = lacking = wrong.select(pl.any_horizontal(pl.all())).to_series()
    if not lacking.any():
        return facts, numbers
    for name, texts in zip(names, columns, strict=True):
        here = rest & wrong.get_column(name)
        rest = rest & ~here
        strange = here & pl.Series(np.isin(np.arange(len(here)), list(texts.wrong)))
        for these, reason in ((strange, f"{name} is not a name"), (here & ~strange, f"empty {name}")):
            if these.any():
                at = int(these.arg_max() or 0)
                shown = short(", ".join("" if value is None else value[:200] for value in facts.row(at)))
                said = texts.wrong.get(at) or not_a_name(facts[name][at])
                problem = f"row {numbers[at]:,}: the {name} {said} in '{shown}'"
                advice = f"give it a {'time' if name == TIME else 'name'} or delete the row"
                refuse_rows(reason, int(these.sum()), problem, account, options, advice)
    return facts.filter(~lacking), np.asarray(numbers)[~lacking.to_numpy()].tolist()


def refuse_rows(
    reason: str, count: int, example: str, account: Account, options: ReadOptions, advice: str = "correct it"
) -> None:
    """Stop at a row without one of its values, or count it and others like it."""
    if options.on_error == "stop":
        raise DataError(f"{account.source}, {example}; {advice}, or leave such rows out with --skip-bad")
    account.skip(reason, count, f"{account.source}, {example}")


def texts_of_values(values: Sequence[Any]) -> Texts:
    """A column of any values as text; None and numbers that are not finite stay empty."""
    texts = [value if type(value) is str else _text_of_value(value) for value in values]
    wrong = {at: f"is of type {type(values[at]).__name__}" for at, text in enumerate(texts) if text is False}
    names: list[Any] = [None if text is False else text for text in texts] if wrong else texts
    try:
        return Texts(pl.Series(names, dtype=pl.String), wrong)
    except UnicodeEncodeError:  # half of a surrogate pair, which Python text may hold
        for at, name in enumerate(names):
            if name is not None and _HALF.search(name):
                wrong[at], names[at] = f"{name!a:.120} is not Unicode", None
        return Texts(pl.Series(names, dtype=pl.String), wrong)


def _text_of_value(value: Any) -> str | bool | None:
    """The text of a value, None where there is none, False where the value is neither text nor number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bytes, bytearray, memoryview, list, tuple, dict, set, np.ndarray)):
        return False
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else None
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            return None
        return str(int(value)) if value == int(value) and abs(float(value)) < _EXACT else str(value)
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python writes
        return False


def texts_of_column(series: pl.Series, where: str) -> Texts:
    """A typed column as text; whole numbers that a gap in the column made floats are whole again: 7.0 is the id 7."""
    dtype = series.dtype
    if dtype == pl.Object or dtype.is_nested():
        raise DataError(f"{where}: column '{series.name}' holds {dtype}, not names; name another one")
    if dtype == pl.Binary:
        return Texts(pl.Series([_decoded(content) for content in series], dtype=pl.String))
    texts = series.cast(pl.String)
    if dtype.is_float():
        is_whole = (series == series.floor()) & (series.abs() < _EXACT)
        whole = series.set(~is_whole, None).cast(pl.Int64).cast(pl.String)
        texts = pl.select(pl.when(series.is_finite()).then(pl.coalesce(whole, texts))).to_series()
    if dtype == pl.Datetime:
        texts = texts.str.replace(r"\.0+$", "")  # as Python writes it
    return Texts(texts)


def _decoded(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None
