"""Graphs with the same relations and other entities: two datasets made of one, and a dataset in a model's relations.

Of a dataset that is parted, the facts of all splits are taken together. Entities are parted so that most of their
neighbourhoods stay whole; a fact between the parts is left out, and so is a fact to ask about whose relation no fact
to train on has. Of each part some facts are held out at random, of which both entities and the relation have another
fact left in the part's graph.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph, sorted_unique
from dpmpn.data.splits import random_split
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import ConfigError, DataError, UnknownName
from dpmpn.kernels import kernel

HELD_OUT_SHARE = 0.1
"""Of a part's facts, for validation and again for testing."""
_ENTITIES_PER_ROOT = 20  # fewer roots keep more triples, but mix relations less
_PASSES = 10
_SLACK = 0.01  # of the entities: how far a part may shrink
_OVERFULL = 1.2  # times a part's share of a relation's triples: beyond it, more of them are no gain


@dataclass(frozen=True, eq=False)
class InductiveSplit:
    """A dataset to train on, one to ask about, and what became of the facts they were made of."""

    train: Dataset
    ask: Dataset  # its training facts are what there is to reason on
    report: dict[str, Any]


def inductive_split(dataset: Dataset, share: float = 0.5, seed: int = 0) -> InductiveSplit:
    """Split a dataset; `share` of its entities are to train on, the others to ask about."""
    if not 0 < share < 1:
        raise ConfigError(f"the share of entities to train on must be between 0 and 1, not {share:g}")
    if dataset.candidates is not None:
        raise DataError(
            f"'{dataset.name}' asks one relation of a graph of its own; part a dataset with train, valid and test"
        )
    facts = _facts_of_splits(dataset)
    part = partition(facts, dataset.graph.n_entities, dataset.graph.n_relations, share, seed)
    within = [facts[(part[facts[:, 0]] == side) & (part[facts[:, 2]] == side)] for side in range(2)]
    relations = np.unique(within[0][:, 1])
    asked = within[1][np.isin(within[1][:, 1], relations)]
    train = _dataset_of(dataset, "train", within[0], relations, seed)
    ask = _dataset_of(dataset, "ask", asked, relations, seed)
    left_out = np.setdiff1d(within[1][:, 1], relations)
    report = {
        "dataset": dataset.name,
        "share": share,
        "seed": seed,
        "whole": _fact_counts(facts),
        "train": _summary(train),
        "ask": _summary(ask),
        "facts_between": len(facts) - len(within[0]) - len(within[1]),
        "facts_of_other_relations": len(within[1]) - len(asked),
        "other_relations": [dataset.graph.relation_names.name(int(relation)) for relation in left_out],
    }
    return InductiveSplit(train, ask, report)


def _facts_of_splits(dataset: Dataset) -> np.ndarray:
    """The facts of all splits, sorted, each once; int64, n x 3."""
    facts = np.concatenate([dataset.split(split) for split in SPLITS])
    return np.stack(sorted_unique(facts, dataset.graph.n_entities, dataset.graph.n_relations), 1)


def _dataset_of(whole: Dataset, what: str, facts: np.ndarray, relations: np.ndarray, seed: int) -> Dataset:
    """A dataset of some facts, with the entities they have and with the relations, ascending, that are named."""
    if not len(facts):
        raise DataError(
            f"'{whole.name}' is too small to be split in two: no fact to {what} is left; change the share"
        )
    entities = np.unique(facts[:, [0, 2]])
    columns = zip((entities, relations, entities), facts.T, strict=True)
    ids = np.stack([np.searchsorted(*each).astype(np.int32) for each in columns], 1)  # n x 3
    split = random_split(ids, len(entities), len(relations), HELD_OUT_SHARE, HELD_OUT_SHARE, seed)
    train, valid, test = (ids[split.assignment == number] for number in range(len(SPLITS)))
    names = whole.graph.entities, whole.graph.relation_names
    graph = KnowledgeGraph.from_ids(train, _names_of(names[0], entities), _names_of(names[1], relations))
    labels = [
        pl.DataFrame({"id": vocabulary.names}, {"id": pl.String}).hstack(vocabulary.labels)
        for vocabulary in names
        if vocabulary.labels is not None
    ]
    graph = graph.labelled(pl.concat(labels)) if labels else graph
    return Dataset(f"{whole.name}-{what}", graph, train, valid, test, both_directions=True)


