"""The chains of facts along which the attention came from a query's head to an answer."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpmpn.data.graph import INVERSE_SUFFIX, KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow
from dpmpn.explain.naming import entity_label, relation_label

Fact = tuple[str, str, str]  # head, relation and tail, in the direction of the file
Edge = tuple[int, int, int]  # ids of head, relation and tail, in the direction in which attention went

_NEGLIGIBLE = 1e-6  # parts of the answer's attention that are not followed
_MAX_LOOKS = 2000  # beginnings of paths; a question of FB15K-237 takes 140, at most 700 were seen


@dataclass(frozen=True)
class Path:
    """A chain of facts, by their identifiers, and the part of the answer's attention that came along it."""

    facts: tuple[Fact, ...]
    share: float


@dataclass(frozen=True)
class Walk:
    """The edges of a path as attention went along them, and its share."""

    edges: tuple[Edge, ...]
    share: float


def strongest_paths(flow: AnswerFlow, graph: KnowledgeGraph, top: int = 3) -> list[Path]:
    """The chains of facts that brought the answer most of its attention, strongest first."""
    return named_paths(graph, strongest_walks(flow, top))


def strongest_walks(flow: AnswerFlow, most: int, enough: float = 1.0) -> list[Walk]:
    """The strongest simple paths, until there are `most` or they brought `enough` of the answer's attention.

    Walks that differ only in when they waited, or in detours from which they returned, are one path, and their
    shares add up; all paths together brought 1. Where the answer is the head itself, a path is the last way out and
    back, and what never left is a path without edges.
    """
    if not flow.is_reached:
        return []
    edges = flow.edges([np.flatnonzero(share > _NEGLIGIBLE) for share in flow.shares])
    # Of what was at the head and came to the answer, the part that took the edge, at each step.
    there = flow.at[:-1, edges.head].T
    passing = np.divide(edges.share, there, out=np.zeros_like(there), where=edges.share > 0)
    nodes, ends = np.unique(
        np.concatenate([[flow.query.head, flow.answer], edges.head, edges.tail]), return_inverse=True
    )
    start, end, (heads, tails) = ends[0], ends[1], np.split(ends[2:], 2)
    entities = flow.query.nodes
    triples = np.stack([entities[edges.head], edges.relation, entities[edges.tail]], 1)
    if start != end:
        return _walks(start, end, heads, tails, passing, triples, most, enough)
    waits = (heads == start) & (tails == start) & (edges.relation == flow.query.waiting)
    stayed, end = _staying(passing, waits), len(nodes)
    heads, tails, passing, triples = _with_returns(start, heads, tails, passing, triples, waits, stayed)
    left = 1.0 - stayed[0]
    closed = (
        _walks(start, end, heads, tails, passing, triples, most, enough / left) if left > _NEGLIGIBLE else []
    )
    walks = [Walk(walk.edges, float(walk.share * left)) for walk in closed]
    if stayed[0] > _NEGLIGIBLE:
        walks.append(Walk((), float(stayed[0])))
    walks.sort(key=lambda walk: -walk.share)
    missing = enough - np.cumsum([walk.share for walk in walks])
    return walks[: min(most, 1 + int(np.sum(missing > 0)))]


def _walks(start, end, heads, tails, passing, triples, most, enough) -> list[Walk]:  # type: ignore[no-untyped-def]
    from dpmpn.ops.simple_paths import simple_paths  # compiled, so imported when it is needed

    order = np.argsort(heads, kind="stable")
    heads, tails, passing, triples = heads[order], tails[order], passing[order], triples[order]
    offsets = np.searchsorted(heads, np.arange(max(heads.max(), tails.max(), end) + 2))
    before, through, last, shares = simple_paths(
        start, end, offsets, heads, tails, passing, most, enough, _NEGLIGIBLE, _MAX_LOOKS
    )
    return [
        Walk(_edges(triples, before, through, beginning), share)
        for beginning, share in zip(last.tolist(), shares.tolist(), strict=True)
    ]


def _staying(passing: np.ndarray, waits: np.ndarray) -> np.ndarray:
    """Of what is at the head at each time, the part that waits there to the end."""
    per_step = passing[waits].sum(0)
    return np.concatenate([np.cumprod(per_step[::-1])[::-1], [1.0]])


def _with_returns(start, heads, tails, passing, triples, waits, stayed):  # type: ignore[no-untyped-def]
    """The edges with an end of its own for attention that returns to the head for good.

    What is at the head before is what will still leave it; of what comes in, the part `stayed` returns for good.
    """
    end = max(heads.max(), tails.max()) + 1
    leaves = 1.0 - stayed
    from_head = np.divide(1.0, leaves[:-1], out=np.zeros(len(leaves) - 1), where=leaves[:-1] > 0)
    passing = np.where((heads == start)[:, None], passing * from_head, passing)
    back = (tails == start) & ~waits
    returning = passing[back] * stayed[1:]
    passing = np.where((tails == start)[:, None], passing * leaves[1:], passing)
    waiting = np.ones((1, passing.shape[1]))
    return (
        np.concatenate([heads, heads[back], [end]]),
        np.concatenate([tails, np.full(back.sum(), end), [end]]),
        np.concatenate([passing, returning, waiting]),
        np.concatenate([triples, triples[back], triples[:1]]),
    )


def _edges(triples: np.ndarray, before: np.ndarray, through: np.ndarray, beginning: int) -> tuple[Edge, ...]:
    """The edges of a path, from its last beginning back to the head."""
    edges: list[Edge] = []
    while before[beginning] >= 0:
        head, relation, tail = triples[through[beginning]].tolist()
        edges.append((head, relation, tail))
        beginning = before[beginning]
    return tuple(reversed(edges))


def named_paths(graph: KnowledgeGraph, walks: Iterable[Walk]) -> list[Path]:
    """The facts of walks by their names."""
    walks = list(walks)
    facts = {edge: named_fact(graph, fact_of(graph, edge)) for walk in walks for edge in walk.edges}
    return [Path(tuple(facts[edge] for edge in walk.edges), walk.share) for walk in walks]


def shown_facts(graph: KnowledgeGraph, path: Path) -> tuple[Fact, ...]:
    """The facts of a path as people read them: labels in the place of identifiers."""
    return tuple(
        (entity_label(graph, head), relation_label(graph, relation), entity_label(graph, tail))
        for head, relation, tail in path.facts
    )


def fact_of(graph: KnowledgeGraph, edge: Edge) -> Edge:
    """The fact an edge stands for: an edge of an inverse relation is read backwards."""
    head, relation, tail = edge
    if is_inverse(graph, relation):
        return tail, int(graph.inverse[relation]), head
    return edge


def named_fact(graph: KnowledgeGraph, fact: Edge) -> Fact:
    """The names of a fact's ids."""
    head, relation, tail = fact
    return graph.entities.name(head), graph.relation_names.name(relation), graph.entities.name(tail)


def is_inverse(graph: KnowledgeGraph, relation: int) -> bool:
    """Whether a relation is an added inverse; where the file holds inverses of its own, its name tells."""
    if graph.n_forward < graph.n_relations:
        return relation >= graph.n_forward
    inverse = int(graph.inverse[relation])
    names = graph.relation_names
    return inverse >= 0 and names.name(relation) == names.name(inverse) + INVERSE_SUFFIX
