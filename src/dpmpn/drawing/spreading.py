"""Places the many nodes of a full subgraph around those that are placed already."""

import numpy as np

_GOLDEN = 0.6180339887498949
_ROUNDS = 150


def spread(
    start: np.ndarray,
    pinned: np.ndarray,
    radii: np.ndarray,
    when: np.ndarray,
    ends: np.ndarray,
    flows: np.ndarray,
    kept_free: np.ndarray,
    field: tuple[float, float],
) -> np.ndarray:
    """Places by time from left to right, near those with whom attention was exchanged, and apart from each other.

    `start` holds the places of the pinned nodes; `kept_free` are points that others keep away from.
    """
    n = len(start)
    free = ~pinned
    if not free.any():
        return start.copy()
    edge = radii + 3.0
    low, high = np.stack([edge, edge], 1), np.array(field) - edge[:, None]
    wished = field[0] * (0.12 + 0.76 * when)
    near = _nearness(ends, flows, n)
    places = start.copy()
    order = np.argsort(np.argsort(wished[free], kind="stable"), kind="stable")
    places[free, 0] = wished[free]
    places[free, 1] = (order + 1) * _GOLDEN % 1.0 * field[1]
    room = 0.95 * np.sqrt(field[0] * field[1] / (n + 2 * len(kept_free) + 1))
    for turn in range(_ROUNDS):
        calm = 1.0 - turn / _ROUNDS
        pull = near @ places - places * near.sum(1)[:, None]
        pull *= 0.12 * calm
        pull[:, 0] += 0.08 * calm * (wished - places[:, 0])
        push = _push(places, places, room, radii[:, None] + radii + 4.0)
        if len(kept_free):
            push += _push(places, kept_free, room, np.full((n, len(kept_free)), 16.0))
        places[free] = np.clip(places + pull + push, low, high)[free]
    return places


def _nearness(ends: np.ndarray, flows: np.ndarray, n: int) -> np.ndarray:
    """How much of what a node exchanged was with each other one; rows add up to 1 or 0."""
    near = np.zeros((n, n))
    np.add.at(near, (ends[:, 0], ends[:, 1]), flows)
    near = np.sqrt(near + near.T)
    np.fill_diagonal(near, 0)
    total = near.sum(1, keepdims=True)
    return np.divide(near, total, out=np.zeros_like(near), where=total > 0)


def _push(places: np.ndarray, others: np.ndarray, room: float, least: np.ndarray) -> np.ndarray:
    """Away from others that are nearer than there is room for."""
    away = places[:, None] - others[None]
    distance = np.hypot(away[..., 0], away[..., 1])
    turn = (np.arange(len(places))[:, None] * 2.399963 + np.arange(len(others))) * (distance < 1e-9)
    away = away + np.stack([np.cos(turn), np.sin(turn)], -1) * (distance < 1e-9)[..., None]
    wanted = np.maximum(room, least)
    strength = np.clip(wanted - distance, 0, None) * 0.3 / np.maximum(distance, 1.0)
    strength *= distance > 0  # not from itself
    return (away * strength[..., None]).sum(1)
