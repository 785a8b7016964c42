"""Files of questions: a head and a relation a row, read some rows at a time, with errors that name the place."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import polars as pl

from dpmpn.data.sources.base import LONGEST_LINE, encoding_problem, short, text_chunks
from dpmpn.data.sources.columns import no_text
from dpmpn.data.sources.layout import separator_said
from dpmpn.data.sources.parquet import check_name, count_rows, table_errors, table_slices
from dpmpn.data.sources.unpack import Unpacked, check_file
from dpmpn.data.spreadsheets import unmarked_text
from dpmpn.errors import DataError
from dpmpn.explain.explanation import Prediction

ANSWER_COLUMNS = frozenset(("query", *(field.name for field in fields(Prediction)), "why", "problem"))
"""What an answer adds to a question's row; a question cannot have columns of these names."""

_NAMES = ("head", "relation")
_OTHER_NAMES = {
    "head": ("subject", "source", "from", "subj", "head_id", "subject_id", "source_id"),
    "relation": ("predicate", "property", "rel", "pred", "relationship", "relation_id", "predicate_id"),
}
_DIRECTION_COLUMNS = ("inverse", "direction")  # one of them may say which way a question goes
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_JSON, _PARQUET = (".jsonl", ".ndjson"), (".parquet", ".pq")
_WRITE = "write the columns head and relation (and inverse, true or false), named in the first line"
_WRITE_JSON = 'write objects such as {"head": "Serbia", "relation": "borders"}'
_ROWS = 50_000  # read at once
_NUMBER = "number in the file"  # column of lines or rows, for errors; nobody else calls one so
_DIRECTIONS = {
    **dict.fromkeys(("", "false", "0", "no", "forward", "tail"), False),
    **dict.fromkeys(("true", "1", "yes", "inverse", "head"), True),
}


def read_queries(path: str | Path, rows: int = _ROWS) -> Iterator[pl.DataFrame]:
    """Frames of so many rows: query (its row, from 1), head, relation, inverse, and other columns as they are.

    Head and relation may have other usual names, such as subject and predicate.

    `inverse` is whether <?, relation, head> is asked; in the file it is true or false, or `direction` is tail or head.
    """
    path = Path(path)
    if path.is_file() and not path.stat().st_size:
        raise DataError(f"{path}: is empty; {_WRITE}")
    first = 1
    if path.suffix.lower() in _PARQUET:
        unit, frames = "row", _parquet_frames(path)
    else:
        unit, frames = "line", _text_frames(path)
    for frame in _cut((_checked(path, unit, frame) for frame in frames), rows):
        numbers = pl.int_range(first, first + len(frame), dtype=pl.Int64, eager=True).alias("query")
        yield frame.insert_column(0, numbers)
        first += len(frame)
    if first == 1:
        raise DataError(f"{path}: holds no questions; {_WRITE}")


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
    """Head, relation, inverse and what else there is; the numbers, which errors name, go."""
    own = _own_names(frame.columns)
    frame = frame.rename(own)
    for name in _NAMES:
        wrong = frame.select(no_text(name).fill_null(True)).to_series()
        if wrong.any():
            number = frame[_NUMBER][int(wrong.arg_max() or 0)]
            raise DataError(f"{path}, {unit} {number:,}: the {name} is empty; give it a name")
    asked = next((name for name in _DIRECTION_COLUMNS if name in own.values()), None)
    return frame.select(
        "head",
        "relation",
        _inverse(path, unit, frame, asked),
        pl.exclude(*_NAMES, _NUMBER, *_DIRECTION_COLUMNS),
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
            f"{path}, {unit} {frame[_NUMBER][at]:,}: {column} is '{short(texts[at])}'; write {values}"
        )
    return inverse


def _own_names(columns: Sequence[str]) -> dict[str, str]:
    """The columns that make a question, and what each is called here; another name counts where it is the only one."""
    plain = {column: column.strip().lstrip("#?: ").lower() for column in columns}
    own = {column: name for column, name in plain.items() if name in (*_NAMES, *_DIRECTION_COLUMNS)}
    for name in _NAMES:
        others = [column for column, other in plain.items() if other in _OTHER_NAMES[name]]
        if name not in own.values() and len(others) == 1:
            own[others[0]] = name
    return own


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    plain = [column.strip().lower() for column in columns]
    own = _own_names(columns).values()
    for name in _NAMES:
        if name not in own:
            shown = short(", ".join(columns))
            raise DataError(f"{path}: has no column '{name}' among '{shown}'; {_WRITE}")
    double = next((name for i, name in enumerate(plain) if name in plain[:i]), None)
    if double is not None:
        raise DataError(f"{path}: has two columns '{double}'; rename or leave out one")
    if set(_DIRECTION_COLUMNS) <= set(plain):
        raise DataError(f"{path}: has the columns inverse and direction, which say the same; leave out one")
    taken = next((name for name in plain if name in ANSWER_COLUMNS), None)
    if taken is not None:
        raise DataError(f"{path}: a column '{taken}' would clash with that of the answers; rename it")


