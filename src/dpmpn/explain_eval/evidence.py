"""Evidence for an answer, as facts: of the explanation, drawn at random from what the model saw, of shortest paths."""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.distance import distances_to
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.paths import Edge, Walk, fact_of, strongest_walks
from dpmpn.explain.subgraph import full_edges

KINDS = ("explanation", "random", "shortest")
FEW_PATHS = 5  # of HΔR@5
_MAX_LOOKS = 20_000  # edges tried for one question; then there are as many shortest paths as were found


class Evidence:
    """The facts that each kind of evidence has for one explained answer; facts are ids in the file's direction."""

    def __init__(
        self, explanation: ExplanationData, most_paths: int, enough: float, random: np.random.Generator
    ) -> None:
        self._graph = explanation.graph
        flow = self._flow = explanation.flow
        self._ends = int(flow.query.nodes[flow.query.head]), int(flow.query.nodes[flow.answer])
        self._longest = explanation.n_steps
        self.walks: list[Walk] = strongest_walks(flow, most_paths, enough)
        _, full = full_edges(flow, self._graph, explanation.horizon.max_attending_from_per_step)
        edges = flow.query.nodes[full.head], full.relation, flow.query.nodes[full.tail]
        self.full = self._of_paths([zip(*(column.tolist() for column in edges), strict=True)])
        self._shuffled = [self.full[i] for i in random.permutation(len(self.full))]

    def facts(self, kind: str, paths: int | None = None) -> tuple[Edge, ...]:
        """As many facts of a kind as the explanation has: of all its paths, or of the strongest ones alone."""
        explained = self._of_paths(walk.edges for walk in self.walks[:paths])
        if kind == "explanation":
            return explained
        if kind == "random":
            return tuple(self._shuffled[: len(explained)])
        return self._of_paths(self._shortest_paths(), len(explained))

    def few_paths(self, kind: str) -> tuple[Edge, ...]:
        """The facts of the five strongest or the five shortest paths, or as many random facts as the strongest have.

        There are five where attention came along so many, also if fewer brought enough for an explanation.
        """
        if kind == "shortest":
            return self._of_paths(islice(self._shortest_paths(), FEW_PATHS))
        strongest = self._of_paths(walk.edges for walk in strongest_walks(self._flow, FEW_PATHS))
        return strongest if kind == "explanation" else tuple(self._shuffled[: len(strongest)])

    def _shortest_paths(self) -> Iterable[tuple[Edge, ...]]:
        return shortest_paths(self._graph, *self._ends, self._longest)

    def _of_paths(self, paths: Iterable[Iterable[Edge]], most: int | None = None) -> tuple[Edge, ...]:
        """The facts of paths in their order, each once."""
        facts: dict[Edge, None] = {}
        if most == 0:
            return ()
        for path in paths:
            for edge in path:
                facts[fact_of(self._graph, edge)] = None
                if len(facts) == most:
                    return tuple(facts)
        return tuple(facts)


def shortest_paths(graph: KnowledgeGraph, head: int, answer: int, longest: int) -> Iterator[tuple[Edge, ...]]:
    """Simple paths of at most `longest` edges, in the order of their length, those of one length by relation and tail.

    They are what one might show without asking the model why.
    """
    distance = distances_to(graph, answer, longest)
    search = _Search(graph, distance, answer)
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