def _names_of(vocabulary: Vocabulary, ids: np.ndarray) -> list[str]:
    return [vocabulary.name(id) for id in ids.tolist()]


def _summary(dataset: Dataset) -> dict[str, Any]:
    return _fact_counts(_facts_of_splits(dataset)) | {split: len(dataset.split(split)) for split in SPLITS}


def _fact_counts(facts: np.ndarray) -> dict[str, Any]:
    n_entities = len(np.unique(facts[:, [0, 2]]))
    return {
        "entities": n_entities,
        "relations": len(np.unique(facts[:, 1])),
        "facts": len(facts),
        "mean_degree": round(2 * len(facts) / n_entities, 2),  # facts of an entity, held-out ones included
    }


def partition(
    triples: np.ndarray, n_entities: int, n_relations: int, share: float, seed: int
) -> np.ndarray:  # int8, n_entities
    """Part 0 or 1 of each entity; part 0 gets a share of them. Triples are n x 3 (head, relation, tail).

    Both parts keep most of their neighbourhoods, and about the same mix of relations. Random halves of the entities
    would keep half of the triples. Cutting as few as possible would part topics: 85 % of FB15K-237 could be kept, but
    a fifth of it in relations that the other half lacks. These halves keep 65 % of it, less than 1 % of that in such
    relations, and 86 % of WN18RR.
    """
    order = np.random.default_rng(seed).permutation(n_entities)
    offsets, neighbours, relations = _neighbours(triples, n_entities)
    shares = np.array([share, 1 - share])
    part: np.ndarray = _grown(
        offsets, neighbours, order, shares, max(1, n_entities // (2 * _ENTITIES_PER_ROOT))
    )
    _refine(offsets, neighbours, relations, order, shares, n_relations, part)
    return part


def _neighbours(triples: np.ndarray, n_entities: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both ends' neighbours over each triple as CSR, with its relation; what joins an entity to itself is left out."""
    heads, relations, tails = triples[triples[:, 0] != triples[:, 2]].astype(np.int64).T
    ends = np.concatenate([heads, tails])
    order = np.argsort(ends, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n_entities))])
    return offsets, np.concatenate([tails, heads])[order], np.concatenate([relations, relations])[order]


@kernel
def _grown(
    offsets: np.ndarray, neighbours: np.ndarray, order: np.ndarray, shares: np.ndarray, n_roots: int
) -> np.ndarray:
    """Both parts breadth-first from roots of their own; the one that lacks more takes the next entity."""
    n_entities = len(offsets) - 1
    part = np.full(n_entities, -1, np.int8)
    queue, queued = np.empty((2, n_entities), np.int64), np.zeros((2, n_entities), np.bool_)
    first, last, size = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    for side in range(2):
        for root in order[side * n_roots : (side + 1) * n_roots]:
            queue[side, last[side]], queued[side, root] = root, True
            last[side] += 1
    unreached = 0
    for _ in range(n_entities):
        side = 0 if size[0] * shares[1] <= size[1] * shares[0] else 1
        entity = -1
        while entity < 0 and first[side] < last[side]:
            if part[queue[side, first[side]]] < 0:
                entity = queue[side, first[side]]
            first[side] += 1
        while entity < 0:  # nothing is left beside this part: it goes on elsewhere
            if part[order[unreached]] < 0:
                entity = order[unreached]
            unreached += 1
        part[entity] = side
        size[side] += 1
        for neighbour in neighbours[offsets[entity] : offsets[entity + 1]]:
            if part[neighbour] < 0 and not queued[side, neighbour]:
                queue[side, last[side]], queued[side, neighbour] = neighbour, True
                last[side] += 1
    return part


