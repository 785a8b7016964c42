"""Which columns of a table are head, relation and tail: as asked, by their names, or because there are three."""

from collections.abc import Sequence

from dpmpn.data.sources.base import COLUMNS, TIME, ReadOptions
from dpmpn.errors import DataError

# What people call them; compared in lower case, without a leading '#', '?' or ':'.
ALIASES = {
    "head": "head subject source from h s subj src start head_id subject_id source_id start_id",
    "relation": "relation predicate property edge type r p rel pred relationship relation_id predicate_id "
    "property_id edge_type relation_type",
    "tail": "tail object target to t o obj dst end destination tail_id object_id target_id end_id",
}
_KIND = {alias: kind for kind, aliases in ALIASES.items() for alias in aliases.split()}


def output_names(options: ReadOptions) -> tuple[str, ...]:
    """Columns of the batches a source gives."""
    return COLUMNS if options.time_column is None else (*COLUMNS, TIME)


def asks_for_names(options: ReadOptions) -> bool:
    """Whether columns are asked for by name, so that there must be a header."""
    wanted = (*(options.columns or ()), *([options.time_column] if options.time_column else []))
    return any(not name.isdecimal() for name in wanted)


def positions_by_alias(names: Sequence[str]) -> tuple[int, int, int] | None:
    """Positions of head, relation and tail, where each is there once under one of its usual names."""
    kinds = [_KIND.get(name.strip().lstrip("#?: ").lower()) for name in names]
    if any(kinds.count(kind) != 1 for kind in COLUMNS):
        return None
    head, relation, tail = (kinds.index(kind) for kind in COLUMNS)
    return head, relation, tail


def find_columns(where: str, seen: Sequence[str], named: bool, options: ReadOptions) -> tuple[int, ...]:
    """Positions of head, relation, tail and, where asked for, time; `seen` are the names or the first row."""
    time = [] if options.time_column is None else [_position(where, options.time_column, seen, named)]
    if options.columns is not None:
        if len(options.columns) != len(COLUMNS):
            raise DataError(
                f"--columns gives {len(options.columns)} columns; give those of head, relation and tail"
            )
        found = [_position(where, column, seen, named) for column in options.columns]
        if len(set(found)) != len(found):
            raise DataError(
                f"{where}: --columns {','.join(options.columns)} names a column twice; name three columns"
            )
        return (*found, *time)
    by_alias = positions_by_alias(seen) if named else None
    if by_alias:
        return (*by_alias, *time)
    others = [position for position in range(len(seen)) if position not in time]
    if len(others) < len(COLUMNS):
        raise DataError(
            f"{where}: has {_count(len(seen))} ({_show(seen)}); write head, relation and tail on each line, or say "
            "with --separator what is between them"
        )
    if len(others) > len(COLUMNS):
        raise DataError(
            f"{where}: has {_count(len(seen))} ({_show(seen)}), and which are head, relation and tail is not "
            "clear; say it with --columns, such as --columns 1,2,3"
        )
    return (*others, *time)


def _position(where: str, column: str, seen: Sequence[str], named: bool) -> int:
    """Position from 0 of a column given by its name or its position from 1."""
    if column.isdecimal():
        if not 1 <= int(column[:9]) <= len(seen):
            raise DataError(
                f"{where}: there is no column {column} in {_count(len(seen))} ({_show(seen)}); check it"
            )
        return int(column) - 1
    names = [name.strip() for name in seen] if named else []
    if column not in names:
        raise DataError(
            f"{where}: there is no column '{column}' ({_show(seen)}); name one of these or its position"
        )
    if names.count(column) > 1:
        raise DataError(
            f"{where}: there are {names.count(column)} columns '{column}'; give the position instead"
        )
    return names.index(column)


def _count(n_columns: int) -> str:
    return "1 column" if n_columns == 1 else f"{n_columns} columns"


def _show(seen: Sequence[str]) -> str:
    shown = [name if len(name) <= 30 else name[:27] + "..." for name in seen[:8]]
    printable = ("".join(c if c.isprintable() else " " for c in name) for name in shown)
    return ", ".join(f"'{name}'" for name in printable) + (", ..." if len(seen) > 8 else "")
