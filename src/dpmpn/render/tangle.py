"""How hard arrangements of a small graph are to read: crossings, lines through nodes, labels without room."""

from dataclasses import dataclass

import numpy as np

_ALONG = (np.arange(1, 10) / 10.0)[:, None]  # where along a line it is looked at
_CROSSING, _THROUGH, _NODES, _LABELS, _LABEL_ON_NODE = 1.0, 2.5, 20.0, 2.0, 3.0
_LENGTH, _TIME, _ANGLE = 0.35, 1.5, 1.5


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
        return places + np.stack([np.zeros_like(self.drop), self.drop], 1)


def tangles(graph: Graph, places: np.ndarray, width: float) -> np.ndarray:
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
    return ((deep > 0) * (0.2 + deep) * counted).sum((1, 2))


def _crossings(ends: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many pairs of lines cross that do not share a node."""
    apart = (ends[:, None, :, None] != ends[None, :, None, :]).all((2, 3))
    side_of_start = _sides(start, end, start)
    side_of_end = _sides(start, end, end)
    split = side_of_start * side_of_end < 0  # of each line (first) by which each other (second) is crossed
    return (split & split.transpose(0, 2, 1) & np.triu(apart, 1)).sum((1, 2)).astype(float)


def _sides(start: np.ndarray, end: np.ndarray, point: np.ndarray) -> np.ndarray:
    along = end - start
    to = point[:, None] - start[:, :, None]  # arrangements x lines x points x 2
    return along[:, :, None, 0] * to[..., 1] - along[:, :, None, 1] * to[..., 0]


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
    return near.sum((1, 2))


def _passes(graph: Graph, start: np.ndarray, end: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """How often lines run through nodes that are not their ends, or through those nodes' labels."""
    points = start[:, :, None] + (end - start)[:, :, None] * _ALONG  # arrangements x lines x points x 2
    beside = np.abs(points[:, :, :, None] - boxes[:, None, None]) < graph.half + 1
    inside = beside.all(-1).any(2)  # arrangements x lines x nodes
    foreign = (graph.ends[:, :, None] != np.arange(len(graph.half))).all(1)
    return (inside & foreign).sum((1, 2)).astype(float)
