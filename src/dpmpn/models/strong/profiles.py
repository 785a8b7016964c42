"""Relation profiles: what an entity looks like by the number of its edges of each relation.

Whatever depends on the profile alone is computed once for each different profile, so that a distribution over all
entities costs no more than one over the profiles.
"""

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import NO_EDGES
from dpmpn.kernels import Ints, kernel
from dpmpn.ops.expand import number_used
from dpmpn.ops.layers import SparseRows, sparse_product

DEGREE_SCALE = 3.0  # brings log(1 + degree) to the size of the other features


@dataclass(frozen=True, eq=False)
class Profiles:
    """The different profiles of a graph's entities, as a batch sees them."""

    of_entity: np.ndarray  # int64, entities: the index of each one's profile
    # float64, profiles: how many entities have each; queries x profiles where each query has removed edges of its own.
    sizes: np.ndarray
    features: SparseRows  # profiles x n_features
    # int64, ascending, query * entities + entity: who has a profile of its own for a query: the last ones, in order.
    changed: np.ndarray = field(default_factory=lambda: NO_EDGES)

    def __len__(self) -> int:
        return len(self.features)

    def of(self, query: np.ndarray, entities: np.ndarray) -> np.ndarray:
        """The profile of each entity, as its query sees it."""
        profile: np.ndarray = self.of_entity[entities]
        if len(self.changed):
            key = query * len(self.of_entity) + entities
            at = np.minimum(np.searchsorted(self.changed, key), len(self.changed) - 1)
            profile = np.where(self.changed[at] == key, len(self) - len(self.changed) + at, profile)
        return profile

    def rows(
        self, table: Tensor, profile: np.ndarray, of_asked: np.ndarray, n_asked: int
    ) -> tuple[Tensor, np.ndarray]:
        """What a table of features makes of some profiles, and the row of each.

        A row is made once for each different profile, and for each relation asked, where the table differs by them.
        """
        n_features = self.features.n_columns
        if len(table) > n_features:
            profile = profile + of_asked * len(self)
        used, row = number_used(profile, n_asked * len(self))
        of_table, own = np.divmod(used, len(self))
        return sparse_product(self.features.at(own, of_table * n_features, len(table)), table), row


class GraphProfiles:
    """The profiles of all entities, and how they change when edges are hidden.

    Where profiles are off, all entities have that of an entity without edges.
    """

    def __init__(self, graph: KnowledgeGraph, are_on: bool = True) -> None:
        self.graph, self.n_relations, self.are_on = graph, graph.n_relations, are_on
        runs = graph.runs
        self._offsets = runs.offsets if are_on else np.zeros_like(runs.offsets)
        self._relation, self._count = runs.relations.astype(np.int64), runs.lengths
        first, of_entity, sizes = _grouped(self._offsets, self._relation, self._count)
        lengths = np.diff(self._offsets)[first]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(offsets[-1]) + np.repeat(self._offsets[first] - offsets[:-1], lengths)
        features = _features(offsets, self._relation[at], self._count[at], self.n_relations)
        self.whole = Profiles(of_entity, sizes.astype(np.float64), features)

    def without(self, removed: np.ndarray) -> Profiles:
        """The profiles on the graph without some edges: each entity that loses one has a profile of its own."""
        if not len(removed) or not self.are_on:
            return self.whole
        entities, offsets, relation, count = _reduced(
            self.graph.edge_heads(removed),
            self.graph.relations[removed],
            self._offsets,
            self._relation,
            self._count,
        )
        whole, changed = self.whole, _features(offsets, relation, count, self.n_relations)
        of_entity = whole.of_entity.copy()
        sizes = np.concatenate([whole.sizes, np.ones(len(entities))])
        np.subtract.at(sizes, of_entity[entities], 1.0)
        of_entity[entities] = len(whole) + np.arange(len(entities))
        return Profiles(of_entity, sizes, _stacked(whole.features, changed))

    def without_each(self, removed: np.ndarray, removed_offsets: np.ndarray) -> Profiles:
        """The same where each query has removed edges of its own."""
        whole, n_queries, n_entities = self.whole, len(removed_offsets) - 1, self.graph.n_entities
        sizes = np.repeat(whole.sizes[None], n_queries, 0)
        if not len(removed) or not self.are_on:
            return Profiles(whole.of_entity, sizes, whole.features)
        query = np.repeat(np.arange(n_queries), np.diff(removed_offsets))
        changed, offsets, relation, count = _reduced(
            query * n_entities + self.graph.edge_heads(removed),
            self.graph.relations[removed],
            self._offsets,
            self._relation,
            self._count,
        )
        features = _features(offsets, relation, count, self.n_relations)
        query, entities = np.divmod(changed, n_entities)
        np.subtract.at(sizes, (query, whole.of_entity[entities]), 1.0)
        own = np.zeros((n_queries, len(changed)))
        own[query, np.arange(len(changed))] = 1.0
        stacked = _stacked(whole.features, features)
        return Profiles(whole.of_entity, np.concatenate([sizes, own], 1), stacked, changed)


