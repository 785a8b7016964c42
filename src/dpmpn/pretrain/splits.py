"""Splits of a graph: a part of it or all, some of whose facts are hidden, from everything, and alone are asked for."""

from typing import NamedTuple

import numpy as np

from dpmpn.data.graph import KnowledgeGraph, sorted_unique
from dpmpn.data.leakage import MINIMAL_SHARE, pair_keys, repeated_relations
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.kernels import Ints, kernel
from dpmpn.pretrain.settings import PretrainingSettings

FEWEST_FACTS = 20
"""Of a graph; of fewer, what is hidden says little about the rest."""
_MOST_CHANGED = 0.3  # of facts that are thinned, and of relations that are dropped or merged
_MOST_STARTS = 20  # entities that a part of a graph grows from
_LEAST_EDGES, _MOST_EDGES = 5, 60  # of an entity that it grows along
_FIRST_GROWTH = 400  # entities; from there on a part at most doubles at a time, and stays compact


class Facts(NamedTuple):
    """Facts in numbers alone."""

    triples: np.ndarray  # int64, n x 3 (head, relation, tail), sorted and unique
    n_entities: int
    n_relations: int
    are_apart: bool = False  # held-out facts join entities that no other fact joins, as in FB15K-237


class Split(NamedTuple):
    """A graph, and the facts hidden from it."""

    graph: KnowledgeGraph
    hidden: np.ndarray  # int64, n x 3, in the direction of the facts
    known: KnownAnswers  # every fact there is, in both directions


