"""Facts in text separated by tabs, commas or another character, read a piece of whole lines at a time."""

import csv
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import polars as pl

from dpmpn.data.names import AROUND
from dpmpn.data.sources.base import (
    LONGEST_LINE,
    Account,
    BadLines,
    Chunk,
    FileSource,
    Problem,
    ReadOptions,
    encoding_problem,
    short,
    text_chunks,
)
from dpmpn.data.sources.layout import WHITESPACE, Layout, find_layout, separator_said
from dpmpn.data.sources.unpack import Unpacked
from dpmpn.data.spreadsheets import unmarked
from dpmpn.wording import counted

_QUOTE, _LINE_END, _RETURN = b'"\n\r'
_SAMPLE_BYTES = 65536
_PART = 65536  # read as a whole where a line of it is bad: at 1 % of bad lines all are
_UNCLOSED = "unexpected end of data"  # what the csv module says


class SeparatedSource(FileSource):
    """A file of separated text, plain or packed."""

    def _batches(self) -> Iterator[pl.DataFrame]:
        bad = self._bad()
        with Unpacked(self._path) as self._stream:
            reader: _Reader | None = None
            for chunk in text_chunks(self._stream):
                parts = [chunk]
                if reader is None:
                    chunk, options = self._after_separator_line(chunk)
                    chunk = self._after_blank_lines(chunk)
                    layout = find_layout(self._path, self._stream.name, _first_lines(chunk), options)
                    if layout is None:
                        continue
                    reader = _Reader(layout, self.account, bad)
                    parts = _without_header(chunk, layout)
                for part in parts:
                    yield self._numbered(reader, reader.read(part))
            if reader is not None:
                if reader.rest.content:
                    yield self._numbered(reader, reader.finish())
                self.account.notes += reader.notes()

    def _numbered(self, reader: "_Reader", rows: pl.DataFrame) -> pl.DataFrame:
        facts, self._numbers = reader.layout.shape.facts(rows, reader.numbers)
        return facts

    def _after_separator_line(self, chunk: Chunk) -> tuple[Chunk, ReadOptions]:
        """What is left after a first line that says how columns are separated, as Excel knows it."""
        line, _, rest = chunk.content.partition(b"\n")
        separator = separator_said(line.decode("utf-8", errors="replace")) if chunk.first == 1 else None
        if separator is None:
            return chunk, self._options
        options = self._options
        return Chunk(2, rest), options if options.separator else replace(options, separator=separator)

    def _after_blank_lines(self, chunk: Chunk) -> Chunk:
        """What is left of the first piece after its blank lines, from which the layout is found."""
        blank = re.match(rb"(?:[ \t\r]*\n)*(?:[ \t\r]*\Z)?", chunk.content)[0]  # type: ignore[index]
        n_blank = blank.count(b"\n") + (not blank.endswith(b"\n") and blank != b"")
        self.account.read += n_blank
        self.account.skip("blank line", n_blank, f"{self._path}, line {chunk.first:,}")
        return Chunk(chunk.first + n_blank, chunk.content[len(blank) :])


