"""Batches of training queries: their order, and what of the graph each must not see."""

import numpy as np

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.errors import DataError
from dpmpn.model.batch import QueryBatch, sample_ignn_edges
from dpmpn.model.leaks import removed_edges
from dpmpn.ops.permutation import combine


class TrainingQueries:
    """All training queries in an order that depends on the seed and the epoch alone."""

    def __init__(self, graph: KnowledgeGraph, queries: np.ndarray, config: Config) -> None:
        if not len(queries):
            raise DataError("there are no training triples; nothing can be learnt")
        self.graph, self.queries, self.config = graph, queries, config
        self._epoch = -1
        self._order = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.queries)

    def at(self, position: int, count: int) -> tuple[QueryBatch, np.ndarray]:
        """The batch of at most `count` queries that starts at a position of the run, and its targets.

        A batch does not cross the end of an epoch. Everything random about it follows from the seed and the position.
        """
        epoch, start = divmod(position, len(self.queries))
        if epoch != self._epoch:
            self._order = np.random.default_rng([self.config.run.seed, epoch]).permutation(len(self.queries))
            self._epoch = epoch
        triples = self.queries[self._order[start : start + count]]
        model, training = self.config.model, self.config.training
        removed = removed_edges(self.graph, triples, training.leak_removal)
        key = np.uint64(combine(np.uint64(self.config.run.seed), position))
        edges = sample_ignn_edges(
            self.graph, removed, model.n_steps_in_ignn, model.max_sampling_per_step, combine(key, 0)
        )
        keys = np.array([combine(key, 1 + i) for i in range(len(triples))], np.uint64)
        heads, relations = triples[:, 0].astype(np.int32), triples[:, 1].astype(np.int64)
        return QueryBatch(heads, relations, keys, removed, edges), triples[:, 2]
