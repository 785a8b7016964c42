"""What can be looked up without asking: entities, their facts, and relations to ask."""

from typing import Any, NamedTuple

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.labels import TYPES_APART
from dpmpn.serve.names import EntitySearch
from dpmpn.serve.relation_offers import RelationOffers


class Lookups:
    """Reads the graph for people."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._search, self._offers = EntitySearch(graph), RelationOffers(graph)

    def search(self, text: str, limit: int) -> list[dict[str, Any]]:
        """Entities whose name or label has the text in it."""
        return [
            {
                **self._entity(found.entity),
                "description": self._graph.entities.describe(found.entity),
                "facts": count_facts(self._graph, found.entity),
                "match": found.match,
            }
            for found in self._search.search(text, limit)
        ]

    def entity(self, entity: int, limit: int, offset: int) -> dict[str, Any]:
        """An entity and some of its facts."""
        facts, total = facts_of(self._graph, entity, limit, offset)
        types = self._graph.entities.types
        return {
            **self._entity(entity),
            "description": self._graph.entities.describe(entity),
            "types": (types[entity] or "").split(TYPES_APART) if types is not None and types[entity] else [],
            "facts": [
                {
                    "head": self._entity(fact.head),
                    "relation": self._relation(fact.relation),
                    "tail": self._entity(fact.tail),
                }
                for fact in facts
            ],
            "total": total,
        }

    def relations(self, head: int | None) -> list[dict[str, Any]]:
        """The questions that can be asked, the most fitting first."""
        return [
            {
                **self._relation(each.relation),
                "inverse": each.inverse,
                "used": each.used,
                "count": each.count,
            }
            for each in self._offers.offered(head)
        ]

    def _entity(self, entity: int) -> dict[str, str]:
        names = self._graph.entities
        return {"name": names.name(entity), "label": names.label(entity)}

    def _relation(self, relation: int) -> dict[str, str]:
        names = self._graph.relation_names
        return {"name": names.name(relation), "label": names.label(relation)}


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
    relations, others = np.divmod(keys[offset : offset + limit], graph.n_entities)
    facts = [
        FactIds(other, relation // 2, entity) if relation % 2 else FactIds(entity, relation // 2, other)
        for relation, other in zip(relations.tolist(), others.tolist(), strict=True)
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
    distinct: np.ndarray = keys[np.diff(keys, prepend=-1) != 0]
    return distinct


def _keys(
    graph: KnowledgeGraph, entity: int, relations: np.ndarray, others: np.ndarray, incoming: bool
) -> np.ndarray:
    """The number of the fact that each edge stands for."""
    against = graph.is_inverse
    forward = np.where(against, graph.inverse, np.arange(graph.n_relations)).astype(np.int64)
    first_keys = (2 * forward + (against != incoming)) * graph.n_entities
    keys: np.ndarray = first_keys[relations] + others
    itself = np.flatnonzero(others == entity)  # of a fact with itself the entity counts as the head
    keys[itself] -= keys[itself] // graph.n_entities % 2 * graph.n_entities
    return keys
