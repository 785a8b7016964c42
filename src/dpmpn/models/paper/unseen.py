"""Entities the network was not trained on: the state they get, and how much of an answer depends on them.

An entity is unseen if the graph of the training has no edge of it: it is new, or its row of the table is still what
training began with. When it gets edges, its row becomes its relation mean: for each of its edges, the mean row of the
entities that had an edge of that relation in training; and of these the mean. docs/new-facts.md compares it to others.
A network whose table has no rows knows relations alone: no entity is more or less seen than another.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.models.paper.network import AnyNetwork, Network

_ENOUGH = 10_000  # entities for a mean; more would only cost time


def unseen_entities(trained: KnowledgeGraph, graph: KnowledgeGraph) -> np.ndarray:
    """Which entities of a grown graph have no edge in the graph of the training."""
    unseen = np.ones(graph.n_entities, bool)
    unseen[np.flatnonzero(np.diff(trained.offsets))] = False
    unseen[trained.tails] = False  # where relations have no inverses, tails have no edge of their own
    return unseen


def extended_network(network: AnyNetwork, trained: KnowledgeGraph, graph: KnowledgeGraph) -> AnyNetwork:
    """The network with a row for every entity of a grown graph; all that does not change is shared."""
    if not isinstance(network, Network):
        return network
    extended = Network.__new__(Network)
    nn.Module.__init__(extended)
    extended.config = network.config
    extended.entities = nn.Parameter(_extended_table(network.entities.detach(), trained, graph), False)
    extended.relations = network.relations
    extended.ignn, extended.agnn, extended.attention = network.ignn, network.agnn, network.attention
    return extended


def _extended_table(table: Tensor, trained: KnowledgeGraph, graph: KnowledgeGraph) -> Tensor:
    unseen = unseen_entities(trained, graph)
    unseen[: trained.n_entities] &= (
        np.diff(graph.offsets)[: trained.n_entities] > 0
    )  # the rest stays as it is
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
    # Edges are sorted by head and relation: the first of each pair stands for it.
    first = np.ones(trained.n_edges, bool)
    first[1:] = trained.relations[1:] != trained.relations[:-1]
    first[trained.offsets[:-1][np.diff(trained.offsets) > 0]] = True
    edges = np.flatnonzero(first)
    edges = edges[np.argsort(trained.relations[edges], kind="stable")]
    ends = np.cumsum(np.bincount(trained.relations[edges], minlength=trained.n_relations))
    chosen = [_thinned(part) for part in np.split(edges, ends[:-1])]
    counts = np.array([len(part) for part in chosen])
    means = _means(table, trained.edge_heads(np.concatenate(chosen)), np.cumsum(counts) - counts)
    return torch.where(torch.from_numpy(counts > 0)[:, None].to(table.device), means, everyone)


def _thinned(ids: np.ndarray) -> np.ndarray:
    """All ids, or enough of them at even distances."""
    return ids if len(ids) <= _ENOUGH else ids[np.arange(_ENOUGH) * len(ids) // _ENOUGH]


def _means(table: Tensor, rows: np.ndarray, starts: np.ndarray) -> Tensor:
    """Mean of the named rows of each group, groups one after another; zeros for an empty one."""
    index, offsets = (torch.from_numpy(np.asarray(x, np.int64)).to(table.device) for x in (rows, starts))
    return functional.embedding_bag(index, table, offsets, mode="mean")


def through_unseen(answer: Answer, trace: ReasoningTrace, unseen: np.ndarray) -> np.ndarray:
    """The part of each answer's attention that came through unseen entities; 1 if the answer or its head is one.

    Of a node's attention a^{t+1} the part sum(flow * part of the sender) / a^{t+1} came that way; an unseen
    sender's part is 1.
    """
    n_entities = len(unseen)
    keys = np.arange(len(trace.heads)) * n_entities + trace.heads  # (query, node) as one number, ascending
    parts = unseen[trace.heads].astype(np.float64)
    for step in trace.steps:
        senders = parts[np.searchsorted(keys, step.from_query * n_entities + step.from_node)]
        flow = step.flow
        through = flow * np.repeat(senders, np.diff(step.edge_offsets))
        whole, part = (np.bincount(step.edge_slot, x, len(step.slot_node)) for x in (flow, through))
        parts = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
        parts[unseen[step.slot_node]] = 1.0
        query = np.repeat(np.arange(len(trace.heads)), np.diff(step.slot_offsets))
        keys = query * n_entities + step.slot_node
        order = np.argsort(keys)
        keys, parts = keys[order], parts[order]
    query = np.repeat(np.arange(len(trace.heads)), np.diff(answer.offsets))
    return np.minimum(parts[np.searchsorted(keys, query * n_entities + answer.nodes)], 1.0)
