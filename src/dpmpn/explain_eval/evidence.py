"""Evidence for an answer, as facts: of the explanation, drawn at random from what the model saw, of shortest paths."""

from collections.abc import Iterable
from itertools import islice

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.paths import Edge, Walk, fact_of, strongest_walks
from dpmpn.explain.subgraph import Subgraph
from dpmpn.explain_eval.shortest import ShortestPaths

KINDS = ("explanation", "random", "shortest")
FEW_PATHS = 5  # of HΔR@5


class Evidence:
    """The facts that each kind of evidence has for one explained answer; facts are ids in the file's direction."""

    def __init__(
        self,
        explanation: ExplanationData,
        shortest: ShortestPaths,
        most_paths: int,
        enough: float,
        random: np.random.Generator,
    ) -> None:
        self._graph, self._shortest = explanation.graph, shortest
        flow = self._flow = explanation.flow
        self._ends = int(flow.query.nodes[flow.query.head]), int(flow.query.nodes[flow.answer])
        self._longest = explanation.n_steps
        self.walks: list[Walk] = strongest_walks(flow, most_paths, enough)
        self.full = fact_ids(self._graph, explanation.full)
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
        return self._shortest.between(*self._ends, self._longest)

    def _of_paths(self, paths: Iterable[tuple[Edge, ...]], most: int | None = None) -> tuple[Edge, ...]:
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


def fact_ids(graph: KnowledgeGraph, subgraph: Subgraph) -> list[Edge]:
    """The facts of a subgraph by their ids, each once."""
    names = graph.entities.ids(pl.Series([node.name for node in subgraph.nodes], dtype=pl.String))
    relations = {edge.relation: 0 for edge in subgraph.edges}
    for name in relations:
        relations[name] = graph.relation_names.id(name, "relation")
    facts: dict[Edge, None] = {}
    for edge in subgraph.edges:
        ends = int(names[edge.source]), int(names[edge.target])
        head, tail = reversed(ends) if edge.inverse else ends
        facts[head, relations[edge.relation], tail] = None
    return list(facts)
