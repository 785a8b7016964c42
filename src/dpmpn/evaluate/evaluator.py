"""Asks a model the queries of a split and scores its answers: filtered ranks, coverage, MAP for tasks."""

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from dpmpn.bulk.work import InMemory, Tick, cut, make_parts
from dpmpn.data.dataset import SPLITS, UNKNOWN_ENTITY, Candidates, Dataset
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import removed_edges
from dpmpn.engine.engine import Engine
from dpmpn.engine.fingerprint import fingerprint
from dpmpn.engine.settings import Horizon
from dpmpn.errors import DataError
from dpmpn.evaluate.average_precision import MeanAveragePrecision, candidate_scores, mean_average_precision
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks, Summary, rank_dense, rank_targets, summarise

PART = 1024  # queries, or a few more, to fill a batch: what a kill may cost
_VERSION = 1  # of what a part holds


class Evaluation:
    """The queries of a split, their ranks in parts, and the scores that all of them come to."""

    def __init__(
        self,
        engine: Engine,
        dataset: Dataset,
        split: str = "test",
        *,
        horizon: Horizon | None = None,
        batch_size: int | None = None,
        per_relation: bool = False,
        limit: int | None = None,  # triples, drawn by `seed`; each is asked in all its directions
        seed: int = 0,
    ) -> None:
        self._engine, self.dataset, self._split, self._per_relation = engine, dataset, split, per_relation
        self._triples, rows = _drawn(dataset, split, limit, seed)
        self._queries = dataset.queries(split)[rows]
        self._order = asking_order(engine, self._queries)
        self._horizon = horizon or engine.config.asking_horizon()
        self._batch = batch_size or engine.config.asking_batch_size
        self._size = -(-PART // self._batch) * self._batch  # of a part: batches are those of work in one part
        self._candidates = CandidateScores.of(dataset) if split == "test" else None
        n_heads = 0 if self._candidates is None else self._candidates.n_asked
        self._n_parts = len(cut(len(self._queries), self._size))  # before those of candidates
        self.sizes = cut(len(self._queries), self._size) + cut(n_heads, self._size)
        self.chosen = {
            "version": _VERSION,
            **{"split": split, "per_relation": per_relation, "limit": limit, "draw": seed},
            **{"horizon": asdict(self._horizon), "batch_size": self._batch},
        }
        """What was chosen to be asked, and how, as plain values."""

    @property
    def request(self) -> dict[str, Any]:
        """All that the ranks depend on."""
        return {
            "command": "evaluate",
            **fingerprint(self._engine, self.dataset),
            "both_directions": self.dataset.both_directions,
            "candidates_sha256": None if self._candidates is None else self._candidates.digest(),
            **self.chosen,
        }

    @cached_property
    def _known(self) -> KnownAnswers:
        return known_answers(self.dataset)

    def part(self, index: int, tick: Callable[[int], None]) -> pl.DataFrame:
        """The ranks of some queries, in the order in which they are asked; or the scores of some heads' candidates."""
        if index >= self._n_parts and self._candidates is not None:
            first = (index - self._n_parts) * self._size
            heads = slice(first, first + self.sizes[index])
            scores = self._candidates.asked(self._engine, heads, self._horizon, self._batch)
            return pl.DataFrame({"score": scores})
        wall, cpu = time.perf_counter(), self._engine.usage().cpu_seconds
        asked = self._queries[self._order[index * self._size :][: self._size]]
        ranks = _ranked(self._engine, self._known, asked, self._horizon, self._batch, tick)
        seconds, cpu = time.perf_counter() - wall, self._engine.usage().cpu_seconds - cpu
        return pl.DataFrame(
            {
                "optimistic": ranks.optimistic,
                "pessimistic": ranks.pessimistic,
                "reached": ranks.reached,
                "seconds": seconds / len(asked),  # of each query an equal share
                "cpu_seconds": cpu / len(asked),  # of the workers, too
            }
        )

    def report(self, frames: Iterable[pl.DataFrame]) -> dict[str, Any]:
        """The scores of all parts as plain values, ready for JSON."""
        frames = list(frames)
        asked = pl.concat(frames[: self._n_parts])
        ranks = Ranks(*(asked[name].to_numpy() for name in ("optimistic", "pessimistic", "reached")))
        ranks = ranks[np.argsort(self._order)]
        seconds = asked["seconds"].sum()
        report: dict[str, Any] = {
            "split": self._split,
            "triples": len(self._triples),
            "queries": len(self._queries),
            "unseen": count_unseen(self.dataset, self._triples),
            **_by_direction(ranks, len(self._triples)),
            "seconds": seconds,
            "cpu_seconds": asked["cpu_seconds"].sum(),
            "queries_per_s": len(self._queries) / seconds,
            "horizon": asdict(self._horizon),
        }
        if self._per_relation:
            report["per_relation"] = _by_relation(self.dataset, ranks, self._triples)
        if self._candidates is not None:
            scores = [frame["score"].to_numpy() for frame in frames[self._n_parts :]]
            report["map"] = self._candidates.precision(np.concatenate([np.empty(0), *scores]))
        return {**report, "coverage": report["both"]["coverage"]}

    def close(self) -> None:
        """End the processes that helped."""
        self._engine.close()


def evaluate(
    engine: Engine, dataset: Dataset, split: str = "test", *, progress: Tick | None = None, **chosen: Any
) -> dict[str, Any]:
    """Scores of a split as plain values, ready for JSON; what can be chosen is told by `Evaluation`."""
    work, parts = Evaluation(engine, dataset, split, **chosen), InMemory()
    make_parts(work, parts, progress)
    return work.report(parts.read(range(len(work.sizes))))


def known_answers(dataset: Dataset) -> KnownAnswers:
    """Every fact of every split, in each direction that is asked."""
    return KnownAnswers.from_triples(*(dataset.queries(split) for split in SPLITS))


def rank_queries(
    engine: Engine,
    known: KnownAnswers,
    queries: np.ndarray,  # n x 3 (head, relation, target)
    *,
    horizon: Horizon | None = None,
    batch_size: int | None = None,
    progress: Tick | None = None,
) -> Ranks:
    """Filtered ranks of the targets, in the order of the queries.

    A fact that the graph states is asked without it: repeating it would say nothing about the model. Such are the
    training facts, and the validation facts of the NELL995 tasks, which are training facts, too.
    """
    order = asking_order(engine, queries)
    size = batch_size or engine.config.asking_batch_size

    def tick(asked: int) -> None:
        if progress is not None:
            progress(asked, len(queries))

    return _ranked(engine, known, queries[order], horizon, size, tick)[np.argsort(order)]


def asking_order(engine: Engine, queries: np.ndarray) -> np.ndarray:
    """The order to ask queries in: those about the same relation share work.

    Where facts are hidden batch by batch, the order would matter, and stays as it is.
    """
    is_hidden = len(removed_edges(engine.graph, queries, "triples")) > 0
    return np.arange(len(queries)) if is_hidden else np.argsort(queries[:, 1], kind="stable")


def _ranked(
    engine: Engine,
    known: KnownAnswers,
    queries: np.ndarray,
    horizon: Horizon | None,
    batch_size: int,
    tick: Callable[[int], None],
) -> Ranks:
    """Filtered ranks of the targets, asked batch by batch as the queries come."""
    ranks = []
    for rows in _batches(len(queries), batch_size):
        asked = queries[rows]
        heads, relations, targets = asked.T
        removed = removed_edges(engine.graph, asked, "triples")
        answer = engine.answer(engine.asking_batch(heads, relations, removed), horizon)
        ranks.append(rank_answer(answer, targets, *known.lookup(heads, relations), engine.graph.n_entities))
        tick(rows.stop)
    return Ranks.concatenate(ranks)


def rank_answer(
    answer: Answer, targets: np.ndarray, known_offsets: np.ndarray, known_tails: np.ndarray, n_entities: int
) -> Ranks:
    """Filtered ranks of the targets in an answer: by attention alone, or in a distribution over all entities."""
    if answer.unlisted is None:
        return rank_targets(*_listed(answer), targets, known_offsets, known_tails, n_entities)
    ranks = rank_dense(answer.of_all(n_entities), targets, known_offsets, known_tails)
    return Ranks(ranks.optimistic, ranks.pessimistic, answer.find(targets) >= 0)


def _listed(answer: Answer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return answer.offsets, answer.nodes, answer.attention.detach().cpu().numpy()


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """The candidates of a task grouped by head; a candidate scores its probability as an answer."""

    candidates: Candidates
    order: np.ndarray  # candidates, by head
    heads: np.ndarray  # ascending and unique
    offsets: np.ndarray  # heads + 1
    triples_per_head: np.ndarray

    @classmethod
    def of(cls, dataset: Dataset) -> "CandidateScores | None":
        """Those of a dataset, if it has any."""
        candidates = dataset.candidates
        if candidates is None:
            return None
        heads, counts = np.unique(candidates.heads, return_counts=True)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(candidates.heads, kind="stable")
        return cls(candidates, order, heads, offsets, _triples_per_head(dataset.test, heads))

    @property
    def n_asked(self) -> int:
        """How many heads are asked about: all that the graph has."""
        return len(self.heads) - self._n_unknown

    @property
    def _n_unknown(self) -> int:
        return int(np.sum(self.heads == UNKNOWN_ENTITY))  # 0 or 1, first of the ascending heads

    def asked(self, engine: Engine, of: slice, horizon: Horizon | None, batch_size: int) -> np.ndarray:
        """Scores of the candidates of some of the heads that are asked; 0 where the graph lacks the entity."""
        tails, scores = self.candidates.tails[self.order], [np.empty(0)]
        for rows in _batches(of.stop - of.start, batch_size):
            first, last = (of.start + self._n_unknown + at for at in (rows.start, rows.stop))
            asked = self.heads[first:last]
            relation = np.full(len(asked), self.candidates.relation)
            answer = engine.answer(engine.asking_batch(asked, relation), horizon)
            group = self.offsets[first : last + 1]
            scores.append(_scores_of(answer, group - group[0], tails[group[0] : group[-1]]))
        return np.concatenate(scores)

    def precision(self, scores: np.ndarray) -> MeanAveragePrecision:
        """MAP, from the scores of all candidates whose heads were asked about."""
        unasked = np.zeros(len(self.order) - len(scores))
        positive = self.candidates.positive[self.order]
        every = np.concatenate([unasked, scores])
        return mean_average_precision(self.offsets, every, positive, self.triples_per_head)

    def digest(self) -> str:
        """A digest of the candidates."""
        columns = self.candidates.heads, self.candidates.tails, self.candidates.positive
        return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in columns)).hexdigest()


