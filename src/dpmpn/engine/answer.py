"""The answer of a batch: probabilities of the nodes that attention came to, and a prior for all others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Apart(NamedTuple):
    """Entities that have a profile of their own for a query, because edges of theirs are hidden from it."""

    query: np.ndarray
    entities: np.ndarray
    probability: Tensor


@dataclass(frozen=True, eq=False)
class Unlisted:
    """Probabilities of the entities that an answer does not list: equal for all of one profile."""

    of_entity: np.ndarray  # int64, entities: the index of each one's profile
    probability: Tensor  # queries x profiles
    apart: Apart | None = None  # where edges are hidden query by query


@dataclass(frozen=True, eq=False)
class Answer:
    """The final attention a^T; entities that are not listed have none, or their profile's probability."""

    offsets: np.ndarray  # int64, queries + 1
    nodes: np.ndarray  # int32, entities
    attention: Tensor
    unlisted: Unlisted | None = None
    prior: np.ndarray | None = None  # of the nodes, before any step; only where steps were traced

    def of_all(self, n_entities: int) -> np.ndarray:
        """The probability of every entity: queries x entities."""
        n_queries = len(self.offsets) - 1
        if self.unlisted is None:
            every = np.zeros((n_queries, n_entities), np.float32)
        else:
            every = self.unlisted.probability.cpu().numpy()[:, self.unlisted.of_entity]
            if self.unlisted.apart is not None:
                own, entities, probability = self.unlisted.apart
                every[own, entities] = probability.cpu().numpy()
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


def join_answers(parts: Sequence[Answer]) -> Answer:
    """Answers one after another, each query's nodes ascending."""
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.offsets) for part in parts]))])
    nodes = np.concatenate([part.nodes for part in parts])
    attention = torch.cat([part.attention for part in parts])
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((nodes, query))
    prior = None
    if parts[0].prior is not None:
        prior = np.concatenate([part.prior for part in parts if part.prior is not None])[order]
    unlisted = parts[0].unlisted
    if unlisted is not None and len(parts) > 1:  # profiles are those of the batch, so the same in all parts
        rows = [part.unlisted.probability for part in parts if part.unlisted is not None]
        unlisted = Unlisted(unlisted.of_entity, torch.cat(rows), _joined_apart(parts))
    attention = attention[torch.from_numpy(order).to(attention.device)]
    return Answer(offsets, nodes[order], attention, unlisted, prior)


def _joined_apart(parts: Sequence[Answer]) -> Apart | None:
    found, first = [], 0
    for part in parts:
        if part.unlisted is not None and part.unlisted.apart is not None:
            query, entities, probability = part.unlisted.apart
            found.append((query + first, entities, probability))
        first += len(part.offsets) - 1
    if not found:
        return None
    queries, entities, probabilities = zip(*found, strict=True)
    return Apart(np.concatenate(queries), np.concatenate(entities), torch.cat(probabilities))
