"""Files as streams of bytes: plain, .gz, .zst or .zip by their first bytes; broken and absurd ones are refused.

Text comes as UTF-8 without byte order marks, UTF-16 that begins with one too.
"""

import codecs
import io
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import zstandard
from isal import igzip, igzip_lib

from dpmpn.errors import DataError

MEGABYTE = 1 << 20
# Real text packs 3 to 30 times, the most regular facts perhaps 100 times; a bomb packs 1,000 times and more.
# Small files are let through: what unpacks to less than this hurts nobody.
LARGEST_RATIO = 250
HARMLESS_SIZE = 64 * MEGABYTE
LARGEST_ZSTD_WINDOW = 128 * MEGABYTE  # what the zstd program itself accepts without being asked for more
PIECE = MEGABYTE
# One byte of zstd may stand for 32,768: a piece of packed bytes is kept so small that it cannot fill the memory.
_ZSTD_PIECE = 4096
_ZSTD_HEADER = 18  # bytes at most
_BEGINNING = 65536
PACKED_SUFFIXES = (".gz", ".zst", ".zip")
_PACKING_ERRORS: Any = (zlib.error, igzip_lib.IsalError, zstandard.ZstdError, zipfile.BadZipFile)
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_MARKED = b"\n" + codecs.BOM_UTF8  # files that were put together have a mark at the beginning of a later line
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def check_file(path: Path) -> int:
    """Size of an ordinary file that is not empty; anything else is refused."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise DataError(f"{path}: cannot be read ({_reason(error)}); check the path") from error
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{path}: is a folder; name the files in it")
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path}: is a pipe or a device; save what it gives as a file and name that")
    if not status.st_size:
        raise DataError(f"{path}: is empty; write one fact a line, or leave the file out")
    return status.st_size


class PieceReader(io.RawIOBase):
    """A stream of bytes that come piece by piece."""

    _rest = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a part of the buffer; 0 at the end."""
        if not self._rest:
            self._rest = memoryview(self._next_piece())
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _next_piece(self) -> bytes:
        raise NotImplementedError


