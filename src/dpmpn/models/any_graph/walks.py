"""How walks of two steps from the heads of a relation end: at one of its tails, or elsewhere.

What is counted for rules, first(x, y) and second(y, z) imply asked(x, z), on a sample of heads. A walk never comes back
to the head, so that no fact speaks for itself.
"""

from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.kernels import Bools, Ints, kernel
from dpmpn.ops.expand import probe
from dpmpn.ops.permutation import combine

HEADS = 200  # of each relation, from which walks are counted
PER_RUN, PER_NODE = 20, 100  # edges walked of each relation of the head, and of the entity that they lead to
DOUBT = 5.0  # walks that miss, counted beside those that were seen: few walks say little
FEWEST_HITS = 2  # of a rule that is kept
_TABLE = 1 << 18  # places for pairs of relations; where three of four are taken, further pairs are left out
_KEY = np.uint64(7)


class Rules(NamedTuple):
    """For a relation asked, the pairs of relations that lead to its tails."""

    keys: np.ndarray  # int64, ascending: first * n_relations + second
    confidence: np.ndarray  # float64: of their walks, the share that ends at a tail


class WalksOf(NamedTuple):
    """What walks from heads of one relation say of the others: shares by relation, and rules."""

    first: np.ndarray  # float32: of the walks whose first step is a relation, the share that ends at a tail
    second: np.ndarray  # float32: and of those whose second step is
    reached: np.ndarray  # float32: of the tails, the share that walks reach whose first step is a relation
    rules: Rules


class Walks:
    """The walks on a graph, counted for each relation when it is first asked: all of them may take seconds."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self._counted: dict[int, WalksOf] = {}

    def of(self, relation: int) -> WalksOf:
        """Of one relation; those of a relation that the graph lacks say nothing."""
        with _COUNTING:
            if relation not in self._counted:
                self._counted[relation] = self._counter.count(relation, self._heads[relation])
            return self._counted[relation]

    def after(self, graph: KnowledgeGraph, changed: Bools) -> "Walks":
        """The same on a graph where some entities have other edges: what does not walk there is kept."""
        before, later = self.graph, Walks(graph)
        is_near = _near(graph.offsets, graph.tails, changed[: graph.n_entities])
        had = before.relations[changed[before.all_heads()]]
        again = np.zeros(graph.n_relations, bool)
        again[had] = True
        with _COUNTING:
            later._counted = {
                relation: counted
                for relation, counted in self._counted.items()
                if not again[relation] and not is_near[later._heads[relation]].any()
            }
        return later

    @cached_property
    def _counter(self) -> "_Counter":
        return _Counter(self.graph)

    @cached_property
    def _heads(self) -> list[np.ndarray]:
        return _chosen(self.graph)


_COUNTING = Lock()  # threads of a server ask on one graph, and counting has one place to count in


class _Counter:
    """Counts walks on a graph, for one relation asked after another."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.edges, self.n_relations = (graph.offsets, graph.relations, graph.tails), graph.n_relations
        # Of each entity the last head that has it as a tail, and the last run of walks that came to it; numbers go on
        # from one relation asked to the next, so that nothing need be cleared.
        self.stamps, self.clock = np.zeros((2, graph.n_entities), np.int64), np.zeros(2, np.int64)
        self.keys, self.counts = np.full(_TABLE, -1), np.zeros((_TABLE, 2), np.int64)

    def count(self, asked: int, heads: Ints) -> WalksOf:
        """The walks of a relation asked, from some of its heads."""
        tables = self.stamps, self.clock, self.keys, self.counts
        used, n_facts, counts = _walk(asked, heads, *self.edges, self.n_relations, *tables)
        keys, (hits, walks) = self.keys[used], self.counts[used].T
        self.keys[used], self.counts[used] = -1, 0
        kept = np.flatnonzero(hits >= FEWEST_HITS)
        kept = kept[np.argsort(keys[kept])]
        rules = Rules(keys[kept], hits[kept] / (walks[kept] + DOUBT))
        by_first, walks_first, by_second, walks_second, tails = counts
        shares = by_first / (walks_first + DOUBT), by_second / (walks_second + DOUBT), tails / max(n_facts, 1)
        first, second, reached = (share.astype(np.float32) for share in shares)
        return WalksOf(first, second, reached, rules)


def _chosen(graph: KnowledgeGraph) -> list[np.ndarray]:
    """For each relation the heads that walks begin at: all, or those with the smallest keys."""
    runs = graph.runs
    owner, relation = np.repeat(np.arange(graph.n_entities), np.diff(runs.offsets)), runs.relations
    order = np.lexsort((_keys(owner), relation))
    parts = np.split(owner[order], np.searchsorted(relation[order], np.arange(1, graph.n_relations)))
    return [part[:HEADS] for part in parts]


@kernel
def _keys(entities: Ints) -> Ints:
    keys = np.empty(len(entities), np.uint64)
    for i in range(len(entities)):
        keys[i] = combine(_KEY, entities[i])
    return keys


@kernel
def _near(offsets: Ints, tails: Ints, changed: Bools) -> Bools:
    """Whether each entity is changed, or has an edge to one that is."""
    near = changed.copy()
    for entity in range(len(changed)):
        for edge in range(offsets[entity], offsets[entity + 1]):
            near[entity] |= changed[tails[edge]]
    return near


@kernel
def _walk(
    asked: int, heads: Ints, offsets: Ints, relations: Ints, tails: Ints, n_relations: int, stamps: Ints,
    clock: Ints, keys: Ints, counts: Ints,
) -> tuple[Ints, int, Ints]:  # fmt: skip
    """Used places of the table (hits and walks of each pair), how many facts were asked for, and counts by relation:

    hits and walks by the first step, hits and walks by the second, tails reached by the first.
    """
    found, used = np.zeros((5, n_relations), np.int64), np.empty(len(keys), np.int64)
    is_tail, is_reached = stamps[0], stamps[1]
    n_used, n_facts = 0, 0
    for i in range(len(heads)):
        head = heads[i]
        clock[0] += 1
        start, stop = offsets[head], offsets[head + 1]
        for e in range(start, stop):
            if relations[e] == asked:
                is_tail[tails[e]] = clock[0]
                n_facts += 1
        run = start
        while run < stop:
            clock[1] += 1
            r, end = relations[run], run
            while end < stop and relations[end] == r:
                end += 1
            stride = max(1, (end - run) // PER_RUN)
            for e in range(run + head % stride, end, stride):
                middle = tails[e]
                if middle == head:
                    continue
                first, last = offsets[middle], offsets[middle + 1]
                stride_on = max(1, (last - first) // PER_NODE)
                for f in range(first + head % stride_on, last, stride_on):
                    tail, s = tails[f], relations[f]
                    if tail == head or tail == middle:  # noqa: SIM109  # numba knows no tuple of two types
                        continue
                    is_hit = is_tail[tail] == clock[0]
                    found[0, r] += is_hit
                    found[1, r] += 1
                    found[2, s] += is_hit
                    found[3, s] += 1
                    if is_hit and is_reached[tail] != clock[1]:
                        is_reached[tail] = clock[1]
                        found[4, r] += 1
                    key = r * n_relations + s
                    at = probe(keys, key)
                    if keys[at] == -1:
                        if 4 * n_used >= 3 * len(keys):
                            continue
                        keys[at] = key
                        used[n_used] = at
                        n_used += 1
                    counts[at, 0] += is_hit
                    counts[at, 1] += 1
            run = end
    return used[:n_used].copy(), n_facts, found
