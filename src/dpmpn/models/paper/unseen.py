"""The state of an entity the model was not trained on, once it has edges.

An entity is unseen if the graph of the training has no edge of it: it is new, or its row of the table is still what
training began with. When it gets edges, its row becomes its relation mean: for each of its edges, the mean row of the
entities that had an edge of that relation in training; and of these the mean. docs/new-facts.md compares it to others.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.trace import unseen_entities

_ENOUGH = 10_000  # entities for a mean; more would only cost time


def extended_table(table: Tensor, trained: KnowledgeGraph, graph: KnowledgeGraph) -> Tensor:
    """The table with a row for every entity of a grown graph; all that does not change is shared."""
    unseen = unseen_entities(trained, graph)
    # A row that no training moved stays as it is until its entity has an edge.
    unseen[: trained.n_entities] &= np.diff(graph.offsets)[: trained.n_entities] > 0
    entities = np.flatnonzero(unseen)
    if not len(entities):
        return table
    extended = table.new_empty(graph.n_entities, table.shape[1])
    extended[: len(table)] = table
    extended[torch.from_numpy(entities)] = _states(table, trained, graph, entities)
    return extended


def _states(table: Tensor, trained: KnowledgeGraph, graph: KnowledgeGraph, entities: np.ndarray) -> Tensor:
    """Relation means of unseen entities; the mean of all trained rows for those without an edge."""
    seen = np.flatnonzero(~unseen_entities(trained, trained))
    everyone = _means(table, _thinned(seen), np.zeros(1, np.int64))  # 1 x dims
    by_relation = _relation_means(table, trained, everyone)  # relations x dims
    counts = np.diff(graph.offsets)[entities]
    starts = np.cumsum(counts) - counts
    edges = np.arange(counts.sum()) + np.repeat(graph.offsets[entities] - starts, counts)
    states = _means(by_relation, graph.relations[edges], starts)  # entities x dims
    return torch.where(torch.from_numpy(counts > 0)[:, None].to(table.device), states, everyone)


def _relation_means(table: Tensor, trained: KnowledgeGraph, everyone: Tensor) -> Tensor:
    """Mean row of the entities that have an edge of each relation; of all entities where none has."""
    runs = trained.runs
    of_relation = np.argsort(runs.relations, kind="stable")
    ends = np.cumsum(np.bincount(runs.relations, minlength=trained.n_relations))
    chosen = [_thinned(part) for part in np.split(of_relation, ends[:-1])]
    counts = np.array([len(part) for part in chosen])
    entities = trained.edge_heads(runs.starts[np.concatenate(chosen)])
    means = _means(table, entities, np.cumsum(counts) - counts)
    return torch.where(torch.from_numpy(counts > 0)[:, None].to(table.device), means, everyone)


def _thinned(ids: np.ndarray) -> np.ndarray:
    """All ids, or enough of them at even distances."""
    return ids if len(ids) <= _ENOUGH else ids[np.arange(_ENOUGH) * len(ids) // _ENOUGH]


def _means(table: Tensor, rows: np.ndarray, starts: np.ndarray) -> Tensor:
    """Mean of the named rows of each group, groups one after another; zeros for an empty one."""
    index, offsets = (torch.from_numpy(np.asarray(x, np.int64)).to(table.device) for x in (rows, starts))
    return functional.embedding_bag(index, table, offsets, mode="mean")
