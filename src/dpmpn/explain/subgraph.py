"""The subgraph of an explanation: nodes with their attention at each time, edges with their flow at each step."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow, EdgesInTime, QueryFlow
from dpmpn.explain.paths import Edge as EdgeIds
from dpmpn.explain.paths import Fact


class Node(NamedTuple):
    """An entity and the attention it had."""

    name: str
    label: str  # what to show: the name where it has none
    attention: tuple[float, ...]  # a^0 ... a^T
    share: tuple[float, ...]  # the part of the answer's attention that was here, at each of these times
    waited: tuple[float, ...]  # attention that its self-loop kept here, at each step


class Edge(NamedTuple):
    """A fact as attention went along it, in one of its two directions."""

    source: int  # indices of nodes: attention went from source to target
    target: int
    relation: str  # the fact's, as the file names it
    relation_label: str
    inverse: bool  # whether attention went from the fact's tail to its head
    flow: tuple[float, ...]  # attention that went along it, at each step
    share: tuple[float, ...]  # the part of the answer's attention that did


@dataclass(frozen=True)
class Subgraph:
    """Nodes in the order of their entity ids, and the edges between them in a fixed order."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def ends(self, edge: Edge) -> tuple[Node, Node]:
        """The head and the tail of the fact that an edge stands for."""
        source, target = self.nodes[edge.source], self.nodes[edge.target]
        return (target, source) if edge.inverse else (source, target)

    def fact(self, edge: Edge) -> Fact:
        """The names of the fact that an edge stands for."""
        head, tail = self.ends(edge)
        return head.name, edge.relation, tail.name

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of its edges, each once."""
        return tuple(dict.fromkeys(self.fact(edge) for edge in self.edges))


def full_subgraph(flow: AnswerFlow, graph: KnowledgeGraph, max_attending_from: int) -> Subgraph:
    """The nodes attended from at every step, the best after the last, and the edges between consecutive steps."""
    return _subgraph(flow, graph, *full_edges(flow, graph, max_attending_from))


def full_edges(
    flow: AnswerFlow, graph: KnowledgeGraph, max_attending_from: int
) -> tuple[np.ndarray, EdgesInTime]:
    """The nodes and the edges of the full subgraph, by their index in the flow."""
    query = flow.query
    last = np.zeros(len(query.nodes), bool)
    best = np.argsort(-query.attention[-1], kind="stable")[:max_attending_from]
    last[best[query.attention[-1, best] > 0]] = True
    last[flow.answer] = True
    receiving = [*query.attended_from[1:], last]
    chosen = [
        np.flatnonzero(kept[step.tail] & (step.relation != graph.self_loop))
        for step, kept in zip(query.steps, receiving, strict=True)
    ]
    return np.flatnonzero(query.attended_from.any(0) | last), flow.edges(chosen)


def pruned_subgraph(flow: AnswerFlow, graph: KnowledgeGraph, edges: Iterable[EdgeIds]) -> Subgraph:
    """The subgraph of some edges: their nodes, and what flowed along them."""
    query = flow.query
    kept = np.array([*edges], np.int64).reshape(-1, 3)
    head, relation, tail = (
        np.searchsorted(query.nodes, kept[:, 0]),
        kept[:, 1],
        np.searchsorted(query.nodes, kept[:, 2]),
    )
    keys = _keys(query, graph, head, relation, tail)
    chosen = [
        np.flatnonzero(np.isin(_keys(query, graph, step.head, step.relation, step.tail), keys))
        for step in query.steps
    ]
    nodes = np.unique(np.concatenate([[query.head, flow.answer], head, tail]))
    return _subgraph(flow, graph, nodes, flow.edges(chosen))


def _keys(
    query: QueryFlow, graph: KnowledgeGraph, head: np.ndarray, relation: np.ndarray, tail: np.ndarray
) -> np.ndarray:
    """Each edge as one number."""
    edges = head * (graph.n_relations + 1) + relation.astype(np.int64)
    return np.asarray(edges * len(query.nodes) + tail)


def _subgraph(flow: AnswerFlow, graph: KnowledgeGraph, nodes: np.ndarray, edges: EdgesInTime) -> Subgraph:
    query, names = flow.query, graph.entities
    entities = query.nodes[nodes].tolist()
    shown = map(
        Node,
        [names.name(entity) for entity in entities],
        [names.label(entity) for entity in entities],
        _rows(query.attention.T[nodes]),
        _rows(flow.at.T[nodes]),
        _rows(_waited(query, graph.self_loop)[nodes]),
    )
    relations = {relation: _relation_of(graph, relation) for relation in np.unique(edges.relation).tolist()}
    ends = [np.searchsorted(nodes, end).tolist() for end in (edges.head, edges.tail)]
    lines = map(
        lambda source, target, relation, flow, share: Edge(source, target, *relations[relation], flow, share),
        *ends,
        edges.relation.tolist(),
        _rows(edges.flow),
        _rows(edges.share),
    )
    return Subgraph(tuple(shown), tuple(lines))


def _rows(table: np.ndarray) -> Iterator[tuple[float, ...]]:
    """The rows as tuples, made from columns: half as many lists and tuples for the collector to look through."""
    return zip(*table.T.tolist(), strict=True)


def _waited(query: QueryFlow, self_loop: int) -> np.ndarray:
    """Attention that the self-loop of each node kept there: nodes x steps."""
    waited = np.zeros((len(query.nodes), len(query.steps)))
    for t, step in enumerate(query.steps):
        loops = np.flatnonzero(step.relation == self_loop)
        waited[step.head[loops], t] = step.flow[loops]
    return waited


def _relation_of(graph: KnowledgeGraph, relation: int) -> tuple[str, str, bool]:
    """Name and label of a fact's relation, and whether the edge goes against the fact."""
    backwards = bool(graph.is_inverse[relation])
    forward = int(graph.inverse[relation]) if backwards else relation
    return graph.relation_names.name(forward), graph.relation_names.label(forward), backwards
