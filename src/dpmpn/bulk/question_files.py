"""Files of questions: a head and a relation a row, read some rows at a time, with errors that name the place."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import polars as pl

from dpmpn.data.sources.lines import LONGEST_LINE, encoding_problem, short, text_chunks
from dpmpn.data.sources.records import no_text
from dpmpn.data.sources.unpack import check_file, open_unpacked
from dpmpn.errors import DataError

ANSWER_COLUMNS = {
    *("query", "rank", "answer", "label", "probability", "known", "through_unseen", "why", "problem")
}
"""What an answer adds to a question's row; a question cannot have columns of these names."""

_ASKED = ("inverse", "direction")  # the column that says which way a question goes
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_JSON, _PARQUET = (".jsonl", ".ndjson"), (".parquet", ".pq")
_WRITE = "write the columns head and relation (and inverse, true or false), named in the first line"
_ROWS = 50_000  # read at once
_DIRECTIONS = {
    **dict.fromkeys(("", "false", "0", "no", "forward", "tail"), False),
    **dict.fromkeys(("true", "1", "yes", "inverse", "head"), True),
}


def read_queries(path: str | Path, rows: int = _ROWS) -> Iterator[pl.DataFrame]:
    """Frames of so many rows: query (its row, from 1), head, relation, inverse, and other columns as they are.

    `inverse` is whether <?, relation, head> is asked; in the file it is true or false, or `direction` is tail or head.
    """
    path = Path(path)
    if path.is_file() and not path.stat().st_size:
        raise DataError(f"{path}: is empty; {_WRITE}")
    first = 1
    for frame in _cut(_frames(path), rows):
        numbers = pl.int_range(first, first + len(frame), dtype=pl.Int64, eager=True).alias("query")
        yield frame.insert_column(0, numbers)
        first += len(frame)
    if first == 1:
        raise DataError(f"{path}: holds no questions; {_WRITE}")


def _frames(path: Path) -> Iterator[pl.DataFrame]:
    """Questions in frames of any size."""
    if path.suffix.lower() in _PARQUET:
        unit, frames = "row", _parquet_frames(path)
    else:
        unit, frames = "line", _text_frames(path)
    return (_checked(path, unit, frame) for frame in frames)


