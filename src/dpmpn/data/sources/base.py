"""What every source of facts gives: batches of names, and an account of what was left out and why."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

COLUMNS = ("head", "relation", "tail")
TIME = "time"
FACTS = {column: pl.String for column in COLUMNS}
LABELS = {"id": pl.String, "name": pl.String, "description": pl.String, "type": pl.String}


@dataclass(frozen=True)
class ReadOptions:
    """How sources are read; what is None is found out from the source itself."""

    format: str | None = None  # "tsv", "csv", "jsonl", "parquet", "nt", "nq", "ttl", "rdfxml", "jsonld", ...
    columns: tuple[str, str, str] | None = None  # of head, relation and tail: names, or positions from 1
    separator: str | None = None
    header: bool | None = None
    time_column: str | None = None  # name, or position from 1; gives batches a fourth column `time`
    query: str | None = None  # of a SPARQL endpoint or a database
    literals: Literal["drop", "keep"] = "drop"
    on_error: Literal["stop", "skip"] = "stop"  # what to do with a line that cannot be read


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

    @abstractmethod
    def batches(self) -> Iterator[pl.DataFrame]:
        """Frames of head, relation and tail (and time): text without nulls, none of it empty."""

    @abstractmethod
    def position(self) -> tuple[int, int | None]:
        """How much was read (bytes or rows), and how much there is where that is known."""

    def labels(self) -> pl.DataFrame:
        """Names, descriptions and types met while reading, columns of LABELS; none in most sources."""
        return pl.DataFrame(schema=LABELS)
