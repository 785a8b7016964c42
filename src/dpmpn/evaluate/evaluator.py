"""Asks a model the queries of a split and scores its answers: filtered ranks, coverage, MAP for tasks."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from dpmpn.data.dataset import SPLITS, UNKNOWN_ENTITY, Candidates, Dataset
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import removed_edges
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import Horizon
from dpmpn.errors import DataError
from dpmpn.evaluate.average_precision import MeanAveragePrecision, candidate_scores, mean_average_precision
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks, Summary, rank_dense, rank_targets, summarise

Tick = Callable[[int, int], None]
"""Told how many queries were asked, and how many there are."""


def evaluate(
    engine: Engine,
    dataset: Dataset,
    split: str = "test",
    *,
    horizon: Horizon | None = None,
    batch_size: int | None = None,
    per_relation: bool = False,
    limit: int | None = None,  # triples, drawn by `seed`; each is asked in all its directions
    seed: int = 0,
    progress: Tick | None = None,
) -> dict[str, Any]:
    """Scores of a split as plain values, ready for JSON."""
    triples, rows = _drawn(dataset, split, limit, seed)
    queries = dataset.queries(split)[rows]
    horizon = horizon or engine.config.asking_horizon()
    wall, cpu = time.perf_counter(), engine.usage().cpu_seconds
    ranks = rank_queries(
        engine, known_answers(dataset), queries, horizon=horizon, batch_size=batch_size, progress=progress
    )
    seconds = time.perf_counter() - wall
    report: dict[str, Any] = {
        "split": split,
        "triples": len(triples),
        "queries": len(queries),
        "unseen": count_unseen(dataset, triples),
        **_by_direction(ranks, len(triples)),
        "seconds": seconds,
        "cpu_seconds": engine.usage().cpu_seconds - cpu,  # of the workers, too
        "queries_per_s": len(queries) / seconds,
        "horizon": asdict(horizon),
    }
    if per_relation:
        report["per_relation"] = _by_relation(dataset, ranks, triples)
    if dataset.candidates is not None and split == "test":
        report["map"] = rank_candidates(engine, dataset, horizon=horizon, batch_size=batch_size)
    return report


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
    # Questions about the same relation share work. Where facts are hidden batch by batch, the order would matter.
    is_hidden = len(removed_edges(engine.graph, queries, "triples")) > 0
    order = np.arange(len(queries)) if is_hidden else np.argsort(queries[:, 1], kind="stable")
    ranks = []
    for rows in _batches(len(queries), batch_size or engine.config.asking_batch_size):
        asked = queries[order[rows]]
        heads, relations, targets = asked.T
        removed = removed_edges(engine.graph, asked, "triples")
        answer = engine.answer(engine.asking_batch(heads, relations, removed), horizon)
        ranks.append(rank_answer(answer, targets, *known.lookup(heads, relations), engine.graph.n_entities))
        if progress is not None:
            progress(rows.stop, len(queries))
    return Ranks.concatenate(ranks)[np.argsort(order)]


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


def rank_candidates(
    engine: Engine, dataset: Dataset, *, horizon: Horizon | None = None, batch_size: int | None = None
) -> MeanAveragePrecision:
    """MAP over the candidates of a task, grouped by head; a candidate scores its probability as an answer."""
    candidates = dataset.candidates
    if candidates is None:
        raise DataError(f"dataset '{dataset.name}' has no candidates to rank")
    order = np.argsort(candidates.heads, kind="stable")
    heads, counts = np.unique(candidates.heads, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(counts)])  # heads + 1
    scores = _candidate_scores(engine, candidates, order, heads, offsets, horizon, batch_size)
    return mean_average_precision(
        offsets, scores, candidates.positive[order], _triples_per_head(dataset.test, heads)
    )


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


def _candidate_scores(
    engine: Engine,
    candidates: Candidates,
    order: np.ndarray,
    heads: np.ndarray,
    offsets: np.ndarray,
    horizon: Horizon | None,
    batch_size: int | None,
) -> np.ndarray:
    """Scores of all candidates in `order`, which groups them by head; 0 where the graph lacks the entity."""
    tails = candidates.tails[order]
    scores = np.zeros(len(tails))
    n_unknown = int(np.sum(heads == UNKNOWN_ENTITY))  # 0 or 1, first of the ascending heads
    for rows in _batches(len(heads) - n_unknown, batch_size or engine.config.asking_batch_size):
        first, last = rows.start + n_unknown, rows.stop + n_unknown
        asked = heads[first:last]
        answer = engine.answer(engine.asking_batch(asked, np.full(len(asked), candidates.relation)), horizon)
        group = offsets[first : last + 1]
        scores[group[0] : group[-1]] = _scores_of(answer, group - group[0], tails[group[0] : group[-1]])
    return scores


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
