"""A rising curve from attention to the fraction that was right, fitted by isotonic regression."""

from dataclasses import dataclass

import numpy as np

LEAST = 20  # predictions that make one estimate; fewer say too little
_95_PERCENT = 1.959964


@dataclass(frozen=True)
class Curve:
    """A rising step function: from the attention `low[i]` on, predictions were right with `probability[i]`."""

    low: tuple[float, ...]
    probability: tuple[float, ...]
    right: tuple[float, ...]  # estimated for all of the graph's questions, as is
    of: tuple[float, ...]
    sure: tuple[float, ...]  # predictions of equal weight that would be as certain

    def step(self, attention: np.ndarray) -> np.ndarray:
        """Which step each attention is on."""
        return np.maximum(np.searchsorted(self.low, attention, side="right") - 1, 0)


def fit_curve(attention: np.ndarray, right: np.ndarray, weight: np.ndarray) -> Curve:
    """Weighted isotonic regression (pool adjacent violators) of right on attention, in steps of `LEAST` or more."""
    blocks: list[list[float]] = []  # lowest attention, weight of the right ones, weight, squared weights
    for low, hits, total, squares in zip(*_bins(attention, right, weight), strict=True):
        blocks.append([low, hits, total, squares])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][2] >= blocks[-1][1] * blocks[-2][2]:
            _, hits, total, squares = blocks.pop()
            blocks[-1] = [blocks[-1][0], blocks[-1][1] + hits, blocks[-1][2] + total, blocks[-1][3] + squares]
    low, hits, total, squares = np.array(blocks).reshape(-1, 4).T
    rows = (low, np.minimum(hits / total, 1), hits, total, total**2 / squares)
    return Curve(*(tuple(row.tolist()) for row in rows))


def _bins(attention: np.ndarray, right: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums over neighbouring predictions, counted from the most attended down; equal ones stay together.

    A rare sample that stands for many weighs like many: a step must hold `LEAST` of the heaviest.
    """
    order = np.argsort(-attention, kind="stable")
    attention, right, weight = attention[order], right[order], weight[order].astype(np.float64)
    starts = _starts(attention, weight)
    ends = np.append(starts[1:], len(attention)) - 1
    sums = [np.add.reduceat(values, starts) if len(starts) else values for values in
            (weight * right, weight, weight**2)]  # fmt: skip
    return tuple(column[::-1] for column in (attention[ends], *sums))


def _starts(attention: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Where bins begin: at the first smaller attention after a bin has enough; what is left joins the last."""
    values = np.flatnonzero(np.diff(attention, prepend=np.inf))  # the first of each attention
    before = (np.cumsum(weight) - weight)[values]
    enough = LEAST * weight.max(initial=1) * (1 - 1e-9)  # sums are rounded
    total, starts, at = weight.sum(), [], 0
    while at < len(values) and (not at or total - before[at] >= enough):
        starts.append(values[at])
        at = int(np.searchsorted(before, before[at] + enough))
    return np.array(starts, np.int64)


def wilson(fraction: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95 % interval of a fraction of n."""
    z2 = _95_PERCENT**2
    centre = (fraction + z2 / (2 * n)) / (1 + z2 / n)
    half = _95_PERCENT / (1 + z2 / n) * np.sqrt(fraction * (1 - fraction) / n + z2 / (4 * n * n))
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
