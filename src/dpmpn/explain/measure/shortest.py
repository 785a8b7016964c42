"""The shortest paths from a head to an answer, in a fixed order: what one might show without asking the model why."""

from collections.abc import Iterator

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.paths import Edge

_MAX_LOOKS = 20_000  # edges tried for one question; then there are as many paths as were found
_FAR = np.iinfo(np.int32).max


class ShortestPaths:
    """Finds simple paths of a graph in the order of their length, those of one length by relation and tail."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        order = np.argsort(graph.tails, kind="stable")
        self._senders = graph.edge_heads(order)  # by the tail of their edge
        counts = np.bincount(graph.tails, minlength=graph.n_entities)
        self._offsets = np.concatenate([[0], np.cumsum(counts)])

    def between(self, head: int, answer: int, longest: int) -> Iterator[tuple[Edge, ...]]:
        """The paths of at most `longest` edges, one after another."""
        distance = self.distances_to(answer, longest)
        search = _Search(self.graph, distance, answer)
        for length in range(max(int(distance[head]), 1), longest + 1):
            yield from search.continued((), head, {head}, length)

    def distances_to(self, answer: int, longest: int) -> np.ndarray:
        """The number of edges from each entity to the answer, where it is at most `longest`."""
        distance = np.full(self.graph.n_entities, _FAR, np.int32)
        distance[answer] = 0
        border = np.array([answer])
        for steps in range(1, longest + 1):
            sending = self._senders[_ranges(self._offsets[border], self._offsets[border + 1])]
            border = np.unique(sending[distance[sending] == _FAR])
            distance[border] = steps
        return distance


class _Search:
    """Continues beginnings of paths, as long as the answer is near enough."""

    def __init__(self, graph: KnowledgeGraph, distance: np.ndarray, answer: int) -> None:
        self._graph, self._distance, self._answer = graph, distance, answer
        self._looks = 0

    def continued(
        self, path: tuple[Edge, ...], node: int, visited: set[int], length: int
    ) -> Iterator[tuple[Edge, ...]]:
        """The paths that take `length` more edges from a node to the answer."""
        edges = slice(self._graph.offsets[node], self._graph.offsets[node + 1])
        tails = self._graph.tails[edges]
        near = np.flatnonzero((tails == self._answer) if length == 1 else (self._distance[tails] < length))
        for relation, tail in zip(
            self._graph.relations[edges][near].tolist(), tails[near].tolist(), strict=True
        ):
            self._looks += 1
            if self._looks > _MAX_LOOKS:
                return
            if tail in visited or (tail == self._answer) != (length == 1):
                continue
            longer = (*path, (node, relation, tail))
            if length == 1:
                yield longer
            else:
                yield from self.continued(longer, tail, visited | {tail}, length - 1)


def _ranges(starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """All numbers of several ranges, one range after another."""
    counts = stops - starts
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())
