"""Arranges nodes: a small graph so that it reads well, and a large one around the places of the small."""

from dataclasses import dataclass

import numpy as np

_GOLDEN = 0.6180339887498949  # its multiples fill a range evenly, so starts differ without chance
# Of arranging a small graph.
_STARTS = 8
_PAIRS = 60_000  # of nodes in all starts together: where nodes are many, fewer are tried
_ASIDE = 34.0  # that others stand farther in than the head and the answer
_LOOKS = 10_000_000  # a bound on the work of moving nodes about, in pairs of things compared
# What makes an arrangement hard to read, and how much.
_CROSSING, _THROUGH, _NODES, _LABELS, _LABEL_ON_NODE = 1.0, 2.5, 20.0, 2.0, 3.0
_LENGTH, _TIME, _ANGLE = 0.35, 1.5, 1.5
_ALONG = (np.arange(1, 10) / 10.0)[:, None]  # where along a line it is looked at
# Of spreading a large one.
_ROUNDS = 150
_BESIDE = 6.0  # between a disc and a line of the pruned subgraph
_LOOP = 12.0  # more room above a disc that has a line to itself

Field = tuple[float, float]  # width and height


@dataclass(frozen=True, eq=False)
class Graph:
    """What is to be arranged."""

    half: np.ndarray  # nodes x 2: half the width and height of a node with its label
    drop: np.ndarray  # nodes: how far the middle of that lies below the disc's
    ends: np.ndarray  # lines x 2
    label: np.ndarray  # lines x 2: half the width and height of a line's label
    wished: np.ndarray  # nodes: x by time

    def boxes(self, places: np.ndarray) -> np.ndarray:
        """The middles of the nodes with their labels."""
        return np.asarray(places + np.stack([np.zeros_like(self.drop), self.drop], 1))


def arranged(graph: Graph, head: int, answer: int, field: Field) -> np.ndarray:
    """Places of the nodes: the head left, the answer right, the others so that little is tangled."""
    n = len(graph.half)
    if n == 1:
        return np.array([[field[0] / 2, field[1] / 2 - graph.drop[0]]])
    fixed = np.zeros(n, bool)
    fixed[[head, answer]] = True
    starts = _starts(graph, head, answer, field)
    starts = _stressed(starts, _distances(graph.ends, n), fixed, field)
    starts = np.stack([_apart(graph, _filling(graph, start, fixed, field), fixed, field) for start in starts])
    best = starts[int(np.argmin(np.round(_tangles(graph, starts, field[0]), 6)))]
    return _apart(graph, _improved(graph, best, fixed, field), fixed, field)


def _starts(graph: Graph, head: int, answer: int, field: Field) -> np.ndarray:
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


def _stressed(starts: np.ndarray, steps: np.ndarray, fixed: np.ndarray, field: Field) -> np.ndarray:
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


def _filling(graph: Graph, places: np.ndarray, fixed: np.ndarray, field: Field) -> np.ndarray:
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


