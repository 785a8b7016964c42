"""A curve of a few pieces: true where it was fitted, never falling, and read back."""

import json

import numpy as np
import pytest

from dpmpn.calibrate.rising_curve import RisingCurve
from dpmpn.calibrate.shrunken_logistic import sigmoid


def bent(said: np.ndarray) -> np.ndarray:
    """How often it is right: as said up to a half, and hardly more often above."""
    return np.minimum(said, 0.5) + 0.1 * np.maximum(said - 0.5, 0)


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    said = rng.random(n)
    return said, rng.random(n) < bent(said)


def test_it_bends_where_what_is_said_stops_being_true() -> None:
    curve = RisingCurve.of(*drawn(20_000, 0), np.ones(20_000))
    said = np.array([0.1, 0.3, 0.45, 0.7, 0.9])
    assert sigmoid(curve(said)) == pytest.approx(bent(said), abs=0.05)


def test_it_never_falls_even_where_right_answers_become_fewer() -> None:
    rng = np.random.default_rng(1)
    said = rng.random(5_000)
    curve = RisingCurve.of(said, rng.random(5_000) < 1 - said, np.ones(5_000))
    assert (np.diff(curve(np.linspace(0, 1, 200))) >= -1e-12).all()


def test_few_right_answers_leave_what_was_said() -> None:
    curve = RisingCurve.of(*drawn(100, 2), np.ones(100))
    grid = np.linspace(0.01, 0.99, 50)
    assert sigmoid(curve(grid)) == pytest.approx(grid)


def test_an_answer_counts_as_often_as_it_stands_for() -> None:
    said, right = drawn(4_000, 3)
    twice = RisingCurve.of(np.tile(said, 2), np.tile(right, 2), np.ones(8_000))
    weighed = RisingCurve.of(said, right, np.full(4_000, 2.0))
    grid = np.linspace(0.01, 0.99, 50)
    assert sigmoid(weighed(grid)) == pytest.approx(sigmoid(twice(grid)), abs=0.01)


def test_plain_values_and_back() -> None:
    curve = RisingCurve.of(*drawn(2_000, 4), np.ones(2_000))
    plain = json.loads(json.dumps(curve.to_dict()))
    assert json.loads(json.dumps(RisingCurve.from_dict(plain).to_dict())) == plain


@pytest.mark.parametrize("knots", [[0.5, 0.1], [float("nan")], [0.1, 0.2, 0.3, 0.4]])
def test_what_is_no_curve_is_refused(knots: list[float]) -> None:
    plain = RisingCurve.of(*drawn(2_000, 5), np.ones(2_000)).to_dict()
    with pytest.raises(ValueError):
        RisingCurve.from_dict({**plain, "knots": knots})
