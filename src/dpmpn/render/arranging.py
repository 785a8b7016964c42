"""Arranges nodes: a small graph so that it reads well, and a large one around the places of the small."""

import numpy as np

from dpmpn.render.tangle import Graph, tangles

_STARTS = 8
_PAIRS = 60_000  # of nodes in all starts together: where nodes are many, fewer are tried
_GOLDEN = 0.6180339887498949  # its multiples fill a range evenly, so starts differ without chance
_ASIDE = 34.0  # that others stand farther in than the head and the answer
_LOOKS = 400_000_000  # a bound on the work of moving nodes about, in pairs of things compared


def arranged(graph: Graph, head: int, answer: int, field: tuple[float, float]) -> np.ndarray:
    """Places of the nodes: the head left, the answer right, the others so that little is tangled."""
    n = len(graph.half)
    if n == 1:
        return np.array([[field[0] / 2, field[1] / 2 - graph.drop[0]]])
    fixed = np.zeros(n, bool)
    fixed[[head, answer]] = True
    starts = _starts(graph, head, answer, field)
    starts = _stressed(starts, _distances(graph.ends, n), fixed, field)
    starts = np.stack([_apart(graph, _filling(graph, start, fixed, field), fixed, field) for start in starts])
    best = starts[int(np.argmin(np.round(tangles(graph, starts, field[0]), 6)))]
    return _apart(graph, _improved(graph, best, fixed, field), fixed, field)


def _starts(graph: Graph, head: int, answer: int, field: tuple[float, float]) -> np.ndarray:
    """Several arrangements by time, that differ in who is above whom."""
    n = len(graph.half)
    n_starts = min(_STARTS, max(1, _PAIRS // n**2))
    order = np.argsort(np.argsort(graph.wished, kind="stable"), kind="stable")
    starts = np.empty((n_starts, n, 2))
    for s in range(n_starts):
        starts[s, :, 0] = graph.wished
        starts[s, :, 1] = ((order + 1) * _GOLDEN + s / n_starts) % 1.0 * field[1]
    starts[:, [head, answer], 1] = field[1] / 2 - graph.drop[[head, answer]]
    return starts


def _distances(ends: np.ndarray, n: int) -> np.ndarray:
    """How many lines lie between each two nodes; those that are not joined count as far apart."""
    steps = np.full((n, n), np.inf)
    steps[ends[:, 0], ends[:, 1]] = steps[ends[:, 1], ends[:, 0]] = 1
    np.fill_diagonal(steps, 0)
    for k in range(n):
        steps = np.minimum(steps, steps[:, k, None] + steps[k])
    most = steps[np.isfinite(steps)].max()
    return np.where(np.isfinite(steps), steps, most + 1)


def _stressed(
    starts: np.ndarray, steps: np.ndarray, fixed: np.ndarray, field: tuple[float, float]
) -> np.ndarray:
    """Move nodes until their distances are nearly as the numbers of lines between them (stress majorisation)."""
    unit = field[0] / max(2.0, steps.max())
    wished = steps * unit
    weight = np.divide(1.0, wished**2, out=np.zeros_like(wished), where=wished > 0)
    places = starts.copy()
    for _ in range(60):
        away = places[:, :, None] - places[:, None]  # starts x nodes x nodes x 2
        distance = np.hypot(away[..., 0], away[..., 1]) + 1e-6
        goal = places[:, None] + away * (wished / distance)[..., None]
        moved = (goal * weight[..., None]).sum(2) / weight.sum(1)[:, None]
        places[:, ~fixed] = (places[:, ~fixed] + moved[:, ~fixed]) / 2
    return places


def _filling(graph: Graph, places: np.ndarray, fixed: np.ndarray, field: tuple[float, float]) -> np.ndarray:
    """Stretch the free nodes over the height of the field."""
    free = np.flatnonzero(~fixed)
    if len(free) < 2:
        return places
    low, high = _bounds(graph, fixed, field)
    y = places[free, 1]
    reach = max(float(y.max() - y.min()), 1e-6)
    places = places.copy()
    places[free, 1] = low[free, 1] + (y - y.min()) / reach * (high - low)[free, 1]
    return places


def _bounds(graph: Graph, fixed: np.ndarray, field: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest place of each disc in the field; all others stand between head and answer."""
    offset = np.stack([np.zeros_like(graph.drop), graph.drop], 1)
    low, high = graph.half - offset, np.array(field) - graph.half - offset
    left, right = graph.wished[fixed].min(), graph.wished[fixed].max()
    if left < right:  # else the answer is the head
        low[~fixed, 0] = np.maximum(low[~fixed, 0], left + _ASIDE)
        high[~fixed, 0] = np.minimum(high[~fixed, 0], right - _ASIDE)
    return low, np.maximum(low, high)


def _apart(graph: Graph, places: np.ndarray, fixed: np.ndarray, field: tuple[float, float]) -> np.ndarray:
    """Push nodes off each other, along the axis on which less is needed."""
    low, high = _bounds(graph, fixed, field)
    places = np.clip(places, low, high)
    room = graph.half[:, None] + graph.half[None]
    for _ in range(80):
        boxes = graph.boxes(places)
        away = boxes[:, None] - boxes[None]
        over = room - np.abs(away)
        hit = (over > 0).all(2) & ~np.eye(len(places), dtype=bool)
        if not hit.any():
            break
        way = np.where(
            away == 0, np.sign(np.arange(len(places))[:, None] - np.arange(len(places)))[..., None], away
        )
        push = np.where(hit[..., None], np.sign(way) * (over + 0.5) * 0.35, 0.0)
        sideways = over[..., 0] < over[..., 1]
        push[..., 0] *= sideways
        push[..., 1] *= ~sideways
        push[fixed] = 0
        places = np.clip(places + push.sum(1), low, high)
    return places


def _improved(graph: Graph, places: np.ndarray, fixed: np.ndarray, field: tuple[float, float]) -> np.ndarray:
    """Move single nodes to where less is tangled, and let two change places, as long as that helps."""
    free = np.flatnonzero(~fixed)
    low, high = _bounds(graph, fixed, field)
    n, n_lines = len(places), len(graph.ends)
    work = n * n + 4 * n_lines * n_lines + 24 * n_lines * n
    best = round(float(tangles(graph, places[None], field[0])[0]), 6)
    left = _LOOKS // 40
    for reach in (1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.12):
        for node in free.tolist():
            tried = _moves(places, node, free, low, high, reach)
            left -= work * len(tried)
            if left < 0:
                return places
            costs = np.round(tangles(graph, tried, field[0]), 6)
            if costs.min() < best:
                best, places = float(costs.min()), tried[int(costs.argmin())]
    return places


def _moves(
    places: np.ndarray, node: int, free: np.ndarray, low: np.ndarray, high: np.ndarray, reach: float
) -> np.ndarray:
    """Places for one node in a grid around it, which spans the field at first, and exchanges with others."""
    across = np.linspace(-0.5, 0.5, 7) * reach
    grid = np.stack(np.meshgrid(across, across), -1).reshape(-1, 2) * (high - low)[node]
    middle = (low + high)[node] / 2 if reach == 1.0 else places[node]
    others = free[free > node] if reach == 1.0 else free[:0]
    tried = np.repeat(places[None], len(grid) + len(others), 0)
    tried[: len(grid), node] = np.clip(middle + grid, low[node], high[node])
    for at, other in enumerate(others, len(grid)):
        tried[at, node] = np.clip(places[other], low[node], high[node])
        tried[at, other] = np.clip(places[node], low[other], high[other])
    return tried
