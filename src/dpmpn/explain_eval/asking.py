"""Asks one question again on a changed graph: without some facts, or with nothing but them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch, SampledEdges
from dpmpn.engine.engine import Engine
from dpmpn.explain.paths import Edge


@dataclass(frozen=True)
class Outcome:
    """What became of an answer when the question was asked."""

    probability: float
    rank: float  # among all entities, ties at their mean; the last where it has no probability


def outcome(probabilities: np.ndarray, answer: int) -> Outcome:
    """The outcome for an answer, from the probabilities of all entities."""
    own = probabilities[answer]
    if own == 0:
        return Outcome(0.0, float(len(probabilities)))
    better, tied = np.sum(probabilities > own), np.sum(probabilities == own)
    return Outcome(float(own), float(better + (tied + 1) / 2))


class ChangedGraphs:
    """Asks on changes of one engine's graph; the network stays as it is."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.graph = engine, engine.graph
        drawn = engine.asking_batch(np.zeros(0, np.int32), np.zeros(0, np.int64)).ignn_edges
        self._drawn = [
            (edges, self.graph.find_edges(edges.heads, edges.relations, edges.tails)) for edges in drawn
        ]

    def without(self, head: int, relation: int, answer: int, facts: Iterable[Edge]) -> Outcome:
        """Ask on the graph without some facts.

        The IGNN keeps the edges it drew, but for those of the facts: so the difference is the facts' and not that of
        another draw.
        """
        removed = edges_of(self.graph, facts)
        batch = self.engine.asking_batch(np.array([head]), np.array([relation]))
        kept = tuple(_kept(edges, ~np.isin(ids, removed)) for edges, ids in self._drawn)
        return self._asked(self.engine, replace(batch, removed=removed, ignn_edges=kept), answer)

    def alone(self, head: int, relation: int, answer: int, facts: Iterable[Edge]) -> Outcome:
        """Ask on the graph of these facts and no others."""
        graph = only_edges(self.graph, edges_of(self.graph, facts))
        engine = Engine(self.engine.network, graph, self.engine.config)
        return self._asked(engine, engine.asking_batch(np.array([head]), np.array([relation])), answer)

    def _asked(self, engine: Engine, batch: QueryBatch, answer: int) -> Outcome:
        return outcome(engine.answer(batch).of_all(self.graph.n_entities)[0], answer)


def edges_at(graph: KnowledgeGraph, entity: int) -> list[Edge]:
    """All edges that lead away from an entity or to it."""
    away = np.arange(*graph.offsets[entity : entity + 2])
    edges = np.union1d(away, np.flatnonzero(graph.tails == entity))
    columns = graph.edge_heads(edges), graph.relations[edges], graph.tails[edges]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def edges_of(graph: KnowledgeGraph, facts: Iterable[Edge]) -> np.ndarray:
    """Ids of the edges of facts, those of the inverse relations too, ascending."""
    ids = np.array(list(facts), np.int64).reshape(-1, 3)
    backward = np.stack([ids[:, 2], graph.inverse[ids[:, 1]], ids[:, 0]], 1)
    edges = np.concatenate([ids, backward[backward[:, 1] >= 0]])
    found = graph.find_edges(*edges.T) if len(edges) else np.empty(0, np.int64)
    return np.unique(found[found >= 0])


def only_edges(graph: KnowledgeGraph, edges: np.ndarray) -> KnowledgeGraph:
    """The graph of some of the edges, with all its entities and relations."""
    per_head = np.bincount(graph.edge_heads(edges), minlength=graph.n_entities)
    return replace(
        graph,
        offsets=np.concatenate([[0], np.cumsum(per_head)]).astype(np.int64),
        relations=graph.relations[edges],
        tails=graph.tails[edges],
    )


def _kept(edges: SampledEdges, keep: np.ndarray) -> SampledEdges:
    return SampledEdges(edges.heads[keep], edges.relations[keep], edges.tails[keep])
