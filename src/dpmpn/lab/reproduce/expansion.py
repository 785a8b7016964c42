"""How large subgraphs grow from a node: expanded fully, by the sampling strategies of Section 2, and by attention."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.statistics import both_directions
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import Frontier, Visited, attending_to, expand_frontier, next_frontier
from dpmpn.engine.settings import Horizon
from dpmpn.engine.trace import ReasoningTrace

Attended = tuple[np.ndarray, np.ndarray]
"""Nodes that joined the subgraphs of a batch in one step: their queries, and the entities."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The graph as the proposition sees it: each node's neighbours once, in both directions, itself excluded."""

    offsets: np.ndarray
    nodes: np.ndarray

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "Neighbours":
        """Leave out what is parallel."""
        offsets, tails = both_directions(graph)
        n_entities = graph.n_entities
        heads = np.repeat(np.arange(n_entities), np.diff(offsets))
        pairs = np.unique((heads * n_entities + tails)[heads != tails])
        heads, tails = np.divmod(pairs, n_entities)
        counts = np.bincount(heads, minlength=n_entities)
        return cls(np.concatenate([[0], np.cumsum(counts)]), tails.astype(np.int32))

    @property
    def degrees(self) -> np.ndarray:
        """deg(v) of every node."""
        return np.diff(self.offsets)

    def sizes_around(self, starts: np.ndarray, n_steps: int) -> np.ndarray:
        """|V_{G^t}| of full consecutive expansion from some nodes, for t from 0: nodes x (steps + 1)."""
        sizes: np.ndarray = _ball_sizes(self.offsets, self.nodes, starts, n_steps)
        return sizes


@njit(nogil=True, cache=True)
def _ball_sizes(offsets, nodes, starts, n_steps):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    sizes = np.empty((len(starts), n_steps + 1), np.int64)
    met, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    for row in range(len(starts)):
        met[starts[row]], queue[0] = row, starts[row]
        first, last = 0, 1
        sizes[row, 0] = 1
        for step in range(1, n_steps + 1):
            found = last
            for at in range(first, last):
                for edge in range(offsets[queue[at]], offsets[queue[at] + 1]):
                    node = nodes[edge]
                    if met[node] != row:
                        met[node] = row
                        queue[found] = node
                        found += 1
            first, last = last, found
            sizes[row, step] = found
    return sizes


def expansion_bound(d: int, step: int) -> int:
    """(d (d-1)^t - 2) / (d - 2), as the sum it is: 1 + d + d(d-1) + ... + d(d-1)^{t-1}, which d = 2 has, too."""
    return 1 + d * sum(int((d - 1) ** i) for i in range(step))


def expansion_probability(p: float, d: int, step: int) -> float:
    """p to the bound of the step before: no node until then may have more than d neighbours."""
    return float(p ** float(expansion_bound(d, step - 1)))


def sampled_steps(
    graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon, n_steps: int
) -> Iterator[Attended]:
    """What each step of a sampling strategy adds: the model's own steps without the model, which chooses nothing."""
    n = len(batch)
    # Which nodes were visited before decides nothing here but where the model finds their states.
    visited = Visited(np.arange(n + 1), batch.heads, np.arange(n), np.zeros(n, np.int64))
    frontier = Frontier.at_heads(batch.heads)
    for step in range(n_steps):
        scan = expand_frontier(graph, batch, horizon, frontier, visited, step)
        scores = np.ones(scan.n_slots, np.float32)
        attended = attending_to(scan, batch, horizon, scores, step)
        yield scan.slot_query[attended], scan.slot_node[attended]
        frontier = next_frontier(scan, batch, horizon, scores, attended, step)


def traced_steps(trace: ReasoningTrace) -> Iterator[Attended]:
    """What each step of a trace adds."""
    for step in trace.steps:
        query = np.repeat(np.arange(len(trace.heads)), np.diff(step.slot_offsets))
        yield query[step.attended_to], step.slot_node[step.attended_to]


def subgraph_sizes(
    heads: np.ndarray, targets: np.ndarray, steps: Iterable[Attended], n_entities: int
) -> tuple[np.ndarray, np.ndarray]:
    """|V_{G^t}| of each query for t from 0, (steps + 1) x queries, and whether G^T holds each target."""
    starts = np.arange(len(heads)) * n_entities  # (query, node) as one number
    members = starts + heads
    sizes = [np.ones(len(heads), np.int64)]
    for query, node in steps:
        members = np.union1d(members, starts[query] + node)
        sizes.append(np.bincount(members // n_entities, minlength=len(heads)))
    return np.array(sizes), np.isin(starts + targets, members)
