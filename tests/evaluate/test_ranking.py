"""Ranks and their summaries against dense scores and scipy's rankdata."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from dpmpn.errors import DataError
from dpmpn.evaluate.ranking import Ranks, rank_targets, summarise

LEVELS = [0.0, 1e-30, 0.1, 0.25, 0.5]  # few, so that ties are common


@st.composite
def queries(draw):
    """A number of entities and a list of (scores by entity, known tails, target)."""
    n_entities = draw(st.integers(1, 9))
    entity = st.integers(0, n_entities - 1)
    query = st.tuples(st.dictionaries(entity, st.sampled_from(LEVELS)), st.sets(entity), entity)
    return n_entities, draw(st.lists(query, max_size=8))


def ragged(rows, dtype):
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return offsets, np.array([value for row in rows for value in row], dtype)


def rank(batch, n_entities):
    listed = [sorted(scores) for scores, _, _ in batch]
    offsets, nodes = ragged(listed, np.int32)
    _, probabilities = ragged(
        [[q[0][n] for n in row] for q, row in zip(batch, listed, strict=True)], np.float32
    )
    known_offsets, known_tails = ragged([sorted(known) for _, known, _ in batch], np.int32)
    targets = np.array([target for _, _, target in batch], np.int32)
    return rank_targets(offsets, nodes, probabilities, targets, known_offsets, known_tails, n_entities)


def dense_rank(query, n_entities, method):
    """Rank by sorting a dense score array from which the other known answers are deleted."""
    scores, known, target = query
    dense = np.zeros(n_entities, np.float32)
    for entity, score in scores.items():
        dense[entity] = score
    kept = [entity for entity in range(n_entities) if entity == target or entity not in known]
    return rankdata(-dense[kept], method=method)[kept.index(target)]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(queries())
def test_matches_dense_ranks(case):
    n_entities, batch = case
    ranks = rank(batch, n_entities)
    assert ranks.optimistic.tolist() == [dense_rank(q, n_entities, "min") for q in batch]
    assert ranks.pessimistic.tolist() == [dense_rank(q, n_entities, "max") for q in batch]
    assert ranks.realistic.tolist() == [dense_rank(q, n_entities, "average") for q in batch]
    assert ranks.reached.tolist() == [scores.get(target, 0) > 0 for scores, _, target in batch]
    assert ranks.optimistic.dtype == ranks.pessimistic.dtype == np.int64


@settings(derandomize=True, deadline=None, max_examples=60)
@given(queries(), st.integers(0, 8))
def test_batches_do_not_matter(case, cut):
    n_entities, batch = case
    whole = rank(batch, n_entities)
    parts = Ranks.concatenate([rank(batch[:cut], n_entities), rank(batch[cut:], n_entities)])
    assert whole.optimistic.tolist() == parts.optimistic.tolist()
    assert whole.pessimistic.tolist() == parts.pessimistic.tolist()
    assert whole.reached.tolist() == parts.reached.tolist()


def test_large_random_batch_matches_dense_ranks():
    generator = np.random.default_rng(7)
    n_entities, batch = 400, []
    for _ in range(60):
        listed = generator.choice(n_entities, generator.integers(0, 300), replace=False)
        scores = np.round(generator.exponential(size=len(listed)), 1)
        known = set(generator.choice(n_entities, generator.integers(0, 80), replace=False).tolist())
        batch.append(
            (dict(zip(listed.tolist(), scores.tolist(), strict=True)), known, int(generator.integers(400)))
        )
    ranks = rank(batch, n_entities)
    assert ranks.realistic.tolist() == [dense_rank(q, n_entities, "average") for q in batch]


@pytest.mark.parametrize(
    ("scores", "known", "target", "expected"),
    [
        ({2: 0.5, 4: 0.3, 7: 0.2}, set(), 4, (2, 2, 2.0, True)),
        ({2: 0.5, 4: 0.3, 7: 0.2}, {2, 4}, 4, (1, 1, 1.0, True)),  # the better one is known
        ({2: 0.4, 4: 0.4, 7: 0.2}, set(), 4, (1, 2, 1.5, True)),
        ({2: 0.5, 4: 0.5}, set(), 9, (3, 10, 6.5, False)),  # ties with the 7 other unlisted ones
        ({2: 0.5, 4: 0.5, 9: 0.0}, set(), 9, (3, 10, 6.5, False)),  # listed with 0 is no better
        ({2: 0.5, 4: 0.5}, {2, 3, 5, 9}, 9, (2, 7, 4.5, False)),  # listed 2, unlisted 3 and 5 are left out
        ({}, set(), 0, (1, 10, 5.5, False)),
        ({}, set(range(10)), 0, (1, 1, 1.0, False)),
    ],
)
def test_by_hand(scores, known, target, expected):
    ranks = rank([(scores, known, target)], 10)
    assert (ranks.optimistic[0], ranks.pessimistic[0], ranks.realistic[0], ranks.reached[0]) == expected


def test_summary_by_hand():
    ranks = Ranks(np.array([1, 1, 3, 10]), np.array([1, 2, 4, 12]), np.array([True, True, True, False]))
    summary = summarise(ranks)
    assert summary["optimistic"] == {
        "mrr": pytest.approx((1 + 1 + 1 / 3 + 1 / 10) / 4),
        "hits_at_1": 0.5,
        "hits_at_3": 0.75,
        "hits_at_10": 1.0,
    }
    assert summary["realistic"] == {
        "mrr": pytest.approx((1 + 1 / 1.5 + 1 / 3.5 + 1 / 11) / 4),
        "hits_at_1": 0.25,
        "hits_at_3": 0.5,
        "hits_at_10": 0.75,
    }
    assert summary["pessimistic"] == {
        "mrr": pytest.approx((1 + 1 / 2 + 1 / 4 + 1 / 12) / 4),
        "hits_at_1": 0.25,
        "hits_at_3": 0.5,
        "hits_at_10": 0.75,
    }
    assert (summary["coverage"], summary["queries"]) == (0.75, 4)


def test_nothing_to_summarise():
    with pytest.raises(DataError, match="no queries"):
        summarise(Ranks.concatenate([]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": np.array([0.5, np.nan], np.float32)}, "not a number"),
        ({"probabilities": np.array([0.5, -0.5], np.float32)}, "negative"),
        ({"nodes": np.array([3, 1], np.int32)}, "nodes of query 0"),
        ({"nodes": np.array([1, 1], np.int32)}, "nodes of query 0"),
        ({"nodes": np.array([1, 5], np.int32)}, "nodes of query 0"),
        ({"known_tails": np.array([2, 2], np.int32)}, "known tails of query 0"),
        ({"offsets": np.array([0, 3])}, "offsets of nodes"),
        ({"targets": np.array([5])}, "targets must be"),
        ({"targets": np.array([1, 2])}, "2 targets"),
    ],
)
def test_refuses_broken_contracts(change, message):
    arguments = {
        "offsets": np.array([0, 2]),
        "nodes": np.array([1, 3], np.int32),
        "probabilities": np.array([0.5, 0.5], np.float32),
        "targets": np.array([3]),
        "known_offsets": np.array([0, 2]),
        "known_tails": np.array([2, 3], np.int32),
        "n_entities": 5,
    }
    assert rank_targets(**arguments).pessimistic.tolist() == [2]
    with pytest.raises(ValueError, match=message):
        rank_targets(**{**arguments, **change})
