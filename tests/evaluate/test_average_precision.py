"""Average precision against all orders of the ties, tried one by one."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.errors import DataError
from dpmpn.evaluate.average_precision import average_precision, candidate_scores, mean_average_precision

candidates = st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.7]), st.booleans()), max_size=6)


def ragged(rows):
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    scores = np.array([score for row in rows for score, _ in row], np.float32)
    return offsets, scores, np.array([label for row in rows for _, label in row], bool)


def precision_in_order(labels):
    """The definition: walk down the list, average the precision at each right answer."""
    precisions = [sum(labels[: place + 1]) / (place + 1) for place, label in enumerate(labels) if label]
    return sum(precisions) / len(precisions) if precisions else 0.0


def all_precisions(row):
    """Average precision of every order that the scores allow."""
    orders = [o for o in permutations(row) if all(a[0] >= b[0] for a, b in pairwise(o))]
    return [precision_in_order([label for _, label in order]) for order in orders]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(candidates, max_size=3))
def test_matches_all_orders_of_ties(rows):
    result = average_precision(*ragged(rows))
    expected = [all_precisions(row) for row in rows]
    np.testing.assert_allclose(result.realistic, [np.mean(values) for values in expected], atol=1e-12)
    np.testing.assert_allclose(result.optimistic, [max(values) for values in expected], atol=1e-12)
    np.testing.assert_allclose(result.pessimistic, [min(values) for values in expected], atol=1e-12)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(candidates, min_size=1, max_size=4), st.data())
def test_means_repeat_heads_by_their_triples(rows, data):
    counts = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)).filter(any))
    result = mean_average_precision(*ragged(rows), np.array(counts))
    per_head = [np.mean(all_precisions(row)) for row in rows]
    repeated = [value for value, count in zip(per_head, counts, strict=True) for _ in range(count)]
    assert result["realistic"]["map_over_triples"] == pytest.approx(np.mean(repeated))
    assert result["realistic"]["map_over_heads"] == pytest.approx(np.mean(per_head))
    assert (result["triples"], result["heads"]) == (sum(counts), len(rows))


def test_by_hand_without_ties():
    row = [(0.1, True), (0.9, True), (0.5, False), (0.3, True), (0.05, False)]  # + - + + -
    result = average_precision(*ragged([row]))
    for values in (result.realistic, result.optimistic, result.pessimistic):
        assert values.tolist() == [pytest.approx((1 + 2 / 3 + 3 / 4) / 3)]


def test_by_hand_with_ties():
    result = average_precision(
        *ragged([[(0.0, False), (0.0, True)], [(0.0, True), (0.6, False), (0.0, False)]])
    )
    assert result.realistic.tolist() == pytest.approx([(1 + 1 / 2) / 2, (1 / 2 + 1 / 3) / 2])
    assert result.optimistic.tolist() == pytest.approx([1, 1 / 2])
    assert result.pessimistic.tolist() == pytest.approx([1 / 2, 1 / 3])


def test_large_tied_block_has_the_known_expectation():
    """All n candidates tie: the simulated mean over random orders agrees."""
    generator = np.random.default_rng(3)
    labels = np.arange(40) < 7
    shuffled = generator.permuted(np.tile(labels, (20_000, 1)), axis=1)  # orders x places
    precisions = np.cumsum(shuffled, axis=1) / np.arange(1, 41) * shuffled
    result = average_precision(*ragged([[(0.0, bool(label)) for label in labels]]))
    assert result.realistic[0] == pytest.approx(precisions.sum(axis=1).mean() / 7, rel=0.01)


def test_means_by_hand():
    rows = [
        [(0.9, True), (0.8, True), (0.7, True), (0.1, False)],  # 1, three times
        [(0.9, False), (0.8, True)],  # 1/2
        [(0.9, False)],  # 0: no right answer
    ]
    result = mean_average_precision(*ragged(rows))
    assert result["realistic"]["map_over_triples"] == pytest.approx(3.5 / 4)
    assert result["realistic"]["map_over_heads"] == pytest.approx(1.5 / 3)
    assert result["optimistic"] == result["pessimistic"] == result["realistic"]
    assert (result["triples"], result["heads"]) == (4, 3)
    told = mean_average_precision(*ragged(rows), triples_per_head=np.array([1, 1, 2]))
    assert told["realistic"]["map_over_triples"] == pytest.approx(1.5 / 4)


def test_candidates_take_their_scores_from_the_distribution():
    offsets, nodes = np.array([0, 3, 3, 5]), np.array([1, 4, 6, 0, 4], np.int32)
    probabilities = np.array([0.2, 0.5, 0.3, 0.9, 0.1], np.float32)
    scores = candidate_scores(
        offsets, nodes, probabilities, np.array([0, 3, 4, 6]), np.array([6, 2, 1, 4, 4, 0], np.int32)
    )
    assert scores.tolist() == np.array([0.3, 0, 0.2, 0, 0.1, 0.9], np.float32).tolist()


def test_refuses_broken_input():
    with pytest.raises(ValueError, match="NaN"):
        average_precision(*ragged([[(float("nan"), True)]]))
    with pytest.raises(ValueError, match="labels"):
        average_precision(np.array([0, 1]), np.array([0.5]), np.array([True, False]))
    with pytest.raises(ValueError, match="counts"):
        mean_average_precision(*ragged([[(0.5, True)]]), np.array([1, 1]))
    with pytest.raises(DataError, match="no test triples"):
        mean_average_precision(*ragged([[(0.5, False)], []]))
    with pytest.raises(ValueError, match="2 heads"):
        candidate_scores(
            np.array([0, 0]),
            np.empty(0, np.int32),
            np.empty(0, np.float32),
            np.array([0, 0, 0]),
            np.empty(0, int),
        )
