"""Which parts of a long text can hold a needle: a map of the groups of bytes that occur in each part."""

from collections.abc import Iterator

import numpy as np

BLOCK = 4096  # bytes of text in a part
_CHUNK = 256  # parts that are mapped at a time: their table of bools fits a cache
_MULTIPLIERS = (2654435761, 2246822519)
_NEEDLE = 64  # bytes of a needle that are looked up

# Bytes in a group, bits of its row number, how it is hashed. Two rows a group: one alone is too often shared with a
# group that is everywhere. A letter pair has a row of its own where its letters are among the 63 most frequent.
_TABLES = ((2, 12, None), (2, 12, 0), (3, 13, 0), (3, 13, 1), (4, 13, 0), (4, 13, 1))
_STARTS = np.cumsum([0, *(1 << bits for _, bits, _ in _TABLES)])


class GramMap:
    """For each group of two to four bytes (hashed), the parts of a text in which it starts; 1.25 bytes a byte of text.

    A needle is in a part only if all its groups are there or in the next part, so that a search need not read the rest:
    reading 22 MB for a rare needle of two letters takes 40 ms, this 0.2 ms.
    """

    def __init__(self, text: np.ndarray) -> None:
        self._codes = _letter_codes(text)
        self._n_blocks = -(-len(text) // BLOCK)
        self._bits = np.zeros((int(_STARTS[-1]), -(-self._n_blocks // 8)), np.uint8)  # rows x parts / 8
        for first in range(0, self._n_blocks, _CHUNK):
            self._bits[:, first // 8 : (first + _CHUNK) // 8] = self._mapped(text, first)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._bits.nbytes

    def spans(self, needle: bytes) -> Iterator[tuple[int, int]]:
        """Where the needle may start: (from, to) of stretches of text, in order."""
        possible = np.ones(self._n_blocks, bool)
        for row, at in self._rows_of(needle[:_NEEDLE]):
            here = np.unpackbits(self._bits[row], count=self._n_blocks).view(bool)
            if at:
                here[:-1] |= here[1:]  # a group inside the needle may be across the border
            possible &= here
        edges = np.flatnonzero(np.diff(possible, prepend=False, append=False)) * BLOCK
        return zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)

    def _mapped(self, text: np.ndarray, first: int) -> np.ndarray:
        """The rows of the parts from the first on, packed."""
        n_blocks = min(_CHUNK, self._n_blocks - first)
        there = np.zeros((int(_STARTS[-1]), n_blocks), bool)
        chunk = text[first * BLOCK : (first + n_blocks) * BLOCK + _TABLES[-1][0] - 1]
        for rows in self._rows(chunk):
            rows = rows[: n_blocks * BLOCK]
            there[rows, np.arange(len(rows)) // BLOCK] = True
        return np.packbits(there, axis=1)

    def _rows_of(self, needle: bytes) -> list[tuple[int, int]]:
        """Row of each group of a needle, and where the group stands in it."""
        rows = self._rows(np.frombuffer(needle, np.uint8))
        return [(row, at) for table in rows for at, row in enumerate(table.tolist())]

    def _rows(self, text: np.ndarray) -> Iterator[np.ndarray]:
        """For each table, the row of the group that starts at each byte."""
        for (size, bits, hashed), start in zip(_TABLES, _STARTS.tolist(), strict=False):
            n_groups = max(len(text) - size + 1, 0)
            source = text if hashed is not None else self._codes[text]
            width = 8 if hashed is not None else bits // size
            groups = np.zeros(n_groups, np.uint32)
            for at in range(size):
                groups |= source[at : at + n_groups].astype(np.uint32) << np.uint32(width * at)
            if hashed is not None:
                groups = groups * np.uint32(_MULTIPLIERS[hashed]) >> np.uint32(32 - bits)
            yield groups.astype(np.int64) + start


def _letter_codes(text: np.ndarray) -> np.ndarray:
    """A number below 64 for each byte: the most frequent have one of their own, the others share the last."""
    order = np.argsort(-np.bincount(text, minlength=256), kind="stable")
    codes = np.full(256, 63, np.uint8)
    codes[order[:63]] = np.arange(63)
    return codes
