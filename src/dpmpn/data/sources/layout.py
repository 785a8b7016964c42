"""How a file of separated text is laid out, found out from its first lines where it is not said."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import NamedTuple

from dpmpn.data.sources.base import ReadOptions, short
from dpmpn.data.sources.columns import (
    asks_for_names,
    has_all_names,
    looks_like_names,
    output_names,
    positions_by_alias,
)
from dpmpn.data.sources.shape import Shape, find_shape
from dpmpn.errors import DataError

WHITESPACE = " "  # as a separator: any run of white space
_SPELLED = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
    "space": " ",
    "whitespace": " ",
}
_SAID = re.compile(r'"?sep=([^\w\s"]|\t| )"?\r?\n?', re.ASCII | re.IGNORECASE)
_TAB_FIRST, _COMMA_FIRST = "\t,;| ", ",;\t|"
_SAMPLE = 100  # lines
# Shares of lines: the expected separator is kept above one, another needs the other.
_USUAL, _CLEAR = 0.5, 0.95
_FEW = 0.1  # of lines that share no name with any other
_COLUMN_NAME = re.compile(r"[^\W\d][\w ./()#-]{0,39}")
_SNAKE = re.compile(r"[a-z]+([_ ][a-z]+)*")
_COMMON = (
    "id name title label product item sku category region country city state brand company supplier customer vendor "
    "manufacturer person employee department role author publisher year date price amount quantity status description "
    "email phone address url language genre drug gene disease protein species compound pathway symbol code group class "
    "owner location colour color size material tags parent"
)


class Table(NamedTuple):
    """Which of the first rows of a table names its columns, and what is read of the others."""

    header: int | None  # number of that row, from 0
    n_columns: int
    shape: Shape
    called: tuple[str, ...] | None  # what the columns that are read are called
    notes: tuple[str, ...]  # what was decided, and may be wrong


@dataclass(frozen=True)
class Layout:
    """Where head, relation and tail stand in a line."""

    separator: str
    quoted: bool
    n_columns: int
    shape: Shape  # which columns are read
    header_line: int | None = None  # from 0
    header: tuple[str, ...] | None = None  # what the columns that are read are called
    notes: tuple[str, ...] = ()  # what was decided, and may be wrong

    @property
    def separator_byte(self) -> bytes:
        """The separator as it stands in the file."""
        return self.separator.encode()


def find_layout(path: PurePath, name: str, beginning: Sequence[bytes], options: ReadOptions) -> Layout | None:
    """The layout of a file, found from its first lines; None where all are blank."""
    lines = [
        (i, line.decode("utf-8", errors="replace").removesuffix("\r")) for i, line in enumerate(beginning)
    ]
    lines = [(i, line) for i, line in lines if line.strip()][:_SAMPLE]
    rows = [(i, line) for i, line in lines if not line.startswith("#")]
    if not lines:
        return None
    sample = [line for _, line in rows or lines]
    separator = _find_separator(name, sample, options)
    quoted = is_quoted(separator, sample)
    sampled = _split_lines(sample, separator, quoted)
    candidates = [lines[0]] if not rows or rows[0] == lines[0] else [lines[0], rows[0]]
    # What would be the names of the columns.
    named = [(i, split_line(line.lstrip("#"), separator, quoted)) for i, line in candidates]
    first = (rows or lines)[0][0]
    table = find_table(path, "line", named, first, sampled, options, separated=True)
    return Layout(separator, quoted, table.n_columns, table.shape, table.header, table.called, table.notes)


def find_table(
    path: PurePath,
    unit: str,
    named: list[tuple[int, list[str]]],  # rows that may name the columns, with their numbers from 0
    first: int,  # number of the first row
    sampled: list[list[str]],
    options: ReadOptions,
    separated: bool = False,
) -> Table:
    """What the first rows of a table say of it."""
    header, note = _find_header(path, unit, named, sampled, options)
    if header is not None:
        names = dict(named)[header]
        n_columns = len(names)
    else:
        counts = Counter(map(len, sampled))
        n_columns = max(counts, key=lambda count: (counts[count], count == len(output_names(options)), count))
        names = next(row for row in sampled if len(row) == n_columns)
    where = f"{path}, {unit} {(first if header is None else header) + 1:,}"
    others = sampled if header is None else [row for row in sampled if row != names]
    shape = find_shape(where, names, header is not None, options, lambda: others, separated)
    positions = shape.all_positions
    if header is None and options.header is None and (_stands_out(sampled, positions) or _is_alone(sampled)):
        shown = _fields_shown(sampled[0][position] for position in positions)
        note = f"the first {unit} was read as a fact ({shown}); give --header if it names the columns"
    called = None if header is None else tuple(names[position].strip() for position in positions)
    notes = tuple(filter(None, (note, *shape.notes)))
    return Table(header, n_columns, shape, called, notes)


def separator_said(line: str) -> str | None:
    """The separator that a first line such as `sep=;` says, as Excel writes and reads it; None for all other lines."""
    said = _SAID.fullmatch(line)
    return said[1] if said else None


def split_line(line: str, separator: str, quoted: bool) -> list[str]:
    """Fields of one line, quotes taken loosely."""
    if separator == WHITESPACE:
        return line.split()
    if not quoted or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return line.split(separator)


def _split_lines(sample: list[str], separator: str, quoted: bool) -> list[list[str]]:
    """Fields of the records on some lines; the last record may be cut and does not count."""
    if not quoted or not any('"' in line for line in sample):
        return [split_line(line, separator, quoted) for line in sample]
    try:
        lines = [line + "\n" for line in sample]
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return [split_line(line, separator, quoted) for line in sample]
    return rows if len(rows) == 1 else rows[:-1]


def _find_separator(name: str, sample: list[str], options: ReadOptions) -> str:
    if options.separator is not None:
        return _check_separator(options.separator)
    if options.format == "tsv":
        return "\t"
    is_csv = options.format == "csv" or (options.format is None and name.lower().endswith(".csv"))
    candidates = _COMMA_FIRST if is_csv else _TAB_FIRST
    shares = {candidate: _share(candidate, sample) for candidate in candidates}
    if shares[candidates[0]] >= _USUAL:
        return candidates[0]
    best = max(candidates, key=lambda candidate: shares[candidate])
    return best if shares[best] >= _CLEAR else candidates[0]


def _check_separator(separator: str) -> str:
    separator = _SPELLED.get(separator, separator)
    if len(separator) != 1 or not separator.isascii() or separator in '\n\r\0"':
        raise DataError(f"--separator {separator!r} is not one ASCII character; give one, such as ';' or tab")
    return separator


def _share(separator: str, sample: list[str]) -> float:
    """The share of lines that this separator cuts into the same number of columns, at least three."""
    quoted = separator not in ("\t", WHITESPACE)
    rows = _split_lines(sample, separator, quoted)
    counts = Counter(map(len, rows))
    # White space cuts any text somewhere: only three words on every line are taken for columns.
    enough = [n for count, n in counts.items() if (count == 3 if separator == WHITESPACE else count >= 3)]
    return max(enough, default=0) / len(rows)


def is_quoted(separator: str, sample: list[str]) -> bool:
    """Tabs are literal, as in benchmark files, unless a column is quoted on every line; others follow RFC 4180."""
    if separator == WHITESPACE:
        return False
    if separator != "\t":
        return True
    rows = [line.split("\t") for line in (sample[1:] or sample)]
    return any(all(_in_quotes(field) for field in column) for column in zip(*rows, strict=False))


def _in_quotes(field: str) -> bool:
    return len(field) >= 2 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', "")


def _find_header(
    path: PurePath,
    unit: str,
    named: list[tuple[int, list[str]]],
    sampled: list[list[str]],
    options: ReadOptions,
) -> tuple[int | None, str]:
    """Which of the first lines names the columns, and what to know about that choice."""
    if options.header is False:
        if asks_for_names(options):
            raise DataError(
                f"{path}: columns are asked for by name, but it has no header; give their positions"
            )
        return None, ""
    for line, names in named:
        if positions_by_alias(names) or has_all_names(names, options):
            return line, ""
    if options.header or options.wide or asks_for_names(options):
        return named[-1][0], ""
    for line, names in named:
        # Such words may be names of entities, too: those of a header stand nowhere else.
        others = [row for row in sampled if len(row) == len(names) and row != names]
        looks_so = looks_like_names(names) or _names_unlike(names, others)
        if looks_so and len(others) >= len(sampled) / 2 and not _repeats(names, others):
            read_as = f"column names ({_fields_shown(names)})"
            return line, f"the first {unit} was read as {read_as}; if it is a fact, give --no-header"
    return None, ""


def _names_unlike(names: list[str], others: list[list[str]]) -> bool:
    """Whether fields are words for columns that stand in no other row, unlike what stands below them.

    They are common names of columns, or are written like names in programs where what is below is not.
    """
    fields = [field.strip() for field in names]
    below = {field.strip() for row in others for field in row}
    if not others or len(set(fields)) < len(fields) or not below.isdisjoint(fields):
        return False
    if not all(_COLUMN_NAME.fullmatch(field) for field in fields):
        return False
    words = {word for field in fields for word in re.split(r"[\s_.-]+", field.lower())}
    if len(words.intersection(_COMMON.split())) * 2 >= len(fields):
        return True
    # A row of three may well be a fact, so that such writing says nothing there.
    is_written_so = len(fields) > 3 and all(map(_SNAKE.fullmatch, fields))
    return is_written_so and not any(_SNAKE.fullmatch(row[0].strip()) for row in others)


def _is_alone(sampled: list[list[str]]) -> bool:
    """Whether nothing of the first of two or three rows, all of them words for columns, stands in another one."""
    first, others = sampled[0], sampled[1:]
    below = {field.strip() for row in others for field in row}
    words = [field.strip() for field in first]
    return (
        1 <= len(others) <= 2
        and below.isdisjoint(words)
        and all(map(_SNAKE.fullmatch, words))
        and (not all(_SNAKE.fullmatch(field) for field in below))
    )


def _repeats(row: list[str], others: list[list[str]]) -> bool:
    """Whether a field stands in the same column of another row, too."""
    return any(field in (other[column] for other in others) for column, field in enumerate(row))


def _stands_out(sampled: list[list[str]], positions: tuple[int, ...]) -> bool:
    """Whether nothing in the first row stands in another one, while nearly all others share something."""
    width = len(sampled[0])
    if max(positions) >= width:
        return False
    rows = [[row[position].strip() for position in positions] for row in sampled if len(row) == width]
    if len(rows) <= 2:
        return False
    counts = [Counter(column) for column in zip(*rows, strict=True)]
    alone = [all(count[field] == 1 for count, field in zip(counts, row, strict=True)) for row in rows]
    return alone[0] and sum(alone[1:]) <= len(rows) * _FEW


def _fields_shown(fields: Iterable[str]) -> str:
    return ", ".join(f"'{short(field.strip())}'" for field in islice(fields, 8))
