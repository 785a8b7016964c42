"""Patterns: the paths of an answer that go along the same relations, taken together, strongest first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.paths import Walk, grouped_walks

_MOSTLY = 0.5  # of a relation's facts: where more of them are stated both ways, it has no direction


class Hop(NamedTuple):
    """One relation of a pattern, by its id in the direction in which attention went."""

    relation: int
    either_way: bool = False  # whether it counts in both directions; the relation is then that of the facts


Hops = tuple[Hop, ...]


@dataclass(frozen=True)
class Instance:
    """Entities that a pattern leads along, from the head to the answer, and what came along them."""

    entities: tuple[int, ...]
    share: float  # of the answer's attention


@dataclass(frozen=True)
class HopPattern:
    """Paths with the same relations in the same order, by ids."""

    hops: Hops  # none where attention stayed at the head
    share: float  # of the answer's attention
    instances: tuple[Instance, ...]  # strongest first

    def varying(self) -> list[tuple[int, list[int]]]:
        """The places between head and answer, counted from 1, at which more than one entity stands, and which."""
        between = list(zip(*(instance.entities[1:-1] for instance in self.instances), strict=True))
        found = [(place, list(dict.fromkeys(entities))) for place, entities in enumerate(between, 1)]
        return [(place, entities) for place, entities in found if len(entities) > 1]


def patterns_of(graph: KnowledgeGraph, head: int, walks: Iterable[Walk]) -> list[HopPattern]:
    """The patterns of an answer's paths, strongest first.

    Paths along the same entities are one instance: they differ in the direction of a relation that has none.
    """
    of_hops: dict[Hops, list[Walk]] = {}
    for walk in walks:
        of_hops.setdefault(hops_of(graph, [relation for _, relation, _ in walk.edges]), []).append(walk)
    patterns = [
        HopPattern(
            hops,
            sum(walk.share for walk in own),
            tuple(
                Instance(entities, sum(walk.share for walk in same))
                for entities, same in grouped_walks(head, own)
            ),
        )
        for hops, own in of_hops.items()
    ]
    return sorted(patterns, key=lambda pattern: -pattern.share)


def hops_of(graph: KnowledgeGraph, relations: Sequence[int]) -> Hops:
    """The relations of a path as a pattern has them.

    A path of one fact keeps its direction: the reverse of a fact is a reason for it, the fact itself is none.
    """
    if len(relations) < 2:
        return tuple(map(Hop, relations))
    return tuple(_hop(graph, relation) for relation in relations)


def _hop(graph: KnowledgeGraph, relation: int) -> Hop:
    inverse = int(graph.inverse[relation])
    if inverse < 0 or graph.both_ways[relation] <= _MOSTLY:
        return Hop(relation)
    return Hop(inverse if graph.is_inverse[relation] else relation, either_way=True)


def as_rows(graph: KnowledgeGraph, hops: Hops) -> np.ndarray:
    """The hops as the relations that each may take: int64, hops x 2, -1 where there is no other."""
    others = (int(graph.inverse[hop.relation]) if hop.either_way else -1 for hop in hops)
    return np.array([[hop.relation, other] for hop, other in zip(hops, others, strict=True)], np.int64)