def rank_candidates(
    engine: Engine, dataset: Dataset, *, horizon: Horizon | None = None, batch_size: int | None = None
) -> MeanAveragePrecision:
    """MAP over the candidates of a task."""
    candidates = CandidateScores.of(dataset)
    if candidates is None:
        raise DataError(f"dataset '{dataset.name}' has no candidates to rank")
    size = batch_size or engine.config.asking_batch_size
    return candidates.precision(candidates.asked(engine, slice(0, candidates.n_asked), horizon, size))


def count_unseen(dataset: Dataset, triples: np.ndarray) -> int:
    """Triples with an entity that has no training edge; they are asked and scored like all others."""
    has_edge = np.diff(dataset.graph.offsets) > 0
    return int(np.sum(~has_edge[triples[:, 0]] | ~has_edge[triples[:, 2]]))


def _drawn(dataset: Dataset, split: str, limit: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The triples to ask about, and the rows of the split's queries that ask them."""
    triples = dataset.split(split)
    if not len(triples):
        raise DataError(f"dataset '{dataset.name}' has no {split} triples; choose another split")
    chosen = np.arange(len(triples))
    if limit is not None and limit < len(triples):
        if limit < 1:
            raise DataError(f"cannot evaluate on {limit} triples; give a limit of at least 1")
        chosen = np.sort(np.random.default_rng(seed).choice(len(triples), limit, replace=False))
    rows = np.concatenate([chosen, len(triples) + chosen]) if dataset.both_directions else chosen
    return triples[chosen], rows


def _batches(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def _by_direction(ranks: Ranks, n_triples: int) -> dict[str, Summary | None]:
    """Ranks of n tail queries, followed by as many head queries where both directions are asked."""
    head = summarise(ranks[n_triples:]) if len(ranks) > n_triples else None
    return {"both": summarise(ranks), "tail": summarise(ranks[:n_triples]), "head": head}


def _by_relation(dataset: Dataset, ranks: Ranks, triples: np.ndarray) -> dict[str, dict[str, Summary | None]]:
    names = dataset.graph.relation_names.names
    result = {}
    for relation in np.unique(triples[:, 1]):
        rows = np.flatnonzero(triples[:, 1] == relation)
        both = np.concatenate([rows, rows + len(triples)]) if dataset.both_directions else rows
        result[names[relation]] = _by_direction(ranks[both], len(rows))
    return result


def _scores_of(answer: Answer, offsets: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """The probability of each candidate of each query."""
    if answer.unlisted is None:
        return candidate_scores(*_listed(answer), offsets, tails)
    query, known = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), tails != UNKNOWN_ENTITY
    every = answer.of_all(len(answer.unlisted.of_entity))
    return np.where(known, every[query, np.where(known, tails, 0)], 0.0)


def _triples_per_head(triples: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """How many of the triples have each of the ascending heads."""
    known, counts = np.unique(triples[:, 0], return_counts=True)
    at = np.minimum(np.searchsorted(known, heads), max(len(known) - 1, 0))
    return np.where(known[at] == heads, counts[at], 0) if len(known) else np.zeros(len(heads), np.int64)
