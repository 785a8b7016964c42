"""The softmax over all entities of a graph: visited ones have logits of their own, the others those of their kinds."""

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.nn import functional

from dpmpn.engine.targets import Targets
from dpmpn.models.strong.reached import Reached

_LEAST = 1e-30  # of a sum of exponentials, so that a graph without any other entity has a logarithm


def probabilities(reached: Reached) -> tuple[Tensor, Tensor]:
    """Of each visited node, and of an entity of each kind that was not visited (queries x kinds)."""
    total = _log_total(reached, reached.logits, _unvisited(reached))
    at = torch.from_numpy(reached.query)
    return (reached.logits - total[at]).exp(), (reached.prior - total[:, None]).exp()


def prior_of(reached: Reached) -> Tensor:
    """What each visited node had before any step: a softmax of the priors of all entities."""
    sizes = torch.from_numpy(reached.kinds.sizes).to(reached.prior)
    total = torch.logsumexp(reached.prior + sizes.log(), 1)  # no entity, no part of the sum
    of_kind = torch.from_numpy(reached.kinds.of_entity[reached.nodes])
    at = torch.from_numpy(reached.query)
    return (reached.prior[at, of_kind] - total[at]).exp()


def loss_of(reached: Reached, targets: Targets, n_targets: int) -> tuple[Tensor, int]:
    """Sum of -log p over the targets, divided by `n_targets`, and how many of them were visited.

    Other known answers of the question do not count as rivals.
    """
    n_entities = len(reached.kinds.of_entity)
    known = np.repeat(np.arange(len(targets)), np.diff(targets.known_offsets)) * n_entities + targets.known
    own = targets.query * n_entities + targets.entities
    answers = np.unique(np.concatenate([known, own]))
    query, entity = np.divmod(answers, n_entities)
    at = _places(reached.offsets, reached.nodes, query, entity)
    rivals = _unvisited(reached)
    np.subtract.at(rivals, (query[at < 0], reached.kinds.of_entity[entity[at < 0]]), 1.0)
    visited = reached.logits.index_fill(0, torch.from_numpy(at[at >= 0]), -torch.inf)
    rest = _log_total(reached, visited, rivals)
    found = at[np.searchsorted(answers, own)]
    logits = _logits_at(reached, targets.query, targets.entities, found)
    loss = functional.softplus(rest[torch.from_numpy(targets.query)] - logits).sum() / n_targets
    return loss, int((found >= 0).sum())


def _unvisited(reached: Reached) -> np.ndarray:
    """How many entities of each kind a query has not visited: queries x kinds."""
    counts = np.repeat(reached.kinds.sizes[None], len(reached.offsets) - 1, 0)
    np.subtract.at(counts, (reached.query, reached.kinds.of_entity[reached.nodes]), 1.0)
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
    """Logits of entities: their own where they were visited (`found`), else those of their kinds."""
    seen = torch.from_numpy(found >= 0)
    own = reached.logits.index_select(0, torch.from_numpy(np.maximum(found, 0)))
    place = torch.from_numpy(query * reached.prior.shape[1] + reached.kinds.of_entity[entities])
    return torch.where(seen, own, reached.prior.reshape(-1).index_select(0, place))


@njit(nogil=True, cache=True)
def _places(offsets, nodes, query, entity):
    """Place of each (query, entity), sorted by both, among the visited nodes; -1 if it was not visited."""
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
