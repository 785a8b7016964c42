"""How far apart two entities are, in facts, and the shortest paths between them, by search on the graph's arrays."""

from collections.abc import Iterator
from itertools import count

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.paths import EdgeIds

FARTHEST = 100  # facts: nobody learns more from a greater distance, and a chain of a million would take long
NOT_CONNECTED = -1
TOO_FAR = np.iinfo(np.int32).max
_MAX_LOOKS = 20_000  # edges tried for one question; then there are as many shortest paths as were found


class Levels:
    """The entities around one, by their distance; `towards` counts the edges that lead to it instead of from it."""

    def __init__(self, graph: KnowledgeGraph, start: int, towards: bool) -> None:
        self._graph = graph
        # Where every edge has its inverse, what leads to an entity is found among its own edges.
        self._through_all = towards and graph.n_forward == graph.n_relations
        self.level, self.depth = np.array([start]), 0
        self.met = np.zeros(graph.n_entities, bool)
        self.met[start] = True

    @property
    def cost(self) -> int:
        """Edges to look at for the next level."""
        if self._through_all:
            return self._graph.n_edges
        return int(np.sum(self._graph.degree(self.level), initial=0))

    def advance(self) -> np.ndarray:
        """The entities one fact farther away, ascending; none when all that can be met were."""
        next_to = self._heads() if self._through_all else tails_of(self._graph, self.level)
        self.level = np.unique(next_to[~self.met[next_to]])
        self.met[self.level] = True
        self.depth += 1
        return self.level

    def _heads(self) -> np.ndarray:
        in_level = np.zeros(self._graph.n_entities, bool)
        in_level[self.level] = True
        return self._graph.edge_heads(np.flatnonzero(in_level[self._graph.tails]))


def tails_of(graph: KnowledgeGraph, entities: np.ndarray) -> np.ndarray:
    """Where the edges of some entities lead, one for each edge."""
    counts = np.asarray(graph.degree(entities))
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(graph.tails[np.repeat(graph.offsets[entities], counts) + within])


def distances_to(graph: KnowledgeGraph, entity: int, farthest: int) -> np.ndarray:
    """How many facts lead from each entity to one, TOO_FAR where more than `farthest` are needed."""
    distances = np.full(graph.n_entities, TOO_FAR, np.int32)
    distances[entity] = 0
    levels = Levels(graph, entity, towards=True)
    for distance in range(1, farthest + 1):
        distances[levels.advance()] = distance
    return distances


def facts_between(graph: KnowledgeGraph, head: int, tail: int) -> int | None:
    """The fewest facts that lead from head to tail, NOT_CONNECTED if none do, None if more than FARTHEST are needed.

    The search goes on from the side that is cheaper, so that it ends soon where either of them has few facts around.
    """
    sides = [Levels(graph, head, towards=False), Levels(graph, tail, towards=True)]
    if head == tail:
        return 0
    while sides[0].depth + sides[1].depth < FARTHEST:
        cheaper, other = sorted(sides, key=lambda side: side.cost)
        level = cheaper.advance()
        if not len(level):
            return NOT_CONNECTED
        if other.met[level].any():
            return cheaper.depth + other.depth
    return None


def shortest_paths(
    graph: KnowledgeGraph, head: int, answer: int, longest: int
) -> Iterator[tuple[EdgeIds, ...]]:
    """Simple paths of at most `longest` edges, in the order of their length, those of one length by relation and tail.

    They are what one might show without asking the model why.
    """
    distance, looks = distances_to(graph, answer, longest), count(1)

    def continued(
        path: tuple[EdgeIds, ...], node: int, visited: set[int], length: int
    ) -> Iterator[tuple[EdgeIds, ...]]:
        """The paths that take `length` more edges from a node to the answer."""
        edges = slice(graph.offsets[node], graph.offsets[node + 1])
        tails = graph.tails[edges]
        near = np.flatnonzero((tails == answer) if length == 1 else (distance[tails] < length))
        for relation, tail in zip(graph.relations[edges][near].tolist(), tails[near].tolist(), strict=True):
            if next(looks) > _MAX_LOOKS:
                return
            if tail in visited or (tail == answer) != (length == 1):
                continue
            longer = (*path, (node, relation, tail))
            if length == 1:
                yield longer
            else:
                yield from continued(longer, tail, visited | {tail}, length - 1)

    for length in range(max(int(distance[head]), 1), longest + 1):
        yield from continued((), head, {head}, length)
