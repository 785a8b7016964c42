"""RDF files: N-Triples, N-Quads, Turtle, TriG, RDF/XML and JSON-LD, read with pyoxigraph as a stream."""

import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import BinaryIO
from urllib.parse import quote
from xml.parsers import expat

import polars as pl

from dpmpn.data.sources.base import ReadOptions
from dpmpn.data.sources.lines import (
    BYTE_ORDER_MARK,
    Chunk,
    FileSource,
    Problem,
    encoding_problem,
    refuse_binary,
    short,
    text_chunks,
)
from dpmpn.data.sources.statements import Statements
from dpmpn.data.sources.unpack import MEGABYTE, Unpacked, open_unpacked
from dpmpn.errors import DataError

_CHUNK = 1 << 20
_LARGEST_ENTITY = 1 << 16  # bytes, unfolded; entities of RDF/XML are namespaces
_ALLOWANCE = 1 << 24  # bytes a document may grow by entities, beside ten times its size
_DEEPEST = 1000  # elements; pyoxigraph takes time by the square of the depth
_DECLARATION = re.compile(rb"<!ENTITY\s+(?:%\s*)?([^\s\"']+)\s([^<]*)")
_REFERENCE = re.compile(rb"&([^;&#\s]{1,200});")
FORMATS = {
    "nt": "N_TRIPLES",
    "nq": "N_QUADS",
    "ttl": "TURTLE",
    "trig": "TRIG",
    "rdfxml": "RDF_XML",
    "jsonld": "JSON_LD",
}
_BATCH = 150_000  # statements


