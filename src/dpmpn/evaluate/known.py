"""Which tails are known for a head and a relation: the answers a filtered rank leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dpmpn.kernels import Bools, Ints

Number = TypeVar("Number", bound=np.integer)


@dataclass(frozen=True)
class KnownAnswers:
    """All known tails of every (head, relation) pair, as sorted pair keys with a row of tails each.

    A pair's key is `head * n_relations + relation`; two int32 numbers always fit into its int64.
    """

    pair_keys: npt.NDArray[np.int64]  # pairs, ascending, unique
    offsets: npt.NDArray[np.int64]  # pairs + 1
    tails: npt.NDArray[np.int32]  # distinct triples, ascending and unique within a pair
    n_relations: int

    @classmethod
    def from_triples(cls, *splits: Ints) -> KnownAnswers:
        """Collect (head, relation, tail) rows of all splits; inverse directions are rows of their own."""
        _check_triples(splits)
        n_relations = 1 + max((int(split[:, 1].max()) for split in splits if len(split)), default=0)
        keys = _joined(
            [split[:, 0].astype(np.int64) * n_relations + split[:, 1] for split in splits], np.int64
        )
        tails = _joined([split[:, 2] for split in splits], np.int32)

        order = np.lexsort((tails, keys))
        keys, tails = keys[order], tails[order]
        # Sorted neighbours tell what is new; np.unique took 5 times as long as this whole sort (2M triples).
        new_pair = _differs_from_previous(keys)
        new_triple = new_pair | _differs_from_previous(tails)
        keys, tails, new_pair = keys[new_triple], tails[new_triple], new_pair[new_triple]
        starts = np.flatnonzero(new_pair)  # pairs
        return cls(keys[starts], np.append(starts, len(tails)).astype(np.int64), tails, n_relations)

    def lookup(self, heads: Ints, relations: Ints) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Return (offsets, tails) with the known tails of each query, ascending; none for an unseen pair."""
        rows, found = self._rows(heads, relations)
        starts = np.where(found, self.offsets[rows], 0)  # queries
        counts = np.where(found, self.offsets[rows + found] - starts, 0)  # queries
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)  # queries + 1
        positions = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
        return offsets, self.tails[positions]

    def contains(self, heads: Ints, relations: Ints, query: Ints, tails: Ints) -> Bools:
        """Whether each tail is a known one of its query: `query` says which of the pairs that is."""
        offsets, known = self.lookup(heads, relations)
        keys = _as_one(np.repeat(np.arange(len(heads)), np.diff(offsets)), known)  # ascending
        wanted = _as_one(query, tails)
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        return keys[at] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)

    def _rows(self, heads: Ints, relations: Ints) -> tuple[npt.NDArray[np.int64], Bools]:
        """Return each query's row and whether it has one; `rows` stays a valid index where it has none."""
        heads, relations = np.asarray(heads, np.int64), np.asarray(relations, np.int64)
        if heads.shape != relations.shape or heads.ndim != 1:
            raise ValueError(f"heads {heads.shape} and relations {relations.shape} must be equally long rows")
        keys = heads * self.n_relations + relations
        rows = np.searchsorted(self.pair_keys, keys).astype(np.int64)
        found = rows < len(self.pair_keys)
        found[found] = self.pair_keys[rows[found]] == keys[found]
        # A relation beyond those seen would otherwise run into the next head's keys.
        found &= (relations >= 0) & (relations < self.n_relations)
        return rows, found


def _check_triples(splits: Sequence[Ints]) -> None:
    for split in splits:
        if split.ndim != 2 or split.shape[1] != 3:
            raise ValueError(f"triples are n x 3 (head, relation, tail), not of shape {split.shape}")
        if split.size and (split.min() < 0 or split.max() > np.iinfo(np.int32).max):
            raise ValueError("heads, relations and tails are indices from 0 to 2^31 - 1")


def _joined(columns: list[Ints], dtype: type[Number]) -> npt.NDArray[Number]:
    """Concatenate columns; none give an empty array."""
    return np.concatenate([np.empty(0, dtype), *columns], dtype=dtype, casting="same_kind")


def _as_one(query: Ints, tails: Ints) -> npt.NDArray[np.int64]:
    """(query, tail) as one number, in the same order."""
    return np.asarray(query, np.int64) << 31 | np.asarray(tails, np.int64)


def _differs_from_previous(values: Ints) -> Bools:
    """Mark the values that are not equal to the one before them, and the first."""
    differs = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs
