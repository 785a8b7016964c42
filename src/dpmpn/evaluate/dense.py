"""Filtered ranks of the right answers where a model scores every entity: the dense twin of `rank_targets`."""

from __future__ import annotations

import numpy as np

from dpmpn.evaluate.ranking import Ranks, check_ascending, check_ragged
from dpmpn.kernels import Bools, Floats, Ints, Rows, kernel


def rank_dense(
    scores: Floats,  # queries x entities
    targets: Ints,  # queries
    known_offsets: Ints,  # queries + 1
    known_tails: Ints,  # ascending and unique within a query
) -> Ranks:
    """Rank each query's target among all entities except the query's other known answers.

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
    optimistic, pessimistic, is_number = _rank_all(
        np.ascontiguousarray(scores), targets, known_offsets, known_tails
    )
    if not is_number.all():  # no rival would beat a target that scores NaN
        raise ValueError(f"scores of query {int(np.argmin(is_number))} are not all numbers")
    return Ranks(optimistic, pessimistic, np.ones(n_queries, np.bool_))


@kernel
def _rank_all(
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