def pyoxigraph() -> ModuleType:
    """The parser, or what to do to get it."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise DataError("reading RDF needs the extra 'rdf': pip install 'dpmpn[rdf]'") from error
    return pyoxigraph


class RdfSource(FileSource):
    """Facts of an RDF file; statements in named graphs count like all others.

    With a `scope`, blank nodes are named apart from those of files read with another one.
    """

    def __init__(self, path: str | Path, options: ReadOptions, format: str, scope: str = "") -> None:
        if options.time_column is not None:
            raise DataError(f"{path}: RDF has no time column '{options.time_column}'; read it without one")
        super().__init__(path, options)
        self._format = getattr(pyoxigraph().RdfFormat, FORMATS[format])
        self._by_line = format in ("nt", "nq")
        self._statements = Statements(self.account, options, scope)

    @property
    def in_named_graphs(self) -> int:
        """How many of the statements read stand in a named graph."""
        return self._statements.in_named_graphs

    def batches(self) -> Iterator[pl.DataFrame]:
        """Facts, a batch of about 150,000 statements at a time."""
        with open_unpacked(self._path) as file:
            self._stream = file
            for quads in self._line_parts(file) if self._by_line else self._document_parts(file):
                facts = self._statements.facts(quads)
                if facts.height:
                    yield facts

    def labels(self) -> pl.DataFrame:
        """Names, descriptions and types the file gives its terms."""
        return self._statements.labels()

    def _document_parts(self, file: Unpacked) -> Iterator[bytes]:
        """The document as canonical N-Quads; after an error nothing can be told about the rest."""
        ox = pyoxigraph()
        refuse_binary(self._path, file.beginning)
        base = f"file:///{quote(file.name)}"  # for relative IRIs; not where the file happens to lie
        parser = ox.parse(self._bytes(file), self._format, base_iri=base)
        try:
            while quads := ox.serialize(islice(parser, _BATCH), format=ox.RdfFormat.N_QUADS):
                yield quads
        except SyntaxError as error:
            where = f"{self._path}, line {error.lineno:,}" if error.lineno else str(self._path)
            rest = (
                ", as what follows an error in this format cannot be read"
                if self._options.on_error == "skip"
                else ""
            )
            raise DataError(f"{where}: {_message(error)}; correct the file{rest}") from error

    def _bytes(self, file: Unpacked) -> BinaryIO:
        if self._format == pyoxigraph().RdfFormat.RDF_XML:
            return io.BufferedReader(WatchedXml(file, str(self._path)), MEGABYTE)
        buffered = io.BufferedReader(file, MEGABYTE)
        if file.beginning.startswith(BYTE_ORDER_MARK):
            buffered.read(len(BYTE_ORDER_MARK))
        return buffered

    def _line_parts(self, file: Unpacked) -> Iterator[bytes]:
        """Lines as canonical N-Quads, those that are wrong left out if that is asked for."""
        ox = pyoxigraph()
        for chunk in text_chunks(file):
            try:
                yield ox.serialize(ox.parse(chunk.content, self._format), format=ox.RdfFormat.N_QUADS)
            except SyntaxError:
                yield b"".join(self._line_by_line(chunk))

    def _line_by_line(self, chunk: Chunk) -> Iterator[bytes]:
        """Lines on their own: pyoxigraph goes on after an error, but loses lines after an open quotation mark."""
        ox = pyoxigraph()
        bad_lines = self._bad()
        for number, line in enumerate(chunk.content.split(b"\n"), start=chunk.first):
            try:
                yield ox.serialize(ox.parse(line, self._format), format=ox.RdfFormat.N_QUADS)
            except SyntaxError as error:
                problem = encoding_problem(line) or Problem(
                    "not a statement", f"{_message(error)} in '{short(line)}'", "correct the line"
                )
                bad_lines.add(number, problem)
                self.account.read += 1


def _message(error: SyntaxError) -> str:
    """What pyoxigraph says, without the place it repeats."""
    text = str(error.msg)
    return text.split(": ", 1)[1] if text.startswith("Parser error ") and ": " in text else text


class WatchedXml(io.RawIOBase):
    """The bytes of a document, each part checked before it is handed on."""

    def __init__(self, file: io.RawIOBase, name: str) -> None:
        self._file, self._name = file, name
        self._part, self._carry, self._ended = b"", b"", False
        self._sizes: dict[bytes, int] = {}  # of entities, unfolded
        self._read = self._unfolded = self._depth = 0
        self._expat = expat.ParserCreate()
        self._expat.StartElementHandler = self._open_element
        self._expat.EndElementHandler = self._close_element

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with checked bytes."""
        if not self._part and not self._ended:
            self._part = self._checked(self._file.read(_CHUNK) or b"")
        count = min(len(buffer), len(self._part))
        buffer[:count] = self._part[:count]
        self._part = self._part[count:]
        return count

    def _checked(self, part: bytes) -> bytes:
        self._read, self._ended = self._read + len(part), not part
        self._declare(part)
        self._count_references(part)
        try:
            self._expat.Parse(part, not part)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(
                f"{self._name}, line {error.lineno}: not well-formed XML ({reason}, column {error.offset + 1}); "
                "correct it or write the file again"
            ) from error
        return part

    def _declare(self, part: bytes) -> None:
        """Note the size of every entity; a declaration cut off by the end of this part is seen with the next."""
        text = self._carry + part
        for name, value in _DECLARATION.findall(text):
            size = len(value) + sum(self._sizes.get(other, 0) for other in _REFERENCE.findall(value))
            if size > _LARGEST_ENTITY:
                raise self._bomb(f"the entity '{name.decode('utf-8', 'replace')[:40]}'")
            self._sizes[name] = max(size, self._sizes.get(name, 0))
        last = text.rfind(b"<")
        cut_off = last >= 0 and b"<!ENTITY".startswith(text[last : last + 8]) and b">" not in text[last:]
        self._carry = text[last:] if cut_off else b""
        if len(self._carry) > _LARGEST_ENTITY:
            raise self._bomb("an entity")

    def _count_references(self, part: bytes) -> None:
        if self._sizes:
            self._unfolded += sum(self._sizes.get(name, 0) for name in _REFERENCE.findall(part))
            if self._unfolded > _ALLOWANCE + 10 * self._read:
                raise self._bomb("the text")

    def _bomb(self, what: str) -> DataError:
        return DataError(
            f"{self._name}: {what} unfolds to far more than the file holds; write the file without entities"
        )

    def _open_element(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise DataError(
                f"{self._name}, line {self._expat.CurrentLineNumber}: elements are nested more than "
                f"{_DEEPEST} deep; write the file flatter, for example as N-Triples"
            )

    def _close_element(self, name: str) -> None:
        self._depth -= 1