class _Reader:
    """Turns pieces of a file into frames; a record with line breaks may go on in the next piece."""

    def __init__(self, layout: Layout, account: Account, bad: BadLines) -> None:
        self.layout, self.account, self.bad = layout, account, bad
        self.rest = Chunk(1, b"")
        self.numbers: Sequence[int] = ()  # lines of the facts that were read last
        self.n_stripped = self.n_unmarked = 0  # names

    def read(self, chunk: Chunk) -> pl.DataFrame:
        """Facts of the whole records so far."""
        if self.rest.content:
            chunk = Chunk(self.rest.first, self.rest.content + chunk.content)
        if not chunk.content.endswith(b"\n"):
            chunk = Chunk(chunk.first, chunk.content + b"\n")
        self.rest = Chunk(1, b"")
        if self.layout.quoted and b'"' in chunk.content:
            return self._read_quoted(chunk)
        content = chunk.content.replace(b"\r\n", b"\n") if b"\r" in chunk.content else chunk.content
        return self._read_lines(Chunk(chunk.first, content))

    def finish(self) -> pl.DataFrame:
        """Facts of what is left when the file ends, within a quote that is never closed."""
        return self._check(self._quoted_records(self.rest, final=True))

    def notes(self) -> list[str]:
        """What to know of the facts that were read."""
        notes = list(self.layout.notes)
        if self.n_stripped:
            notes.append(f"{counted(self.n_stripped, 'name')} had white space around, which was left out")
        if self.n_unmarked:
            marked = counted(self.n_unmarked, "name")
            notes.append(
                f"{marked} had an apostrophe before =, +, - or @, as spreadsheets need it, which was left out"
            )
        return notes

    def _read_quoted(self, chunk: Chunk) -> pl.DataFrame:
        columns, cut = read_quoted(chunk.content, self.layout.separator_byte, self.layout.n_columns)
        facts = None if columns is None else select_stripped(columns, self.layout)
        if facts is None:
            return self._check(self._quoted_records(chunk))
        self._keep_rest(chunk, cut)
        return self._count(*facts, record_lines(chunk, cut))

    def _read_lines(self, chunk: Chunk, whole: bool = True) -> pl.DataFrame:
        """Facts of lines without quotes; of a piece that looks wrong, only small parts are read the slow way."""
        columns = None
        if self.layout.separator != WHITESPACE or b"\t" not in chunk.content:
            columns = read_literal(chunk.content, self.layout.separator_byte, self.layout.n_columns)
        facts = None if columns is None else select_stripped(columns, self.layout)
        if facts is not None:
            return self._count(*facts, range(chunk.first, chunk.first + facts[0].height))
        if whole:
            frames: list[pl.DataFrame] = []
            numbers: list[int] = []
            for part in _parts(chunk):
                frames.append(self._read_lines(part, whole=False))
                numbers += self.numbers
            self.numbers = numbers
            return pl.concat(frames)
        return self._check(
            self._quoted_records(chunk) if self.layout.quoted else self._literal_records(chunk)
        )

    def _count(self, frame: pl.DataFrame, n_stripped: int, numbers: Sequence[int]) -> pl.DataFrame:
        """The facts of lines that are all good."""
        self.account.read += frame.height
        self.n_stripped += n_stripped
        return self._without_marks(frame, numbers)

    def _without_marks(self, frame: pl.DataFrame, numbers: Sequence[int]) -> pl.DataFrame:
        """The facts without the apostrophes of spreadsheets, and without headers of files that were put together."""
        cells = [unmarked(column) for column in frame]
        self.n_unmarked += sum(
            int((new != old).sum()) for new, old in zip(cells, frame, strict=True) if new is not old
        )
        frame, self.numbers = pl.DataFrame(cells), numbers
        if self.layout.header is None or not frame.height:
            return frame
        again = frame.select(
            pl.all_horizontal(
                pl.col(name).eq_missing(pl.lit(field or None))
                for name, field in zip(self.layout.shape.all_names, self.layout.header, strict=True)
            )
        ).to_series()
        if not again.any():
            return frame
        example = f"{self.bad.path}, line {numbers[int(again.arg_max() or 0)]:,}"
        self.account.skip("header again", int(again.sum()), example)
        self.numbers = [number for number, is_header in zip(numbers, again, strict=True) if not is_header]
        return frame.filter(~again)

    def _check(self, records: Iterable[tuple[int, bytes, list[str] | Problem]]) -> pl.DataFrame:
        """The slow way that says which line is wrong."""
        rows, numbers = [], []
        for number, line, fields in records:
            self.account.read += 1
            if not line.strip():
                self.account.skip("blank line", example=f"{self.bad.path}, line {number:,}")
                continue
            problem = fields if isinstance(fields, Problem) else check_fields(line, fields, self.layout)
            if problem is None:
                given = [fields[position] for position in self.layout.shape.all_positions]
                row = [name.strip(AROUND) for name in given]
                self.n_stripped += sum(map(str.__ne__, given, row))
                rows.append([name or None for name in row])
                numbers.append(number)
            elif line.startswith(b"#") and problem.reason == "wrong number of columns":
                self.account.skip("comment", example=f"{self.bad.path}, line {number:,}: '{short(line)}'")
            else:
                self.bad.add(number, problem)
        facts = pl.DataFrame(rows, dict.fromkeys(self.layout.shape.all_names, pl.String), orient="row")
        return self._without_marks(facts, numbers)

    def _literal_records(self, chunk: Chunk) -> Iterator[tuple[int, bytes, list[str]]]:
        for number, line in enumerate(chunk.content.removesuffix(b"\n").split(b"\n"), start=chunk.first):
            separator = None if self.layout.separator == WHITESPACE else self.layout.separator
            yield number, line, line.decode("utf-8", errors="replace").split(separator)

    def _quoted_records(
        self, chunk: Chunk, final: bool = False
    ) -> Iterator[tuple[int, bytes, list[str] | Problem]]:
        """Records as the csv module reads them; one that is not complete is kept for the next piece."""
        lines = chunk.content.removesuffix(b"\n").split(b"\n")
        start, offset = 0, 0
        while start < len(lines):
            texts = (line.decode("utf-8", errors="replace") + "\n" for line in islice(lines, start, None))
            reader = csv.reader(texts, delimiter=self.layout.separator, skipinitialspace=True, strict=True)
            base = start
            while start < len(lines):
                try:
                    fields: list[str] | Problem = next(reader)
                    end = base + reader.line_num
                except csv.Error as error:
                    unclosed = _UNCLOSED in str(error)
                    if unclosed and not final and len(chunk.content) - offset <= LONGEST_LINE:
                        self._keep_rest(chunk, offset)
                        return
                    # Only the line where it began is left out: the others may well be whole.
                    fields, end = _broken_quotes(lines[start], error), start + 1
                except StopIteration:  # no more lines for this record; the next one begins a new reader
                    break
                line = b"\n".join(lines[start:end])
                shown = line.removesuffix(b"\r")
                if b'"' not in line and not isinstance(fields, Problem):
                    # The same, with the white space that is counted.
                    fields = shown.decode("utf-8", errors="replace").split(self.layout.separator)
                yield chunk.first + start, shown, fields
                offset += len(line) + 1
                start = end
                if isinstance(fields, Problem):
                    break

    def _keep_rest(self, chunk: Chunk, cut: int) -> None:
        self.rest = Chunk(chunk.first + chunk.content.count(b"\n", 0, cut), chunk.content[cut:])


