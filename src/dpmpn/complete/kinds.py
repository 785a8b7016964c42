"""Which kinds of relations each entity has: what makes one entity like another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph


@dataclass(frozen=True, eq=False)
class Kinds:
    """The distinct (entity, relation) pairs of known facts, inverse ones included, in both orders."""

    offsets: (
        np.ndarray
    )  # int64, entities + 1: the relations of entity v are relations[offsets[v]:offsets[v+1]]
    relations: np.ndarray  # int32, pairs, ascending within an entity
    entity_offsets: np.ndarray  # int64, relations + 1: where the entities of a relation are
    entities: np.ndarray  # int32, pairs, ascending within a relation
    n_several: np.ndarray  # int64, relations: how many entities have more than one fact of it

    @classmethod
    def of(cls, dataset: Dataset, known: Sequence[str]) -> "Kinds":
        """Collect the pairs of the graph and of the facts of some splits, in one pass over the sorted edges."""
        graph = dataset.graph
        n_entities, n_relations = graph.n_entities, graph.n_relations
        keys = _pair_keys(graph)
        beside = [_beside_graph(graph, dataset.queries(split)) for split in known]
        if any(len(other) for other in beside):
            keys = np.sort(np.concatenate([keys, *beside]), kind="stable")  # nearly sorted already
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        several = np.diff(first, append=len(keys)) > 1
        owner, relation = np.divmod(keys[first], max(n_relations, 1))
        by_relation = np.argsort(relation, kind="stable")
        return cls(
            _offsets(owner, n_entities),
            relation.astype(np.int32),
            _offsets(relation, n_relations),
            owner[by_relation].astype(np.int32),
            np.bincount(relation[several], minlength=n_relations),
        )

    def having(self, relation: int) -> np.ndarray:
        """The entities that have a fact of a relation, ascending."""
        return self.entities[self.entity_offsets[relation] : self.entity_offsets[relation + 1]]

    def shares(self, relation: int) -> np.ndarray:
        """For each relation s, the share of the entities with s that have this relation, too."""
        having = self.having(relation)
        counts = self.offsets[having + 1] - self.offsets[having]
        starts = np.repeat(self.offsets[having] - np.cumsum(counts) + counts, counts)
        together = np.bincount(self.relations[starts + np.arange(counts.sum())], minlength=self.n_relations)
        return together / np.maximum(np.diff(self.entity_offsets), 1)

    def share_with_several(self, relation: int) -> float:
        """The share of the entities with a relation that have more than one fact of it."""
        return float(self.n_several[relation] / max(len(self.having(relation)), 1))

    @property
    def n_relations(self) -> int:
        """Number of relations, inverse ones included."""
        return len(self.entity_offsets) - 1


def _pair_keys(graph: KnowledgeGraph) -> np.ndarray:
    """head * n_relations + relation of each edge, ascending."""
    heads = np.repeat(np.arange(graph.n_entities, dtype=np.int64), np.diff(graph.offsets))
    return heads * graph.n_relations + graph.relations


def _beside_graph(graph: KnowledgeGraph, triples: np.ndarray) -> np.ndarray:
    """The same of the triples that are no edges of the graph."""
    heads, relations, tails = triples.T
    triples = triples[graph.find_edges(heads, relations, tails) < 0]
    return triples[:, 0].astype(np.int64) * graph.n_relations + triples[:, 1]


def _offsets(sorted_or_not: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_or_not, minlength=n))]).astype(np.int64)
