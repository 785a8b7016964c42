"""The chains of facts along which the attention came from a query's head to an answer, the strongest first."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dpmpn.data.fact_provenance import Record
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow

EdgeIds = tuple[int, int, int]  # ids of head, relation and tail, in the direction in which attention went
Fact = tuple[str, str, str]  # head, relation and tail, in the direction of the file

_NEGLIGIBLE = 1e-6  # parts of the answer's attention that are not followed
_MAX_LOOKS = 2000  # beginnings of paths; a question of FB15K-237 takes 140, at most 700 were seen


@dataclass(frozen=True)
class Walk:
    """The edges of a path as attention went along them, and the part of the answer's attention that came so."""

    edges: tuple[EdgeIds, ...]
    share: float


@dataclass(frozen=True, repr=False)
class Path:
    """A chain of facts, by their identifiers, and the part of the answer's attention that came along it."""

    facts: tuple[Fact, ...]
    share: float
    # Of each fact, a record for each row of a table that states it; paths are the same without.
    provenance: tuple[list[Record], ...] = field(default=(), compare=False)
    # The facts as people read them; empty where they have no labels.
    labels: tuple[Fact, ...] = field(default=(), compare=False)

    @property
    def text(self) -> str:
        """The facts as people read them, in one line."""
        return (
            "; ".join(" ".join(fact) for fact in self.labels or self.facts) or "attention stayed at the head"
        )

    def __repr__(self) -> str:
        return f"Path({self.share:.0%}: {self.text})"


@dataclass(frozen=True)
class PathGroup:
    """The paths along the same entities: parallel facts, such as a fact and its reverse, make equal ones."""

    entities: tuple[str, ...]  # from the head on
    labels: tuple[str, ...]
    hops: tuple[tuple[Fact, ...], ...]  # the facts between each two of them, those of stronger paths first
    share: float  # the part of the attention at their end that came along them


def strongest_paths(flow: AnswerFlow, graph: KnowledgeGraph, top: int = 3) -> list[Path]:
    """The chains of facts that brought the answer most of its attention, strongest first."""
    return named_paths(graph, strongest_walks(flow, top))


def named_paths(graph: KnowledgeGraph, walks: Iterable[Walk]) -> list[Path]:
    """The facts of walks by their names."""
    walks = list(walks)
    facts = {edge: named_fact(graph, fact_of(graph, edge)) for walk in walks for edge in walk.edges}
    said = {edge: provenance_of(graph, fact_of(graph, edge)) for edge in facts}
    labels = {edge: _labels(graph, fact_of(graph, edge)) for edge in facts} if _has_labels(graph) else {}
    return [
        Path(
            tuple(facts[edge] for edge in walk.edges),
            walk.share,
            tuple(said[edge] for edge in walk.edges),
            tuple(labels[edge] for edge in walk.edges if labels),
        )
        for walk in walks
    ]


def grouped_walks(head: int, walks: Iterable[Walk]) -> list[tuple[tuple[int, ...], list[Walk]]]:
    """The entities from a head on, and the walks along them; the groups in the order of their shares."""
    groups: dict[tuple[int, ...], list[Walk]] = {}
    for walk in walks:
        groups.setdefault((head, *(tail for _, _, tail in walk.edges)), []).append(walk)
    return sorted(groups.items(), key=lambda group: -sum(walk.share for walk in group[1]))


def named_group(graph: KnowledgeGraph, entities: tuple[int, ...], walks: Iterable[Walk]) -> PathGroup:
    """The walks along some entities by their names."""
    paths, names = named_paths(graph, walks), graph.entities
    return PathGroup(
        tuple(names.name(entity) for entity in entities),
        tuple(names.label(entity) for entity in entities),
        tuple(tuple(dict.fromkeys(hop)) for hop in zip(*(path.facts for path in paths), strict=True)),
        sum(path.share for path in paths),
    )


def fact_of(graph: KnowledgeGraph, edge: EdgeIds) -> EdgeIds:
    """The fact an edge stands for: an edge of an inverse relation is read backwards."""
    head, relation, tail = edge
    if graph.is_inverse[relation]:
        return tail, int(graph.inverse[relation]), head
    return edge


def provenance_of(graph: KnowledgeGraph, fact: EdgeIds) -> list[Record]:
    """What the table of the facts says of one beside it: a record for each row that states it."""
    return [] if graph.provenance is None else graph.provenance.of(*fact)


def named_fact(graph: KnowledgeGraph, fact: EdgeIds) -> Fact:
    """The names of a fact's ids."""
    head, relation, tail = fact
    return graph.entities.name(head), graph.relation_names.name(relation), graph.entities.name(tail)


def _has_labels(graph: KnowledgeGraph) -> bool:
    return graph.entities.has_labels or graph.relation_names.has_labels


def _labels(graph: KnowledgeGraph, fact: EdgeIds) -> Fact:
    head, relation, tail = fact
    return graph.entities.label(head), graph.relation_names.label(relation), graph.entities.label(tail)


