"""Validation while training: the same queries each time, scored as in the final evaluation."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.leakage import pair_keys
from dpmpn.engine.engine import Engine
from dpmpn.errors import Stopped
from dpmpn.evaluate.evaluator import known_answers, rank_queries
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import summarise
from dpmpn.train.checkpoint import Validation

_HELD_OUT = 0.2  # of the training facts, at most, where validation facts are taken from them
_DRAW = 7_919  # keeps this draw apart from others of the seed


class Validator:
    """A fixed sample of validation queries, and how to score a model on it."""

    def __init__(self, engine: Engine, dataset: Dataset, config: Config, stop: Callable[[], bool]) -> None:
        self.engine, self.dataset, self.stop = engine, dataset, stop
        self.queries = sampled_queries(dataset, config)

    @cached_property
    def known(self) -> KnownAnswers:
        """What filtered ranks leave out; gathered when first needed."""
        return known_answers(self.dataset)

    def validate(self, position: int) -> Validation:
        """The realistic filtered MRR of the sample, with all other scores."""
        ranks = rank_queries(self.engine, self.known, self.queries, progress=self._check_stop)
        summary = summarise(ranks)
        return Validation(position, summary["realistic"]["mrr"], dict(summary))

    def _check_stop(self, done: int, total: int) -> None:
        if done < total and self.stop():
            raise Stopped


def sampled_queries(dataset: Dataset, config: Config) -> np.ndarray:
    """Validation queries drawn by the seed alone: the same at every validation of every session."""
    queries, count = dataset.queries("valid"), config.training.validation_queries
    if _stated(dataset.graph, queries).any():
        count = min(count or len(queries), max(1, int(_HELD_OUT * len(dataset.queries("train")))))
    if count == 0 or count >= len(queries):
        return queries
    draw = np.random.default_rng([config.run.seed, _DRAW])
    return queries[np.sort(draw.choice(len(queries), count, replace=False))]


def training_queries(dataset: Dataset, config: Config) -> np.ndarray:
    """Queries to train on: all but those that are set aside; they stay edges of the graph, which others may use.

    Set aside is what validation asks where its facts are training facts, too, as in the NELL995 tasks: learnt, they
    would choose the model that remembers most. And, if so configured, some of the facts whose entities another fact
    joins as well.
    """
    queries, asked = dataset.queries("train"), sampled_queries(dataset, config)
    if config.training.joined_share < 1:
        draw = np.random.default_rng([config.run.seed, _DRAW, 1]).random(len(queries))
        queries = queries[(draw < config.training.joined_share) | ~_joined(queries, dataset)]
    asked = asked[_stated(dataset.graph, asked)]
    if not len(asked):
        return queries
    held_out = set(map(tuple, asked.tolist()))
    return queries[[tuple(query) not in held_out for query in queries.tolist()]]


def _joined(queries: np.ndarray, dataset: Dataset) -> np.ndarray:
    """Which of the queries have a head and a target that more than one fact joins, in whichever direction."""
    n_entities = dataset.graph.n_entities
    facts = np.unique(dataset.train, axis=0)
    pairs, counts = np.unique(pair_keys(facts, n_entities), return_counts=True)
    return counts[np.searchsorted(pairs, pair_keys(queries, n_entities))] > 1


def _stated(graph: KnowledgeGraph, queries: np.ndarray) -> np.ndarray:
    """Which of the queries the graph itself answers."""
    return graph.find_edges(queries[:, 0], queries[:, 1], queries[:, 2]) >= 0
