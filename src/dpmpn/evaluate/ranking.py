"""Filtered ranks of the right answers in sparse answer distributions, and the scores made of them.

A distribution is ragged: `offsets` (queries + 1), `nodes` (ascending and unique within a query) and their
`probabilities`. An entity that is not listed scores 0, so all unlisted entities tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from dpmpn.errors import DataError
from dpmpn.evaluate.metrics import METRICS
from dpmpn.kernels import Bools, Float, Floats, Ints, Rows, kernel


@dataclass(frozen=True)
class Ranks:
    """The best and the worst position of each query's target among its ties, counted from 1."""

    optimistic: Ints  # queries
    pessimistic: Ints  # queries
    reached: Bools  # queries; the target's probability is above 0

    @property
    def realistic(self) -> Floats:
        """The mean of both: the expected rank when ties fall in random order."""
        return (self.optimistic + self.pessimistic) / 2

    def __len__(self) -> int:
        return len(self.optimistic)

    def __getitem__(self, selection: slice | Ints | Bools) -> Ranks:
        return Ranks(self.optimistic[selection], self.pessimistic[selection], self.reached[selection])

    @classmethod
    def concatenate(cls, batches: Sequence[Ranks]) -> Ranks:
        """Join the ranks of several batches in their order."""
        return cls(
            np.concatenate([np.empty(0, np.int64), *(batch.optimistic for batch in batches)]),
            np.concatenate([np.empty(0, np.int64), *(batch.pessimistic for batch in batches)]),
            np.concatenate([np.empty(0, np.bool_), *(batch.reached for batch in batches)]),
        )


class Summary(TypedDict):
    """Scores under each way to place ties, as fractions by the keys of `METRICS`."""

    realistic: dict[str, float]
    optimistic: dict[str, float]
    pessimistic: dict[str, float]
    coverage: float
    queries: int


def rank_targets(
    offsets: Ints,
    nodes: Ints,
    probabilities: Floats,
    targets: Ints,
    known_offsets: Ints,
    known_tails: Ints,
    n_entities: int,
) -> Ranks:
    """Rank each query's target among all entities except the query's other known answers.

    Known tails are ascending and unique within a query, as `KnownAnswers.lookup` gives them; whether the
    target is among them makes no difference.
    """
    targets = np.ascontiguousarray(targets, np.int64)
    check_distribution(offsets, nodes, probabilities, n_entities)
    check_ragged("known tails", known_offsets, known_tails)
    check_ascending("known tails", known_offsets, known_tails, n_entities)
    if not len(targets) == len(offsets) - 1 == len(known_offsets) - 1:
        raise ValueError(
            f"{len(targets)} targets for {len(offsets) - 1} distributions and "
            f"{len(known_offsets) - 1} rows of known tails"
        )
    if len(targets) and (targets.min() < 0 or targets.max() >= n_entities):
        raise ValueError(f"targets must be entities from 0 to {n_entities - 1}")
    return Ranks(
        *_rank_all(offsets, nodes, probabilities, targets, known_offsets, known_tails, int(n_entities))
    )


def rank_dense(
    scores: Floats,  # queries x entities
    targets: Ints,  # queries
    known_offsets: Ints,  # queries + 1
    known_tails: Ints,  # ascending and unique within a query
) -> Ranks:
    """The same where a model scores every entity: the dense twin of `rank_targets`.

    Scores may have any sign; a model that scores every entity reaches every target.
    """
    targets = np.ascontiguousarray(targets, np.int64)
    n_queries, n_entities = scores.shape
    check_ragged("known tails", known_offsets, known_tails)
    check_ascending("known tails", known_offsets, known_tails, n_entities)
    if not len(targets) == n_queries == len(known_offsets) - 1:
        raise ValueError(
            f"{len(targets)} targets for {n_queries} rows of scores and "
            f"{len(known_offsets) - 1} rows of known tails"
        )
    if len(targets) and (targets.min() < 0 or targets.max() >= n_entities):
        raise ValueError(f"targets must be entities from 0 to {n_entities - 1}")
    optimistic, pessimistic, is_number = _rank_all_dense(
        np.ascontiguousarray(scores), targets, known_offsets, known_tails
    )
    if not is_number.all():  # no rival would beat a target that scores NaN
        raise ValueError(f"scores of query {int(np.argmin(is_number))} are not all numbers")
    return Ranks(optimistic, pessimistic, np.ones(n_queries, np.bool_))


def summarise(ranks: Ranks) -> Summary:
    """Average the ranks into every metric, with the share of targets that were reached."""
    if not len(ranks):
        raise DataError("no queries to summarise; the split or the selection is empty")
    return {
        "realistic": _scores(ranks.realistic),
        "optimistic": _scores(ranks.optimistic),
        "pessimistic": _scores(ranks.pessimistic),
        "coverage": float(np.mean(ranks.reached)),
        "queries": len(ranks),
    }


