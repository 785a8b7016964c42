"""How sure a share is: the interval that a number of trials leaves for it."""

import numpy as np

_Z = 1.959964  # the normal distribution has 95 % within so many standard deviations


def wilson(share: np.ndarray, n: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95 % interval: the shares p' that a share p of n does not speak against, |p - p'| <= z √(p'(1-p')/n)."""
    centre = share + _Z**2 / (2 * n)
    reach = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    low, high = (np.clip((centre + end) / (1 + _Z**2 / n), 0, 1) for end in (-reach, reach))
    return low, high
