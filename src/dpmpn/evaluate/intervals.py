"""How sure a share is: the interval that a number of trials leaves for it."""

import numpy as np

_Z = 1.959964  # the normal distribution has 95 % within so many standard deviations


def wilson(share: np.ndarray, n: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95 % interval: the shares p' that a share p of n does not speak against, |p - p'| <= z √(p'(1-p')/n)."""
    z2 = _Z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = _Z / (1 + z2 / n) * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return np.clip(centre - reach, 0, 1), np.clip(centre + reach, 0, 1)
