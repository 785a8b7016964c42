"""XML on its way to a parser, refused where its entities would unfold to far more than it holds, or it is too deep."""

import io
import re
from xml.parsers import expat

from dpmpn.data.sources.unpack import MEGABYTE, PieceReader
from dpmpn.errors import DataError

_CHUNK = MEGABYTE
_LARGEST_ENTITY = 1 << 16  # bytes, unfolded; entities of RDF/XML are namespaces
_ALLOWANCE = 1 << 24  # bytes a document may grow by entities, beside ten times its size
_DEEPEST = 1000  # elements; pyoxigraph takes time by the square of the depth
_DECLARATION = re.compile(rb"<!ENTITY\s+(?:%\s*)?([^\s\"']+)\s([^<]*)")
_REFERENCE = re.compile(rb"&([^;&#\s]{1,200});")


class WatchedXml(PieceReader):
    """The bytes of a document, each part checked before it is handed on."""

    def __init__(self, file: io.RawIOBase, name: str) -> None:
        self._file, self._name = file, name
        self._carry, self._ended = b"", False
        self._sizes: dict[bytes, int] = {}  # of entities, unfolded
        self._read = self._unfolded = self._depth = 0
        self._expat = expat.ParserCreate()
        self._expat.StartElementHandler = self._open_element
        self._expat.EndElementHandler = self._close_element

    def _next_piece(self) -> bytes:
        if self._ended:
            return b""
        part = self._file.read(_CHUNK) or b""
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
