"""How much memory a query can need at most, from its horizon and the graph, before it runs."""

import os

import numpy as np

from dpmpn.config import Horizon, ModelConfig
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.frontier import STRATEGIES

_FLOAT = 4
_INTEGERS_PER_EDGE = 64  # bytes of index arrays beside the values of an edge


def largest_scan(graph: KnowledgeGraph, horizon: Horizon) -> int:
    """The most edges one step of a query can sample: those of the nodes of highest degree, and self-loops."""
    pruning = STRATEGIES[horizon.strategy]
    degrees = np.diff(graph.offsets)
    if pruning.sampling:
        if horizon.max_sampling_per_relation is not None:
            degrees = _capped_degrees(graph, horizon.max_sampling_per_relation)
        degrees = np.minimum(degrees, horizon.max_sampling_per_node)
    n_from = graph.n_entities if pruning.attending_from == "all" else horizon.max_attending_from_per_step
    if n_from < len(degrees):
        degrees = np.partition(degrees, len(degrees) - n_from)[-n_from:]
    return int(degrees.sum()) + len(degrees)


def _capped_degrees(graph: KnowledgeGraph, per_relation: int) -> np.ndarray:
    """Out-edges of each node where no more than `per_relation` of one relation count."""
    is_first = np.ones(graph.n_edges, bool)  # of the edges of a node and a relation
    is_first[1:] = graph.relations[1:] != graph.relations[:-1]
    starts = graph.offsets[:-1]
    is_first[starts[starts < graph.n_edges]] = True
    first = np.flatnonzero(is_first)
    counts = np.minimum(np.diff(first, append=graph.n_edges), per_relation)
    sums = np.append(0, np.cumsum(counts))
    return np.diff(sums[np.searchsorted(first, graph.offsets)])


def bytes_per_query(graph: KnowledgeGraph, model: ModelConfig, horizon: Horizon, training: bool) -> int:
    """Upper bound of the memory of one query: a step's vectors, kept for the backward pass when training.

    Per edge: the message (n_dims) and both sides of the attention (4 n_dims_att). Per updated node: state,
    projection, hidden layer, change, new state and its gradient (6 n_dims).
    """
    edges = largest_scan(graph, horizon)
    attended = edges
    if STRATEGIES[horizon.strategy].attending_to != "all":
        attended = min(edges, horizon.max_attending_to_per_step)
    total = 0
    for step in range(model.n_steps_in_agnn):
        updated = min(edges + attended, 1 + (step + 1) * attended, graph.n_entities)
        values = edges * (model.n_dims + 4 * model.n_dims_att) + updated * 6 * model.n_dims
        needed = values * _FLOAT + edges * _INTEGERS_PER_EDGE
        total = total + needed if training else max(total, needed)
    return total


def strong_bytes_per_query(
    graph: KnowledgeGraph, model: ModelConfig, horizon: Horizon, training: bool
) -> int:
    """Upper bound of the memory of one query of the stronger model.

    Per node attended to: state before, sum and mean of messages, change, new state and score's layer, with gradients
    (19 n_dims). Per node attended from: what it sends, with its gradient (6 n_dims). Per relation: what it adds to a
    message, the layer before it and what the query makes of it, with gradients (20 n_dims). The readout has two layers
    of twice n_dims for each visited node, and the prior and its softmax some numbers for each kind of entity: there are
    no more than entities, and in training one more for each that loses a fact. What a batch makes once for each kind is
    not counted.
    """
    edges = largest_scan(graph, horizon)
    attended = min(edges, graph.n_entities)
    if STRATEGIES[horizon.strategy].attending_to != "all":
        attended = min(attended, horizon.max_attending_to_per_step)
    senders = min(horizon.max_attending_from_per_step, graph.n_entities)
    values = (attended * 19 + senders * 6 + (graph.n_relations + 1) * 20) * model.n_dims
    step = values * _FLOAT + edges * _INTEGERS_PER_EDGE
    visited = min(1 + model.n_steps_in_agnn * attended, graph.n_entities)
    readout = visited * 8 * model.n_dims * _FLOAT + (2 if training else 1) * graph.n_entities * 12 * _FLOAT
    return readout + step * (model.n_steps_in_agnn if training else 1)


def queries_within(
    budget: int, graph: KnowledgeGraph, model: ModelConfig, horizon: Horizon, training: bool
) -> int:
    """How many queries fit a budget of bytes together; at least one.

    Beside each query's own memory, what the IGNN makes for every distinct node they scan counts: embedding, its
    steps and what they feed, with gradients. Queries share it, and there are no more nodes than entities.
    """
    if model.model == "strong":
        return max(1, budget // strong_bytes_per_query(graph, model, horizon, training))
    query = bytes_per_query(graph, model, horizon, training)
    node = (6 + 4 * model.n_steps_in_ignn) * model.n_dims * _FLOAT
    scanned = largest_scan(graph, horizon) * model.n_steps_in_agnn  # by one query, at most
    if_each_scans_others = budget // (query + scanned * node)
    if_all_is_scanned = (budget - graph.n_entities * node) // query
    return max(1, if_each_scans_others, if_all_is_scanned)


def memory_budget(megabytes: int) -> int:
    """The budget in bytes; 0 stands for half of this machine's memory."""
    if megabytes:
        return megabytes * 2**20
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
