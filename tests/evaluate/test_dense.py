"""Dense ranks against the sparse ones of the same distribution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.evaluate.ranking import rank_dense, rank_targets

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


def both(case):
    """Ranks of the sparse distributions, and of the same as dense scores."""
    n_entities, batch = case
    listed = [sorted(scores) for scores, _, _ in batch]
    offsets, nodes = ragged(listed, np.int32)
    _, values = ragged([[q[0][n] for n in row] for q, row in zip(batch, listed, strict=True)], np.float32)
    known = ragged([sorted(tails) for _, tails, _ in batch], np.int32)
    targets = np.array([target for _, _, target in batch], np.int32)
    dense = np.zeros((len(batch), n_entities), np.float32)
    dense[np.repeat(np.arange(len(batch)), np.diff(offsets)), nodes] = values
    return rank_targets(offsets, nodes, values, targets, *known, n_entities), (dense, targets, *known)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(queries())
def test_equals_sparse_ranks(case):
    sparse, arguments = both(case)
    dense = rank_dense(*arguments)
    assert dense.optimistic.tolist() == sparse.optimistic.tolist()
    assert dense.pessimistic.tolist() == sparse.pessimistic.tolist()
    assert dense.reached.all()


@settings(derandomize=True, deadline=None, max_examples=50)
@given(queries())
def test_only_the_order_of_scores_counts(case):
    _, (scores, *rest) = both(case)
    before, after = rank_dense(scores, *rest), rank_dense(np.log2(scores + 1e-3) * 7 - 3, *rest)
    # 1e-30 and 0 are one score after the shift, so compare what can be compared.
    alike = ~np.isin(scores, [np.float32(1e-30)]).any(axis=1)
    assert before.optimistic[alike].tolist() == after.optimistic[alike].tolist()
    assert before.pessimistic[alike].tolist() == after.pessimistic[alike].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.array([[0.1, np.nan, 0.3, 0.2, 0.0]], np.float32)}, "scores of query 0"),
        ({"scores": np.zeros((2, 5), np.float32)}, "1 targets"),
        ({"known_tails": np.array([2, 2], np.int32)}, "known tails of query 0"),
        ({"known_offsets": np.array([0, 3])}, "offsets of known tails"),
        ({"targets": np.array([5])}, "targets must be"),
    ],
)
def test_refuses_broken_contracts(change, message):
    arguments = {
        "scores": np.array([[-3.0, -1.0, -2.0, -1.0, -5.0]], np.float32),
        "targets": np.array([3]),
        "known_offsets": np.array([0, 2]),
        "known_tails": np.array([2, 3], np.int32),
    }
    ranks = rank_dense(**arguments)
    assert (ranks.optimistic[0], ranks.pessimistic[0]) == (1, 2)
    with pytest.raises(ValueError, match=message):
        rank_dense(**{**arguments, **change})
