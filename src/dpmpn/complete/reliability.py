"""How well probabilities fit what was right: the expected calibration error and the reliability curve."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmpn.complete.curve import wilson

BINS = 10  # of equal width


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions of about the same probability, and how often they were right."""

    predicted: float  # mean
    right: float  # fraction
    low: float  # 95 % interval of the fraction
    high: float
    predictions: float  # estimated for all of the graph's questions


@dataclass(frozen=True)
class Reliability:
    """How well probabilities fit what was right."""

    error: float  # expected calibration error
    error_of_first: float  # the same, of each question's first answer alone
    bins: tuple[ReliabilityBin, ...]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Reliability":
        """Read plain values; ValueError, KeyError or TypeError if they are something else."""
        rows = [{key: float(value) for key, value in row.items()} for row in values["bins"]]
        bins = tuple(ReliabilityBin(**row) for row in rows)
        return cls(float(values["error"]), float(values["error_of_first"]), bins)


def reliability(
    probability: np.ndarray, right: np.ndarray, weight: np.ndarray, first: np.ndarray
) -> Reliability:
    """Compare probabilities with what was right; `first` are the rows of each question's first answer."""
    number = bin_numbers(probability)
    total, squares = np.bincount(number, weight, BINS), np.bincount(number, weight**2, BINS)
    used = total > 0
    total, squares = total[used], squares[used]
    predicted = np.bincount(number, weight * probability, BINS)[used] / total
    fraction = np.minimum(np.bincount(number, weight * right, BINS)[used] / total, 1)
    columns = (predicted, fraction, *wilson(fraction, total**2 / squares), total)
    return Reliability(
        expected_error(probability, right, weight),
        expected_error(probability[first], right[first], weight[first]),
        tuple(ReliabilityBin(*row) for row in np.stack(columns, 1).tolist()),
    )


def expected_error(probability: np.ndarray, right: np.ndarray, weight: np.ndarray) -> float:
    """Expected calibration error: mean gap between probability and fraction right, over bins of equal width."""
    number = bin_numbers(probability)
    gaps = np.bincount(number, weight * (probability - right), BINS)
    return float(np.abs(gaps).sum() / max(weight.sum(), 1e-300))


def bin_numbers(probability: np.ndarray) -> np.ndarray:
    """The bin of each probability; a mean of equal ones may be a rounding below them, and stays in their bin."""
    return np.minimum((probability * BINS + 1e-9).astype(np.int64), BINS - 1)
