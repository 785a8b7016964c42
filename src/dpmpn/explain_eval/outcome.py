"""What became of an answer when its question was asked again."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Outcome:
    """What became of an answer when the question was asked."""

    probability: float
    rank: float  # among all entities, ties at their mean; the last where it has no probability


def outcome(probabilities: np.ndarray, answer: int) -> Outcome:
    """The outcome for an answer, from the probabilities of all entities."""
    own = probabilities[answer]
    if own == 0:
        return Outcome(0.0, float(len(probabilities)))
    better, tied = np.sum(probabilities > own), np.sum(probabilities == own)
    return Outcome(float(own), float(better + (tied + 1) / 2))