def _cut(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """The same rows in frames of equal size, but for the last."""
    rest: list[pl.DataFrame] = []
    for frame in frames:
        joined = pl.concat([*rest, frame])
        whole = len(joined) - len(joined) % rows
        yield from (joined.slice(start, rows) for start in range(0, whole, rows))
        rest = [joined.slice(whole)]
    yield from (frame for frame in rest if len(frame))


def _checked(path: Path, unit: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Head, relation, inverse and what else there is; the column `place`, which errors name, goes."""
    names = {column: column.strip().lower() for column in frame.columns}
    own = {name: column for column, name in names.items() if name in ("head", "relation", *_ASKED)}
    frame = frame.rename({column: name for name, column in own.items()})
    for name in ("head", "relation"):
        wrong = frame.select(no_text(name).fill_null(True)).to_series()
        if wrong.any():
            place = frame["place"][int(wrong.arg_max() or 0)]
            raise DataError(f"{path}, {unit} {place:,}: the {name} is empty; give it a name")
    asked = next((name for name in _ASKED if name in own), None)
    return frame.select(
        "head",
        "relation",
        _inverse(path, unit, frame, asked),
        pl.exclude("head", "relation", "place", *_ASKED),
    )


def _inverse(path: Path, unit: str, frame: pl.DataFrame, column: str | None) -> pl.Series:
    if column is None:
        return pl.repeat(False, len(frame), dtype=pl.Boolean, eager=True).alias("inverse")
    texts = frame[column].cast(pl.String).fill_null("")
    plain = texts.str.strip_chars().str.to_lowercase()
    inverse = plain.replace_strict(_DIRECTIONS, default=None, return_dtype=pl.Boolean).alias("inverse")
    if inverse.null_count():
        at = int(inverse.is_null().arg_max() or 0)
        values = "true or false" if column == "inverse" else "tail or head"
        raise DataError(
            f"{path}, {unit} {frame['place'][at]:,}: {column} is '{short(texts[at])}'; write {values}"
        )
    return inverse


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    plain = [column.strip().lower() for column in columns]
    for name in ("head", "relation"):
        if name not in plain:
            shown = short(", ".join(columns))
            raise DataError(f"{path}: has no column '{name}' among '{shown}'; {_WRITE}")
    double = next((name for i, name in enumerate(plain) if name in plain[:i]), None)
    if double is not None:
        raise DataError(f"{path}: has two columns '{double}'; rename or leave out one")
    if set(_ASKED) <= set(plain):
        raise DataError(f"{path}: has the columns inverse and direction, which say the same; leave out one")
    taken = next((name for name in plain if name in ANSWER_COLUMNS | {"place"}), None)
    if taken is not None:
        raise DataError(f"{path}: a column '{taken}' would clash with that of the answers; rename it")


def _text_frames(path: Path) -> Iterator[pl.DataFrame]:
    records = _records(path)
    columns = [name or "" for name in next(records, (1, []))[1]]
    _check_columns(path, columns)
    schema = {"place": pl.Int64, **dict.fromkeys(columns, pl.String)}
    while rows := [(place, *fields) for place, fields in islice(records, _ROWS)]:
        yield pl.DataFrame(rows, schema, orient="row")


def _records(path: Path) -> Iterator[tuple[int, list[str | None]]]:
    """Lines with their fields; first the names of the columns."""
    with open_unpacked(path) as stream:
        suffix = Path(stream.name).suffix.lower()
        lines = _lines(path, text_chunks(stream))
        if suffix in _JSON:
            yield from _json_records(path, lines)
        elif suffix in _SEPARATORS:
            yield from _separated_records(path, lines, _SEPARATORS[suffix])
        else:
            raise DataError(
                f"{path}: questions are read from .csv, .tsv, .jsonl (also packed) and .parquet files; rename it"
            )


def _lines(path: Path, chunks: Iterable[Any]) -> Iterator[tuple[int, str]]:
    for chunk in chunks:
        for number, line in enumerate(chunk.content.removesuffix(b"\n").split(b"\n"), chunk.first):
            if problem := encoding_problem(line):
                raise DataError(f"{path}, line {number:,}: {problem.text}; {problem.advice}")
            yield number, line.decode("utf-8").removesuffix("\r")


def _separated_records(
    path: Path, lines: Iterator[tuple[int, str]], separator: str
) -> Iterator[tuple[int, list[str | None]]]:
    header = next(lines, (1, ""))[1]
    if separator == "," and header.count(";") > header.count(","):
        separator = ";"
    texts = (line + "\n" for line in chain([header], (line for _, line in lines)))
    # In text separated by tabs a quote is a character like others.
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.reader(texts, delimiter=separator, quoting=quoting, strict=True)
    n_columns = None
    try:
        for fields in reader:
            if not any(fields):
                continue  # a blank line
            n_columns = n_columns or len(fields)
            if len(fields) != n_columns:
                raise DataError(
                    f"{path}, line {reader.line_num:,}: {len(fields)} columns instead of {n_columns} in "
                    f"'{short(separator.join(fields))}'; give each line all columns"
                )
            yield reader.line_num, [field or None for field in fields]
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num:,}: {error}; close quotes, and double those within a name"
        ) from error


def _json_records(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str | None]]]:
    columns: list[str] | None = None
    for number, line in lines:
        if not line.strip():
            continue
        values = _json_object(path, number, line)
        if columns is None:
            columns = list(values)
            yield number, columns  # type: ignore[misc]
        strange = next((key for key in values if key not in columns), None)
        if strange is not None:
            raise DataError(
                f"{path}, line {number:,}: has the key '{short(strange)}', which the first line has not; "
                "give each line the same keys"
            )
        yield number, [_text(values.get(column)) for column in columns]


def _json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    where, advice = (
        f"{path}, line {number:,}",
        'write objects such as {"head": "Serbia", "relation": "borders"}',
    )
    try:
        values = json.loads(line)
        json.dumps(values, ensure_ascii=False).encode("utf-8")  # JSON may hold halves of characters
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, json.JSONDecodeError) else "it holds what is not text"
        raise DataError(f"{where}: is not JSON ({reason}) in '{short(line)}'; {advice}") from error
    names = [values.get(name) for name in ("head", "relation")] if isinstance(values, dict) else [[]]
    if any(isinstance(name, list | dict | bool) for name in names):
        raise DataError(f"{where}: '{short(line)}' is not a question; {advice}")
    return values


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parquet_frames(path: Path) -> Iterator[pl.DataFrame]:
    check_file(path)
    try:
        table = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        schema = table.collect_schema()
        _check_columns(path, schema.names())
        texts = [name for name in schema.names() if name.strip().lower() in ("head", "relation", *_ASKED)]
        for name, dtype in schema.items():
            if dtype in (pl.Binary, pl.Object) or (name in texts and dtype.is_nested()):
                raise DataError(f"{path}: column '{name}' holds {dtype}; give texts or numbers")
        table = table.with_columns(pl.col(texts).cast(pl.String))
        n_rows = int(table.select(pl.len()).collect().item())
        for start in range(0, n_rows, _ROWS):
            frame = table.slice(start, _ROWS).collect()
            yield frame.insert_column(
                0, pl.int_range(start + 1, start + 1 + len(frame), eager=True).alias("place")
            )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        raise DataError(f"{path}: cannot be read ({reason}); write the file again") from error
