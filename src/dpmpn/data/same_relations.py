"""A dataset in terms of another graph's relations: the same ids for the same names, so that one model reads both."""

from dataclasses import replace

import numpy as np
import polars as pl

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import UnknownName


def with_relations_of(dataset: Dataset, known: KnowledgeGraph) -> Dataset:
    """The dataset with the relations of a graph that a model knows, matched by name; other relations are refused.

    Edges of inverses are made anew, as the known graph has them: a relation without an inverse there gets none.
    """
    graph = dataset.graph
    ids = _known_ids(dataset, known)  # of the file's relations
    inverses = known.inverse[ids]
    both = np.concatenate([ids, inverses])[: graph.n_relations]  # of added inverses, too, where there are any
    heads = np.repeat(np.arange(graph.n_entities), np.diff(graph.offsets))
    stated = graph.relations < graph.n_forward  # the rest are added inverses
    heads, relations, tails = heads[stated], graph.relations[stated], graph.tails[stated]
    forward = np.stack([heads, ids[relations], tails], 1)
    backward = np.stack([tails, inverses[relations], heads], 1)
    edges = np.concatenate([forward, backward[backward[:, 1] >= 0]])
    made = KnowledgeGraph.from_ids(edges, graph.entities, known.relation_names, add_inverses=False)
    train, valid, test = (_renumbered(dataset.split(split), both) for split in SPLITS)
    asked = dataset.candidates
    return replace(
        dataset,
        graph=replace(made, inverse=known.inverse),  # names alone do not tell it where users' own end in _inv
        train=train,
        valid=valid,
        test=test,
        both_directions=dataset.both_directions and bool((inverses >= 0).all()),
        candidates=None if asked is None else replace(asked, relation=int(ids[asked.relation])),
    )


def _known_ids(dataset: Dataset, known: KnowledgeGraph) -> np.ndarray:
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
