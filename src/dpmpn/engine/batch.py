"""A batch of queries: what is asked, what the batch must not see of the graph, and the edges the IGNN runs on."""

from dataclasses import dataclass, replace

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.kernels import Ints, kernel
from dpmpn.ops.permutation import combine, sample

NO_EDGES = np.empty(0, np.int64)
_ASKING = 2**40  # apart from every batch number of training


@dataclass(frozen=True, eq=False)
class SampledEdges:
    """Edges of one IGNN step, sorted by tail."""

    heads: np.ndarray  # int32
    relations: np.ndarray  # int64
    tails: np.ndarray  # int32, ascending

    def without(self, graph: KnowledgeGraph, removed: np.ndarray) -> "SampledEdges":
        """Those that are none of the removed edges, whose ids ascend."""
        kept = ~np.isin(graph.find_edges(self.heads, self.relations, self.tails), removed)
        return SampledEdges(self.heads[kept], self.relations[kept], self.tails[kept])


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Queries <head, relation, ?>, one row each; nothing here grows with the number of entities.

    But for `removed`, where training hides facts from all of the graph.
    """

    heads: np.ndarray  # int32
    relations: np.ndarray  # int64
    keys: np.ndarray  # uint64: what sampling for the query is keyed by
    removed: np.ndarray  # int64: ids of edges that queries may not use, ascending for each query
    ignn_edges: tuple[SampledEdges, ...]  # one per IGNN step
    # int64, queries + 1: which of the removed edges are each query's; without it all of them are hidden from all.
    removed_offsets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.heads)

    def part(self, rows: slice) -> "QueryBatch":
        """Some of the queries, which are neighbours; edges sampled stay those of the whole batch."""
        removed, offsets = self.removed, None
        if self.removed_offsets is not None:
            start, stop, _ = rows.indices(len(self))
            own = self.removed_offsets[start : stop + 1]
            removed, offsets = removed[own[0] : own[-1]], own - own[0]
        return QueryBatch(
            self.heads[rows], self.relations[rows], self.keys[rows], removed, self.ignn_edges, offsets
        )

    def alone(self, graph: KnowledgeGraph, query: int) -> "QueryBatch":
        """One of the queries; of the sampled edges, those that are removed for it are missing, and no others come."""
        one = self.part(slice(query, query + 1))
        edges = tuple(step.without(graph, one.removed) for step in one.ignn_edges)
        return replace(one, ignn_edges=edges, removed_offsets=None)


def sample_ignn_edges(
    graph: KnowledgeGraph, removed: np.ndarray, n_steps: int, max_sampling_per_step: int, key: int | np.uint64
) -> tuple[SampledEdges, ...]:
    """Edges drawn uniformly without replacement from the graph without the removed ones, afresh for each step."""
    available = graph.n_edges - len(removed)
    steps = []
    for step in range(n_steps):
        count = min(available, max_sampling_per_step)
        chosen = sample(count, available, np.uint64(combine(np.uint64(key), step))) if count else NO_EDGES
        # Step over the removed edges: position p is the edge p + (number of removed edges up to it).
        edges = chosen + np.searchsorted(removed - np.arange(len(removed)), chosen, side="right")
        by_tail = np.argsort(graph.tails[edges], kind="stable")
        edges = edges[by_tail]
        steps.append(
            SampledEdges(
                graph.edge_heads(edges).astype(np.int32),
                graph.relations[edges].astype(np.int64),
                np.asarray(graph.tails[edges]),
            )
        )
    return tuple(steps)


def query_keys(seed: int, heads: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """Sampling keys for asking: the same question draws the same edges, alone or in any batch."""
    base = np.uint64(combine(np.uint64(seed), _ASKING))
    return np.array(
        [combine(np.uint64(combine(base, h)), r) for h, r in zip(heads, relations, strict=True)], np.uint64
    )


def asking_edges(
    graph: KnowledgeGraph, removed: np.ndarray, seed: int, n_steps: int, max_sampling_per_step: int
) -> tuple[SampledEdges, ...]:
    """The IGNN's edges for asking: of the graph without the removed ones, keyed by the seed alone."""
    return sample_ignn_edges(
        graph, removed, n_steps, max_sampling_per_step, combine(np.uint64(seed), _ASKING + 1)
    )


@kernel
def _pair_edges(offsets: Ints, relations: Ints, tails: Ints, heads: Ints, ends: Ints) -> Ints:
    """Ids of all edges from each head to its end, found by binary search within each relation of the head."""
    found = []
    for i in range(len(heads)):
        at, stop = offsets[heads[i]], offsets[heads[i] + 1]
        while at < stop:
            relation = relations[at]
            last = at + np.searchsorted(relations[at:stop], relation, side="right")
            edge = at + np.searchsorted(tails[at:last], ends[i])
            if edge < last and tails[edge] == ends[i]:
                found.append(edge)
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