@dataclass(frozen=True, eq=False)
class _Carrying:
    """The edges that brought the answer attention, between nodes that are numbered anew."""

    head: np.ndarray
    tail: np.ndarray
    passing: np.ndarray  # edges x steps: the part that took it of what its head sent to the answer
    triple: np.ndarray  # edges x 3: ids of the graph


def strongest_walks(flow: AnswerFlow, most: int, enough: float = 1.0) -> list[Walk]:
    """The strongest simple paths, until there are `most` or they brought `enough` of the answer's attention.

    Walks that differ only in when they waited, or in detours from which they returned, are one path, and their
    shares add up; all paths together brought 1. Where the answer is the head itself, a path is the last way out and
    back, and what never left is a path without edges.
    """
    if not flow.is_reached:
        return []
    edges = flow.edges([np.flatnonzero(share > _NEGLIGIBLE) for share in flow.shares])
    there = flow.at[:-1, edges.head].T
    passing = np.divide(edges.share, there, out=np.zeros_like(there), where=edges.share > 0)
    _, index = np.unique(
        np.concatenate([[flow.query.head, flow.answer], edges.head, edges.tail]), return_inverse=True
    )
    start, end, (heads, tails) = int(index[0]), int(index[1]), np.split(index[2:], 2)
    entities = flow.query.nodes
    triples = np.stack([entities[edges.head], edges.relation, entities[edges.tail]], 1)
    carrying = _Carrying(heads, tails, passing, triples)
    if start != end:
        return _walks_between(carrying, start, end, most, enough)
    waits = (heads == start) & (tails == start) & (edges.relation == flow.query.waiting)
    return _returning(carrying, start, waits, most, enough)


def _walks_between(carrying: _Carrying, start: int, end: int, most: int, enough: float) -> list[Walk]:
    from dpmpn.explain.simple_paths import simple_paths  # compiled, so imported when it is needed

    order = np.argsort(carrying.head, kind="stable")
    heads, tails, triples = carrying.head[order], carrying.tail[order], carrying.triple[order]
    offsets = np.searchsorted(heads, np.arange(max(heads.max(), tails.max(), end) + 2))
    before, through, last, shares = simple_paths(
        start, end, offsets, heads, tails, carrying.passing[order], most, enough, _NEGLIGIBLE, _MAX_LOOKS
    )
    strongest = np.argsort(-shares, kind="stable")
    return [
        Walk(_edges(triples, before, through, beginning), share)
        for beginning, share in zip(last[strongest].tolist(), shares[strongest].tolist(), strict=True)
    ]


def _edges(
    triples: np.ndarray, before: np.ndarray, through: np.ndarray, beginning: int
) -> tuple[EdgeIds, ...]:
    """The edges of a path, from its last beginning back to the head."""
    edges: list[EdgeIds] = []
    while before[beginning] >= 0:
        head, relation, tail = triples[through[beginning]].tolist()
        edges.append((head, relation, tail))
        beginning = before[beginning]
    return tuple(reversed(edges))


def _returning(carrying: _Carrying, start: int, waits: np.ndarray, most: int, enough: float) -> list[Walk]:
    """The walks from the head back to it, and what never left; `waits` are the edges of waiting there."""
    per_step = carrying.passing[waits].sum(0)
    stayed = np.append(np.cumprod(per_step[::-1])[::-1], 1.0)  # of what is there at a time, to the end
    left = 1.0 - float(stayed[0])
    walks = []
    if left > _NEGLIGIBLE:
        returns, end = _with_returns(carrying, start, waits, stayed)
        walks = [
            Walk(walk.edges, walk.share * left)
            for walk in _walks_between(returns, start, end, most, enough / left)
        ]
    if 1.0 - left > _NEGLIGIBLE:
        walks.append(Walk((), 1.0 - left))
    walks.sort(key=lambda walk: -walk.share)
    missing = enough - np.cumsum([walk.share for walk in walks])
    return walks[: min(most, 1 + int(np.sum(missing > 0)))]


def _with_returns(
    carrying: _Carrying, start: int, waits: np.ndarray, stayed: np.ndarray
) -> tuple[_Carrying, int]:
    """The edges with an end of its own for attention that returns to the head for good, and that end.

    What is at the head itself is then what will still leave it; of what comes in, the part `stayed` is there for good.
    """
    heads, tails, passing = carrying.head, carrying.tail, carrying.passing
    end = int(max(heads.max(), tails.max())) + 1
    leaves = 1.0 - stayed
    from_head = np.divide(1.0, leaves[:-1], out=np.zeros(len(leaves) - 1), where=leaves[:-1] > 0)
    passing = np.where((heads == start)[:, None], passing * from_head, passing)
    back = (tails == start) & ~waits
    for_good = passing[back] * stayed[1:]
    passing = np.where((tails == start)[:, None], passing * leaves[1:], passing)
    waiting = np.ones((1, passing.shape[1]))  # at the end
    with_returns = _Carrying(
        np.concatenate([heads, heads[back], [end]]),
        np.concatenate([tails, np.full(back.sum(), end), [end]]),
        np.concatenate([passing, for_good, waiting]),
        np.concatenate([carrying.triple, carrying.triple[back], carrying.triple[:1]]),
    )
    return with_returns, end
