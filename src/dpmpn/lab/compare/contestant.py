"""What a comparison asks of every model that takes part."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from torch import Tensor

from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks

Tick = Callable[[int, int], None]
"""Told how many queries were asked, and how many there are."""


class Contestant(Protocol):
    """A model that can be trained batch by batch and asked for ranks at any time."""

    @property
    def n_parameters(self) -> int:
        """Trainable numbers."""

    @property
    def epoch_queries(self) -> int:
        """Training queries of an epoch."""

    def train_batch(self) -> int:
        """Learn from the next batch; how many queries it had."""

    def rank(self, queries: np.ndarray, known: KnownAnswers, progress: Tick) -> Ranks:
        """Filtered ranks of the targets of queries (head, relation, target), in their order."""

    def weights(self) -> dict[str, Tensor]:
        """A copy of everything that was learnt."""

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Go back to a copy of the weights."""

    def cpu_seconds(self) -> float:
        """Processor time used so far, that of helping processes included."""

    def close(self) -> None:
        """Let go of what the machine lent: processes, threads."""