def drawn_split(
    facts: Facts, whole: KnowledgeGraph, draw: np.random.Generator, s: PretrainingSettings
) -> Split:
    """A split of a graph or, with probability `subgraph_share`, of a part of it; `whole` is the graph of the facts."""
    rows, most = np.arange(len(facts.triples)), min(s.most_subgraph_facts, len(facts.triples) // 2)
    if draw.random() < s.subgraph_share and most >= s.least_subgraph_facts:
        size = int(np.exp(draw.uniform(np.log(s.least_subgraph_facts), np.log(most))))
        rows = neighbourhood(facts, whole, size, draw)
    if draw.random() < s.drop_doubled:
        single = rows[~np.isin(facts.triples[rows, 1], doubled_relations(facts, whole))]
        rows = single if len(single) >= FEWEST_FACTS else rows
    part = facts if len(rows) == len(facts.triples) else renumbered(facts.triples[rows])
    return hide(_varied(part, draw, s)._replace(are_apart=facts.are_apart), draw, s)


def doubled_relations(facts: Facts, whole: KnowledgeGraph) -> np.ndarray:
    """Relations most of whose facts repeat those of another, or its inverse, that is no such one: that has more facts.

    Who is asked for one of their facts finds the other, and learns to look for nothing else.
    """
    repeats = repeated_relations(facts.triples, whole, least_facts=1)
    found: set[int] = set()
    for relation in np.argsort(np.bincount(facts.triples[:, 1], minlength=facts.n_relations), kind="stable"):
        is_repeating = (repeats.relation == relation) & (repeats.share >= MINIMAL_SHARE)
        if not set(repeats.other[is_repeating].tolist()) <= found:
            found.add(int(relation))
    return np.array(sorted(found), np.int64)


def hide(facts: Facts, draw: np.random.Generator, s: PretrainingSettings) -> Split:
    """Hide some facts, in some splits all others that join their entities, and in some a part of all others, too.

    What is asked for leaves each entity another fact: nobody asks for an entity that the graph does not have. Where
    held-out facts of a graph are apart from all others, those that join their entities are hidden in all splits.
    """
    triples, n_facts = facts.triples, len(facts.triples)
    count = round(draw.uniform(s.least_hidden, s.most_hidden) * n_facts)
    order, count = draw.permutation(n_facts), min(max(count, 1), s.most_hidden_facts)
    spared = _sparing(triples, facts.n_entities, order, count)
    hidden = np.sort(spared if len(spared) else order[:count])  # of pairs that nothing joins, all would stay
    is_gone = np.zeros(n_facts, bool)
    is_gone[hidden] = True
    if draw.random() < s.hide_pairs or facts.are_apart:
        pairs = pair_keys(triples, facts.n_entities)
        is_gone |= np.isin(pairs, pairs[hidden])
    if draw.random() < s.thin_facts:
        is_gone |= draw.random(n_facts) < draw.uniform(0, _MOST_CHANGED)
    return split_of(facts, hidden, is_gone)


def split_of(facts: Facts, hidden: np.ndarray, is_gone: np.ndarray) -> Split:
    """The split of the graph without the facts that are gone, the hidden rows among them."""
    graph = KnowledgeGraph.from_ids(facts.triples[~is_gone], facts.n_entities, facts.n_relations)
    known = KnownAnswers.from_triples(graph.either_way(facts.triples))
    return Split(graph, facts.triples[hidden], known)


def neighbourhood(facts: Facts, graph: KnowledgeGraph, size: int, draw: np.random.Generator) -> np.ndarray:
    """Rows of at least so many facts (all, if there are fewer) between entities that are near each other.

    Entities are reached in waves from a few that are drawn, along some edges of each; those reached first are taken
    until there are enough facts between them.
    """
    unreached = facts.n_entities
    order = np.full(facts.n_entities, unreached)  # in which entities were reached
    n_starts = int(draw.integers(1, _MOST_STARTS))
    per_entity = int(draw.integers(_LEAST_EDGES, _MOST_EDGES))
    n_reached, wave = 0, _some(np.arange(facts.n_entities), n_starts, draw)
    while True:
        order[wave] = n_reached + np.arange(len(wave))
        n_reached += len(wave)
        last = np.maximum(order[facts.triples[:, 0]], order[facts.triples[:, 2]])  # of a fact's two entities
        if np.count_nonzero(last < unreached) >= size or n_reached == facts.n_entities:
            break
        found = np.unique(graph.tails[_some_edges(graph, wave, per_entity, draw)])
        found = found[order[found] == unreached]
        if len(found):
            wave = _some(found, _FIRST_GROWTH + n_reached, draw)
        else:  # nothing leads on from there
            wave = _some(np.flatnonzero(order == unreached), n_starts, draw)
    enough = min(size, len(last)) - 1
    return np.flatnonzero(last <= min(int(np.partition(last, enough)[enough]), unreached - 1))


def renumbered(triples: np.ndarray) -> Facts:
    """Facts whose entities and relations are those that they have, numbered anew in the same order."""
    entities, ends = np.unique(triples[:, [0, 2]], return_inverse=True)
    relations, relation = np.unique(triples[:, 1], return_inverse=True)
    heads, tails = ends.reshape(-1, 2).T
    return Facts(np.stack([heads, relation.reshape(-1), tails], 1), len(entities), len(relations))


def _varied(facts: Facts, draw: np.random.Generator, s: PretrainingSettings) -> Facts:
    """The facts, in some splits with relations that are taken for others, and in some without some relations."""
    n_relations = facts.n_relations
    becomes, is_kept = np.arange(n_relations), np.ones(n_relations, bool)
    if draw.random() < s.merge_relations:
        is_merged = draw.random(n_relations) < draw.uniform(0, _MOST_CHANGED)
        becomes[is_merged] = draw.integers(n_relations, size=is_merged.sum())
    if draw.random() < s.drop_relations:
        is_kept = draw.random(n_relations) >= draw.uniform(0, _MOST_CHANGED)
    triples = facts.triples[is_kept[facts.triples[:, 1]]]
    if len(triples) < FEWEST_FACTS or (is_kept.all() and (becomes == np.arange(n_relations)).all()):
        return facts
    changed = np.stack([triples[:, 0], becomes[triples[:, 1]], triples[:, 2]], 1)
    return renumbered(np.stack(sorted_unique(changed, facts.n_entities, n_relations), 1))


def _some(entities: np.ndarray, count: int, draw: np.random.Generator) -> np.ndarray:
    """At most so many of the entities, in a random order."""
    return draw.permutation(entities)[:count]


def _some_edges(
    graph: KnowledgeGraph, entities: np.ndarray, count: int, draw: np.random.Generator
) -> np.ndarray:
    """Edges of each entity: all, or so many draws where it has more."""
    degree = np.diff(graph.offsets)[entities]
    sizes = np.minimum(degree, count)
    of_entity = np.repeat(np.arange(len(entities)), sizes)
    nth = np.arange(len(of_entity)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    drawn = (draw.random(len(of_entity)) * degree[of_entity]).astype(np.int64)
    edges: np.ndarray = graph.offsets[entities[of_entity]] + np.where(degree[of_entity] > count, drawn, nth)
    return edges


@kernel
def _sparing(triples: Ints, n_entities: int, order: Ints, count: int) -> Ints:
    """The first rows in an order, at most so many, without which each entity still has a fact."""
    left = np.zeros(n_entities, np.int64)  # facts of each entity; one with itself counts twice
    for i in range(len(triples)):
        left[triples[i, 0]] += 1
        left[triples[i, 2]] += 1
    chosen, n_chosen = np.empty(count, np.int64), 0
    for row in order:
        if n_chosen == count:
            break
        head, tail = triples[row, 0], triples[row, 2]
        left[head] -= 1
        left[tail] -= 1
        if left[head] > 0 and left[tail] > 0:
            chosen[n_chosen] = row
            n_chosen += 1
        else:
            left[head] += 1
            left[tail] += 1
    return chosen[:n_chosen]
