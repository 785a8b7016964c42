"""The softmax over all entities: visited ones have logits of their own, the others those of their profiles."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.engine.learning import Targets
from dpmpn.kernels import Ints, kernel
from dpmpn.models.strong.profiles import Profiles

_LEAST = 1e-30  # of a sum of exponentials, so that a graph without any other entity has a logarithm


@dataclass(frozen=True, eq=False)
class Reached:
    """What the steps of a batch came to: logits of the visited nodes, and of each profile for all others."""

    offsets: np.ndarray  # queries + 1
    query: np.ndarray  # visited nodes: their query
    nodes: np.ndarray  # int32, and entity
    logits: Tensor  # visited nodes
    profiles: Profiles
    prior: Tensor  # queries x profiles: logits of entities that were not visited


def probabilities(reached: Reached) -> tuple[Tensor, Tensor]:
    """Of each visited node, and of an entity of each profile that was not visited (queries x profiles)."""
    total = _log_total(reached, reached.logits, _unvisited(reached))
    at = torch.from_numpy(reached.query)
    return (reached.logits - total[at]).exp(), (reached.prior - total[:, None]).exp()


def prior_of(reached: Reached) -> Tensor:
    """What each visited node had before any step: a softmax of the priors of all entities."""
    sizes = torch.from_numpy(reached.profiles.sizes).to(reached.prior)
    total = torch.logsumexp(reached.prior + sizes.log(), 1)  # no entity, no part of the sum
    of_profile = torch.from_numpy(reached.profiles.of(reached.query, reached.nodes))
    at = torch.from_numpy(reached.query)
    return (reached.prior[at, of_profile] - total[at]).exp()


def loss_of(reached: Reached, targets: Targets) -> tuple[Tensor, int]:
    """Sum of -log p over the targets, and how many of them were visited.

    Other known answers of the question do not count as rivals.
    """
    n_entities = len(reached.profiles.of_entity)
    known = np.repeat(np.arange(len(targets)), np.diff(targets.known_offsets)) * n_entities + targets.known
    own = targets.query * n_entities + targets.entities
    answers = np.unique(np.concatenate([known, own]))
    query, entity = np.divmod(answers, n_entities)
    at = _indices(reached.offsets, reached.nodes, query, entity)
    rivals = _unvisited(reached)
    np.subtract.at(rivals, (query[at < 0], reached.profiles.of(query[at < 0], entity[at < 0])), 1.0)
    visited = reached.logits.index_fill(0, torch.from_numpy(at[at >= 0]), -torch.inf)
    rest = _log_total(reached, visited, rivals)
    found = at[np.searchsorted(answers, own)]
    logits = _logits_at(reached, targets.query, targets.entities, found)
    loss = functional.softplus(rest[torch.from_numpy(targets.query)] - logits).sum()
    return loss, int((found >= 0).sum())


def _unvisited(reached: Reached) -> np.ndarray:
    """How many entities of each profile a query has not visited: queries x profiles."""
    sizes = reached.profiles.sizes
    counts = np.repeat(sizes[None], len(reached.offsets) - 1, 0) if sizes.ndim == 1 else sizes.copy()
    np.subtract.at(counts, (reached.query, reached.profiles.of(reached.query, reached.nodes)), 1.0)
    return counts


def _log_total(reached: Reached, visited: Tensor, counts: np.ndarray) -> Tensor:
    """For each query the logarithm of the sum of exp(logit) over visited nodes and counted others."""
    at, number = torch.from_numpy(reached.query), torch.from_numpy(counts).to(visited)
    prior = reached.prior.masked_fill(number <= 0, -torch.inf)
    own = np.maximum.reduceat(visited.detach().numpy(), reached.offsets[:-1])  # every query visits its head
    largest = torch.maximum(prior.detach().amax(1), torch.from_numpy(own))
    largest = largest.masked_fill(largest.isinf(), 0.0)  # where no entity is left
    others = (number * (prior - largest[:, None]).exp()).sum(1)
    total = others.index_add(0, at, (visited - largest[at]).exp())
    return total.clamp(min=_LEAST).log() + largest


def _logits_at(reached: Reached, query: np.ndarray, entities: np.ndarray, found: np.ndarray) -> Tensor:
    """Logits of entities: their own where they were visited (`found`), else those of their profiles."""
    seen = torch.from_numpy(found >= 0)
    own = reached.logits.index_select(0, torch.from_numpy(np.maximum(found, 0)))
    index = torch.from_numpy(query * reached.prior.shape[1] + reached.profiles.of(query, entities))
    return torch.where(seen, own, reached.prior.reshape(-1).index_select(0, index))


@kernel
def _indices(offsets: Ints, nodes: Ints, query: Ints, entity: Ints) -> Ints:
    """Index of each (query, entity), sorted by both, among the visited nodes; -1 if it was not visited."""
    at = np.full(len(query), -1, np.int64)
    start = 0
    while start < len(query):
        q, stop = query[start], start
        while stop < len(query) and query[stop] == q:
            stop += 1
        wanted = entity[start:stop]
        for i in range(offsets[q], offsets[q + 1]):
            j = np.searchsorted(wanted, nodes[i])
            if j < len(wanted) and wanted[j] == nodes[i]:
                at[start + j] = i
        start = stop
    return at
