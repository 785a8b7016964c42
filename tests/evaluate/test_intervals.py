"""Intervals of shares."""

import numpy as np

from dpmpn.evaluate.metrics import wilson


def test_wilson_interval() -> None:
    low, high = wilson(np.array([0.0, 0.5, 1.0]), np.array([10.0, 10.0, 10.0]))
    np.testing.assert_allclose(low, [0, 0.2366, 0.7225], atol=1e-4)
    np.testing.assert_allclose(high, [0.2775, 0.7634, 1], atol=1e-4)
