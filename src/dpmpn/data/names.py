"""Names one after the other in one block of bytes, as they lie on the disk, found there without reading them all."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
import polars as pl

from dpmpn.errors import DataError


class Names(Sequence[str]):
    """An immutable list of texts: UTF-8 bytes, a line break after each, and where each begins; may be mapped."""

    def __init__(self, text: np.ndarray, offsets: np.ndarray) -> None:
        self.text = text  # uint8
        self.offsets = offsets  # int64, names + 1
        self._bytes = text.data  # of which slices are cheap

    @classmethod
    def of(cls, names: Sequence[str] | pl.Series) -> "Names":
        """Pack names."""
        column = names if isinstance(names, pl.Series) else pl.Series(names, dtype=pl.String)
        offsets = np.zeros(len(column) + 1, np.int64)
        np.cumsum(column.str.len_bytes().to_numpy() + np.int64(1), out=offsets[1:])
        text = "".join(column.str.join("\n").to_list()) + "\n" if len(column) else ""
        return cls(np.frombuffer(text.encode(), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._decoded(int(self.offsets[index]), int(self.offsets[index + 1]))

    def __iter__(self) -> Iterator[str]:
        return (self._decoded(start, end) for start, end in pairwise(self.offsets.tolist()))

    def find(self, name: str) -> int:
        """Position of a name among names in ascending order, -1 where it is not among them."""
        # Code points and their UTF-8 bytes sort alike.
        at = bisect_left(range(len(self)), name.encode(errors="replace"), key=self._packed)
        return at if at < len(self) and self[at] == name else -1

    def _packed(self, index: int) -> bytes:
        return bytes(self._bytes[self.offsets[index] : self.offsets[index + 1] - 1])

    def _decoded(self, start: int, end: int) -> str:
        try:
            return str(self._bytes[start : end - 1], "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"a name is not UTF-8 ({error}): build the graph again") from error
