"""Places the many nodes of a full subgraph around those that are placed already."""

from dataclasses import dataclass

import numpy as np

_GOLDEN = 0.6180339887498949
_ROUNDS = 150
_BESIDE = 6.0  # between a disc and a line of the pruned subgraph
_LOOP = 12.0  # more room above a disc that has a line to itself


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


def spread(crowd: Crowd, lines: np.ndarray, boxes: np.ndarray, field: tuple[float, float]) -> np.ndarray:
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
        way = np.where(off[rows, axis[rows]] < 0, -1.0, 1.0)
        moved[rows, axis[rows]] += way * over[rows, axis[rows]]
    return moved


def _nearness(ends: np.ndarray, flows: np.ndarray, n: int) -> np.ndarray:
    """How much of what a node exchanged was with each other one; rows add up to 1 or 0."""
    near = np.zeros((n, n))
    np.add.at(near, (ends[:, 0], ends[:, 1]), flows)
    near = np.sqrt(near + near.T)
    np.fill_diagonal(near, 0)
    total = near.sum(1, keepdims=True)
    return np.divide(near, total, out=np.zeros_like(near), where=total > 0)


def _off_each_other(places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Away from nodes that are nearer than is wanted."""
    x, y = (places[:, axis, None] - places[:, axis] for axis in (0, 1))
    distance = np.sqrt(x * x + y * y)
    same = distance < 1e-9
    if same.sum() > len(places):  # these go apart by their order
        x[same] = np.sign(np.arange(len(places))[:, None] - np.arange(len(places)))[same]
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
    return (away * strength[..., None]).sum(1)