def _text_frames(path: Path) -> Iterator[pl.DataFrame]:
    with Unpacked(path) as stream:
        suffix = Path(stream.name).suffix.lower()
        if suffix not in (*_JSON, *_SEPARATORS):
            raise DataError(
                f"{path}: questions are read from .csv, .tsv, .jsonl (also packed) and .parquet files; rename it"
            )
        lines = _lines(path, text_chunks(stream))
        if suffix in _JSON:
            with Unpacked(path) as other:
                schema = _json_schema(_json_objects(path, _lines(path, text_chunks(other))))
            _check_columns(path, list(schema))
            schema |= dict.fromkeys(_own_names(list(schema)), pl.String)
            records = _json_records(path, lines, schema)
        else:
            records = _separated_records(path, lines, _SEPARATORS[suffix])
            columns = [name or "" for name in next(records, (1, []))[1]]
            _check_columns(path, columns)
            schema = dict.fromkeys(columns, pl.String)
        while rows := [(number, *fields) for number, fields in islice(records, _ROWS)]:
            yield pl.DataFrame(rows, {_NUMBER: pl.Int64, **schema}, orient="row")


def _lines(path: Path, chunks: Iterable[Any]) -> Iterator[tuple[int, str]]:
    for chunk in chunks:
        for number, line in enumerate(chunk.content.removesuffix(b"\n").split(b"\n"), chunk.first):
            if problem := encoding_problem(line):
                raise DataError(f"{path}, line {number:,}: {problem.text}; {problem.advice}")
            yield number, line.decode("utf-8").removesuffix("\r")


def _separated_records(
    path: Path, lines: Iterator[tuple[int, str]], separator: str
) -> Iterator[tuple[int, list[str | None]]]:
    header, before = next(lines, (1, ""))[1], 0
    if said := separator_said(header):
        separator, header, before = said, next(lines, (1, ""))[1], 1
    elif separator == "," and header.count(";") > header.count(","):
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
                    f"{path}, line {before + reader.line_num:,}: {len(fields)} columns instead of {n_columns} in "
                    f"'{short(separator.join(fields))}'; give each line all columns"
                )
            yield before + reader.line_num, [unmarked_text(field) or None for field in fields]
    except csv.Error as error:
        raise DataError(
            f"{path}, line {before + reader.line_num:,}: {error}; close quotes, and double those within a name"
        ) from error


def _json_records(
    path: Path, lines: Iterable[tuple[int, str]], schema: dict[str, Any]
) -> Iterator[tuple[int, list[Any]]]:
    names = [key for key, name in _own_names(list(schema)).items() if name in _NAMES]
    for number, values in _json_objects(path, lines):
        wrong = next((key for key in names if isinstance(values.get(key), list | dict | bool)), None)
        if wrong is not None:
            shown = short(json.dumps(values[wrong], ensure_ascii=False))
            raise DataError(f"{path}, line {number:,}: '{wrong}' is {shown}, not a name; {_WRITE_JSON}")
        yield number, [_json_value(values.get(key), dtype) for key, dtype in schema.items()]


def _json_objects(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{path}, line {number:,}"
        try:
            values = json.loads(line)
            json.dumps(values, ensure_ascii=False).encode("utf-8")  # JSON may hold halves of characters
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, json.JSONDecodeError) else "it holds what is not text"
            raise DataError(f"{where}: is not JSON ({reason}) in '{short(line)}'; {_WRITE_JSON}") from error
        if not isinstance(values, dict):
            raise DataError(f"{where}: '{short(line)}' is not a question; {_WRITE_JSON}")
        yield number, values


def _json_schema(objects: Iterable[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """Keys in the order they first come, with the type that holds all their values: numbers, truth values, or text."""
    types: dict[str, set[Any]] = {}
    for _, values in objects:
        for key, value in values.items():
            types.setdefault(key, set()).update([] if value is None else [_json_type(value)])
    numbers = {pl.Int64, pl.Float64}
    return {
        key: own.pop() if len(own) == 1 else pl.Float64 if own == numbers else pl.String
        for key, own in types.items()
    }


def _json_type(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > 63:
        return pl.String
    return {bool: pl.Boolean, int: pl.Int64, float: pl.Float64}.get(type(value), pl.String)


def _json_value(value: Any, dtype: Any) -> Any:
    """The value as its column holds it; what is not text is JSON where the column is text."""
    if dtype == pl.Float64 and value is not None:
        return float(value)
    if dtype != pl.String or value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _parquet_frames(path: Path) -> Iterator[pl.DataFrame]:
    check_file(path)
    check_name(path)
    with table_errors(path):
        table = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        schema = table.collect_schema()
        n_rows = count_rows(path, table)
    _check_columns(path, schema.names())
    texts = list(_own_names(schema.names()))
    for name, dtype in schema.items():
        if dtype in (pl.Binary, pl.Object) or (name in texts and dtype.is_nested()):
            raise DataError(f"{path}: column '{name}' holds {dtype}; give texts or numbers")
    first = 1
    for frame in table_slices(path, table.with_columns(pl.col(texts).cast(pl.String)), n_rows):
        yield frame.with_row_index(_NUMBER, first).cast({_NUMBER: pl.Int64})
        first += len(frame)
