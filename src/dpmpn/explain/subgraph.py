"""The subgraph of an explanation: nodes with their attention at each time, edges with their flow at each step."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.explain.paths import Edge as EdgeIds
from dpmpn.explain.paths import Fact, is_inverse


@dataclass(frozen=True)
class Node:
    """An entity and the attention it had."""

    name: str
    label: str  # what to show: the name where it has none
    attention: tuple[float, ...]  # a^0 ... a^T
    share: tuple[float, ...]  # the part of the answer's attention that was here, at each of these times
    waited: tuple[float, ...]  # attention that its self-loop kept here, at each step


@dataclass(frozen=True)
class Edge:
    """A fact as attention went along it, in one of its two directions."""

    source: int  # places among the nodes: attention went from source to target
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

    def fact(self, edge: Edge) -> Fact:
        """The names of the fact that an edge stands for."""
        source, target = self.nodes[edge.source].name, self.nodes[edge.target].name
        return (target, edge.relation, source) if edge.inverse else (source, edge.relation, target)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of its edges, each once."""
        return tuple(dict.fromkeys(self.fact(edge) for edge in self.edges))


def full_subgraph(flow: AnswerFlow, graph: KnowledgeGraph, max_attending_from: int) -> Subgraph:
    """The attending-from nodes of every step, the best nodes after the last, and the edges between consecutive steps."""
    query = flow.query
    last = np.zeros(len(query.nodes), bool)
    best = np.argsort(-query.attention[-1], kind="stable")[:max_attending_from]
    last[best[query.attention[-1, best] > 0]] = True
    last[flow.answer] = True
    receiving = [*query.attended_from[1:], last]
    chosen = [np.flatnonzero(kept[step.tail]) for step, kept in zip(query.steps, receiving, strict=True)]
    nodes = np.flatnonzero(query.attended_from.any(0) | last)
    return _subgraph(flow, graph, nodes, chosen)


def pruned_subgraph(flow: AnswerFlow, graph: KnowledgeGraph, edges: Iterable[EdgeIds]) -> Subgraph:
    """The subgraph of some edges: their nodes, and what flowed along them."""
    kept = set(edges)
    ends = {entity for head, _, tail in kept for entity in (head, tail)}
    query = flow.query
    nodes = np.unique([query.head, flow.answer, *(query.place(entity) for entity in ends)])
    chosen = [
        np.array([e for e in np.flatnonzero(_is_any(step, query, kept)) if _ids(step, query, e) in kept], int)
        for step in query.steps
    ]
    return _subgraph(flow, graph, nodes, chosen)


def _is_any(step, query: QueryFlow, kept: set[EdgeIds]) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Edges that may be among the kept ones: both ends are ends of one."""
    heads = np.zeros(len(query.nodes), bool)
    tails = np.zeros(len(query.nodes), bool)
    for head, _, tail in kept:
        heads[query.place(head)] = tails[query.place(tail)] = True
    return heads[step.head] & tails[step.tail]


def _ids(step, query: QueryFlow, edge: int) -> EdgeIds:  # type: ignore[no-untyped-def]
    return int(query.nodes[step.head[edge]]), int(step.relation[edge]), int(query.nodes[step.tail[edge]])


def _subgraph(
    flow: AnswerFlow, graph: KnowledgeGraph, nodes: np.ndarray, chosen: list[np.ndarray]
) -> Subgraph:
    """Of some nodes and, for each step, some of its edges; their self-loops are the nodes' waiting."""
    query, n_steps = flow.query, len(chosen)
    waited = np.zeros((len(query.nodes), n_steps))
    flows: dict[EdgeIds, np.ndarray] = {}
    for t, (step, share, edges) in enumerate(zip(query.steps, flow.shares, chosen, strict=True)):
        loops = np.flatnonzero(step.relation == graph.self_loop)
        waited[step.head[loops], t] = step.flow[loops]
        edges = edges[step.relation[edges] != graph.self_loop]
        columns = (step.head[edges], step.relation[edges], step.tail[edges], step.flow[edges], share[edges])
        for head, relation, tail, amount, part in zip(*(c.tolist() for c in columns), strict=True):
            if (head, relation, tail) not in flows:
                flows[head, relation, tail] = np.zeros((2, n_steps))
            flows[head, relation, tail][:, t] = amount, part
    names = graph.entities
    shown = tuple(
        Node(
            names.name(entity),
            names.label(entity),
            tuple(query.attention[:, place].tolist()),
            tuple(flow.at[:, place].tolist()),
            tuple(waited[place].tolist()),
        )
        for place, entity in zip(nodes.tolist(), query.nodes[nodes].tolist(), strict=True)
    )
    place_of = {place: at for at, place in enumerate(nodes.tolist())}
    return Subgraph(
        shown,
        tuple(
            _edge(graph, place_of[head], relation, place_of[tail], flows[head, relation, tail])
            for head, relation, tail in sorted(flows)
        ),
    )


def _edge(graph: KnowledgeGraph, source: int, relation: int, target: int, flows: np.ndarray) -> Edge:
    backwards = is_inverse(graph, relation)
    forward = int(graph.inverse[relation]) if backwards else relation
    names = graph.relation_names
    return Edge(
        source, target, names.name(forward), names.label(forward), backwards, *map(tuple, flows.tolist())
    )
