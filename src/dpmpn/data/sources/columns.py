"""Which columns of a table are head, relation and tail, and its rows as facts, gaps refused or counted."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from dpmpn.data.sources.base import COLUMNS, TIME, Account, ReadOptions, Source, short
from dpmpn.errors import DataError
from dpmpn.wording import counted

# White space as polars strips it; str.strip() would take a few control characters more.
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
# What people call them; compared in lower case, without a leading '#', '?' or ':' and what stands in brackets.
_USUAL = {
    "head": "head subject source from h s subj src start head_id subject_id source_id start_id from_id head_entity "
    "source_node start_node",
    "relation": "relation predicate property edge type r p rel pred relationship relation_id predicate_id "
    "property_id edge_type relation_type",
    "tail": "tail object target to t o obj dst end destination tail_id object_id target_id end_id to_id tail_entity "
    "target_node end_node",
}
# These mean something else beside one of the usual names: {subject, predicate, object, label} has one relation.
_ELSE = {
    "head": "item entity node1 node_1 entity1 entity_1",
    "relation": "label attribute",
    "tail": "value node2 node_2 entity2 entity_2",
}


def _by_alias(aliases: dict[str, str]) -> dict[str, str]:
    return {alias: role for role, names in aliases.items() for alias in names.split()}


_ROLE, _ROLE_ELSE = _by_alias(_USUAL), _by_alias(_ELSE)


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
    """Whether usual names of two of head, relation and tail are among some fields; one letter is no name here."""
    long = [field if len(_undecorated(field)) > 1 else "" for field in fields]
    return sum(map(bool, _positions_by_role(long).values())) >= 2


def find_columns(
    where: str, seen: Sequence[str], named: bool, options: ReadOptions, separated: bool = False
) -> tuple[int, ...]:
    """Positions of head, relation, tail and, where asked for, time; `seen` are the names or the first row."""
    time = [] if options.time_column is None else [_column_position(where, options.time_column, seen, named)]
    if options.columns is not None:
        if len(options.columns) != len(COLUMNS):
            raise DataError(
                f"--columns gives {len(options.columns)} columns; give those of head, relation and tail"
            )
        found = [_column_position(where, column, seen, named) for column in options.columns]
        if len(set(found)) != len(found):
            raise DataError(
                f"{where}: --columns {','.join(options.columns)} names a column twice; name three columns"
            )
        return (*found, *time)
    by_alias = positions_by_alias(seen, time) if named else None
    if by_alias:
        return (*by_alias, *time)
    others = [position for position in range(len(seen)) if position not in time]
    has = f"{where}: has {counted(len(seen), 'column')}" + (f" ({_names_shown(seen)})" if seen else "")
    if len(others) < len(COLUMNS):
        raise DataError(
            f"{has}; write head, relation and tail on each line, or say with --separator what is between them"
            if separated
            else f"{has}; a fact has head, relation and tail: give all three"
        )
    if len(others) > len(COLUMNS):
        raise DataError(
            f"{has}, and which are head, relation and tail is not clear; say it with --columns, such as "
            f"--columns {_advised(seen, others, named)}"
        )
    return (*(_in_order(seen, others) if named else others), *time)


def _wanted(options: ReadOptions) -> tuple[str, ...]:
    return (*(options.columns or ()), *([options.time_column] if options.time_column else []))


def _undecorated(name: str) -> str:
    """A name without its decoration, such as ':START_ID(Person)' has."""
    return re.sub(r"(?<=.)\([^()]*\)$", "", name.strip().lstrip("#?: ")).lower()


def _positions_by_role(names: Sequence[str], aside: Collection[int] = ()) -> dict[str, list[int]]:
    """Where head, relation and tail may be by their names."""
    plain = ["" if position in aside else _undecorated(name) for position, name in enumerate(names)]
    found = {}
    for role in COLUMNS:
        usual = [position for position, name in enumerate(plain) if _ROLE.get(name) == role]
        found[role] = usual or [
            position for position, name in enumerate(plain) if _ROLE_ELSE.get(name) == role
        ]
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


def _column_position(where: str, column: str, seen: Sequence[str], named: bool) -> int:
    """Position from 0 of a column given by its name or its position from 1."""
    if column.isdecimal():
        if not 1 <= int(column[:9]) <= len(seen):
            columns = f"{counted(len(seen), 'column')} ({_names_shown(seen)})"
            raise DataError(f"{where}: there is no column {column} in {columns}; check it")
        return int(column) - 1
    found = _matches(column, seen) if named else []
    if not found:
        raise DataError(
            f"{where}: there is no column '{column}' ({_names_shown(seen)}); name one of these or its position"
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


def _names_shown(seen: Sequence[str]) -> str:
    shown = [name if len(name) <= 30 else name[:27] + "..." for name in seen[:8]]
    printable = ("".join(c if c.isprintable() else " " for c in name) for name in shown)
    return ", ".join(f"'{name}'" for name in printable) + (", ..." if len(seen) > 8 else "")


def has_empty(frame: pl.DataFrame) -> bool:
    """Whether any field is null, empty or white space."""
    lacking = pl.any_horizontal(no_text(name).fill_null(True) for name in frame.columns)
    return bool(frame.select(lacking.any()).item())


def no_text(name: str) -> pl.Expr:
    """Whether the fields of a column are empty, white space, or hold a NUL."""
    column = pl.col(name)
    return (column.str.strip_chars().str.len_bytes() == 0) | column.str.contains("\0", literal=True)


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
        columns, first = list(zip(*rows, strict=True)), self._rows + 1
        texts = [
            texts_of_values(columns[at], name, self.account, first)
            for at, name in zip(positions, output_names(self._options), strict=True)
        ]
        facts = facts_of_columns(texts, self.account, self._options, first)
        self._rows += len(rows)
        return facts


def facts_of_columns(
    columns: Sequence[pl.Series], account: Account, options: ReadOptions, first: int
) -> pl.DataFrame:
    """Facts of the columns head, relation, tail (and time); `first` is the number of the first row, from 1."""
    names = output_names(options)
    texts = [_text(column, name, account) for name, column in zip(names, columns, strict=True)]
    return whole_rows(pl.DataFrame(texts), account, options, first)


def whole_rows(facts: pl.DataFrame, account: Account, options: ReadOptions, first: int) -> pl.DataFrame:
    """The rows in which all is text; others are refused or counted by what they lack first."""
    account.read += facts.height
    wrong = facts.select(no_text(name).fill_null(True) for name in facts.columns)
    rest = lacking = wrong.select(pl.any_horizontal(pl.all())).to_series()
    if not lacking.any():
        return facts
    for name in facts.columns:
        here = rest & wrong.get_column(name)
        rest = rest & ~here
        if here.any():
            at = int(here.arg_max() or 0)
            shown = short(", ".join("" if value is None else value for value in facts.row(at)))
            problem = f"row {first + at:,}: the {name} is empty or not text in '{shown}'"
            advice = f"give it a {'time' if name == TIME else 'name'} or delete the row"
            refuse_rows(f"empty {name}", int(here.sum()), problem, account, options, advice)
    return facts.filter(~lacking)


def refuse_rows(
    reason: str, count: int, example: str, account: Account, options: ReadOptions, advice: str = "correct it"
) -> None:
    """Stop at a row without one of its values, or count it and others like it."""
    if options.on_error == "stop":
        raise DataError(f"{account.source}, {example}; {advice}, or leave such rows out with --skip-bad")
    account.skip(reason, count, f"{account.source}, {example}")


def texts_of_values(values: Sequence[Any], name: str, account: Account, first: int) -> pl.Series:
    """A column of any values as text; None and NaN stay empty, what cannot be a name is refused."""
    texts = [value if type(value) is str else _text_of_value(value) for value in values]
    if False in texts:
        at = texts.index(False)
        found = type(values[at]).__name__
        raise DataError(
            f"{account.source}, row {first + at:,}: the {name} is of type {found}; give texts or numbers"
        )
    try:
        return pl.Series(name, texts, dtype=pl.String)
    except UnicodeEncodeError as error:  # half of a surrogate pair, which Python text may hold
        at = texts.index(error.object)
        raise DataError(
            f"{account.source}, row {first + at:,}: the {name} {error.object!a} is not Unicode; rename it"
        ) from error


def _text_of_value(value: Any) -> str | bool | None:
    """The text of a value, None where there is none, False where the value is neither text nor number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, (bytes, bytearray, memoryview, list, tuple, dict, set)):
        return False
    # Only NaN is not equal to itself.
    return None if isinstance(value, float) and value != value else str(value)


def _text(series: pl.Series, name: str, account: Account) -> pl.Series:
    """A column as text; whole numbers that a gap in the column made floats are whole again: 7.0 is the id 7."""
    dtype = series.dtype
    if dtype.is_float():
        series = series.fill_nan(None)
        whole = (series == series.floor()) & (series.abs() < 2.0**53)
        series = series.cast(pl.Int64) if whole.fill_null(True).all() else series
    if dtype == pl.Null:
        return pl.Series(name, [None] * len(series), dtype=pl.String)
    if dtype == pl.Binary or dtype == pl.Object or dtype.is_nested():
        raise DataError(f"{account.source}: column '{series.name}' holds {dtype}; give texts or numbers")
    return series.cast(pl.String).alias(name)
