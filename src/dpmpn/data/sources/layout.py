"""How a file of separated text is laid out, found out from its first lines where it is not said."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.columns import asks_for_names, find_columns, output_names, positions_by_alias
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
_TAB_FIRST, _COMMA_FIRST = "\t,;| ", ",;\t|"
_SAMPLE = 100  # lines
_USUAL, _CLEAR = (
    0.5,
    0.95,
)  # shares of lines: the expected separator is kept above one, another needs the other


@dataclass(frozen=True)
class Layout:
    """Where head, relation and tail stand in a line."""

    separator: str
    quoted: bool
    n_columns: int
    positions: tuple[int, ...]  # of head, relation, tail (and time), from 0
    names: tuple[str, ...]
    header_line: int | None = None  # from 0

    @property
    def separator_byte(self) -> bytes:
        """The separator as it stands in the file."""
        return self.separator.encode()


def find_layout(path: PurePath, name: str, beginning: Sequence[bytes], options: ReadOptions) -> Layout | None:
    """The layout told by the first lines of a file; None where all are blank."""
    lines = [
        (i, line.decode("utf-8", errors="replace").removesuffix("\r")) for i, line in enumerate(beginning)
    ]
    lines = [(i, line) for i, line in lines if line.strip()][:_SAMPLE]
    rows = [(i, line) for i, line in lines if not line.startswith("#")]
    if not lines:
        return None
    sample = [line for _, line in rows or lines]
    separator = _find_separator(name, sample, options)
    quoted = _is_quoted(separator, sample)
    header = _find_header(path, lines[0], rows, separator, quoted, options)
    seen = split_line(header[1] if header else sample[0], separator, quoted)
    where = f"{path}, line {(header or (rows or lines)[0])[0] + 1:,}"
    n_columns = len(seen)
    if not header:
        sampled = _split(sample, separator, quoted)
        counts = Counter(map(len, sampled))
        n_columns = max(counts, key=lambda count: (counts[count], count == len(output_names(options)), count))
        seen = next(row for row in sampled if len(row) == n_columns)
    names = [seen[0].lstrip("#"), *seen[1:]] if header else seen
    positions = find_columns(where, names, header is not None, options)
    return Layout(
        separator, quoted, n_columns, positions, output_names(options), header[0] if header else None
    )


def split_line(line: str, separator: str, quoted: bool) -> list[str]:
    """Fields of one line, quotes taken loosely."""
    if separator == WHITESPACE:
        return line.split()
    if not quoted or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return line.split(separator)


def _split(sample: list[str], separator: str, quoted: bool) -> list[list[str]]:
    """Fields of the records on some lines; the last record may be cut and does not count."""
    if not quoted or not any('"' in line for line in sample):
        return [split_line(line, separator, quoted) for line in sample]
    try:
        rows = list(csv.reader([line + "\n" for line in sample], delimiter=separator))
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
    rows = _split(sample, separator, quoted)
    counts = Counter(map(len, rows))
    # White space cuts any text somewhere: only three words on every line are taken for columns.
    enough = [n for count, n in counts.items() if (count == 3 if separator == WHITESPACE else count >= 3)]
    return max(enough, default=0) / len(rows)


def _is_quoted(separator: str, sample: list[str]) -> bool:
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
    first: tuple[int, str],
    rows: list[tuple[int, str]],
    separator: str,
    quoted: bool,
    options: ReadOptions,
) -> tuple[int, str] | None:
    """The line that names the columns: the first one, which may begin with '#'."""
    if options.header is False:
        if asks_for_names(options):
            raise DataError(
                f"{path}: columns are asked for by name, but it has no header; give their positions"
            )
        return None
    candidates = [first] if not rows or rows[0] == first else [first, rows[0]]
    for candidate in candidates:
        names = split_line(candidate[1].removeprefix("#"), separator, quoted)
        if positions_by_alias(names) or _has_all_names(names, options):
            return candidate
    return candidates[-1] if options.header or asks_for_names(options) else None


def _has_all_names(names: list[str], options: ReadOptions) -> bool:
    wanted = [*(options.columns or ()), *([options.time_column] if options.time_column else [])]
    stripped = {name.strip() for name in names}
    return asks_for_names(options) and all(name.isdecimal() or name in stripped for name in wanted)
