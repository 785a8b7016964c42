"""Validation on graphs that are not trained on: some of their facts hidden, always the same, and asked for."""

from typing import Any

import numpy as np

from dpmpn.config import Config
from dpmpn.engine.engine import Engine
from dpmpn.engine.model import Model
from dpmpn.evaluate.evaluator import rank_queries
from dpmpn.evaluate.ranking import summarise
from dpmpn.pretrain.splits import Facts, split_of

HIDDEN = 8  # one fact of so many
_SEED = 5  # of all pre-trainings, whatever theirs: figures can be compared


class ValidationGraph:
    """A graph with its hidden facts, as one that a person asks who has trained nothing."""

    def __init__(self, facts: Facts, n_facts: int) -> None:
        n_hidden = max(1, len(facts.triples) // HIDDEN)
        hidden = np.random.default_rng(_SEED).permutation(len(facts.triples))[:n_hidden]
        is_gone = np.zeros(len(facts.triples), bool)
        is_gone[hidden] = True
        self._split = split_of(facts, hidden[:n_facts], is_gone)

    def summary(self, model: Model, config: Config) -> dict[str, Any]:
        """Realistic filtered scores of the hidden facts in both directions, computed in this process."""
        graph = self._split.graph
        # A new one each time: what a model on a graph keeps for the next question is of the weights it had.
        engine = Engine(model, graph, config.replace(threads=1))
        found = summarise(rank_queries(engine, self._split.known, graph.either_way(self._split.hidden)))
        return {**found["realistic"], "coverage": found["coverage"], "queries": found["queries"]}


def mean_summary(summaries: list[dict[str, Any]]) -> dict[str, float]:
    """The mean of each score over the graphs."""
    scores = [key for key in summaries[0] if key != "queries"] if summaries else []
    return {key: float(np.mean([summary[key] for summary in summaries])) for key in scores}
