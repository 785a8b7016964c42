"""How well a reasoner finds facts, as one number: what a search over parameters compares."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.importer import SplitChoice, dataset_from
from dpmpn.evaluate.evaluator import evaluate

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner


def mean_reciprocal_rank(reasoner: "Reasoner", facts: Any) -> float:
    """The realistic filtered MRR of facts, of the test facts if None; a fact with an unknown name counts 0."""
    dataset, share = reasoner.dataset, 1.0
    if facts is not None:
        triples = _triples_in(dataset.graph, facts)
        known = triples[(triples >= 0).all(1)]
        if not len(known):
            return 0.0
        dataset, share = replace(dataset, test=known), len(known) / len(triples)
    try:
        report = evaluate(reasoner.engine, dataset, "test")
    finally:
        reasoner.engine.close()
    return share * float(report["both"]["realistic"]["mrr"])


def _triples_in(graph: KnowledgeGraph, facts: Any) -> np.ndarray:
    """Facts of any kind by the ids of a graph: n x 3, -1 for a name that it does not have."""
    given = facts if isinstance(facts, Dataset) else dataset_from(facts, split=SplitChoice("none"))
    entities = graph.entities.ids(pl.Series(given.graph.entities.names, dtype=pl.String))
    names = [given.graph.relation_names.name(relation) for relation in range(given.graph.n_forward)]
    relations = graph.relation_names.ids(pl.Series(names, dtype=pl.String))
    heads, asked, tails = given.train.T
    return np.stack([entities[heads], relations[asked], entities[tails]], 1).astype(np.int32)
