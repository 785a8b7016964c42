"""Numbers names while they are read, so that facts take twelve bytes each and a name is kept once."""

import numpy as np
import polars as pl

from dpmpn.data.sources.base import COLUMNS
from dpmpn.data.vocabulary import Vocabulary


class Encoder:
    """Collects batches of named facts; in the end ids follow the sorted names, whatever the order of reading."""

    def __init__(self) -> None:
        # Polars keeps one table of names for all batches and gives each name a number when it first meets it.
        entities, relations = (pl.Categorical(pl.Categories.random(physical=pl.UInt32)) for _ in range(2))
        self._types = dict(zip(COLUMNS, (entities, relations, entities), strict=True))
        # A table lasts only while a column uses it.
        self._alive = [pl.Series([""], dtype=kind) for kind in (entities, relations)]
        self._codes: dict[str, list[np.ndarray]] = {}
        self.count = 0

    def add(self, which: str, facts: pl.DataFrame) -> None:
        """Take a batch of head, relation and tail for a split."""
        codes = facts.select(pl.col(c).cast(kind).to_physical() for c, kind in self._types.items())
        self._codes.setdefault(which, []).append(codes.to_numpy(order="c"))  # n x 3, uint32
        self.count += facts.height

    def finish(self) -> tuple[Vocabulary, Vocabulary, dict[str, np.ndarray]]:
        """Entities and relations in sorted order, and the facts of each split as int32 ids, n x 3."""
        triples = {which: np.concatenate(batches) for which, batches in self._codes.items()}
        self._codes.clear()
        entities, entity_ids = self._sorted(
            "head", [t[:, column] for t in triples.values() for column in (0, 2)]
        )
        relations, relation_ids = self._sorted("relation", [t[:, 1] for t in triples.values()])
        for which, codes in triples.items():
            ids = np.empty(codes.shape, np.int32)
            for column, number in enumerate((entity_ids, relation_ids, entity_ids)):
                ids[:, column] = number[codes[:, column]]
            triples[which] = ids
        return entities, relations, triples

    def _sorted(self, column: str, codes: list[np.ndarray]) -> tuple[Vocabulary, np.ndarray]:
        """The names of a column in sorted order, and the id of each code."""
        used = np.zeros(max((int(c.max()) + 1 for c in codes if len(c)), default=0), bool)
        for some in codes:
            used[some] = True
        met = np.flatnonzero(used).astype(np.uint32)  # polars leaves gaps
        names = pl.Series(met).cat.to(self._types[column]).cast(pl.String)
        order = names.arg_sort().to_numpy()
        ids = np.empty(len(used), np.int32)
        ids[met[order]] = np.arange(len(met), dtype=np.int32)
        return Vocabulary(names.gather(order)), ids
