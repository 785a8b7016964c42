"""Batches of training queries: their order, and what of the graph each must not see."""

from functools import cached_property

import numpy as np

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph, sorted_unique
from dpmpn.engine.batch import NO_EDGES, QueryBatch, SampledEdges, removed_edges, sample_ignn_edges
from dpmpn.engine.learning import Targets
from dpmpn.errors import DataError
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.ops.permutation import combine

_DROPOUT = 2  # keeps the draw of hidden facts apart from others of the same seed


class TrainingQueries:
    """All training queries in an order that depends on the seed and the epoch alone.

    With `joint_targets` above 1, a query is a question <head, relation, ?> with up to so many of its tails. Which tails
    go together is drawn anew in each epoch; how many queries there are stays the same.
    """

    def __init__(self, graph: KnowledgeGraph, triples: np.ndarray, config: Config) -> None:
        if not len(triples):
            raise DataError("there are no training triples; nothing can be learnt")
        self.graph, self.config = graph, config
        everything = np.arange(graph.n_edges)  # also facts that are not learnt are right answers
        self.known = KnownAnswers.from_triples(
            np.stack([graph.edge_heads(everything), graph.relations, graph.tails], 1)
        )
        self._question: np.ndarray | None = None
        if config.training.joint_targets > 1:
            triples, self._question = by_question(graph, triples)
            self._offsets = cut(self._question, config.training.joint_targets)  # queries + 1
        else:
            self._offsets = np.arange(len(triples) + 1)
        self.triples = triples
        self._epoch = -1
        self._order = np.empty(0, np.int64)  # of the queries
        self._rows = np.empty(0, np.int64)  # of the triples that queries are cut from

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def at(self, position: int, count: int) -> tuple[QueryBatch, Targets]:
        """The batch of at most `count` queries that starts at a position of the run, and its targets.

        A batch does not cross the end of an epoch. Everything random about it follows from the seed and the position.
        """
        epoch, start = divmod(position, len(self))
        if epoch != self._epoch:
            self._begin(epoch)
        chosen = self._order[start : start + count]
        offsets, places = pieces(self._offsets, chosen)
        triples = self.triples[places if self._question is None else self._rows[places]]
        return self._batch(triples, offsets, position), targets_of(triples, offsets, self.known)

    def _batch(self, triples: np.ndarray, offsets: np.ndarray, position: int) -> QueryBatch:
        removed = removed_edges(self.graph, triples, self.config.training.leak_removal)
        if self.config.training.fact_dropout:
            removed = np.union1d(removed, self._dropped(position))
        key = np.uint64(combine(np.uint64(self.config.run.seed), position))
        edges = sample_ignn_edges(self.graph, removed, *self.config.model.ignn_draws, combine(key, 0))
        return query_batch(triples, offsets, key, removed, edges)

    @cached_property
    def _facts(self) -> np.ndarray:
        """The edge of each fact, and the one of its inverse or -1: facts x 2."""
        graph, edges = self.graph, np.arange(self.graph.n_edges)
        heads, inverse, back = (
            graph.edge_heads(edges),
            graph.inverse[graph.relations],
            np.full(len(edges), -1),
        )
        known = inverse >= 0
        back[known] = graph.find_edges(graph.tails[known], inverse[known], heads[known])
        return np.stack([edges, back], 1)[(back < 0) | (edges <= back)]

    def _dropped(self, position: int) -> np.ndarray:
        """The edges of facts drawn at random: any part of them up to `fact_dropout` is as likely.

        It takes a number for each fact of the graph: a batch that hides facts is not one of constant cost.
        """
        draw = np.random.default_rng([self.config.run.seed, position, _DROPOUT])
        part = draw.uniform(0, self.config.training.fact_dropout)
        edges = self._facts[draw.random(len(self._facts)) < part]
        return edges[edges >= 0]

    def _begin(self, epoch: int) -> None:
        """Draw the order of an epoch."""
        draw = np.random.default_rng([self.config.run.seed, epoch])
        if self._question is not None:
            self._rows = mixed_within(self._question, draw)
        self._order = draw.permutation(len(self))
        self._epoch = epoch


def by_question(graph: KnowledgeGraph, triples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triples (n x 3), each once, sorted by question and tail, and the number of each one's question, ascending."""
    heads, relations, tails = sorted_unique(triples, graph.n_entities, graph.n_relations)
    is_new = (heads[1:] != heads[:-1]) | (relations[1:] != relations[:-1])
    return np.stack([heads, relations, tails], 1).astype(triples.dtype), np.append(0, np.cumsum(is_new))


def mixed_within(question: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Rows of triples whose questions ascend, in a random order within each question."""
    mixed = draw.permutation(len(question))
    return mixed[np.argsort(question[mixed], kind="stable")]


def cut(question: np.ndarray, size: int) -> np.ndarray:
    """Offsets of the pieces that each question's triples are cut into, of at most `size` triples."""
    place = np.arange(len(question))
    first = np.searchsorted(question, question)  # of the question
    return np.append(np.flatnonzero((place - first) % size == 0), len(question))


def pieces(offsets: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some of the pieces side by side: their own offsets, and the rows they are made of."""
    first, sizes = offsets[chosen], offsets[chosen + 1] - offsets[chosen]
    own = np.concatenate([[0], np.cumsum(sizes)])  # chosen + 1
    return own, np.arange(own[-1]) + np.repeat(first - own[:-1], sizes)


def query_batch(
    triples: np.ndarray,
    offsets: np.ndarray,
    key: np.uint64,
    removed: np.ndarray = NO_EDGES,
    edges: tuple[SampledEdges, ...] = (),
) -> QueryBatch:
    """The queries of the pieces that triples are cut into, sampled by a key."""
    questions = triples[offsets[:-1]]
    keys = np.array([combine(key, 1 + i) for i in range(len(questions))], np.uint64)
    return QueryBatch(
        questions[:, 0].astype(np.int32), questions[:, 1].astype(np.int64), keys, removed, edges
    )


def targets_of(triples: np.ndarray, offsets: np.ndarray, known: KnownAnswers) -> Targets:
    """What those queries are to learn: the tails of each piece, beside all that is known."""
    questions = triples[offsets[:-1]]
    known_offsets, others = known.lookup(questions[:, 0], questions[:, 1])
    return Targets(offsets, triples[:, 2].astype(np.int64), known_offsets, others.astype(np.int64))
