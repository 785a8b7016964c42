"""How the learning rate changes over a run: a factor that follows from the position alone."""

WARM_UP_BATCHES = 100
LAST_FACTOR = 0.01


def learning_rate_factor(schedule: str, position: int, total: int | None, batch_size: int) -> float:
    """What `learning_rate` is multiplied with for the batch at a position of a run of `total` queries.

    "linear": rises over the first 100 batches (half of a run that has fewer than 200), then falls evenly to 1 % at
    the end. A run whose end is not known has nothing to fall to; its learning rate stays as it is.
    """
    if schedule == "constant" or total is None:
        return 1.0
    warm_up = min(WARM_UP_BATCHES * batch_size, total / 2)
    if position < warm_up:
        return min(1.0, (position + batch_size) / warm_up)
    left = max(0.0, (total - position) / (total - warm_up))
    return LAST_FACTOR + (1 - LAST_FACTOR) * left