def n_features(n_relations: int) -> int:
    """For each relation whether an entity has it and the logarithm of how often; a constant; the degree."""
    return 2 * n_relations + 2


@kernel
def _same(offsets: Ints, relation: Ints, count: Ints, a: int, b: int) -> bool:
    if offsets[a + 1] - offsets[a] != offsets[b + 1] - offsets[b]:
        return False
    for i in range(offsets[a + 1] - offsets[a]):
        if (
            relation[offsets[a] + i] != relation[offsets[b] + i]
            or count[offsets[a] + i] != count[offsets[b] + i]
        ):
            return False
    return True


@kernel
def _grouped(offsets: Ints, relation: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """The first entity of each different profile, each entity's profile, and how many entities have each."""
    n_entities = len(offsets) - 1
    size = 16
    while size < 2 * n_entities:
        size *= 2
    table = np.full(size, -1, np.int64)
    first, of_entity = np.empty(n_entities, np.int64), np.empty(n_entities, np.int64)
    sizes = np.zeros(n_entities, np.int64)
    n_profiles = 0
    for entity in range(n_entities):
        key = np.uint64(14695981039346656037)
        for i in range(offsets[entity], offsets[entity + 1]):
            for value in (relation[i], count[i]):
                key = (key ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
                key ^= key >> np.uint64(29)
        at = np.int64(key & np.uint64(size - 1))
        while table[at] >= 0 and not _same(offsets, relation, count, first[table[at]], entity):
            at = (at + 1) & (size - 1)
        if table[at] < 0:
            table[at], first[n_profiles] = n_profiles, entity
            n_profiles += 1
        of_entity[entity] = table[at]
        sizes[table[at]] += 1
    return first[:n_profiles].copy(), of_entity, sizes[:n_profiles].copy()


def _reduced(
    heads: np.ndarray, relations: np.ndarray, offsets: np.ndarray, relation: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The entities that lose edges, and what is left of their runs.

    An entity may be given several times over, as query * entities + entity, to lose other edges each time.
    """
    entities = np.unique(heads)
    own = entities % (len(offsets) - 1)
    lengths = np.diff(offsets)[own]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(starts[-1]) + np.repeat(offsets[own] - starts[:-1], lengths)
    owner = np.repeat(np.arange(len(entities)), lengths)
    width = int(relation.max(initial=0)) + 1
    lost = np.searchsorted(owner * width + relation[at], np.searchsorted(entities, heads) * width + relations)
    left = count[at] - np.bincount(lost, minlength=len(at))
    kept = left > 0
    kept_offsets = np.concatenate([[0], np.cumsum(kept)])[starts]
    return entities, kept_offsets, relation[at][kept], left[kept]


def _features(offsets: np.ndarray, relation: np.ndarray, count: np.ndarray, n_relations: int) -> SparseRows:
    """Features of profiles given as runs: see `n_features`."""
    lengths = np.diff(offsets)
    row = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.concatenate([[0], np.cumsum(2 * lengths + 2)])
    columns, values = np.empty(starts[-1], np.int64), np.empty(starts[-1])
    place = starts[row] + 2 * (np.arange(len(relation)) - offsets[row])
    columns[place], values[place] = relation, 1.0
    columns[place + 1], values[place + 1] = n_relations + relation, np.log(count)
    columns[starts[1:] - 2], values[starts[1:] - 2] = 2 * n_relations, 1.0
    degree = np.bincount(row, count, len(lengths))
    columns[starts[1:] - 1], values[starts[1:] - 1] = 2 * n_relations + 1, np.log1p(degree) / DEGREE_SCALE
    return SparseRows(starts, columns, values, n_features(n_relations))


def _stacked(above: SparseRows, below: SparseRows) -> SparseRows:
    return SparseRows(
        np.concatenate([above.offsets, above.offsets[-1] + below.offsets[1:]]),
        np.concatenate([above.columns, below.columns]),
        np.concatenate([above.values, below.values]),
        above.n_columns,
    )
