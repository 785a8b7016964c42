"""Names become ids: facts of all batches, numbered by their sorted names, each name in one spelling."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl

from dpmpn.data.fact_provenance import Provenance
from dpmpn.data.graph import first_of_each
from dpmpn.data.names import normal_names
from dpmpn.data.sources.base import COLUMNS
from dpmpn.data.vocabulary import Vocabulary

_SHOWN_RESPELLED = 3  # names


class Respelled(NamedTuple):
    """Names that were spelled in another form than the one they have now."""

    changed: int = 0
    merged: int = 0  # names fewer than there were spellings
    examples: Mapping[str, str] = MappingProxyType({})  # what stood there: what it became; merged ones first


class NumberedFacts(NamedTuple):
    """Facts of all splits as ids, in the order they were read, with the sorted names they stand for."""

    entities: Vocabulary
    relations: Vocabulary
    triples: dict[str, np.ndarray]  # int32, n x 3, by split
    times: np.ndarray | None = None  # of the training facts, where they have some
    respelled: tuple[Respelled, Respelled] = (Respelled(), Respelled())  # entities and relations
    provenance: Provenance | None = None  # what was said of facts, where anything was

    @property
    def n_facts(self) -> int:
        """How many there are, repeated ones included."""
        return sum(map(len, self.triples.values()))

    def distinct(self) -> "NumberedFacts":
        """The facts of each split once, where they stand first."""
        sizes = len(self.entities), len(self.relations)
        distinct = {split: first_of_each(rows, *sizes) for split, rows in self.triples.items()}
        return self._replace(triples=distinct)


class Encoder:
    """Collects batches of named facts; in the end ids follow the sorted names, whatever the order of reading."""

    def __init__(self) -> None:
        # Polars keeps one table of names for all batches and gives each name a number when it first meets it.
        entities, relations = (pl.Categorical(pl.Categories.random(physical=pl.UInt32)) for _ in range(2))
        self._types = dict(zip(COLUMNS, (entities, relations, entities), strict=True))
        # A table lasts only while a column uses it.
        self._alive = [pl.Series([""], dtype=table) for table in (entities, relations)]
        self._codes: dict[str, list[np.ndarray]] = {}
        self.count = 0

    def add(self, which: str, facts: pl.DataFrame) -> None:
        """Take a batch of head, relation and tail for a split."""
        codes = facts.select(pl.col(c).cast(table).to_physical() for c, table in self._types.items())
        self._codes.setdefault(which, []).append(codes.to_numpy(order="c"))  # n x 3, uint32
        self.count += facts.height

    def finish(self) -> NumberedFacts:
        """All facts as ids of the sorted names."""
        triples = {which: np.concatenate(batches) for which, batches in self._codes.items()}
        self._codes.clear()
        ends = [rows[:, column] for rows in triples.values() for column in (0, 2)]
        entities, entity_ids, entities_respelled = self._sorted("head", ends)
        relations, relation_ids, relations_respelled = self._sorted(
            "relation", [t[:, 1] for t in triples.values()]
        )
        for which, codes in triples.items():
            ids = np.empty(codes.shape, np.int32)
            for column, number in enumerate((entity_ids, relation_ids, entity_ids)):
                ids[:, column] = number[codes[:, column]]
            triples[which] = ids
        respelled = entities_respelled, relations_respelled
        return NumberedFacts(entities, relations, triples, respelled=respelled)

    def _sorted(self, column: str, codes: list[np.ndarray]) -> tuple[Vocabulary, np.ndarray, Respelled]:
        """The names of a column in sorted order, the id of each code, and which names were spelled otherwise."""
        used = np.zeros(max((int(c.max()) + 1 for c in codes if len(c)), default=0), bool)
        for some in codes:
            used[some] = True
        met = np.flatnonzero(used).astype(np.uint32)  # polars leaves gaps
        names = pl.Series(met).cat.to(self._types[column]).cast(pl.String)
        spelled = normal_names(names)
        order = spelled.arg_sort().to_numpy()
        ascending = spelled.gather(order)
        is_new = (ascending != ascending.shift(1)).fill_null(True).to_numpy()
        ids = np.empty(len(used), np.int32)
        ids[met[order]] = np.cumsum(is_new, dtype=np.int32) - 1
        return Vocabulary(ascending.filter(pl.Series(is_new))), ids, _respelled(names, spelled)


def _respelled(names: pl.Series, spelled: pl.Series) -> Respelled:
    """What became of distinct names; `spelled` are the same in their one form."""
    other = names != spelled
    if not other.any():
        return Respelled()
    merged = spelled.is_duplicated()
    shown = [*(other & merged).arg_true(), *(other & ~merged).arg_true()][:_SHOWN_RESPELLED]
    examples = {names[at]: spelled[at] for at in shown}
    return Respelled(int(other.sum()), len(spelled) - spelled.n_unique(), examples)