def _bounds(graph: Graph, fixed: np.ndarray, field: Field) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest place of each disc in the field; all others stand between head and answer."""
    offset = np.stack([np.zeros_like(graph.drop), graph.drop], 1)
    low, high = graph.half - offset, np.array(field) - graph.half - offset
    left, right = graph.wished[fixed].min(), graph.wished[fixed].max()
    if left < right:  # else the answer is the head
        low[~fixed, 0] = np.maximum(low[~fixed, 0], left + _ASIDE)
        high[~fixed, 0] = np.minimum(high[~fixed, 0], right - _ASIDE)
    return low, np.maximum(low, high)


def _apart(graph: Graph, places: np.ndarray, fixed: np.ndarray, field: Field) -> np.ndarray:
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
        order = np.arange(len(places))
        direction = np.where(away == 0, (order[:, None] - order)[..., None], away)
        push = np.where(hit[..., None], np.sign(direction) * (over + 0.5) * 0.35, 0.0)
        sideways = over[..., 0] < over[..., 1]
        push[..., 0] *= sideways
        push[..., 1] *= ~sideways
        push[fixed] = 0
        places = np.clip(places + push.sum(1), low, high)
    return places


def _improved(graph: Graph, places: np.ndarray, fixed: np.ndarray, field: Field) -> np.ndarray:
    """Move single nodes to where less is tangled, and let two change places, as long as that helps."""
    free = np.flatnonzero(~fixed)
    low, high = _bounds(graph, fixed, field)
    n, n_lines = len(places), len(graph.ends)
    work = n * n + 4 * n_lines * n_lines + 24 * n_lines * n
    best = round(float(_tangles(graph, places[None], field[0])[0]), 6)
    left = _LOOKS
    for reach in (1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.12):
        for node in free.tolist():
            tried = _moves(places, node, free, low, high, reach)
            left -= work * len(tried)
            if left < 0:
                return places
            costs = np.round(_tangles(graph, tried, field[0]), 6)
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


def _tangles(graph: Graph, places: np.ndarray, width: float) -> np.ndarray:
    """A cost for each of several arrangements (arrangements x nodes x 2); the lower, the easier to read."""
    boxes = graph.boxes(places)
    cost = _NODES * _overlaps(
        boxes, graph.half, boxes, graph.half, np.triu(np.ones((len(graph.half),) * 2), 1)
    )
    cost += _TIME * (np.abs(places[:, :, 0] - graph.wished) / width).sum(1)
    if not len(graph.ends):
        return cost
    start, end = places[:, graph.ends[:, 0]], places[:, graph.ends[:, 1]]
    middle = (start + end) / 2
    n_lines = len(graph.ends)
    cost += _CROSSING * _crossings(graph.ends, start, end)
    cost += _ANGLE * _narrow_angles(graph.ends, start, end)
    cost += _LENGTH * np.hypot(*np.moveaxis(end - start, 2, 0)).sum(1) / width
    cost += _LABELS * _overlaps(middle, graph.label, middle, graph.label, np.triu(np.ones((n_lines,) * 2), 1))
    every = np.ones((n_lines, len(graph.half)))
    cost += _LABEL_ON_NODE * _overlaps(middle, graph.label, boxes, graph.half, every)
    cost += _THROUGH * _passes(graph, start, end, boxes)
    return cost


def _overlaps(
    a: np.ndarray, half_a: np.ndarray, b: np.ndarray, half_b: np.ndarray, counted: np.ndarray
) -> np.ndarray:
    """How much boxes lie over each other, as parts of the smaller's width and height."""
    smaller = np.minimum(half_a[:, None], half_b[None]) * 2 + 1e-9
    over = half_a[:, None] + half_b[None] - np.abs(a[:, :, None] - b[:, None])  # arrangements x a x b x 2
    part = np.clip(over / smaller, 0, 1)
    deep = part[..., 0] * part[..., 1]
    return np.asarray(((deep > 0) * (0.2 + deep) * counted).sum((1, 2)))


