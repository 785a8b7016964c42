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

    def before_steps(self) -> np.ndarray | None:
        """What each listed node would have by its kind alone, had no step led anywhere; None without a prior."""
        if self.unlisted is None:
            return None
        of_entity, probability = self.unlisted.of_entity, self.unlisted.probability.double().cpu().numpy()
        total = probability @ np.bincount(of_entity, minlength=probability.shape[1])
        query = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        # All of a sum may be too small for a float, beside a node that is nearly certain.
        return probability[query, of_entity[self.nodes]] / np.maximum(total[query], np.finfo(float).tiny)

    def find(self, targets: np.ndarray) -> np.ndarray:
        """Position of each query's target among the nodes, -1 if it was not reached."""
        query = np.repeat(np.arange(len(targets)), np.diff(self.offsets))
        found = np.flatnonzero(self.nodes == targets[query])
        at = np.full(len(targets), -1, np.int64)
        at[query[found]] = found
        return at
