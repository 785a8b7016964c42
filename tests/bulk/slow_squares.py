"""Work that takes a moment for each part and notes who did it; workers of a cluster import it."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

from dpmpn.bulk.work import cut
from dpmpn.errors import DataError

SIZE = 3


class SlowSquares:
    """A square for each number."""

    def __init__(self, n: int, notes: str, seconds: float = 0.3, refused: str = "", salt: str = "") -> None:
        if refused and os.getpid() != int(refused):
            raise DataError("questions.csv is missing; copy it here")
        self.request = {"n": n, "salt": salt and str(os.getpid())}
        self.sizes = cut(n, SIZE)
        self._notes, self._seconds = Path(notes), seconds
        self.note("opened")

    def note(self, text: object) -> None:
        with self._notes.open("a") as file:
            file.write(f"{os.getpid()} {text}\n")

    def part(self, index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        time.sleep(self._seconds)
        self.note(index)
        numbers = range(index * SIZE, index * SIZE + self.sizes[index])
        return pl.DataFrame({"n": list(numbers), "square": [n * n for n in numbers]})

    def close(self) -> None:
        pass


def deadly(n: int, notes: str, own: int) -> SlowSquares:
    """The same, but the third part ends every process that is not our own."""
    work = SlowSquares(n, notes, 0)
    part = work.part

    def ending(index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        if index == 2 and os.getpid() != own:
            os._exit(1)
        return part(index, tick)

    work.part = ending  # type: ignore[method-assign]
    return work
