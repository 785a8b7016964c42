"""Where facts come from: what further columns of a table say of each fact, looked up by the fact's ids.

The texts stay in a file, in the order they were read; only ids and positions are sorted in memory, 28 bytes a row.
"""

import json
from dataclasses import dataclass
from typing import IO

import numpy as np
import polars as pl

from dpmpn.errors import DataError
from dpmpn.files import scratch_file

Record = dict[str, str]
"""What one row says of its fact, by the names of its columns."""


@dataclass(frozen=True, eq=False)
class Provenance:
    """What rows say of facts; several rows may state the same one."""

    facts: (
        np.ndarray
    )  # int32, 3 x n: heads, relations and tails, sorted in this order, equal ones as they were read
    spans: np.ndarray  # int64, n x 2: where the text of each begins and ends
    text: np.ndarray  # uint8: objects of JSON

    def __len__(self) -> int:
        return len(self.spans)

    def of(self, head: int, relation: int, tail: int) -> list[Record]:
        """What was said of a fact, each once."""
        low, high = 0, len(self)
        for column, id in zip(self.facts, (head, relation, tail), strict=True):
            low, high = (low + int(at) for at in np.searchsorted(column[low:high], [id, id + 1]))
        texts = dict.fromkeys(self.text[start:end].tobytes() for start, end in self.spans[low:high].tolist())
        return [_record(text) for text in texts]

    def renumbered(self, relations: np.ndarray) -> "Provenance":
        """The same where relations have other ids."""
        heads, old, tails = self.facts
        return _sorted(np.stack([heads, relations[old], tails], 1), self.spans, self.text)

    def in_memory(self) -> "Provenance":
        """The same without its files."""
        return Provenance(self.facts.copy(), self.spans.copy(), self.text.copy())


def _record(text: bytes) -> Record:
    try:
        values = json.loads(text)
        return {name: value for name, value in values.items() if isinstance(value, str) and value}
    except (ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"what is kept with a fact is no JSON ({error}); import the facts again") from error


class ProvenanceCollector:
    """Takes what rows say while they are read; the texts go to a file at once."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._size = 0
        self._rows: dict[str, list[np.ndarray]] = {}
        self._spans: dict[str, list[np.ndarray]] = {}

    def add(self, which: str, first: int, texts: pl.Series) -> None:
        """Take the texts of some facts of a split, from its fact number `first` on; null where there is none."""
        rows = texts.is_not_null().arg_true().to_numpy()
        if not len(rows):
            return
        given = texts.drop_nulls().alias("text").to_frame()
        distinct = given.unique(maintain_order=True)  # one source often stands on many rows
        lengths = distinct["text"].str.len_bytes().to_numpy().astype(np.int64)
        ends = self._size + np.cumsum(lengths)
        self._file = self._file or scratch_file()
        self._file.write("".join(distinct["text"]).encode())
        self._size = int(ends[-1])
        which_text = given.join(distinct.with_row_index("at"), on="text", how="left", maintain_order="left")
        at = which_text["at"].to_numpy()
        self._rows.setdefault(which, []).append(first + rows.astype(np.int64))
        self._spans.setdefault(which, []).append(np.stack([(ends - lengths)[at], ends[at]], 1))

    def finish(self, triples: dict[str, np.ndarray]) -> Provenance | None:
        """All that was taken, by the ids of the facts; None where no row said anything."""
        if self._file is None:
            return None
        self._file.flush()
        facts = np.concatenate([triples[which][np.concatenate(rows)] for which, rows in self._rows.items()])
        spans = np.concatenate([each for given in self._spans.values() for each in given])
        text = np.memmap(self._file, np.uint8, "r", shape=(self._size,)).view(np.ndarray)
        return _sorted(facts, spans, text)


def _sorted(facts: np.ndarray, spans: np.ndarray, text: np.ndarray) -> Provenance:
    """What was said of facts, n x 3, sorted by their ids; rows of the same fact stay in their order."""
    order = np.lexsort((facts[:, 2], facts[:, 1], facts[:, 0]))
    return Provenance(np.ascontiguousarray(facts[order].T, np.int32), spans[order], text)
