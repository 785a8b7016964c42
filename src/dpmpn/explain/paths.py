"""The chains of facts along which the attention came from a query's head to an answer."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpmpn.data.graph import INVERSE_SUFFIX, KnowledgeGraph
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.explain.flow import AnswerFlow
from dpmpn.ops.simple_paths import simple_paths

Fact = tuple[str, str, str]  # head, relation and tail, in the direction of the file
Edge = tuple[int, int, int]  # ids of head, relation and tail, in the direction in which attention went

_NEGLIGIBLE = 1e-6  # parts of the answer's attention that are not followed
_MAX_LOOKS = 5000  # beginnings of paths; a question of FB15K-237 takes 140, at most 700 were seen


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
    shares add up; all paths together brought 1.
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
    heads, tails = np.split(ends[2:], 2)
    before, through, last, shares = simple_paths(
        ends[0], ends[1], np.searchsorted(heads, np.arange(len(nodes) + 1)), heads, tails, passing,
        most, enough, _NEGLIGIBLE, _MAX_LOOKS,
    )  # fmt: skip
    entities = flow.query.nodes
    triples = np.stack([entities[edges.head], edges.relation, entities[edges.tail]], 1)
    return [
        Walk(_edges(triples, before, through, beginning), share)
        for beginning, share in zip(last.tolist(), shares.tolist(), strict=True)
    ]


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
        (
            _shown(graph.entities, head, "entity"),
            _shown(graph.relation_names, relation, "relation"),
            _shown(graph.entities, tail, "entity"),
        )
        for head, relation, tail in path.facts
    )


def _shown(names: Vocabulary, name: str, kind: str) -> str:
    return names.label(names.id(name, kind)) if names.has_labels else name


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
