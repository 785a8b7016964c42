"""What work in parts is, and its one loop: make the parts that are missing, wherever they are made, and keep each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from dpmpn.bulk.shards import Shard

Tick = Callable[[int, int], None]
"""Told how many questions were asked, and how many there are."""


class Work(Protocol):
    """Questions in parts, each of which can be made at any time, on any machine, without the others."""

    @property
    def request(self) -> Mapping[str, Any]:
        """All that the parts depend on, as plain values; parts of equal requests are the same."""

    @property
    def sizes(self) -> Sequence[int]:
        """How many questions each part has."""

    def part(self, index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        """What became of the questions of one part; `tick` is told how many of them were asked so far."""

    def close(self) -> None:
        """End the processes that helped."""


class Kept(Protocol):
    """Where parts are kept."""

    def missing(self, wanted: Iterable[int]) -> list[int]:
        """Those of some parts that are not here, or not whole."""

    def write(self, index: int, frame: pl.DataFrame) -> None:
        """Keep one part."""

    def read(self, wanted: Iterable[int]) -> Iterator[pl.DataFrame]:
        """Some parts in the order in which they are named."""

    def finish(self, write: Callable[[Path], object]) -> None:
        """Let `write` make the file of the result, if there is to be one; the parts are not needed any more."""


Carry = Callable[[Work, Sequence[int], Callable[[int], None]], Iterator[tuple[int, pl.DataFrame]]]
"""Makes parts of some work in any order, and tells how many questions of the one in hand were asked."""


class InMemory(AbstractContextManager["InMemory"]):
    """Parts that are kept as long as the process lives."""

    def __init__(self) -> None:
        self._frames: dict[int, pl.DataFrame] = {}

    def __exit__(self, *_: object) -> None:
        self._frames.clear()

    def missing(self, wanted: Iterable[int]) -> list[int]:
        """Those of some parts that are not here."""
        return [index for index in wanted if index not in self._frames]

    def write(self, index: int, frame: pl.DataFrame) -> None:
        """Keep one part."""
        self._frames[index] = frame

    def read(self, wanted: Iterable[int]) -> Iterator[pl.DataFrame]:
        """Some parts in the order in which they are named."""
        return (self._frames[index] for index in wanted)

    def finish(self, write: Callable[[Path], object]) -> None:
        """Make no file, as nobody named one."""


def here(
    work: Work, wanted: Sequence[int], tick: Callable[[int], None]
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Make parts one after the other in this process."""
    for index in wanted:
        yield index, work.part(index, tick)


def make_parts(
    work: Work,
    kept: Kept,
    progress: Tick | None = None,
    *,
    shard: Shard | None = None,
    carry: Carry = here,
    first: int = 0,  # where the parts of this work are kept, behind those of another
) -> int:
    """Make the parts that are missing, of one shard or all; how many questions had been asked before."""
    sizes = work.sizes
    own = range(len(sizes)) if shard is None else shard.parts(len(sizes))
    missing = [index - first for index in kept.missing([first + index for index in own])]
    total = sum(sizes[index] for index in own)
    before = done = total - sum(sizes[index] for index in missing)
    told = 0

    def tick(asked: int) -> None:
        nonlocal told
        if progress is not None and done + asked != told:
            told = done + asked
            progress(told, total)

    tick(0)
    for index, frame in carry(work, missing, tick):
        kept.write(first + index, frame)
        done += sizes[index]
        tick(0)
    return before


def cut(n: int, size: int) -> list[int]:
    """The sizes of the parts of n questions: all alike but the last."""
    return [min(size, n - start) for start in range(0, n, size)]
