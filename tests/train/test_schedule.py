"""The learning rate over a run."""

from itertools import pairwise

import pytest

from dpmpn.train.optimiser import learning_rate_factor


def test_a_constant_rate_and_one_whose_end_is_not_known_stay():
    assert {learning_rate_factor("constant", position, 50, 10) for position in range(0, 50, 10)} == {1.0}
    assert learning_rate_factor("linear", 7, None, 10) == 1.0


def test_linear_rises_for_a_hundred_batches_then_falls_to_a_hundredth():
    factors = [learning_rate_factor("linear", position, 100_000, 10) for position in range(0, 100_001, 10)]
    assert factors[0] == pytest.approx(0.01)
    assert factors[49] == pytest.approx(0.5)
    assert factors[99] == factors[100] == 1.0
    assert factors[-1] == pytest.approx(0.01)
    assert factors[5050] == pytest.approx((1 + 0.01) / 2)
    falls = [a - b for a, b in pairwise(factors[100:])]
    assert min(falls) == pytest.approx(max(falls)) and min(falls) > 0


@pytest.mark.parametrize("total", [1, 9, 10, 11, 35, 500, 1999])
def test_short_runs_rise_and_fall_within_their_length(total):
    factors = [learning_rate_factor("linear", position, total, 10) for position in range(0, total + 30, 10)]
    assert all(0 < factor <= 1 for factor in factors)
    assert factors[-1] == pytest.approx(0.01)
