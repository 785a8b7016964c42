"""Every metric of ranks and every way to place ties, each listed once, in the order shown; and how sure a share is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Metric:
    """A mean over queries of what each one's rank, counted from 1, is worth."""

    key: str  # in JSON and CSV
    title: str  # in tables
    worth: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]

    def of(self, ranks: npt.NDArray[Any]) -> float:
        """The metric of some ranks, as a fraction."""
        return float(np.mean(self.worth(ranks)))


def _hits_at(k: int) -> Metric:
    return Metric(f"hits_at_{k}", f"H@{k}", lambda ranks: ranks <= k)


METRICS = (Metric("mrr", "MRR", lambda ranks: 1.0 / ranks), _hits_at(1), _hits_at(3), _hits_at(10))
TITLES = {metric.key: metric.title for metric in METRICS}
"""What tables call the metrics, by their keys."""
MAP_TITLES = {"map_over_triples": "MAP over triples", "map_over_heads": "MAP over heads"}
"""The same of mean average precision over given candidates."""
TIES = ("realistic", "optimistic", "pessimistic")
"""Ways to place a target among those that score the same: at the expected place, first, and last."""
_Z = 1.959964  # the normal distribution has 95 % within so many standard deviations


def wilson(share: np.ndarray, n: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95 % interval: the shares p' that a share p of n does not speak against, |p - p'| <= z √(p'(1-p')/n)."""
    z2 = _Z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = _Z / (1 + z2 / n) * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1)
