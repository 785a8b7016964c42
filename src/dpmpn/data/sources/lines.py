"""Lines of text files: streamed in pieces of whole lines, and what is wrong with a line said in a sentence."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dpmpn.data.sources.base import Account
from dpmpn.data.sources.kinds import refuse_binary
from dpmpn.data.sources.unpack import MEGABYTE, Unpacked
from dpmpn.errors import DataError

CHUNK = 16 * MEGABYTE  # large enough that what a piece costs does not count, small enough for any memory
LONGEST_LINE = MEGABYTE
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
    """Pieces of whole lines, about as large as asked; a byte order mark is left out."""
    refuse_binary(stream.path, stream.beginning)
    line, rest = 1, b""
    if stream.beginning.startswith(BYTE_ORDER_MARK):
        stream.read_full(len(BYTE_ORDER_MARK))
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
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)