@kernel
def _refine(
    offsets: np.ndarray,
    neighbours: np.ndarray,
    relations: np.ndarray,
    order: np.ndarray,
    shares: np.ndarray,
    n_relations: int,
    part: np.ndarray,
) -> None:
    """Move entities to the part they have more triples with, not counting relations that a part has too much of."""
    kept = np.zeros((2, n_relations), np.int64)  # triples within a part, from both their ends
    size = np.zeros(2, np.int64)
    for entity in range(len(part)):
        size[part[entity]] += 1
        for i in range(offsets[entity], offsets[entity + 1]):
            if part[neighbours[i]] == part[entity]:
                kept[part[entity], relations[i]] += 1
    least = size - max(1, int(_SLACK * len(part)))
    for _ in range(_PASSES):
        moved = False
        for entity in order:
            side = part[entity]
            if size[side] <= least[side]:
                continue
            gain = 0
            for i in range(offsets[entity], offsets[entity + 1]):
                relation, other = relations[i], part[neighbours[i]]
                of_relation = kept[0, relation] + kept[1, relation]
                if kept[other, relation] <= _OVERFULL * shares[other] * of_relation + 2:
                    gain += -1 if other == side else 1
            if gain <= 0:
                continue
            for i in range(offsets[entity], offsets[entity + 1]):
                kept[part[neighbours[i]], relations[i]] += -2 if part[neighbours[i]] == side else 2
            part[entity] = 1 - side
            size[side] -= 1
            size[1 - side] += 1
            moved = True
        if not moved:
            break


def with_relations_of(dataset: Dataset, known: KnowledgeGraph) -> Dataset:
    """The dataset with the relations of a graph that a model knows, matched by name; other relations are refused.

    Edges of inverses are made anew, as the known graph has them: a relation without an inverse there gets none.
    """
    graph = dataset.graph
    ids = _relation_ids(dataset, known)  # of the file's relations
    inverses = known.inverse[ids]
    both = np.concatenate([ids, inverses])[: graph.n_relations]  # of added inverses, too, where there are any
    heads = graph.all_heads()
    stated = graph.relations < graph.n_forward  # the rest are added inverses
    heads, relations, tails = heads[stated], graph.relations[stated], graph.tails[stated]
    forward = np.stack([heads, ids[relations], tails], 1)
    backward = np.stack([tails, inverses[relations], heads], 1)
    edges = np.concatenate([forward, backward[backward[:, 1] >= 0]])
    made = KnowledgeGraph.from_ids(edges, graph.entities, known.relation_names, add_inverses=False)
    train, valid, test = (_renumbered(dataset.split(split), both) for split in SPLITS)
    candidates = dataset.candidates
    said = None if graph.provenance is None else graph.provenance.renumbered(both)
    return replace(
        dataset,
        graph=replace(
            made, inverse=known.inverse, provenance=said
        ),  # names alone do not tell it where users' own end in _inv
        train=train,
        valid=valid,
        test=test,
        both_directions=dataset.both_directions and bool((inverses >= 0).all()),
        candidates=candidates and replace(candidates, relation=int(ids[candidates.relation])),
    )


def _relation_ids(dataset: Dataset, known: KnowledgeGraph) -> np.ndarray:
    """The known id of each of the file's relations."""
    names = pl.Series(dataset.graph.relation_names.names[: dataset.graph.n_forward], dtype=pl.String)
    ids = known.relation_names.ids(names)
    unknown = names.filter(pl.Series(ids < 0)).to_list()
    if unknown:
        more = f", nor {len(unknown) - 1:,} more of '{dataset.name}'" if len(unknown) > 1 else ""
        near = known.relation_names.near(unknown[0], known.n_forward)
        hint = f"the model did not learn it{more}; leave out such facts, or train on a graph that has them"
        raise UnknownName("relation", unknown[0], near, hint)
    return ids


def _renumbered(triples: np.ndarray, ids: np.ndarray) -> np.ndarray:
    triples = np.array(triples)  # n x 3, and not mapped any more
    triples[:, 1] = ids[triples[:, 1]]
    return triples
