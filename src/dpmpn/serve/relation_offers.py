"""Which relations to offer for a head: first those it has, then those that similar entities have, then the others."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.labels import TYPES_APART

Used = Literal["head", "like", "other"]

_RELATIONS = 16  # of the head's relations, the rarest, which say most
_SAMPLE = 64  # entities that are looked at for each of them and for each type
_SIMILAR = 64  # of these, the most similar


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
        self._offsets, self._edge_relations = graph.offsets, graph.relations
        n_relations = graph.n_relations
        against = graph.is_inverse
        forward = np.where(against, graph.inverse, np.arange(n_relations))
        self._questions = list(
            zip(forward.tolist(), against.tolist(), strict=True)
        )  # of each edge's relation
        self._relation_offsets, self._relations, _ = graph.runs  # entities + 1; of each entity, ascending
        self._facts = _counts(graph.relations, n_relations)
        entities = np.arange(graph.n_entities, dtype=np.int32)
        owners = np.repeat(entities, np.diff(self._relation_offsets))  # of the relations, ascending
        self._having = owners[np.argsort(self._relations, kind="stable")]  # entities of each relation
        self._having_offsets = np.concatenate([[0], np.cumsum(_counts(self._relations, n_relations))])
        self._types = graph.entities.types
        self._of_type = _of_types(self._types) if self._types is not None else {}

    def offered(self, head: int | None = None) -> list[Offered]:
        """Every possible question once: those the head has facts for, those similar entities have, the others.

        The first and the last come by their number of facts, those between by how many similar entities have them and
        how similar these are.
        """
        own = np.zeros(len(self._facts), np.int64)
        by_similar = np.zeros(len(self._facts))
        if head is not None:
            edges = self._edge_relations[self._offsets[head] : self._offsets[head + 1]]
            own, by_similar = _counts(edges, len(own)), self._had_by_similar(head)
        ranked = [
            (
                -int(own[edge]),
                -float(by_similar[edge]) if not own[edge] else 0.0,
                -int(self._facts[edge]),
                *question,
            )
            for edge, question in enumerate(self._questions)
        ]
        return [_offer(*rank) for rank in sorted(ranked)]

    def _had_by_similar(self, head: int) -> np.ndarray:
        """For each relation the similarity of all similar entities that have it, summed."""
        similar, similarity = self._similar(head)
        counts = self._relation_offsets[similar + 1] - self._relation_offsets[similar]
        weights = np.repeat(similarity, counts)
        return np.bincount(self._relations_of(similar, counts), weights, minlength=len(self._facts))

    def _similar(self, head: int) -> tuple[np.ndarray, np.ndarray]:
        """Entities that share a type or relations with the head, and how much: the shared part of all relations."""
        relations = self._relations[self._relation_offsets[head] : self._relation_offsets[head + 1]]
        types = (self._types[head] or "").split(TYPES_APART) if self._types is not None else []
        typed = [_spread(self._of_type[type], _SAMPLE) for type in types if type in self._of_type]
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


def _offer(own: int, by_similar: float, facts: int, relation: int, inverse: bool) -> Offered:
    used: Used = "head" if own else "like" if by_similar else "other"
    return Offered(relation, inverse, used, -own or -facts)


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
