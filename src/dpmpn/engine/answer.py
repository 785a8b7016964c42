"""The answer of a batch: probabilities of the nodes that attention came to, and a prior for all others."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Unlisted:
    """Probabilities of the entities that an answer does not list: equal for all of a kind."""

    of_entity: np.ndarray  # int64, entities: the kind of each
    probability: Tensor  # queries x kinds


@dataclass(frozen=True, eq=False)
class Answer:
    """The final attention a^T; entities that are not listed have none, or their kind's probability."""

    offsets: np.ndarray  # int64, queries + 1
    nodes: np.ndarray  # int32, entities
    attention: Tensor
    unlisted: Unlisted | None = None
    prior: np.ndarray | None = (
        None  # of the nodes, before any step; where there is one, and steps were traced
    )

    def of_all(self, n_entities: int) -> np.ndarray:
        """The probability of every entity: queries x entities."""
        n_queries = len(self.offsets) - 1
        if self.unlisted is None:
            every = np.zeros((n_queries, n_entities), np.float32)
        else:
            every = self.unlisted.probability.cpu().numpy()[:, self.unlisted.of_entity]
        query = np.repeat(np.arange(n_queries), np.diff(self.offsets))
        every[query, self.nodes] = self.attention.detach().cpu().numpy()
        return every

    def find(self, targets: np.ndarray) -> np.ndarray:
        """Position of each query's target among the nodes, -1 if it was not reached."""
        query = np.repeat(np.arange(len(targets)), np.diff(self.offsets))
        found = np.flatnonzero(self.nodes == targets[query])
        at = np.full(len(targets), -1, np.int64)
        at[query[found]] = found
        return at