def _first_lines(chunk: Chunk) -> list[bytes]:
    lines = chunk.content[:_SAMPLE_BYTES].split(b"\n")
    return lines[:-1] or chunk.content[: LONGEST_LINE + 1].split(b"\n")[:1]


def _without_header(chunk: Chunk, layout: Layout) -> list[Chunk]:
    """What stands before the header and after it."""
    if layout.header_line is None:
        return [chunk]
    lines = chunk.content.split(b"\n", layout.header_line + 1)
    before = b"".join(line + b"\n" for line in lines[: layout.header_line])
    after = lines[layout.header_line + 1] if len(lines) > layout.header_line + 1 else b""
    parts = [Chunk(chunk.first, before), Chunk(chunk.first + layout.header_line + 1, after)]
    return [part for part in parts if part.content]


def _parts(chunk: Chunk) -> Iterator[Chunk]:
    """The piece in parts of whole lines."""
    start, number = 0, chunk.first
    while start < len(chunk.content):
        end = chunk.content.find(b"\n", start + _PART) + 1 or len(chunk.content)
        yield Chunk(number, chunk.content[start:end])
        number += chunk.content.count(b"\n", start, end)
        start = end


def _broken_quotes(line: bytes, error: csv.Error) -> Problem:
    if "new-line" in str(error):
        return Problem(
            "CR within a line", f"CR within a line, '{short(line)}'", "write LF or CR LF at line ends"
        )
    unclosed = _UNCLOSED in str(error) or "field limit" in str(error)  # the csv module stops at 128 KiB
    said = "a quote is not closed" if unclosed else str(error)
    return Problem(
        "broken quotes", f"{said} in '{short(line)}'", "close quotes, and double those within a name"
    )


def read_literal(content: bytes, separator: bytes, n_columns: int) -> pl.DataFrame | None:
    """Columns of lines without quotes, or None where anything at all looks wrong: 270,000 lines take 0.07 s."""
    n_lines = content.count(b"\n") + (not content.endswith(b"\n"))
    # The right number of separators in all, and polars refuses a line that has too many: no line has too few.
    if content.count(separator) != (n_columns - 1) * n_lines:
        return None
    if b"\0" in content or b"\r" in content or content.startswith(BOM_UTF8):
        return None
    return _parse(content, separator, n_columns, None, n_lines)


