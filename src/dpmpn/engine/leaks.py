"""Edges that state what a batch asks, and that it must therefore not see."""

import numpy as np
from numba import njit

from dpmpn.data.graph import KnowledgeGraph


@njit(nogil=True, cache=True)
def _pair_edges(offsets, relations, tails, heads, ends):
    """Ids of all edges from each head to its end, found by binary search within each relation of the head."""
    found = []
    for i in range(len(heads)):
        at, stop = offsets[heads[i]], offsets[heads[i] + 1]
        while at < stop:
            relation = relations[at]
            last = at + np.searchsorted(relations[at:stop], relation, side="right")
            place = at + np.searchsorted(tails[at:last], ends[i])
            if place < last and tails[place] == ends[i]:
                found.append(place)
            at = last
    return np.array(found, np.int64)


def removed_edges(graph: KnowledgeGraph, triples: np.ndarray, leak_removal: str) -> np.ndarray:
    """Ids, ascending, of the edges a batch must not see.

    "triples": the batch's triples and their inverses. "pairs": every edge between its head-tail pairs.
    """
    heads, relations, tails = triples[:, 0], triples[:, 1], triples[:, 2]
    if leak_removal == "pairs":
        args = (graph.offsets, graph.relations, graph.tails)
        edges = np.concatenate([_pair_edges(*args, heads, tails), _pair_edges(*args, tails, heads)])
    else:
        edges = graph.find_edges(heads, relations, tails)
        inverse = graph.inverse[relations]
        has_inverse = inverse >= 0
        back = graph.find_edges(tails[has_inverse], inverse[has_inverse], heads[has_inverse])
        edges = np.concatenate([edges, back])
    return np.unique(edges[edges >= 0])
