"""Files that say what identifiers are called: a name to show, a description and a type."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from dpmpn.data.names import AROUND
from dpmpn.data.sources.base import LABELS, encoding_problem, refuse_binary
from dpmpn.data.sources.layout import is_quoted, separator_said
from dpmpn.data.sources.parquet import count_rows, open_table, table_errors, table_slices
from dpmpn.data.sources.unpack import MEGABYTE, Unpacked
from dpmpn.data.spreadsheets import unmarked_text
from dpmpn.errors import DataError

_LARGEST = 2048 * MEGABYTE
_LONGEST_FIELD = MEGABYTE
_SAMPLE = 100  # lines
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
    with Unpacked(path) as stream:
        refuse_binary(path, stream.beginning)
        content = stream.read_full(_LARGEST)
        if stream.read(1):
            raise DataError(f"{path}: is larger than 2 GiB; give only the labels of this graph")
        suffix = Path(stream.name).suffix.lower()
    text = _decoded(path, content)
    if suffix in (".json", ".jsonl", ".ndjson"):
        rows = _json_rows(path, text, suffix)
    else:
        rows = _separated_rows(path, text, suffix)
    try:
        frame = pl.DataFrame(rows, LABELS, orient="row").filter(pl.col("id").is_not_null())
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
    before = 0
    if said := separator_said(first):
        separator, text, before = said, text[len(first) + 1 :], 1
    elif separator == "," and first.count(";") > first.count(","):
        separator = ";"
    lines = io.StringIO(text, newline="")
    sample = [line.rstrip("\r\n") for line in islice(lines, _SAMPLE) if line.strip()]
    lines.seek(0)
    quoted = is_quoted(separator, sample)
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(
        lines,
        delimiter=separator,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        skipinitialspace=quoted,
    )
    columns: list[str] | None = None
    try:
        for row in reader:
            if not any(row):
                continue
            if columns is None:
                columns, is_header = _columns_of(path, row)
                if is_header:
                    continue
            if len(row) != len(columns):
                raise DataError(
                    f"{path}, line {before + reader.line_num:,}: {len(row)} columns instead of {len(columns)}; {_WRITE}"
                )
            yield _values_of(zip(columns, map(unmarked_text, row), strict=True))
    except csv.Error as error:
        raise DataError(f"{path}, line {before + reader.line_num:,}: {error}; {_WRITE}") from error


def _columns_of(path: Path, first: list[str]) -> tuple[list[str], bool]:
    """Columns of a file, and whether its first row says them."""
    named = [_label_column(field) for field in first]
    if "id" in named and len(set(filter(None, named))) > 1:
        return named, True
    if not 2 <= len(first) <= len(LABELS):
        raise DataError(f"{path}, line 1: {len(first)} columns and no header that names them; {_WRITE}")
    return list(LABELS)[: len(first)], False


def _json_rows(path: Path, text: str, suffix: str) -> Iterator[tuple[str | None, ...]]:
    for where, value in _json_values(path, text, suffix):
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: {str(value)[:80]!r} is not an object with 'id' and 'name'")
        pairs = [(_label_column(str(key)), field) for key, field in value.items()]
        if not any(column == "id" and isinstance(field, str | int) for column, field in pairs):
            raise DataError(
                f"{where}: has no 'id'; write objects with 'id', 'name', 'description' and 'type'"
            )
        yield _values_of(pairs)


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


def _label_column(column: str) -> str:
    """Which of id, name, description and type a column is by its name; empty where it is none of them."""
    return _COLUMN.get(column.strip(AROUND).lstrip("#").lower(), "")


def _values_of(pairs: Iterable[tuple[str, Any]]) -> tuple[str | None, ...]:
    """One value a column of LABELS: of several columns that mean the same, the first that is not empty."""
    found: dict[str, str] = {}
    for column, value in pairs:
        if column not in found and (text := _value_text(value)):
            found[column] = text
    return tuple(found.get(column) for column in LABELS)


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return " | ".join(filter(None, map(_value_text, value)))
    return "" if value is None else str(value).strip(AROUND)


def _read_parquet(path: Path) -> pl.DataFrame:
    with table_errors(path):
        table = open_table(path)
        schema = table.collect_schema()
        found: dict[str, list[str]] = {}
        for column in schema:
            if meaning := _label_column(column):
                found.setdefault(meaning, []).append(column)
        if "id" not in found or len(found) < 2:
            raise DataError(f"{path}: has the columns {', '.join(schema.names()[:8])}; {_WRITE}")
        named = table.select(column for same in found.values() for column in same)
        n_rows = count_rows(path, named)
        texts = [_first_text(found.get(column, []), schema).alias(column) for column in LABELS]
        parts = [part.select(texts) for part in table_slices(path, named, n_rows)]
    return pl.concat([pl.DataFrame(schema=LABELS), *parts]).filter(pl.col("id").is_not_null())


def _first_text(columns: list[str], schema: pl.Schema) -> pl.Expr:
    """The first value of some columns that is not empty; null where there is none."""
    texts = []
    for column in columns:
        is_list = isinstance(schema[column], pl.List)
        text = pl.col(column).cast(pl.List(pl.String) if is_list else pl.String, strict=False)
        text = text.list.join(" | ") if is_list else text
        texts.append(text.str.strip_chars().replace("", None))
    return pl.coalesce(texts) if texts else pl.lit(None, pl.String)
