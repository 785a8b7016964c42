"""A rising curve of a few straight pieces, in logits: how often what was said with some probability is right.

    logit P(right) = w₀ + w₁ min(z, k₁) + w₂ (between k₁ and k₂) + ... ,    z = logit(said),    w₁, w₂, ... >= 0

Knots part the right answers into equal numbers, so that the many answers that hardly ever are right do not decide what
the few probable ones are worth. It is drawn to w₀ = 0, w₁ = w₂ = ... = 1, which says that what was said is true; with
few right answers, it is just that.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmpn.calibrate.shrunken_logistic import ShrunkenLogistic, fit

_PIECES, _RIGHT_EACH = 3, 100  # pieces at most, and right answers for each
_SPREAD = 0.25  # variance of the coefficients around what says that it is true
_SURE = 1e-6  # probabilities are kept so far from 0 and 1
_DIGITS = 6  # of knots


@dataclass(frozen=True, eq=False)
class RisingCurve:
    """A fitted curve."""

    knots: np.ndarray  # ascending
    regression: ShrunkenLogistic

    @classmethod
    def of(cls, said: np.ndarray, right: np.ndarray, weight: np.ndarray) -> "RisingCurve":
        """The curve of some answers: what was said of each, whether it is right, and how many it stands for."""
        z = _logit(said)
        n_pieces = int(np.clip(right.sum() // _RIGHT_EACH, 1, _PIECES))
        inner = np.arange(1, n_pieces) / n_pieces
        knots = np.unique(np.quantile(z[right], inner).round(_DIGITS)) if len(inner) else np.empty(0)
        features = _pieces(z, knots)
        nowhere, slopes = np.zeros(len(z), np.int64), range(1, features.shape[1])
        as_said = [0.0, *(1.0 for _ in slopes)]
        if right.sum() < _RIGHT_EACH:
            weight = np.zeros_like(weight)
        return cls(knots, fit(features, nowhere, right, weight, 1, (0,), slopes, as_said, _SPREAD))

    def __call__(self, said: np.ndarray) -> np.ndarray:
        """The logit of how often it is right."""
        features = _pieces(_logit(said), self.knots)
        return self.regression.logit(features, np.zeros(len(said), np.int64))[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"knots": self.knots.tolist(), "regression": self.regression.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "RisingCurve":
        """Read plain values; ValueError, KeyError, TypeError or IndexError if they are something else."""
        knots = np.array(values["knots"], np.float64).reshape(len(values["knots"]))
        regression = ShrunkenLogistic.from_dict(values["regression"])
        if not np.isfinite(knots).all() or (np.diff(knots) <= 0).any():
            raise ValueError("a curve whose knots do not ascend")
        if len(regression.offsets) != 1 or len(regression.coefficients) != 2 + len(knots):
            raise ValueError("a curve of other pieces than it has knots for")
        return cls(knots, regression)


def _logit(said: np.ndarray) -> np.ndarray:
    said = np.clip(said, _SURE, 1 - _SURE)
    return np.asarray(np.log(said) - np.log1p(-said))


def _pieces(z: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """One, and how far z is within each piece: cases x (2 + knots)."""
    if not len(knots):
        return np.stack((np.ones_like(z), z), 1)
    ends = zip(knots, (*knots[1:], np.inf), strict=True)
    within = (np.clip(z, start, end) - start for start, end in ends)
    return np.stack((np.ones_like(z), np.minimum(z, knots[0]), *within), 1)
