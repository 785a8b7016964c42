"""Two datasets made of one, with the same relations and no common entity: one to train on, one to ask about.

The facts of all splits are taken together. Entities are parted so that most of their neighbourhoods stay whole (see
`partition`); a fact between the parts is left out, and so is a fact to ask about whose relation no fact to train on
has. Of each part some facts are held out at random, of which both entities and the relation have another fact left
in the part's graph.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph, sorted_unique
from dpmpn.data.importing.splits import random_split
from dpmpn.data.partition import partition
from dpmpn.data.vocabulary import Vocabulary
from dpmpn.errors import ConfigError, DataError

HELD_OUT_SHARE = 0.1
"""Of a part's facts, for validation and again for testing."""


@dataclass(frozen=True, eq=False)
class InductiveSplit:
    """A dataset to train on, one to ask about, and what became of the facts they were made of."""

    train: Dataset
    ask: Dataset  # its training facts are what there is to reason on
    report: dict[str, Any]


def inductive_split(dataset: Dataset, share: float = 0.5, seed: int = 0) -> InductiveSplit:
    """Part a dataset; `share` of its entities are to train on, the others to ask about."""
    if not 0 < share < 1:
        raise ConfigError(f"the share of entities to train on must be between 0 and 1, not {share:g}")
    if dataset.candidates is not None:
        raise DataError(
            f"'{dataset.name}' asks one relation of a graph of its own; part a dataset with train, valid and test"
        )
    facts = _all_facts(dataset)
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
        "whole": _sizes(facts),
        "train": _described(train),
        "ask": _described(ask),
        "facts_between": len(facts) - len(within[0]) - len(within[1]),
        "facts_of_other_relations": len(within[1]) - len(asked),
        "other_relations": [dataset.graph.relation_names.name(int(relation)) for relation in left_out],
    }
    return InductiveSplit(train, ask, report)


def _all_facts(dataset: Dataset) -> np.ndarray:
    """The facts of all splits, sorted, each once; int64, n x 3."""
    facts = np.concatenate([dataset.split(split) for split in SPLITS])
    return np.stack(sorted_unique(facts, dataset.graph.n_entities, dataset.graph.n_relations), 1)


def _dataset_of(whole: Dataset, what: str, facts: np.ndarray, relations: np.ndarray, seed: int) -> Dataset:
    """A dataset of some facts, with the entities they have and with the relations, ascending, that are named."""
    if not len(facts):
        raise DataError(
            f"'{whole.name}' is too small to be parted: no fact to {what} is left; change the share"
        )
    entities = np.unique(facts[:, [0, 2]])
    columns = zip((entities, relations, entities), facts.T, strict=True)
    ids = np.stack([np.searchsorted(*each).astype(np.int32) for each in columns], 1)  # n x 3
    split = random_split(ids, len(entities), len(relations), HELD_OUT_SHARE, HELD_OUT_SHARE, seed)
    train, valid, test = (ids[split.assignment == number] for number in range(len(SPLITS)))
    names = whole.graph.entities, whole.graph.relation_names
    graph = KnowledgeGraph.from_ids(train, _names_of(names[0], entities), _names_of(names[1], relations))
    labels = [_label_frame(vocabulary) for vocabulary in names if vocabulary.labels is not None]
    graph = graph.labelled(pl.concat(labels)) if labels else graph
    return Dataset(f"{whole.name}-{what}", graph, train, valid, test, both_directions=True)


def _names_of(vocabulary: Vocabulary, ids: np.ndarray) -> list[str]:
    return [vocabulary.name(id) for id in ids.tolist()]


def _label_frame(vocabulary: Vocabulary) -> pl.DataFrame:
    """The labels with the names they belong to: columns of LABELS."""
    assert vocabulary.labels is not None
    return pl.DataFrame({"id": vocabulary.names}, {"id": pl.String}).hstack(vocabulary.labels.frame())


def _described(dataset: Dataset) -> dict[str, Any]:
    return {**_sizes(_all_facts(dataset)), **{split: len(dataset.split(split)) for split in SPLITS}}


def _sizes(facts: np.ndarray) -> dict[str, Any]:
    n_entities = len(np.unique(facts[:, [0, 2]]))
    return {
        "entities": n_entities,
        "relations": len(np.unique(facts[:, 1])),
        "facts": len(facts),
        "mean_degree": round(2 * len(facts) / n_entities, 2),  # facts of an entity, held-out ones included
    }
