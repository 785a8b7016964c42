"""The answer of a batch: the final attention as a sparse distribution over the nodes scanned last."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Answer:
    """The final attention a^T; entities that are not listed have none."""

    offsets: np.ndarray  # int64, queries + 1
    nodes: np.ndarray  # int32, entities
    attention: Tensor

    def find(self, targets: np.ndarray) -> np.ndarray:
        """Position of each query's target among the nodes, -1 if it was not reached."""
        query = np.repeat(np.arange(len(targets)), np.diff(self.offsets))
        found = np.flatnonzero(self.nodes == targets[query])
        at = np.full(len(targets), -1, np.int64)
        at[query[found]] = found
        return at
