"""What a batch of training queries is to learn: the answers of each, and the other answers that are right as well."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmpn.engine.answer import Answer
from dpmpn.kernels import Ints, kernel


@dataclass(frozen=True, eq=False)
class Targets:
    """The answers to learn of each query, and all its answers that training states."""

    offsets: np.ndarray  # int64, queries + 1
    entities: np.ndarray  # int64: the answers to learn
    known_offsets: np.ndarray  # int64, queries + 1
    known: np.ndarray  # int64, ascending within a query: right, too, so no rivals of an answer to learn

    @classmethod
    def single(cls, entities: np.ndarray) -> "Targets":
        """One answer for each query, and nothing known beside it."""
        n = len(entities)
        return cls(
            np.arange(n + 1), np.asarray(entities, np.int64), np.zeros(n + 1, np.int64), np.empty(0, np.int64)
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def query(self) -> np.ndarray:
        """The query of each answer to learn."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def part(self, rows: slice) -> "Targets":
        """Those of some of the queries."""
        return Targets(
            *_part(self.offsets, self.entities, rows), *_part(self.known_offsets, self.known, rows)
        )

    def find(self, answer: Answer) -> np.ndarray:
        """Position of each answer to learn among the nodes of its query, -1 if it was not reached."""
        return _find(self.offsets, self.entities, answer.offsets, answer.nodes)


def _part(offsets: np.ndarray, values: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """The rows of ragged values; `rows` are neighbours."""
    start, stop, _ = rows.indices(len(offsets) - 1)
    kept = offsets[start : max(start, stop) + 1]
    return kept - kept[0], values[kept[0] : kept[-1]]


@kernel
def _find(offsets: Ints, entities: Ints, node_offsets: Ints, nodes: Ints) -> Ints:
    # Nodes are not sorted, and a query has few targets: a sort of the nodes would cost more than all comparisons.
    at = np.full(len(entities), -1, np.int64)
    for q in range(len(offsets) - 1):
        for i in range(node_offsets[q], node_offsets[q + 1]):
            for k in range(offsets[q], offsets[q + 1]):
                if nodes[i] == entities[k]:
                    at[k] = i
    return at