def _scores(ranks: Ints | Floats) -> dict[str, float]:
    return {metric.key: metric.of(ranks) for metric in METRICS}


def check_distribution(offsets: Ints, nodes: Ints, probabilities: Floats, n_entities: int) -> None:
    """Refuse a distribution that breaks its contract, which would only show as wrong ranks."""
    check_ragged("nodes", offsets, nodes)
    check_ragged("probabilities", offsets, probabilities)
    check_ascending("nodes", offsets, nodes, n_entities)
    if not (probabilities >= 0).all():  # NaN is not: no rival would beat a target that scores it
        raise ValueError("probabilities must be 0 or more; some are negative or not a number")


def check_ragged(name: str, offsets: Ints, values: npt.NDArray[np.generic]) -> None:
    """Refuse offsets that do not cover the values exactly and in order."""
    covers = len(offsets) and offsets[0] == 0 and offsets[-1] == len(values)
    if not covers or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"the offsets of {name} must rise from 0 to their number, {len(values)}")


def check_ascending(name: str, offsets: Ints, values: Ints, n_entities: int) -> None:
    """Refuse rows that are not ascending, unique entities."""
    row = _first_row_out_of_order(offsets, values, n_entities)
    if row >= 0:
        raise ValueError(f"{name} of query {row} are not ascending, unique and below {n_entities}")


@kernel
def score_of(entity: int, nodes: Ints, probabilities: Floats) -> Float:
    """Look up an entity's probability in one query's ascending nodes; 0 if it is not listed."""
    position = np.searchsorted(nodes, entity)
    if position < len(nodes) and nodes[position] == entity:
        found: Float = probabilities[position]
        return found
    return probabilities.dtype.type(0)


@kernel
def _rivals(
    target: int, score: Float, nodes: Ints, probabilities: Floats, known: Ints, n_entities: int
) -> tuple[int, int]:
    """Count the entities that score more than the target and those that tie with it."""
    more, same = 0, 0
    for probability in probabilities:
        more += probability > score
        same += probability == score
    if score == 0:  # everything else ties, listed or not
        same = n_entities - more
    same -= 1  # the target itself
    for answer in known:
        if answer != target:
            other = score_of(answer, nodes, probabilities)
            more -= int(other > score)
            same -= int(other == score)
    return more, same


@kernel
def _rank_all(
    offsets: Ints,
    nodes: Ints,
    probabilities: Floats,
    targets: Ints,
    known_offsets: Ints,
    known_tails: Ints,
    n_entities: int,
) -> tuple[Ints, Ints, Bools]:
    n_queries = len(targets)
    optimistic = np.empty(n_queries, np.int64)
    pessimistic = np.empty(n_queries, np.int64)
    reached = np.empty(n_queries, np.bool_)
    for query in range(n_queries):
        listed = nodes[offsets[query] : offsets[query + 1]]
        weights = probabilities[offsets[query] : offsets[query + 1]]
        known = known_tails[known_offsets[query] : known_offsets[query + 1]]
        score = score_of(targets[query], listed, weights)
        more, same = _rivals(targets[query], score, listed, weights, known, n_entities)
        optimistic[query] = 1 + more
        pessimistic[query] = 1 + more + same
        reached[query] = score > 0
    return optimistic, pessimistic, reached


@kernel
def _first_row_out_of_order(offsets: Ints, values: Ints, n_entities: int) -> int:
    for row in range(len(offsets) - 1):
        previous = -1
        for value in values[offsets[row] : offsets[row + 1]]:
            if value <= previous or value >= n_entities:
                return row
            previous = value
    return -1


@kernel
def _rank_all_dense(
    scores: Rows, targets: Ints, known_offsets: Ints, known_tails: Ints
) -> tuple[Ints, Ints, Bools]:
    n_queries = len(targets)
    optimistic = np.empty(n_queries, np.int64)
    pessimistic = np.empty(n_queries, np.int64)
    is_number = np.empty(n_queries, np.bool_)
    for query in range(n_queries):
        target, row = targets[query], scores[query]
        score = row[target]
        more, same, numbers = 0, 0, 0
        for other in row:
            more += other > score
            same += other == score
            numbers += other == other
        for answer in known_tails[known_offsets[query] : known_offsets[query + 1]]:
            if answer != target:
                more -= row[answer] > score
                same -= row[answer] == score
        optimistic[query] = 1 + more
        pessimistic[query] = more + same  # the target ties with itself
        is_number[query] = numbers == len(row)
    return optimistic, pessimistic, is_number
