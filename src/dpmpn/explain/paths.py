"""The chains of facts along which the attention came from a query's head to an answer."""

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
    return [path_of(graph, walk) for walk in strongest_walks(flow, graph.self_loop, top)]


def strongest_walks(flow: AnswerFlow, self_loop: int, most: int, enough: float = 1.0) -> list[Walk]:
    """The strongest simple paths, until there are `most` or they brought `enough` of the answer's attention.

    Walks that differ only in when they waited, or in detours from which they returned, are one path, and their
    shares add up; all paths together brought 1.
    """
    if not flow.is_reached:
        return []
    nodes, heads, relations, tails, passing = _carrying_edges(flow)
    offsets = np.searchsorted(heads, np.arange(len(nodes) + 1))
    start, end = np.searchsorted(nodes, [flow.query.head, flow.answer])
    before, through, ends, shares = simple_paths(
        start, end, offsets, heads, tails, passing, most, enough, _NEGLIGIBLE, _MAX_LOOKS
    )
    entities = flow.query.nodes[nodes]
    walks = []
    for last, share in zip(ends.tolist(), shares.tolist(), strict=True):
        edges: list[Edge] = []
        while before[last] >= 0:
            edge = through[last]
            edges.append((int(entities[heads[edge]]), int(relations[edge]), int(entities[tails[edge]])))
            last = before[last]
        walks.append(Walk(tuple(reversed(edges)), share))
    return walks


def _carrying_edges(flow: AnswerFlow) -> tuple[np.ndarray, ...]:
    """The edges that brought the answer attention, sorted by head: nodes, heads, relations, tails, passing.

    `passing` holds for each step the part of what was at the head, and came to the answer, that took the edge.
    """
    carrying = [np.flatnonzero(share > _NEGLIGIBLE) for share in flow.shares]
    steps = list(zip(flow.query.steps, flow.shares, carrying, strict=True))
    time = np.repeat(np.arange(len(steps)), [len(edges) for edges in carrying])
    head = np.concatenate([step.head[edges] for step, _, edges in steps])
    relation = np.concatenate([step.relation[edges] for step, _, edges in steps]).astype(np.int64)
    tail = np.concatenate([step.tail[edges] for step, _, edges in steps])
    share = np.concatenate([share[edges] for _, share, edges in steps])
    nodes = np.unique(np.concatenate([[flow.query.head, flow.answer], head, tail]))
    head_at, tail_at = np.searchsorted(nodes, head), np.searchsorted(nodes, tail)
    edges, place = np.unique(np.stack([head_at, relation, tail_at], 1), axis=0, return_inverse=True)
    passing = np.zeros((len(edges), len(steps)))
    passing[place.ravel(), time] = share / flow.at[time, head]
    return nodes, *edges.T.copy(), passing


def path_of(graph: KnowledgeGraph, walk: Walk) -> Path:
    """The facts of a walk by their names."""
    return Path(tuple(named_fact(graph, fact_of(graph, edge)) for edge in walk.edges), walk.share)


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
