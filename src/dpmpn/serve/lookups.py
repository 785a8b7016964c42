"""What can be looked up without asking: entities, their facts, and relations to ask.

Relations that a head has are offered first, then those that similar entities have, then the others.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.vocabulary import TYPES_APART
from dpmpn.serve.bodies import Used
from dpmpn.serve.names import EntitySearch

_RELATIONS = 16  # of the head's relations, the rarest, which say most
_SAMPLE = 64  # entities that are looked at for each of them and for each type
_SIMILAR = 64  # of these, the most similar


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
        return {
            **self._entity(entity),
            "description": self._graph.entities.describe(entity),
            "types": _types(self._graph, entity),
            "facts": [
                {"head": self._entity(head), "relation": self._relation(relation), "tail": self._entity(tail)}
                for head, relation, tail in facts
            ],
            "total": total,
        }

    def relations(self, head: int | None) -> list[dict[str, Any]]:
        """The questions that can be asked, the most fitting first."""
        return [
            {**self._relation(each.relation), "inverse": each.inverse, "used": each.used, "count": each.count}
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
    first_keys = (2 * _forward(graph) + (graph.is_inverse != incoming)) * graph.n_entities
    keys: np.ndarray = first_keys[relations] + others
    itself = np.flatnonzero(others == entity)  # of a fact with itself the entity counts as the head
    keys[itself] -= keys[itself] // graph.n_entities % 2 * graph.n_entities
    return keys


def _forward(graph: KnowledgeGraph) -> np.ndarray:
    """Of each edge's relation the one that the file names: itself, or what it is the inverse of."""
    return np.where(graph.is_inverse, graph.inverse, np.arange(graph.n_relations)).astype(np.int64)


def _types(graph: KnowledgeGraph, entity: int) -> list[str]:
    types = graph.entities.types
    return types[entity].split(TYPES_APART) if types is not None and types[entity] else []


@dataclass(frozen=True, slots=True)
class Offered:
    """A question that can be asked: <head, relation, ?>, or with `inverse` <?, relation, head>."""

    relation: int  # as the file names it
    inverse: bool
    used: Used
    count: int  # the head's facts where it is used with the head, else all facts of the graph


class RelationOffers:
    """Which relations each entity has, which entities each relation has, and the entities of each type.

    Collecting this takes a second or so for 10^7 edges.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph, n_relations = graph, graph.n_relations
        self._forward = _forward(graph)
        self._relation_offsets, self._relations, _ = graph.runs  # entities + 1; of each entity, ascending
        self._facts = _counts(graph.relations, n_relations)
        entities = np.arange(graph.n_entities, dtype=np.int32)
        owners = np.repeat(entities, np.diff(self._relation_offsets))  # of the relations, ascending
        self._having = owners[np.argsort(self._relations, kind="stable")]  # entities of each relation
        self._having_offsets = np.concatenate([[0], np.cumsum(_counts(self._relations, n_relations))])
        types = graph.entities.types
        self._of_type = {} if types is None else _of_types(types)

    def offered(self, head: int | None = None) -> list[Offered]:
        """Every possible question once: those the head has facts for, those similar entities have, the others.

        The first and the last come by their number of facts, those between by how many similar entities have them and
        how similar these are.
        """
        own = np.zeros(len(self._facts), np.int64)
        by_similar = np.zeros(len(self._facts))
        if head is not None:
            edges = self._graph.relations[slice(*self._graph.offsets[head : head + 2])]
            own = _counts(edges, len(own))
            by_similar = np.where(own > 0, 0, self._had_by_similar(head))
        inverse = self._graph.is_inverse
        order = np.lexsort((inverse, self._forward, -self._facts, -by_similar, -own))
        used: list[Used] = ["head" if own[i] else "like" if by_similar[i] else "other" for i in order]
        columns = (self._forward, inverse, np.where(own > 0, own, self._facts))
        forward, inverses, counts = (column[order].tolist() for column in columns)
        return [*map(Offered, forward, inverses, used, counts)]

    def _had_by_similar(self, head: int) -> np.ndarray:
        """For each relation the similarity of all similar entities that have it, summed."""
        similar, similarity = self._similar(head)
        counts = self._relation_offsets[similar + 1] - self._relation_offsets[similar]
        weights = np.repeat(similarity, counts)
        return np.bincount(self._relations_of(similar, counts), weights, minlength=len(self._facts))

    def _similar(self, head: int) -> tuple[np.ndarray, np.ndarray]:
        """Entities that share a type or relations with the head, and how much: the shared part of all relations."""
        relations = self._relations[self._relation_offsets[head] : self._relation_offsets[head + 1]]
        typed = [_spread(self._of_type[type], _SAMPLE) for type in _types(self._graph, head)]
        rarest = relations[np.argsort(self._facts[relations], kind="stable")[:_RELATIONS]]
        related = [_spread(self._entities_with(relation), _SAMPLE) for relation in rarest.tolist()]
        found = np.unique(np.concatenate([np.empty(0, np.int64), *typed, *related]))
        found = found[found != head]
        similarity = self._shared(found, relations)
        if typed:
            similarity += np.isin(found, np.concatenate(typed))
        best = np.argsort(-similarity, kind="stable")[:_SIMILAR]
        return found[best], similarity[best]

    def _shared(self, entities: np.ndarray, relations: np.ndarray) -> np.ndarray:
        """Of the relations that an entity or the head has, the part that both have."""
        counts = self._relation_offsets[entities + 1] - self._relation_offsets[entities]
        of_head = np.zeros(len(self._facts), bool)
        of_head[relations] = True
        owner = np.repeat(np.arange(len(entities)), counts)
        both = np.bincount(
            owner, of_head[self._relations_of(entities, counts)].astype(float), minlength=len(entities)
        )
        shared: np.ndarray = both / np.maximum(counts + len(relations) - both, 1)
        return shared

    def _relations_of(self, entities: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The relations of some entities, one entity after the other."""
        before = np.repeat(self._relation_offsets[entities] - np.cumsum(counts) + counts, counts)
        return self._relations[before + np.arange(len(before))]

    def _entities_with(self, relation: int) -> np.ndarray:
        return self._having[self._having_offsets[relation] : self._having_offsets[relation + 1]]


def _counts(relations: np.ndarray, n_relations: int) -> np.ndarray:
    return np.bincount(relations, minlength=n_relations)


def _spread(entities: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the entities, at even distances."""
    if len(entities) <= most:
        return entities
    return entities[np.linspace(0, len(entities) - 1, most).astype(np.int64)]


def _of_types(types: pl.Series) -> dict[str, np.ndarray]:
    """The entities of each type, ascending."""
    pairs = pl.DataFrame({"type": types.str.split(TYPES_APART)}).with_row_index("entity").explode("type")
    grouped = pairs.drop_nulls().group_by("type", maintain_order=True).agg("entity")
    members = (entities.to_numpy().astype(np.int64) for entities in grouped["entity"])
    return dict(zip(grouped["type"].to_list(), members, strict=True))
