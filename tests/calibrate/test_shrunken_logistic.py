"""The regression finds what made its cases, is unsure where it has none, and comes back from plain values."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.calibrate.shrunken_logistic import ShrunkenLogistic, fit, sigmoid


def cases(n: int, offsets: np.ndarray, slope: float, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    cell, x = rng.integers(len(offsets), size=n), rng.normal(size=n)
    right = rng.random(n) < sigmoid(slope * x + offsets[cell])
    return np.stack((np.ones(n), x), 1), cell, right, np.ones(n)


def test_it_finds_slope_and_cells() -> None:
    offsets = np.array([-2.0, -1.0, 0.0, 1.5])
    found = fit(*cases(20_000, offsets, 1.5), 4)
    assert found.coefficients[1] == pytest.approx(1.5, abs=0.1)
    logit, variance = found.logit(np.array([[1.0, 0.0]] * 4), np.arange(4))
    np.testing.assert_allclose(logit, offsets, atol=0.2)
    assert (variance < 0.02).all()


def test_cells_that_do_not_differ_are_one_and_a_cell_without_cases_is_the_mean() -> None:
    features, cell, right, weight = cases(3_000, np.zeros(30), 1.0)
    same = fit(features, cell, right, weight, 31)
    assert same.variance[0] < 0.02
    differ = fit(*cases(3_000, np.linspace(-3, 3, 30), 1.0), 31)
    logit, variance = differ.logit(np.array([[1.0, 0.0]] * 2), np.array([30, 15]))
    assert abs(logit[0]) < 0.7
    assert variance[0] > 1 > 5 * variance[1]  # as unsure as cells differ


def test_few_cases_are_drawn_towards_the_others() -> None:
    features, cell, right, weight = cases(4_000, np.repeat(-1.0, 20), 1.0)
    lucky = np.array([[1.0, 0.0]] * 3)
    features, cell = np.concatenate((features, lucky)), np.append(cell, [20] * 3)
    right, weight = np.append(right, [True] * 3), np.append(weight, np.ones(3))
    found = fit(features, cell, right, weight, 21)
    assert -1.2 < found.logit(lucky[:1], np.array([20]))[0][0] < 0.5


def test_a_case_of_weight_three_is_three_cases() -> None:
    features, cell, right, _ = cases(300, np.array([-1.0, 1.0]), 1.0)
    weight = np.where(right, 3.0, 1.0)
    rows = np.repeat(np.arange(300), weight.astype(int))
    one = fit(features, cell, right, weight, 2)
    other = fit(features[rows], cell[rows], right[rows], np.ones(len(rows)), 2)
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-6)
    np.testing.assert_allclose(one.offsets, other.offsets, atol=1e-6)


def test_a_feature_that_must_rise_is_left_out_where_it_falls() -> None:
    features, cell, right, weight = cases(2_000, np.zeros(2), -1.0)
    assert fit(features, cell, right, weight, 2).coefficients[1] < -0.5
    assert fit(features, cell, right, weight, 2, rising=(1,)).coefficients[1] == 0


def test_slopes_may_differ_too() -> None:
    rng = np.random.default_rng(3)
    slopes = np.array([0.0, 1.0, 3.0])
    cell, x = rng.integers(3, size=9_000), rng.normal(size=9_000)
    right = rng.random(9_000) < sigmoid(slopes[cell] * x)
    found = fit(np.stack((np.ones(9_000), x), 1), cell, right, np.ones(9_000), 3, differing=(0, 1))
    at = lambda z: found.logit(np.stack((np.ones(3), np.full(3, z)), 1), np.arange(3))[0]  # noqa: E731
    np.testing.assert_allclose(at(1.0) - at(0.0), slopes, atol=0.2)


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_it_is_finite_whatever_the_cases(seed: int, n: int, n_cells: int) -> None:
    rng = np.random.default_rng(seed)
    features = np.stack((np.ones(n), rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)), 1)
    right = rng.random(n) < rng.choice([0.0, 0.5, 1.0])
    found = fit(features, rng.integers(n_cells, size=n), right, rng.random(n) * 100, n_cells, (0, 1))
    logit, variance = found.logit(features, np.zeros(n, np.int64))
    assert np.isfinite(logit).all() and (variance >= 0).all() and np.isfinite(variance).all()


def test_plain_values_and_back() -> None:
    found = fit(*cases(500, np.array([-1.0, 1.0, 0.0]), 1.0), 5, (0, 1))
    again = ShrunkenLogistic.from_dict(json.loads(json.dumps(found.to_dict())))
    features = np.stack((np.ones(5), np.linspace(-2, 2, 5)), 1)
    for one, other in zip(
        found.logit(features, np.arange(5)), again.logit(features, np.arange(5)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)
