"""Which relations to offer for a head: first those it has, then those its like have, then the others."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.labels import TYPES_APART

Used = Literal["head", "like", "other"]

_KINDS = 16  # of the head's relations, the rarest, which say most
_SAMPLE = 64  # entities that are looked at for each of them and for each type
_LIKE = 64  # of these, the most alike


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
        self.offsets, self.edge_relations = graph.offsets, graph.relations
        n_relations = graph.n_relations
        against = graph.is_inverse
        forward = np.where(against, graph.inverse, np.arange(n_relations))
        self.asked = list(zip(forward.tolist(), against.tolist(), strict=True))  # of each edge's relation
        self.kind_offsets, self.kinds, _ = graph.runs  # entities + 1; of each entity, ascending
        self.facts = _counts(graph.relations, n_relations)
        owners = np.repeat(
            np.arange(graph.n_entities, dtype=np.int32), np.diff(self.kind_offsets)
        )  # ascending
        self.having = owners[np.argsort(self.kinds, kind="stable")]  # entities of each relation
        self.having_offsets = np.concatenate([[0], np.cumsum(_counts(self.kinds, n_relations))])
        self.types = graph.entities.types
        self.of_type = _of_types(self.types) if self.types is not None else {}

    def offered(self, head: int | None = None) -> list[Offered]:
        """Every question that can be asked, each once: those the head has facts for, those its like have, the others.

        The first and the last come by their number of facts, those between by how many of the like have them and how
        alike those are.
        """
        own = np.zeros(len(self.facts), np.int64)
        alike = np.zeros(len(self.facts))
        if head is not None:
            edges = self.edge_relations[self.offsets[head] : self.offsets[head + 1]]
            own, alike = _counts(edges, len(own)), self._had_by_like(head)
        ranked = [
            (
                -int(own[edge]),
                -float(alike[edge]) if not own[edge] else 0.0,
                -int(self.facts[edge]),
                *question,
            )
            for edge, question in enumerate(self.asked)
        ]
        return [_offer(*rank) for rank in sorted(ranked)]

    def _had_by_like(self, head: int) -> np.ndarray:
        """For each relation how alike those are, together, who have it."""
        like, likeness = self._like(head)
        counts = self.kind_offsets[like + 1] - self.kind_offsets[like]
        weights = np.repeat(likeness, counts)
        return np.bincount(self._kinds_of(like, counts), weights, minlength=len(self.facts))

    def _like(self, head: int) -> tuple[np.ndarray, np.ndarray]:
        """Entities that share a type or relations with the head, and how much: the shared part of all relations."""
        kinds = self.kinds[self.kind_offsets[head] : self.kind_offsets[head + 1]]
        types = (self.types[head] or "").split(TYPES_APART) if self.types is not None else []
        typed = [_spread(self.of_type[type], _SAMPLE) for type in types if type in self.of_type]
        telling = kinds[np.argsort(self.facts[kinds], kind="stable")[:_KINDS]]
        related = [_spread(self._having(kind), _SAMPLE) for kind in telling.tolist()]
        found = np.unique(np.concatenate([np.empty(0, np.int64), *typed, *related]))
        found = found[found != head]
        likeness = self._shared(found, kinds)
        if typed:
            likeness += np.isin(found, np.concatenate(typed))
        best = np.argsort(-likeness, kind="stable")[:_LIKE]
        return found[best], likeness[best]

    def _shared(self, entities: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """Of the relations that an entity or the head has, the part that both have."""
        counts = self.kind_offsets[entities + 1] - self.kind_offsets[entities]
        of_head = np.zeros(len(self.facts), bool)
        of_head[kinds] = True
        owner = np.repeat(np.arange(len(entities)), counts)
        both = np.bincount(
            owner, of_head[self._kinds_of(entities, counts)].astype(float), minlength=len(entities)
        )
        shared: np.ndarray = both / np.maximum(counts + len(kinds) - both, 1)
        return shared

    def _kinds_of(self, entities: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The relations of some entities, one entity after the other."""
        before = np.repeat(self.kind_offsets[entities] - np.cumsum(counts) + counts, counts)
        return self.kinds[before + np.arange(len(before))]

    def _having(self, relation: int) -> np.ndarray:
        return self.having[self.having_offsets[relation] : self.having_offsets[relation + 1]]


def _offer(own: int, alike: float, facts: int, relation: int, inverse: bool) -> Offered:
    used: Used = "head" if own else "like" if alike else "other"
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
