"""Files that say what identifiers are called: separated text, JSON or Parquet with id, name, description, type."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dpmpn.data.sources.base import LABELS
from dpmpn.data.sources.kinds import refuse_binary
from dpmpn.data.sources.lines import BYTE_ORDER_MARK, encoding_problem
from dpmpn.data.sources.parquet import check_name
from dpmpn.data.sources.unpack import MEGABYTE, open_unpacked
from dpmpn.errors import DataError

_LARGEST = 2048 * MEGABYTE
_LONGEST_FIELD = MEGABYTE
_ALIASES = {
    "id": "id identifier entity key node uri iri qid mid head subject",
    "name": "name label title text preflabel",
    "description": "description definition comment gloss abstract",
    "type": "type types class category kind",
}
_COLUMN = {alias: column for column, aliases in _ALIASES.items() for alias in aliases.split()}
_WRITE = "write the columns id, name, description and type, with a header or in this order"


def read_labels(path: str | Path) -> pl.DataFrame:
    """Labels of a file, columns of LABELS; the last three may be missing."""
    path = Path(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    with open_unpacked(path) as stream:
        refuse_binary(path, stream.beginning)
        content = stream.read_full(_LARGEST)
        if stream.read(1):
            raise DataError(f"{path}: is larger than 2 GiB; give only the labels of this graph")
        suffix = Path(stream.name).suffix.lower()
    text = _decoded(path, content.removeprefix(BYTE_ORDER_MARK))
    if suffix in (".json", ".jsonl", ".ndjson"):
        rows = _json_rows(path, text, suffix)
    else:
        rows = _separated_rows(path, text, suffix)
    try:
        frame = pl.DataFrame(rows, LABELS, orient="row").filter(pl.col("id") != "")
    except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON may hold
        raise DataError(f"{path}: {error.object!a:.120} is not Unicode; correct it") from error
    if frame.is_empty():
        raise DataError(f"{path}: holds no labels; {_WRITE}")
    return frame


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        start = content.rfind(b"\n", 0, error.start) + 1
        problem = encoding_problem(content[start : content.find(b"\n", error.end) % (len(content) + 1)])
        what = problem.text if problem else str(error)
        raise DataError(f"{path}, line {number:,}: {what}; save the file as UTF-8") from error


def _separated_rows(path: Path, text: str, suffix: str) -> Iterator[tuple[str | None, ...]]:
    first = text.partition("\n")[0]
    separator = "," if suffix == ".csv" and "\t" not in first else "\t"
    if separator == "," and first.count(";") > first.count(","):
        separator = ";"
    quoting = csv.QUOTE_MINIMAL if separator != "\t" else csv.QUOTE_NONE
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting)
    columns: list[str] | None = None
    try:
        for row in reader:
            if not any(row):
                continue
            if columns is None:
                columns, is_header = _header(path, row)
                if is_header:
                    continue
            if len(row) != len(columns):
                raise DataError(
                    f"{path}, line {reader.line_num:,}: {len(row)} columns instead of {len(columns)}; {_WRITE}"
                )
            yield _row(dict(zip(columns, row, strict=True)))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num:,}: {error}; {_WRITE}") from error


def _header(path: Path, first: list[str]) -> tuple[list[str], bool]:
    """Columns of a file, and whether its first row says them."""
    named = [_COLUMN.get(field.strip().lstrip("#").lower(), "") for field in first]
    if "id" in named and len(set(filter(None, named))) > 1:
        return named, True
    if not 2 <= len(first) <= len(LABELS):
        raise DataError(f"{path}, line 1: {len(first)} columns and no header that names them; {_WRITE}")
    return list(LABELS)[: len(first)], False


def _json_rows(path: Path, text: str, suffix: str) -> Iterator[tuple[str | None, ...]]:
    for where, value in _json_values(path, text, suffix):
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: {str(value)[:80]!r} is not an object with 'id' and 'name'")
        row = {_COLUMN.get(str(key).lower(), ""): field for key, field in value.items()}
        if not isinstance(row.get("id"), str | int):
            raise DataError(
                f"{where}: has no 'id'; write objects with 'id', 'name', 'description' and 'type'"
            )
        yield _row(row)


def _json_values(path: Path, text: str, suffix: str) -> Iterable[tuple[str, Any]]:
    """Objects of a list, of lines, or of a mapping from identifier to name or object."""
    where = str(path)
    try:
        if suffix != ".json":
            lines = ((i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip())
            for number, line in lines:
                where = f"{path}, line {number:,}"
                yield where, json.loads(line)
            return
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: is not valid JSON ({str(error) or 'nested too deep'})") from error
    if isinstance(values, dict):
        for id, value in values.items():
            yield f"{path}, '{id:.60}'", {"id": id, **(value if isinstance(value, dict) else {"name": value})}
        return
    for number, value in enumerate(values if isinstance(values, list) else [values], 1):
        yield f"{path}, element {number:,}", value


def _row(values: Mapping[str, Any]) -> tuple[str | None, ...]:
    return tuple(_text(values.get(column)) for column in LABELS)


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return " | ".join(str(part) for part in value)
    return None if value is None else str(value)


def _read_parquet(path: Path) -> pl.DataFrame:
    check_name(path)
    try:
        frame = pl.read_parquet(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path") from error
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(f"{path}: cannot be read ({str(error)[:200]}); write it again") from error
    named = {column: _COLUMN.get(column.lower()) for column in frame.columns}
    found = {new: old for old, new in reversed(named.items()) if new}
    if "id" not in found or len(found) < 2:
        raise DataError(f"{path}: has the columns {', '.join(frame.columns[:8])}; {_WRITE}")
    texts = [
        (pl.col(found[column]) if column in found else pl.lit(None)).cast(pl.String).alias(column)
        for column in LABELS
    ]
    return frame.select(texts).filter(pl.col("id").is_not_null() & (pl.col("id") != ""))