class Unpacked(PieceReader):
    """What a file holds, unpacked while it is read."""

    path: Path
    size: int  # of the file as it lies there
    name: str  # of what is inside: without .gz, or the member of a .zip
    beginning: bytes  # the first 64 KiB, which are read again by whoever reads

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = path = Path(path)
        self.size, self.name, self._unpacked = check_file(path), path.name, 0
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({_reason(error)}); check the file") from error
        try:
            self._pieces = _without_marks(_as_utf8(self._open_pieces()))
            self.beginning = self._look_ahead()
        except BaseException:
            self.close()
            raise

    def read_full(self, size: int) -> bytes:
        """As many bytes as asked for, fewer only at the end."""
        parts = []
        while size and (part := self.read(min(size, PIECE))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def position(self) -> tuple[int, int]:
        """Bytes of the packed file that were read, and how many it has."""
        return (self.size if self.closed else min(self._file.tell(), self.size)), self.size

    def close(self) -> None:
        """Close the file."""
        if not self.closed and hasattr(self, "_file"):
            self._file.close()
        super().close()

    def _open_pieces(self) -> Iterator[bytes]:
        magic = self._file.read(4)
        self._file.seek(0)
        if magic.startswith(b"\x1f\x8b"):
            self._strip_suffix()
            self._check_size(_gzip_size(self._file))
            # igzip reads several members one after the other; unpacks 400 MB in a third of the time of zlib.
            return _pieces_of(lambda: igzip.IGzipFile(fileobj=self._file, mode="rb"))  # type: ignore[no-untyped-call]
        if magic == b"\x28\xb5\x2f\xfd" or (magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5):
            self._strip_suffix()
            self._check_size(_zstd_size(self._file))
            return _zstd_pieces(self._file)
        if magic in (b"PK\x03\x04", b"PK\x05\x06"):
            return self._zip_pieces()
        if self.path.suffix.lower() in PACKED_SUFFIXES:
            self._strip_suffix()  # unpacked on its way here, by a browser for one, and never renamed
        return _pieces_of(lambda: self._file)

    def _strip_suffix(self) -> None:
        if self.path.suffix.lower() in PACKED_SUFFIXES:
            self.name = self.path.stem

    def _zip_pieces(self) -> Iterator[bytes]:
        try:
            archive = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise self._broken(error) from error
        members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
        names = [member.filename for member in members]
        if "[Content_Types].xml" in names:
            raise DataError(f"{self.path}: looks like an Office file, such as an Excel table; save it as CSV")
        if len(members) != 1:
            some = f" ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})" if names else ""
            raise DataError(
                f"{self.path}: holds {len(names)} files{some} instead of one; unpack it and name the files"
            )
        member = members[0]
        if member.flag_bits & 1:
            raise DataError(f"{self.path}: is locked with a password; unpack it and name the file")
        if member.compress_type not in _ZIP_METHODS:
            raise DataError(
                f"{self.path}: is packed in a way that is not read here; unpack it and name the file"
            )
        self._check_size(member.file_size)
        self.name = Path(member.filename).name
        return _pieces_of(lambda: archive.open(member))

    def _look_ahead(self) -> bytes:
        pieces, length = [], 0
        while length < _BEGINNING and (piece := self._next_piece()):
            pieces.append(piece)
            length += len(piece)
        self._rest = memoryview(b"".join(pieces))
        return bytes(self._rest[:_BEGINNING])

    def _next_piece(self) -> bytes:
        try:
            piece = next(self._pieces, b"")
        except EOFError as error:
            raise DataError(
                f"{self.path}: cannot be read: it is cut off, after {self._unpacked:,} unpacked bytes; "
                "get the whole file again"
            ) from error
        # zipfile raises RuntimeError, NotImplementedError and ValueError for archives it does not like.
        except (*_PACKING_ERRORS, OSError, RuntimeError, ValueError) as error:
            raise self._broken(error) from error
        self._unpacked += len(piece)
        self._check_size(self._unpacked)
        return piece

    def _check_size(self, unpacked: int) -> None:
        """Refuse what was unpacked so far, or what the file says of itself: a bomb need not be unpacked then."""
        if unpacked > max(HARMLESS_SIZE, LARGEST_RATIO * self.size):
            raise DataError(
                f"{self.path}: unpacks to more than {LARGEST_RATIO} times its size, which facts do not; "
                "unpack it yourself if you trust it"
            )

    def _broken(self, error: Exception) -> DataError:
        return DataError(
            f"{self.path}: cannot be read after {self._unpacked:,} unpacked bytes ({_reason(error)}); "
            "get the file again, or pack it again"
        )


def _pieces_of(open_file: Callable[[], Any]) -> Iterator[bytes]:
    """What a file holds; it is opened with the first piece, so that any error is one of reading."""
    file = open_file()
    while piece := file.read(PIECE):
        yield piece


def _as_utf8(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """UTF-16 that begins with a byte order mark as UTF-8, all else as it is.

    Half a character becomes bytes that are not UTF-8, which whoever reads the line refuses.
    """
    pieces, first = _beginning_of(pieces, 4)
    encoding = _UTF16.get(first[:2]) if first[2:4] != b"\0\0" else None  # that would be UTF-32
    if encoding is None:
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "surrogatepass")
    if decoder.getstate()[0]:
        raise EOFError


def _without_marks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Text without the byte order marks at the beginning of its lines."""
    pieces, first = _beginning_of(pieces, len(codecs.BOM_UTF8))
    skipped = len(codecs.BOM_UTF8) if first.startswith(codecs.BOM_UTF8) else 0
    kept = b""  # the end of a line, after which a mark may come
    for piece in pieces:
        text = kept + piece[skipped:] if kept or skipped else piece
        skipped = 0
        if _MARKED in text:
            text = text.replace(_MARKED, b"\n")
        kept = next((_MARKED[:n] for n in (3, 2, 1) if text.endswith(_MARKED[:n])), b"")
        if len(text) > len(kept):
            yield text[: len(text) - len(kept)]
    if kept:
        yield kept


def _beginning_of(pieces: Iterator[bytes], size: int) -> tuple[Iterator[bytes], bytes]:
    """The same pieces, of which the first is that long if all of them are, and the first one."""
    first = b""
    while len(first) < size and (piece := next(pieces, None)) is not None:
        first += piece
    return chain([first], pieces), first


def _gzip_size(file: BinaryIO) -> int:
    """Unpacked size as the last bytes say it; 0 if the first are no bomb's, for a file cut off ends in anything."""
    beginning = file.read(_BEGINNING)
    file.seek(max(-4, -len(beginning)), io.SEEK_END)
    said = int.from_bytes(file.read(4), "little")
    file.seek(0)
    unpacker = zlib.decompressobj(zlib.MAX_WBITS + 16)
    try:
        unpacked = len(unpacker.decompress(beginning, LARGEST_RATIO * len(beginning) + 1))
    except zlib.error:  # what is wrong is said when it is unpacked
        return 0
    packed = len(beginning) - len(unpacker.unused_data) - len(unpacker.unconsumed_tail)
    return said if unpacked > LARGEST_RATIO * packed else 0


def _zstd_size(file: BinaryIO) -> int:
    """Unpacked size of the first frame, 0 where it does not say."""
    beginning = file.read(_ZSTD_HEADER)
    file.seek(0)
    try:
        return max(zstandard.frame_content_size(beginning), 0)
    except zstandard.ZstdError:
        return 0


def _zstd_pieces(file: BinaryIO) -> Iterator[bytes]:
    """Frame after frame; the stream reader of the package would take a cut off frame for a whole one."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_ZSTD_WINDOW)
    packed = file.read(_ZSTD_PIECE)
    while packed:
        frame = decompressor.decompressobj()
        while not frame.eof:
            if not packed:
                raise EOFError
            if piece := frame.decompress(packed):
                yield piece
            packed = b"" if frame.eof else file.read(_ZSTD_PIECE)
        packed = frame.unused_data or file.read(_ZSTD_PIECE)


def _reason(error: Exception) -> str:
    """What the system said, without repeating the path."""
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__
