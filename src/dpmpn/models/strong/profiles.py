"""Relation profiles: what an entity looks like by the number of its edges of each relation.

Entities with equal profiles are of one kind. Whatever depends on the profile alone is computed once per kind, so that
a distribution over all entities costs no more than one over the kinds.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.ops.sparse import SparseRows

DEGREE_SCALE = 3.0  # brings log(1 + degree) to the size of the other features


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kinds of a graph's entities, as a batch sees them."""

    of_entity: np.ndarray  # int64, entities
    sizes: np.ndarray  # float64, kinds: entities of each
    features: SparseRows  # kinds x n_features


class Profiles:
    """The kinds of all entities, and how they change when edges are hidden.

    Where entities are not told apart by their profiles, all are of one kind: that of an entity without edges.
    """

    def __init__(self, graph: KnowledgeGraph, told_apart: bool = True) -> None:
        self.graph, self.n_relations, self.told_apart = graph, graph.n_relations, told_apart
        offsets = graph.offsets if told_apart else np.zeros_like(graph.offsets)
        self._offsets, self._relation, self._count = _counted(offsets, graph.relations)
        first, of_entity, sizes = _grouped(self._offsets, self._relation, self._count)
        lengths = np.diff(self._offsets)[first]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(offsets[-1]) + np.repeat(self._offsets[first] - offsets[:-1], lengths)
        features = _features(offsets, self._relation[at], self._count[at], self.n_relations)
        self.kinds = Kinds(of_entity, sizes.astype(np.float64), features)

    def without(self, removed: np.ndarray) -> Kinds:
        """The kinds on the graph without some edges: each entity that loses one is a kind of its own."""
        if not len(removed) or not self.told_apart:
            return self.kinds
        entities, offsets, relation, count = _reduced(
            self.graph.edge_heads(removed),
            self.graph.relations[removed],
            self._offsets,
            self._relation,
            self._count,
        )
        kinds, changed = self.kinds, _features(offsets, relation, count, self.n_relations)
        of_entity, n_kinds = kinds.of_entity.copy(), len(kinds.sizes)
        sizes = np.concatenate([kinds.sizes, np.ones(len(entities))])
        np.subtract.at(sizes, of_entity[entities], 1.0)
        of_entity[entities] = n_kinds + np.arange(len(entities))
        return Kinds(of_entity, sizes, _stacked(kinds.features, changed))


def n_features(n_relations: int) -> int:
    """For each relation whether an entity has it and the logarithm of how often; a constant; the degree."""
    return 2 * n_relations + 2


@njit(nogil=True, cache=True)
def _counted(offsets, relations):
    """Runs of equal relations of each entity: their offsets per entity, relations and lengths."""
    run_offsets = np.zeros(len(offsets), np.int64)
    relation, count = np.empty(len(relations), np.int64), np.empty(len(relations), np.int64)
    n = 0
    for entity in range(len(offsets) - 1):
        for e in range(offsets[entity], offsets[entity + 1]):
            if e == offsets[entity] or relations[e] != relations[e - 1]:
                relation[n], count[n] = relations[e], 1
                n += 1
            else:
                count[n - 1] += 1
        run_offsets[entity + 1] = n
    return run_offsets, relation[:n].copy(), count[:n].copy()


@njit(nogil=True, cache=True)
def _same(offsets, relation, count, a, b):
    if offsets[a + 1] - offsets[a] != offsets[b + 1] - offsets[b]:
        return False
    for i in range(offsets[a + 1] - offsets[a]):
        if (
            relation[offsets[a] + i] != relation[offsets[b] + i]
            or count[offsets[a] + i] != count[offsets[b] + i]
        ):
            return False
    return True


@njit(nogil=True, cache=True)
def _grouped(offsets, relation, count):
    """Entities of equal profiles: the first entity of each kind, each entity's kind, and the sizes of the kinds."""
    n_entities = len(offsets) - 1
    size = 16
    while size < 2 * n_entities:
        size *= 2
    table = np.full(size, -1, np.int64)
    first, of_entity = np.empty(n_entities, np.int64), np.empty(n_entities, np.int64)
    sizes = np.zeros(n_entities, np.int64)
    n_kinds = 0
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
            table[at], first[n_kinds] = n_kinds, entity
            n_kinds += 1
        of_entity[entity] = table[at]
        sizes[table[at]] += 1
    return first[:n_kinds].copy(), of_entity, sizes[:n_kinds].copy()


def _reduced(
    heads: np.ndarray, relations: np.ndarray, offsets: np.ndarray, relation: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The entities that lose edges, and what is left of their runs."""
    entities = np.unique(heads)
    lengths = np.diff(offsets)[entities]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    at = np.arange(starts[-1]) + np.repeat(offsets[entities] - starts[:-1], lengths)
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