def read_quoted(content: bytes, separator: bytes, n_columns: int) -> tuple[pl.DataFrame | None, int]:
    """Columns of the whole records of RFC 4180 text and where they end; None where anything looks wrong."""
    array = np.frombuffer(content, np.uint8)
    quotes = np.flatnonzero(array == _QUOTE)
    line_ends = np.flatnonzero(array == _LINE_END)
    # An even number of quotes before it: a line end, or a separator, is not within quotes.
    line_ends = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    if not len(line_ends) or content.count(b"\r") != content.count(b"\r\n") or b"\0" in content:
        return None, 0
    cut = int(line_ends[-1]) + 1
    quotes = quotes[: np.searchsorted(quotes, cut)]
    separators = np.flatnonzero(array[:cut] == separator[0])
    n_separators = np.count_nonzero(np.searchsorted(quotes, separators) % 2 == 0)
    if n_separators != (n_columns - 1) * len(line_ends) or content.startswith(BOM_UTF8):
        return None, 0
    before = array[quotes[0::2] - 1]  # for a quote at 0 this is the last byte, replaced below
    if len(quotes) and quotes[0] == 0:
        before[0] = _LINE_END
    after = array[quotes[1::2] + 1]  # there is one: the line end at the cut
    if not np.isin(before, [separator[0], _LINE_END, _QUOTE]).all():
        return None, 0
    if not np.isin(after, [separator[0], _LINE_END, _RETURN, _QUOTE]).all():
        return None, 0
    return _parse(content[:cut], separator, n_columns, '"', len(line_ends)), cut


def record_lines(chunk: Chunk, cut: int) -> Sequence[int]:
    """The lines that the whole records of quoted text begin on."""
    array = np.frombuffer(chunk.content, np.uint8, cut)
    quotes, ends = np.flatnonzero(array == _QUOTE), np.flatnonzero(array == _LINE_END)
    is_end = np.searchsorted(quotes, ends) % 2 == 0
    if is_end.all():
        return range(chunk.first, chunk.first + len(ends))
    lines: list[int] = (chunk.first + 1 + np.flatnonzero(is_end)).tolist()
    return [chunk.first, *lines[:-1]]


def _parse(
    content: bytes, separator: bytes, n_columns: int, quote: str | None, n_lines: int
) -> pl.DataFrame | None:
    schema = {str(position): pl.String for position in range(n_columns)}
    try:
        frame = pl.read_csv(
            content, separator=separator.decode(), has_header=False, quote_char=quote, schema=schema
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return frame if frame.height == n_lines else None


def select_stripped(frame: pl.DataFrame, layout: Layout) -> tuple[pl.DataFrame, int] | None:
    """The columns asked for without white space around names, and how many had some; None where one is empty."""
    shape = layout.shape
    chosen = zip(shape.all_positions, shape.all_names, strict=True)
    frame = frame.select(pl.col(str(position)).alias(name) for position, name in chosen)
    if any(frame[name].null_count() for name in shape.names):
        return None
    stripped = frame.select(pl.all().str.strip_chars(AROUND))
    lengths = stripped.select(pl.all().str.len_bytes())
    if any((lengths[name] == 0).any() for name in shape.names):
        return None
    # One sum shows that nothing was stripped, as nearly always.
    if frame.select(pl.all().str.len_bytes().sum()).row(0) == lengths.sum().row(0):
        return frame, 0
    return stripped, sum(int((a != b).sum()) for a, b in zip(frame, stripped, strict=True))


def check_fields(line: bytes, fields: list[str], layout: Layout) -> Problem | None:
    """What is wrong with the fields of a line."""
    if problem := encoding_problem(line):
        return problem
    if len(fields) != layout.n_columns:
        text = f"{counted(len(fields), 'column')} instead of {layout.n_columns} in '{short(line)}'"
        return Problem("wrong number of columns", text, _write_columns(layout))
    for name, position in zip(layout.shape.names, layout.shape.positions, strict=True):
        if not fields[position].strip(AROUND):
            advice = f"give it a {'time' if name == 'time' else 'name'} or delete the line"
            return Problem(f"empty {name}", f"empty {name} in '{short(line)}'", advice)
    return None


def _write_columns(layout: Layout) -> str:
    spelled = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "spaces"}.get(layout.separator)
    if layout.n_columns == 3:
        return f"write head, relation and tail separated by {spelled or repr(layout.separator)}"
    return "write the same number of columns as on the other lines"
