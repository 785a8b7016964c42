"""Which facts carried the attention from a query's head to an answer, read from the trace of its steps."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from dpmpn.data.graph import INVERSE_SUFFIX, KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.model.trace import ReasoningTrace, TraceStep

Fact = tuple[str, str, str]  # head, relation and tail, in the direction of the file
_Edge = tuple[int, int, int]
_KEPT_PER_NODE = 50  # ways from a node to the answer that are followed; the weakest are let go


@dataclass(frozen=True)
class Path:
    """A chain of facts, by their identifiers, and the part of the answer's attention that came along it."""

    facts: tuple[Fact, ...]
    share: float


def strongest_paths(
    trace: ReasoningTrace, query: int, answer: int, graph: KnowledgeGraph, top: int = 3
) -> list[Path]:
    """The chains of facts that brought the answer most of its attention, strongest first.

    An edge into v at step t brought the share flow / a^{t+1}_v of v's attention; a walk from head to answer
    brought the product of its edges' shares, and all walks together 1. Self-loops are waiting, not facts:
    walks that differ only in when they waited are one chain, and their shares add up.
    """
    ways: dict[int, dict[tuple[_Edge, ...], float]] = {answer: {(): 1.0}}
    for step in reversed(trace.steps):
        ways = _one_step_back(step, query, ways, graph.self_loop)
    found = ways.get(int(trace.heads[query]), {})
    best = sorted(found.items(), key=lambda way: (-way[1], way[0]))[:top]
    return [Path(tuple(_fact(graph, edge) for edge in edges), share) for edges, share in best]


def _one_step_back(
    step: TraceStep, query: int, ways: dict[int, dict[tuple[_Edge, ...], float]], self_loop: int
) -> dict[int, dict[tuple[_Edge, ...], float]]:
    """From the ways that lead from a step's receivers to the answer, those that lead from its senders."""
    before: dict[int, dict[tuple[_Edge, ...], float]] = defaultdict(lambda: defaultdict(float))
    for head, relation, tail, share in _edges_into(step, query, np.fromiter(ways, np.int64)):
        for edges, rest in ways[tail].items():
            longer = edges if relation == self_loop else ((head, relation, tail), *edges)
            before[head][longer] += share * rest
    return {node: _strongest(found) for node, found in before.items()}


def _edges_into(step: TraceStep, query: int, nodes: np.ndarray) -> list[tuple[int, int, int, float]]:
    """The query's edges into some nodes: head, relation, tail and the share of the tail's attention."""
    senders = np.flatnonzero(step.from_query == query)
    if not len(senders):
        return []
    edges = np.arange(step.edge_offsets[senders[0]], step.edge_offsets[senders[-1] + 1])
    edges = edges[np.isin(step.edge_tail[edges], nodes)]
    heads = step.from_node[np.searchsorted(step.edge_offsets, edges, side="right") - 1]
    shares = step.flow()[edges] / step.slot_attention[step.edge_slot[edges]]
    carried = np.isfinite(shares) & (shares > 0)
    columns = (heads, step.edge_relation[edges], step.edge_tail[edges], shares)
    return list(zip(*(column[carried].tolist() for column in columns), strict=True))


def _strongest(ways: dict[tuple[_Edge, ...], float]) -> dict[tuple[_Edge, ...], float]:
    if len(ways) <= _KEPT_PER_NODE:
        return ways
    return dict(sorted(ways.items(), key=lambda way: -way[1])[:_KEPT_PER_NODE])


def shown_facts(graph: KnowledgeGraph, path: Path) -> tuple[Fact, ...]:
    """The facts of a path as people read them: labels in the place of identifiers."""
    return tuple(
        (
            _shown(graph.entities, head, "entity"),
            _shown(graph.relation_names, relation, "relation"),
            _shown(graph.entities, tail, "entity"),
        )
        for head, relation, tail in path.facts
    )


def _shown(names: Vocabulary, name: str, kind: str) -> str:
    return names.label(names.id(name, kind)) if names.has_labels else name


def _fact(graph: KnowledgeGraph, edge: _Edge) -> Fact:
    """The fact an edge stands for: an edge of an inverse relation is read backwards."""
    head, relation, tail = edge
    if _is_inverse(graph, relation):
        head, relation, tail = tail, int(graph.inverse[relation]), head
    return graph.entities.name(head), graph.relation_names.name(relation), graph.entities.name(tail)


def _is_inverse(graph: KnowledgeGraph, relation: int) -> bool:
    """Whether a relation is an added inverse; where the file holds inverses of its own, its name tells."""
    if graph.n_forward < graph.n_relations:
        return relation >= graph.n_forward
    inverse = int(graph.inverse[relation])
    names = graph.relation_names
    return inverse >= 0 and names.name(relation) == names.name(inverse) + INVERSE_SUFFIX
