"""Facts as JSON: an object or an array of three on each line, or one array of them all."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from dpmpn.data.names import AROUND
from dpmpn.data.sources.base import (
    LONGEST_LINE,
    BadLines,
    Chunk,
    FileSource,
    Problem,
    ReadOptions,
    encoding_problem,
    short,
    text_chunks,
)
from dpmpn.data.sources.columns import find_columns, has_empty, output_names
from dpmpn.data.sources.unpack import MEGABYTE, Unpacked
from dpmpn.errors import DataError

CHUNK = 8 * MEGABYTE  # becomes about ten times as much in objects of Python
LARGEST_ARRAY = 256 * MEGABYTE  # it stands in memory as a whole
_BATCH = 100_000
_OPENED_OBJECT = re.compile(rb'\{\s*("(?:[^"\\]|\\.)*"\s*:\s*\[[\[{\s]*)?')
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # JSON may hold halves of characters
_GAP = re.compile(r"[ \t\r\n]*")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# Numbers keep the text they were written with.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


class JsonLinesSource(FileSource):
    """A file of JSON, plain or packed."""

    def __init__(self, path: str | Path, options: ReadOptions) -> None:
        super().__init__(path, options)
        self._keys: list[Any] | None = None  # of head, relation, tail (and time)
        self._length: int | None = None  # of rows that are arrays
        self._names = output_names(options)

    def _batches(self) -> Iterator[pl.DataFrame]:
        with Unpacked(self._path) as self._stream:
            first = self._stream.beginning.lstrip().split(b"\n", 1)[0].rstrip()
            if _opens_array(first):
                yield from self._array_batches(self._stream, self._bad("item"))
                return
            if _OPENED_OBJECT.fullmatch(first):  # over several lines
                raise _holds_facts(str(self._path))
            bad = self._bad()
            for chunk in text_chunks(self._stream, CHUNK):
                frame = self._read_fast(chunk)
                yield self._read_exact(chunk, bad) if frame is None else frame

    def _read_fast(self, chunk: Chunk) -> pl.DataFrame | None:
        """All lines decoded at once, or None where anything looks wrong: five times as fast as one by one.

        Each line becomes an array of its own, so that neither a line break within an object nor two objects
        on a line go unseen.
        """
        content = chunk.content.removesuffix(b"\n")
        if b"],[" in content or b"\0" in content:
            return None
        if self._keys is None:
            first = content.split(b"\n", 1)[0]
            row = None if encoding_problem(first) else _decode(first)
            if not isinstance(row, (dict, list)):
                return None
            self._find_keys(f"{self._path}, line {chunk.first:,}", row)
        try:
            text = content.decode("utf-8").replace("\n", "\n],[\n")
            wrapped = _DECODER.decode(f"[[{text}]]")
            rows = [row for (row,) in wrapped]
            if self._length is not None and any(
                type(row) is not list or len(row) != self._length for row in rows
            ):
                return None
            columns = {
                name: [row[key] for row in rows]
                for name, key in zip(self._names, self._keys or (), strict=True)
            }
            frame = pl.DataFrame(columns, schema=dict.fromkeys(self._names, pl.String), strict=True)
        except (ValueError, TypeError, KeyError, RecursionError, pl.exceptions.PolarsError):
            return None
        if len(rows) != content.count(b"\n") + 1 or has_empty(frame):
            return None
        self.account.read += len(rows)
        self._numbers = range(chunk.first, chunk.first + len(rows))
        return frame

    def _read_exact(self, chunk: Chunk, bad: BadLines) -> pl.DataFrame:
        """Line by line, the slow way that says which line is wrong."""
        rows, self._numbers = [], numbers = [], list[int]()
        for number, line in enumerate(chunk.content.removesuffix(b"\n").split(b"\n"), start=chunk.first):
            self.account.read += 1
            if not line.strip():
                self.account.skip("blank line", example=f"{self._path}, line {number:,}")
                continue
            fields = encoding_problem(line) or _decode(line)
            if not isinstance(fields, Problem):
                fields = self._fields(f"{self._path}, line {number:,}", fields, line)
            if isinstance(fields, Problem):
                bad.add(number, fields)
            else:
                rows.append(fields)
                numbers.append(number)
        return self._frame(rows)

    def _array_batches(self, stream: Unpacked, bad: BadLines) -> Iterator[pl.DataFrame]:
        self.unit = bad.unit
        rows: list[list[str]] = []
        numbers: list[int] = []
        for number, item in enumerate(_array_items(stream), start=1):
            self.account.read += 1
            fields = self._fields(f"{self._path}, item {number:,}", item, None)
            if isinstance(fields, Problem):
                bad.add(number, fields)
            else:
                rows.append(fields)
                numbers.append(number)
            if len(rows) == _BATCH:
                self._numbers = numbers
                yield self._frame(rows)
                rows, numbers = [], []
        self._numbers = numbers
        yield self._frame(rows)

    def _fields(self, where: str, row: Any, line: bytes | None) -> list[str] | Problem:
        """Head, relation and tail (and time) of one object or array."""
        if type(row) not in (dict, list) or (
            self._keys and (type(row) is list) != (self._length is not None)
        ):
            return _problem("not a fact", "is not like the others", row, line)
        if self._keys is None:
            self._find_keys(where, row)
        if self._length is not None and len(row) != self._length:
            return _problem("wrong number of values", f"has {len(row)} values, not {self._length}", row, line)
        fields = []
        for name, key in zip(self._names, self._keys or (), strict=True):
            value = row[key] if self._length is not None else row.get(key)
            if value is None or (type(value) is str and not value.strip(AROUND)):
                return _problem(f"empty {name}", f"has an empty {name}", row, line)
            if type(value) is bool:
                value = "true" if value else "false"
            if type(value) is not str:
                return _problem(f"{name} is not a name", f"has an array or object as {name}", row, line)
            if _NOT_TEXT.search(value):
                return _problem(f"{name} is not text", f"has a {name} that is not text", row, line)
            if len(value.encode()) > LONGEST_LINE:
                return _problem(f"empty {name}", f"has a {name} longer than 1 MiB", row, line)
            fields.append(value)
        return fields

    def _find_keys(self, where: str, row: dict[str, Any] | list[Any]) -> None:
        if isinstance(row, dict):
            keys = list(row)
            try:
                positions = find_columns(where, keys, True, self._options)
            except DataError as error:
                if any(
                    type(value) is list and value and type(value[0]) in (dict, list) for value in row.values()
                ):
                    raise _holds_facts(where) from error
                raise
            self._keys = [keys[position] for position in positions]
        else:
            self._keys = list(find_columns(where, [str(value) for value in row], False, self._options))
            self._length = len(row)

    def _frame(self, rows: list[list[str]]) -> pl.DataFrame:
        return pl.DataFrame(rows, dict.fromkeys(self._names, pl.String), orient="row")


def _problem(reason: str, text: str, row: Any, line: bytes | None) -> Problem:
    shown = json.dumps(row, ensure_ascii=False) if line is None else line
    return Problem(reason, f"'{short(shown)}' {text}", "write names as head, relation and tail")


def _decode(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except RecursionError:
        text = "values within values, too deep"
    except json.JSONDecodeError as error:
        text = f"not JSON at position {error.pos + 1:,} ({error.msg})"
    except ValueError as error:
        text = f"not JSON ({error})"
    return Problem("not JSON", f"{text} in '{short(line)}'", "write one object a line")


def _opens_array(line: bytes) -> bool:
    """Whether the first line begins an array of facts, rather than being a fact as an array."""
    if not line.startswith(b"["):
        return False
    row = None if encoding_problem(line) else _decode(line)
    return not (type(row) is list and row and type(row[0]) not in (dict, list))


def _holds_facts(where: str) -> DataError:
    return DataError(
        f"{where}: is one JSON object that holds others; write the array of facts alone, or one fact a line"
    )


def _array_items(stream: Unpacked) -> Iterator[Any]:
    """Items of a file that is one array, decoded one after the other."""
    content = stream.read_full(LARGEST_ARRAY + 1)
    if len(content) > LARGEST_ARRAY:
        raise DataError(
            f"{stream.path}: is one JSON array of more than 256 MB; write one object a line instead"
        )
    if problem := encoding_problem(content):
        raise DataError(f"{stream.path}: {problem.text}; {problem.advice}")
    text = content.decode("utf-8")
    del content
    position, number, separator = _gap(text, 0), 0, "["
    try:
        while text[position : position + 1] == separator:
            position = _gap(text, position + 1)
            if number == 0 and text[position : position + 1] == "]":
                break
            number += 1
            item, position = _DECODER.raw_decode(text, position)
            yield item
            position, separator = _gap(text, position), ","
        if text[position : position + 1] != "]" or _gap(text, position + 1) != len(text):
            raise ValueError("expected ',' or ']'" if position < len(text) else "the file is cut off")
    except (ValueError, RecursionError) as error:
        position = error.pos if isinstance(error, json.JSONDecodeError) else position
        line = text.count("\n", 0, position) + 1
        reason = getattr(error, "msg", str(error))
        raise DataError(
            f"{stream.path}, line {line:,}: not JSON after {number:,} items ({reason}); "
            "mend it, or write one object a line"
        ) from error


def _gap(text: str, position: int) -> int:
    return _GAP.match(text, position).end()  # type: ignore[union-attr]
