"""The facts about an entity, each once and as the file states it, a page at a time."""

from typing import NamedTuple

import numpy as np

from dpmpn.data.graph import KnowledgeGraph


class FactIds(NamedTuple):
    """A fact in the direction of the file."""

    head: int
    relation: int
    tail: int


def facts_of(graph: KnowledgeGraph, entity: int, limit: int, offset: int = 0) -> tuple[list[FactIds], int]:
    """Facts in which the entity is head or tail, from `offset` on, at most `limit`; and how many there are in all.

    They come by relation; within one, those of which the entity is the head first, then by the id of the other end.
    """
    keys = _fact_keys(graph, entity)
    kinds, others = np.divmod(keys[offset : offset + limit], graph.n_entities)
    facts = [
        FactIds(other, kind // 2, entity) if kind % 2 else FactIds(entity, kind // 2, other)
        for kind, other in zip(kinds.tolist(), others.tolist(), strict=True)
    ]
    return facts, len(keys)


def count_facts(graph: KnowledgeGraph, entity: int) -> int:
    """Number of facts in which the entity is head or tail."""
    return len(_fact_keys(graph, entity))


def _fact_keys(graph: KnowledgeGraph, entity: int) -> np.ndarray:
    """Each fact as one number, ascending: its relation, whether the entity is its tail, and its other end."""
    start, end = graph.offsets[entity : entity + 2].tolist()
    edges = slice(start, end)
    keys = _keys(graph, entity, graph.relations[edges], graph.tails[edges], incoming=False)
    if graph.n_forward == graph.n_relations:
        # Not every fact need be stored both ways. Looking through 10^7 edges takes 5 ms.
        into = np.flatnonzero(graph.tails == entity)
        there = _keys(graph, entity, graph.relations[into], graph.edge_heads(into), incoming=True)
        keys = np.concatenate([keys, there])
    keys.sort()  # 1 ms for 10^5; np.unique takes 20
    return keys[np.diff(keys, prepend=-1) != 0]


def _keys(
    graph: KnowledgeGraph, entity: int, relations: np.ndarray, others: np.ndarray, incoming: bool
) -> np.ndarray:
    """The number of the fact that each edge stands for."""
    kinds = np.flatnonzero(np.bincount(relations, minlength=graph.n_relations))
    against = graph.is_inverse[kinds]
    first_keys = np.zeros(graph.n_relations, np.int64)
    forward = np.where(against, graph.inverse[kinds], kinds).astype(np.int64)
    first_keys[kinds] = (2 * forward + (against != incoming)) * graph.n_entities
    keys = first_keys[relations] + others
    itself = np.flatnonzero(others == entity)  # of a fact with itself the entity counts as the head
    keys[itself] -= keys[itself] // graph.n_entities % 2 * graph.n_entities
    return keys
