"""A share in each of many cells, shrunk from that of all cells towards each by its own evidence.

    part ~ Binomial(whole, share),    share ~ Beta(b m, b (1 - m))

with m the share of all cells together. How much the cells differ, and so how much each borrows, b, follows from how
much further their shares lie apart than draws from one share would.
"""

import numpy as np

_MOST_SPREAD = (
    0.5  # of shares: 0 where all are one, 1 where each is all or nothing; with this, a cell borrows 1
)


def shrunken_share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """The share of each cell, given the numbers of all; a cell without any has that of all."""
    used, n, mean = (whole > 0).sum(), whole.sum(), part.sum() / whole.sum()
    same = np.full(len(whole), mean)
    if mean in (0, 1) or n == used:
        return same
    apart = ((part - whole * mean) ** 2 / np.maximum(whole, 1)).sum() / (mean * (1 - mean))
    spread = min((apart - used) / (n - used), _MOST_SPREAD)
    if spread <= 0:
        return same
    borrowed = 1 / spread - 1
    return np.asarray((part + borrowed * mean) / (whole + borrowed))
