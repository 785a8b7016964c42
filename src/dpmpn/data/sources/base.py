"""What every source of facts gives: batches of names, and an account of what was left out and why.

Of files: pieces of whole lines; what is no text, and what is wrong with a line.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl

from dpmpn.data.sources.unpack import MEGABYTE, Unpacked, check_file
from dpmpn.errors import DataError
from dpmpn.wording import one_line

COLUMNS = ("head", "relation", "tail")
TIME = "time"
PROVENANCE = "provenance"  # a column of batches: what else a row says, as an object of JSON, or null
FACTS = {column: pl.String for column in COLUMNS}
LABELS = {"id": pl.String, "name": pl.String, "description": pl.String, "type": pl.String}
_CSV = "save it as CSV"
_UNPACK = "unpack it and name the file"
_UTF8 = "save the file as UTF-8"
_OTHER = "name a file of facts"
# First bytes, what they say, what to do. Text may begin with PAR1 too: see `refuse_binary`.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (rb"PAR1", "a Parquet file", "use --format parquet"),
    (rb"ARROW1\0\0", "an Arrow file", "use --format arrow"),
    (rb"SQLite format 3\0", "an SQLite database", "name it sqlite:///PATH and give a --query"),
    (rb"\x1f\x8b", "a gzip archive in another archive", _UNPACK),
    (rb"\x28\xb5\x2f\xfd", "a zstd archive in another archive", _UNPACK),
    (rb"PK\x03\x04", "a zip archive, or an Office file such as an Excel table", _UNPACK),
    (rb"BZh[1-9]1AY&SY", "a bzip2 archive", _UNPACK),
    (rb"\xfd7zXZ\0", "an xz archive", _UNPACK),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (rb"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (rb"[^\0]{1,100}\0[\0-\xff]{156,255}ustar", "a tar archive", _UNPACK),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file, such as an Excel table", _CSV),
    (rb"\xff\xfe\0\0|\0\0\xfe\xff", "UTF-32 text", _UTF8),
    (rb"(?:[\t\n\r -~]\0){4}|(?:\0[\t\n\r -~]){4}", "UTF-16 text", _UTF8),
    (rb"\x89PNG\r\n\x1a\n", "a PNG image", _OTHER),
    (rb"\xff\xd8\xff", "a JPEG image", _OTHER),
    (rb"GIF8[79]a", "a GIF image", _OTHER),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", _OTHER),
    (rb"\x93NUMPY", "a NumPy array", _OTHER),
    (rb"\x7fELF", "a program", _OTHER),
    (rb"\x80[\x02-\x05][\0-\xff]", "a Python pickle", _OTHER),
)
# These are text to the last byte, or nearly so, and still not facts.
_TEXT_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (rb"%PDF-\d", "a PDF document", _OTHER),
    (rb"(?i)\s*<!doctype html|\s*<html[\s>]", "a web page", "download the file itself"),
    (
        rb"version https://git-lfs\.github\.com/",
        "a pointer of Git LFS",
        "fetch the file itself with 'git lfs pull'",
    ),
)
# A stray NUL is a matter of its line. Random bytes hold one in 256, text none.
_MANY_NULS = 8
_NUL_SHARE = 1 / 500
CHUNK = 16 * MEGABYTE  # large enough that what a piece costs does not count, small enough for any memory
LONGEST_LINE = MEGABYTE


@dataclass(frozen=True)
class ReadOptions:
    """How sources are read; what is None is found out from the source itself."""

    format: str | None = (
        None  # "tsv", "csv", "jsonl", "parquet", "xlsx", "nt", "nq", "ttl", "rdfxml", "jsonld", ...
    )
    columns: tuple[str, ...] | None = (
        None  # of head, relation and tail, names or positions from 1; of a wide table
    )
    # of the items, then of what is taken
    wide: bool | None = None  # whether a row is an item, and the names of the other columns are relations
    cell_separator: str | None = (
        None  # between several values in a cell of a wide table; "none" where there is one
    )
    separator: str | None = None
    header: bool | None = None
    sheet: str | None = None  # of an Excel workbook, by its name
    time_column: str | None = None  # name, or position from 1; gives batches a fourth column `time`
    query: str | None = None  # of a SPARQL endpoint or a database
    literals: Literal["drop", "keep"] = "drop"
    on_error: Literal["stop", "skip"] = "stop"  # what to do with a line that cannot be read
    scope: str = ""  # names the blank nodes of an RDF file apart from those of files with another one


@dataclass
class Account:
    """What was read from one source, what was left out and why.

    Each line, row or statement that was read is a fact or is among the skipped ones, blank lines and comments too;
    a header is neither: `read` is the number of facts and of all that was skipped.
    """

    source: str
    read: int = 0  # lines, rows or statements met
    skipped: dict[str, int] = field(default_factory=dict)  # reason: how many
    examples: dict[str, str] = field(default_factory=dict)  # reason: the first one, with its place
    notes: list[str] = field(default_factory=list)  # what to know of the facts that were read, in sentences

    def skip(self, reason: str, count: int = 1, example: str = "") -> None:
        """Count what was left out for a reason; the first example is kept."""
        if count:
            self.skipped[reason] = self.skipped.get(reason, 0) + count
            self.examples.setdefault(reason, example)


class Source(ABC):
    """Something facts are read from, once, from beginning to end."""

    account: Account
    unit = "row"  # what facts are numbered by
    _numbers: Sequence[int] = ()

    def batches(self) -> Iterator[pl.DataFrame]:
        """Frames of head, relation and tail (and time): text without nulls, none of it empty, and no frame either."""
        return (frame for frame in self._batches() if frame.height)

    @abstractmethod
    def _batches(self) -> Iterator[pl.DataFrame]:
        """As `batches`; frames without a row do no harm."""

    @abstractmethod
    def position(self) -> tuple[int, int | None]:
        """How much was read (bytes or rows), and how much there is where that is known."""

    def numbers(self) -> Sequence[int]:
        """Lines or rows, from 1, of the facts of the last batch; none where they have no number."""
        return self._numbers

    def labels(self) -> pl.DataFrame:
        """Names, descriptions and types met while reading, columns of LABELS; none in most sources."""
        return pl.DataFrame(schema=LABELS)


def looks_like(beginning: bytes) -> tuple[str, str] | None:
    """What the first bytes of a file say it is, and what to do about it; None where they say nothing."""
    for magic, kind, advice in _MAGIC + _TEXT_MAGIC:
        if re.match(magic, beginning):
            return kind, advice
    return None


def refuse_binary(path: Path, beginning: bytes) -> None:
    """Refuse a file whose first bytes are not those of UTF-8 text."""
    known = looks_like(beginning)
    if known and (not _is_text(beginning) or any(re.match(magic, beginning) for magic, _, _ in _TEXT_MAGIC)):
        raise DataError(f"{path}: looks like {known[0]}, not like lines of facts; {known[1]}")
    nuls = beginning.count(0)
    if nuls > max(_MANY_NULS, len(beginning) * _NUL_SHARE):
        if _is_utf16(beginning):
            raise DataError(f"{path}: looks like UTF-16 text, not like lines of facts; {_UTF8}")
        raise DataError(f"{path}: holds NUL bytes and is not a text file; {_OTHER}")
    if b"\r" in beginning and b"\n" not in beginning:
        raise DataError(f"{path}: its lines end with CR alone; save the file with LF line ends")


def _is_utf16(beginning: bytes) -> bool:
    """Whether these are lines in UTF-16 without a mark, of a script whose letters have no NUL."""
    for order in ("utf-16-le", "utf-16-be"):
        text = beginning[: len(beginning) // 2 * 2].decode(order, errors="replace")
        if "\n" in text and all(c.isprintable() or c.isspace() for c in text[:-1]):
            return "\N{REPLACEMENT CHARACTER}" not in text[:-1]
    return False


def _is_text(beginning: bytes) -> bool:
    if b"\0" in beginning:
        return False
    try:
        beginning.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(beginning) - 3  # the last character may be cut
    return True


class Chunk(NamedTuple):
    """Whole lines of a file."""

    first: int  # number of the first line, from 1
    content: bytes  # ends with LF, except perhaps the last piece


class Problem(NamedTuple):
    """What is wrong with a line."""

    reason: str  # one of few, to be counted
    text: str  # what is wrong with this line
    advice: str


def text_chunks(stream: Unpacked, size: int = CHUNK) -> Iterator[Chunk]:
    """Pieces of whole lines, about as large as asked."""
    refuse_binary(stream.path, stream.beginning)
    line, rest = 1, b""
    while content := stream.read_full(size):
        content = rest + content
        cut = content.rfind(b"\n") + 1
        check_line_lengths(stream.path, line, content)
        if cut:
            yield Chunk(line, content[:cut])
        line += content.count(b"\n")
        rest = content[cut:]
    if rest:
        yield Chunk(line, rest)


def check_line_lengths(path: Path, first: int, content: bytes) -> None:
    """Refuse a line that is too long; steps over as many lines at once as fit into the longest one allowed."""
    start = 0
    while len(content) - start > LONGEST_LINE:
        end = content.rfind(b"\n", start, start + LONGEST_LINE + 1)
        if end < 0:
            number = first + content.count(b"\n", 0, start)
            raise DataError(f"{path}, line {number:,}: is longer than 1 MiB; is this a text file?")
        start = end + 1


class FileSource(Source):
    """Facts in a file, plain or packed."""

    unit = "line"

    def __init__(self, path: str | Path, options: ReadOptions) -> None:
        self._path, self._options = Path(path), options
        self._size = check_file(self._path)
        self._stream: Unpacked | None = None
        self.account = Account(str(path))

    def position(self) -> tuple[int, int | None]:
        """Bytes of the file that were read, and how many it has."""
        return self._stream.position() if self._stream else (0, self._size)

    def _bad(self, unit: str = "line") -> "BadLines":
        return BadLines(self._path, self.account, self._options.on_error == "skip", unit)


class BadLines:
    """Where bad lines of a source go: the first one stops the reading, or all are counted."""

    def __init__(self, path: Path, account: Account, skip: bool, unit: str = "line") -> None:
        self.path, self.account, self.skip, self.unit = path, account, skip, unit

    def add(self, number: int, problem: Problem) -> None:
        """Count the bad line, or raise its error."""
        where = f"{self.path}, {self.unit} {number:,}"
        if not self.skip:
            raise DataError(
                f"{where}: {problem.text}; {problem.advice}, or leave such {self.unit}s out with --skip-bad"
            )
        self.account.skip(problem.reason, example=f"{where}: {problem.text}")


def encoding_problem(line: bytes) -> Problem | None:
    """What is wrong with the bytes of a line as UTF-8 text."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return Problem(
            "not UTF-8",
            f"byte 0x{line[error.start]:02x} at position {error.start + 1:,} is not UTF-8 in '{short(line)}'",
            "save the file as UTF-8",
        )
    if b"\0" in line:
        position = line.index(0) + 1
        return Problem("NUL byte", f"byte 0x00 at position {position:,} in '{short(line)}'", "remove it")
    return None


def short(line: bytes | str) -> str:
    """A line as it can be shown: its beginning, without what a terminal would act on."""
    text = line[:480].decode("utf-8", errors="replace") if isinstance(line, bytes) else line
    text = text if len(text) <= 120 and len(line) <= 480 else text[:117] + "..."
    return "\t".join(map(one_line, text.split("\t")))
