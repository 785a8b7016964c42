"""The shortest paths from a head to an answer, in a fixed order: what one might show without asking the model why."""

from collections.abc import Iterator

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.distance import distances_to
from dpmpn.explain.paths import Edge

_MAX_LOOKS = 20_000  # edges tried for one question; then there are as many paths as were found


class ShortestPaths:
    """Finds simple paths of a graph in the order of their length, those of one length by relation and tail."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph

    def between(self, head: int, answer: int, longest: int) -> Iterator[tuple[Edge, ...]]:
        """The paths of at most `longest` edges, one after another."""
        distance = distances_to(self.graph, answer, longest)
        search = _Search(self.graph, distance, answer)
        for length in range(max(int(distance[head]), 1), longest + 1):
            yield from search.continued((), head, {head}, length)


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