def _crossings(ends: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many pairs of lines cross that do not share a node."""
    apart = (ends[:, None, :, None] != ends[None, :, None, :]).all((2, 3))
    side_of_start = _sides(start, end, start)
    side_of_end = _sides(start, end, end)
    split = side_of_start * side_of_end < 0  # of each line (first) by which each other (second) is crossed
    crossed = split & split.transpose(0, 2, 1) & np.triu(apart, 1)
    return np.asarray(crossed.sum((1, 2)), float)


def _sides(start: np.ndarray, end: np.ndarray, point: np.ndarray) -> np.ndarray:
    along = end - start
    to = point[:, None] - start[:, :, None]  # arrangements x lines x points x 2
    return np.asarray(along[:, :, None, 0] * to[..., 1] - along[:, :, None, 1] * to[..., 0])


def _narrow_angles(ends: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Lines that leave a node in nearly the same direction: they look like one."""
    along = end - start
    along = along / (np.hypot(along[..., 0], along[..., 1])[..., None] + 1e-9)
    cosine = along @ along.transpose(0, 2, 1)
    sign = np.zeros((len(ends), len(ends)))
    for i in (0, 1):
        for j in (0, 1):
            sign += np.where(ends[:, None, i] == ends[None, :, j], 1.0 if i == j else -1.0, 0.0)
    near = np.clip((cosine * np.triu(sign, 1) - 0.94) / 0.06, 0, 1)  # within 20 degrees
    return np.asarray(near.sum((1, 2)))


def _passes(graph: Graph, start: np.ndarray, end: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """How often lines run through nodes that are not their ends, or through those nodes' labels."""
    points = start[:, :, None] + (end - start)[:, :, None] * _ALONG  # arrangements x lines x points x 2
    beside = np.abs(points[:, :, :, None] - boxes[:, None, None]) < graph.half + 1
    inside = beside.all(-1).any(2)  # arrangements x lines x nodes
    foreign = (graph.ends[:, :, None] != np.arange(len(graph.half))).all(1)
    return np.asarray((inside & foreign).sum((1, 2)), float)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Nodes to be placed, some of which are; each array has a row for each of them but the last two."""

    start: np.ndarray  # places of those that are pinned to them
    pinned: np.ndarray
    radii: np.ndarray
    loops: np.ndarray  # whether a line leads from it to itself
    when: np.ndarray  # it gained its attention: from 0 to 1
    ends: np.ndarray  # edges x 2
    flows: np.ndarray  # of the edges


def spread(crowd: Crowd, lines: np.ndarray, boxes: np.ndarray, field: Field) -> np.ndarray:
    """Places by time from left to right, near those with whom attention was exchanged, and apart from each other.

    Free nodes keep off `lines` (lines x 2 ends x 2) and out of `boxes` (middle and half the width and height).
    """
    n, free, radii = len(crowd.start), ~crowd.pinned, crowd.radii
    if not free.any():
        return crowd.start.copy()
    edge = radii + 3.0
    low, high = np.stack([edge, edge + _LOOP * crowd.loops], 1), np.array(field) - edge[:, None]
    wished = field[0] * (0.12 + 0.76 * crowd.when)
    near = _nearness(crowd.ends, crowd.flows, n)
    places = crowd.start.copy()
    order = np.argsort(np.argsort(wished[free], kind="stable"), kind="stable")
    places[free, 0] = wished[free]
    places[free, 1] = (order + 1) * _GOLDEN % 1.0 * field[1]
    room = 1.15 * np.sqrt(field[0] * field[1] / (n + 1))
    wanted = np.maximum(room, radii[:, None] + radii + 4.0)
    np.fill_diagonal(wanted, 0)
    for turn in range(_ROUNDS):
        calm = 1.0 - turn / _ROUNDS
        pull = near @ places - places * near.sum(1)[:, None]
        pull *= 0.06 * calm
        pull[:, 0] += 0.08 * calm * (wished - places[:, 0])
        push = _off_each_other(places, wanted) + _off_lines(places, lines, radii + _BESIDE)
        moved = places + pull + push
        if calm < 0.2:  # before, they may still change sides
            moved = _beside(moved, lines, radii + _BESIDE)
        places[free] = np.clip(_out_of(moved, radii, boxes), low, high)[free]
    return places


def _beside(places: np.ndarray, lines: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Discs that lie on lines are moved off them, on the side where they are."""
    moved = places.copy()
    for start, end in lines:
        along = (end - start) / max(float(np.hypot(*(end - start))), 1e-9)
        aside = np.array([-along[1], along[0]])
        off, part = (moved - start) @ aside, (moved - start) @ along
        over = wanted - np.abs(off)
        on = (over > 0) & (part > 0) & (part < (end - start) @ along)
        moved[on] += np.outer(np.where(off < 0, -over, over)[on], aside)
    return moved


def _out_of(places: np.ndarray, radii: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Discs that lie on boxes are moved to the nearest side."""
    moved = places.copy()
    for x, y, half_width, half_height in boxes:
        off = moved - (x, y)
        over = np.stack([half_width + radii, half_height + radii], 1) - np.abs(off)
        inside = (over > 0).all(1)
        axis = (over[:, 1] < over[:, 0]).astype(int)
        rows = np.flatnonzero(inside)
        direction = np.where(off[rows, axis[rows]] < 0, -1.0, 1.0)
        moved[rows, axis[rows]] += direction * over[rows, axis[rows]]
    return moved


def _nearness(ends: np.ndarray, flows: np.ndarray, n: int) -> np.ndarray:
    """How much of what a node exchanged was with each other one; rows add up to 1 or 0."""
    near = np.zeros((n, n))
    np.add.at(near, (ends[:, 0], ends[:, 1]), flows)
    near = np.sqrt(near + near.T)
    np.fill_diagonal(near, 0)
    total = near.sum(1, keepdims=True)
    return np.asarray(np.divide(near, total, out=np.zeros_like(near), where=total > 0))


def _off_each_other(places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Away from nodes that are nearer than is wanted."""
    x, y = (places[:, axis, None] - places[:, axis] for axis in (0, 1))
    distance = np.sqrt(x * x + y * y)
    same = distance < 1e-9
    if same.sum() > len(places):  # these go apart by their order
        order = np.arange(len(places))
        x[same] = np.sign(order[:, None] - order)[same]
    strength = np.maximum(wanted - distance, 0) * 0.3 / np.maximum(distance, 1.0)
    return np.stack([(x * strength).sum(1), (y * strength).sum(1)], 1)


def _off_lines(places: np.ndarray, lines: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Away from the nearest point of lines that are nearer than is wanted."""
    start, along = lines[:, 0], lines[:, 1] - lines[:, 0]
    length = np.maximum((along**2).sum(1), 1e-9)
    to = places[:, None] - start  # nodes x lines x 2
    part = np.clip((to * along).sum(2) / length, 0, 1)
    away = to - part[..., None] * along
    distance = np.maximum(np.sqrt((away**2).sum(2)), 0.1)
    strength = np.maximum(wanted[:, None] - distance, 0) * 0.8 / distance
    return np.asarray((away * strength[..., None]).sum(1))
