"""How many queries fit into memory together, from their horizon and the graph, before any of them runs."""

import os

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.settings import STRATEGIES, Horizon, ModelSettings

FLOAT = 4
INTEGERS_PER_EDGE = 64  # bytes of index arrays beside the values of an edge


def largest_scan(graph: KnowledgeGraph, horizon: Horizon) -> int:
    """The most edges one step of a query can sample: those of the nodes of highest degree, and self-loops."""
    pruning = STRATEGIES[horizon.strategy]
    degrees = np.diff(graph.offsets)
    if pruning.sampling:
        if horizon.max_sampling_per_relation is not None:
            capped = np.minimum(graph.runs.lengths, horizon.max_sampling_per_relation)
            degrees = np.diff(np.append(0, np.cumsum(capped))[graph.runs.offsets])
        degrees = np.minimum(degrees, horizon.max_sampling_per_node)
    n_from = graph.n_entities if pruning.attending_from == "all" else horizon.max_attending_from_per_step
    if n_from < len(degrees):
        degrees = np.partition(degrees, len(degrees) - n_from)[-n_from:]
    return int(degrees.sum()) + len(degrees)


def attended_to(scanned: int, horizon: Horizon) -> int:
    """Of so many scanned nodes, the most that one step can attend to."""
    if STRATEGIES[horizon.strategy].attending_to == "all":
        return scanned
    return min(scanned, horizon.max_attending_to_per_step)


def queries_within(
    budget: int, graph: KnowledgeGraph, settings: ModelSettings, horizon: Horizon, training: bool
) -> int:
    """How many queries fit a budget of bytes together; at least one.

    Nodes that queries share are no more than all queries scan, and no more than entities.
    """
    query, node = settings.memory_need(graph, horizon, training)
    scanned = largest_scan(graph, horizon) * settings.n_steps_in_agnn  # by one query, at most
    if_each_scans_others = budget // (query + scanned * node)
    if_all_is_scanned = (budget - graph.n_entities * node) // query
    return max(1, if_each_scans_others, if_all_is_scanned)


def memory_budget(megabytes: int) -> int:
    """The budget in bytes; 0 stands for half of this machine's memory."""
    if megabytes:
        return megabytes * 2**20
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
