"""Mean average precision over given candidates, the NELL-995 protocol, with ties placed in every way.

Candidates come in rows, one per head: `offsets` (heads + 1), each candidate's score and whether it is a
right answer. The authors' program breaks ties by the order of the file: its value lies somewhere between the
optimistic and the pessimistic one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from dpmpn.errors import DataError
from dpmpn.evaluate.ranking import check_distribution, check_ragged, score_of
from dpmpn.kernels import Bools, Floats, Ints, kernel


@dataclass(frozen=True)
class AveragePrecision:
    """Each head's average precision; 0 for a head without a right answer among its candidates."""

    realistic: Floats  # heads; the expectation over random orders of ties
    optimistic: Floats  # heads; right answers before the wrong ones they tie with
    pessimistic: Floats  # heads; right answers behind them


class MeanAveragePrecision(TypedDict):
    """Both means (map_over_triples, map_over_heads) under each way to place ties."""

    realistic: dict[str, float]
    optimistic: dict[str, float]
    pessimistic: dict[str, float]
    triples: int
    heads: int


def candidate_scores(
    offsets: Ints,
    nodes: Ints,
    probabilities: Floats,
    candidate_offsets: Ints,
    candidates: Ints,
) -> Floats:
    """Score each head's candidates (in any order) by its sparse answer distribution; unlisted ones get 0."""
    check_distribution(offsets, nodes, probabilities, np.iinfo(np.int64).max)
    check_ragged("candidates", candidate_offsets, candidates)
    if len(offsets) != len(candidate_offsets):
        raise ValueError(f"{len(offsets) - 1} distributions for {len(candidate_offsets) - 1} heads")
    return _look_up(offsets, nodes, probabilities, candidate_offsets, candidates)


def average_precision(offsets: Ints, scores: Floats, is_positive: Bools) -> AveragePrecision:
    """Compute the average precision of each head: the mean, over its right answers, of the precision there.

    Candidates fall into blocks of equal score. For a block of n candidates, p of them right, behind N
    candidates, P of them right, the precisions at the block's right answers add up to

        realistic    p/n * sum_{i=1..n} (P + 1 + (i-1) (p-1)/(n-1)) / (N + i)
        optimistic         sum_{i=1..p} (P + i) / (N + i)
        pessimistic        sum_{i=1..p} (P + i) / (N + n - p + i)

    The first is the expectation over all orders: place i holds a right answer with chance p/n, and the other
    p-1 right ones are spread evenly over the block's other n-1 places, i-1 of which come before i.
    """
    check_ragged("scores", offsets, scores)
    check_ragged("labels", offsets, is_positive)
    if np.isnan(scores).any():
        raise ValueError("scores must be numbers; some are NaN")
    heads = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))  # candidates
    order = np.lexsort((-scores, heads))
    is_positive = np.asarray(is_positive, np.bool_)
    return AveragePrecision(*_average_all(np.asarray(offsets), scores[order], is_positive[order]))


def mean_average_precision(
    offsets: Ints,
    scores: Floats,
    is_positive: Bools,
    triples_per_head: Ints | None = None,
) -> MeanAveragePrecision:
    """Average over test triples, a head counting once per triple as in the paper, and over heads.

    Without `triples_per_head`, a head's test triples are its right answers among the candidates.
    """
    precision = average_precision(offsets, scores, is_positive)
    if triples_per_head is None:
        running = np.concatenate([[0], np.cumsum(is_positive)])
        triples_per_head = running[offsets[1:]] - running[offsets[:-1]]  # heads
    n_heads, n_triples = len(offsets) - 1, int(np.sum(triples_per_head))
    if len(triples_per_head) != n_heads or np.any(triples_per_head < 0):
        raise ValueError(f"{n_heads} heads need as many counts of test triples, each 0 or more")
    if n_triples == 0:
        raise DataError("no test triples to average over; no candidate is labelled as a right answer")

    def means(values: Floats) -> dict[str, float]:
        return {
            "map_over_triples": float(np.average(values, weights=triples_per_head)),
            "map_over_heads": float(np.mean(values)),
        }

    return {
        "realistic": means(precision.realistic),
        "optimistic": means(precision.optimistic),
        "pessimistic": means(precision.pessimistic),
        "triples": n_triples,
        "heads": n_heads,
    }


@kernel
def _look_up(
    offsets: Ints, nodes: Ints, probabilities: Floats, candidate_offsets: Ints, candidates: Ints
) -> Floats:
    scores = np.empty(len(candidates), probabilities.dtype)
    for head in range(len(offsets) - 1):
        listed = nodes[offsets[head] : offsets[head + 1]]
        weights = probabilities[offsets[head] : offsets[head + 1]]
        for position in range(candidate_offsets[head], candidate_offsets[head + 1]):
            scores[position] = score_of(candidates[position], listed, weights)
    return scores


@kernel
def _block_precisions(before: int, right_before: int, size: int, right: int) -> tuple[float, float, float]:
    """Sum the precisions at the right answers of one block of ties: realistic, optimistic, pessimistic."""
    realistic, optimistic, pessimistic = 0.0, 0.0, 0.0
    wrong = size - right
    density = (right - 1) / max(size - 1, 1)
    if right:
        for i in range(size):
            realistic += right / size * (right_before + 1 + i * density) / (before + 1 + i)
    for i in range(right):
        optimistic += (right_before + 1 + i) / (before + 1 + i)
        pessimistic += (right_before + 1 + i) / (before + wrong + 1 + i)
    return realistic, optimistic, pessimistic


@kernel
def _average_one(scores: Floats, is_positive: Bools) -> Floats:
    """Average one head's precisions; its candidates come in descending order of score."""
    sums = np.zeros(3)
    start, right_before = 0, 0
    while start < len(scores):
        end, right = start, 0
        while end < len(scores) and scores[end] == scores[start]:
            right += is_positive[end]
            end += 1
        sums += np.array(_block_precisions(start, right_before, end - start, right))
        start, right_before = end, right_before + right
    return sums / max(right_before, 1)


@kernel
def _average_all(offsets: Ints, scores: Floats, is_positive: Bools) -> tuple[Floats, Floats, Floats]:
    averages = np.empty((3, len(offsets) - 1))  # realistic, optimistic, pessimistic x heads
    for head in range(len(offsets) - 1):
        row = slice(offsets[head], offsets[head + 1])
        averages[:, head] = _average_one(scores[row], is_positive[row])
    return averages[0], averages[1], averages[2]
