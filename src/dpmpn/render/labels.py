"""Places labels so that none lies over another or over a node; what finds no room is left to the titles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmpn.explain.subgraph import Node
from dpmpn.render.bundles import Bundle
from dpmpn.render.text_width import broken, text_width

NODE_SIZE, EDGE_SIZE = 11.0, 9.5  # of the letters
LINE_HEIGHT = 1.18
_NODE_WIDTH = 148.0  # the most a line of a node's label may take
_EDGE_WIDTHS = 160.0, 132.0  # and of a line's, where lines are few and where they are many
_FEW = 8
_OVER_LINE = 0.7  # the cost of crossing the heaviest line, in parts of a line's half length or a label's side
_CROSSED = 18.0  # the length of a line that a label covers where it crosses it
_MOST_COVERED = 0.5  # of a line's length: beyond, nobody sees where it goes
_HIDDEN = 8.0  # the cost of covering all of it beyond that
_THICK = 2.0  # half of a heavy line
_MOST_RELATIONS = 4  # that are named on one line between two nodes


@dataclass(frozen=True)
class Box:
    """A rectangle by its corners."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> "Box":
        """The box with this middle."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    def overlaps(self, other: "Box") -> bool:
        """Whether two boxes share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def is_inside(self, width: float, height: float) -> bool:
        """Whether it lies within a field."""
        return self.left >= 0 and self.top >= 0 and self.right <= width and self.bottom <= height


@dataclass(frozen=True)
class Label:
    """Lines of text and where they stand."""

    lines: tuple[str, ...]
    box: Box
    size: float
    bold: bool = False


def node_lines(node: Node, bold: bool = False, most_lines: int = 3) -> tuple[str, ...]:
    """A node's label in lines."""
    return broken(node.label or node.name, _NODE_WIDTH, most_lines, NODE_SIZE, bold)


def edge_lines(
    bundle: Bundle, n_lines: int, keys: Mapping[str, str] | None = None, ways: tuple[str, str] = ("→", "←")
) -> tuple[str, ...]:
    """The relations of a bundle, one below the other; where its facts go both ways, an arrow says which goes how.

    It is narrower where there are many lines. With `keys` those are shown for the relations, side by side; `ways` are
    the arrows from source to target and back.
    """
    names_ways = len(bundle.relations) > 1 and bundle.forward and bundle.backward
    named = [
        (_way(ways, forward, backward) if names_ways else "", label)
        for label, forward, backward in bundle.relations
    ]
    if keys is not None:
        short = [way.strip() + keys[label] for way, label in named if label in keys]
        return (" ".join(short if len(short) == len(named) else [*short, "…"]),)
    width = _EDGE_WIDTHS[n_lines > _FEW]
    lines = [
        line for way, label in named[:_MOST_RELATIONS] for line in broken(way + label, width, 2, EDGE_SIZE)
    ]
    left = len(named) - _MOST_RELATIONS
    return (*lines, f"and {left} more") if left > 0 else tuple(lines)


def _way(ways: tuple[str, str], forward: bool, backward: bool) -> str:
    if forward and backward:
        return "↔ " if ways[0] in "→←" else "↕ "
    return (ways[0] if forward else ways[1]) + " "


def size_of(lines: Sequence[str], size: float, bold: bool = False) -> tuple[float, float]:
    """The width and height of lines of text."""
    return max(text_width(line, size, bold) for line in lines), len(lines) * size * LINE_HEIGHT


class Placer:
    """A field in which boxes are taken one after the other."""

    def __init__(self, width: float, height: float, points: np.ndarray, weights: np.ndarray) -> None:
        self.width, self.height = width, height
        self._points = points  # lines x points x 2: where text is harder to read
        self._weights = weights  # lines: from 0 to 1 for the heaviest
        self._lengths = np.hypot(*np.moveaxis(np.diff(points, axis=1), 2, 0)).sum(1)
        self._low, self._high = points.min(1) - _THICK, points.max(1) + _THICK  # lines x 2
        self._covered = np.zeros(points.shape[:2], bool)  # by labels other than the line's own
        self._taken = np.zeros((0, 4))

    def take(self, *boxes: Box) -> None:
        """Keep boxes free of labels."""
        self._taken = np.concatenate([self._taken, [_corners(box) for box in boxes]])

    def place(self, candidates: Sequence[tuple[Box, float]], own: int = -1, spared: int = 0) -> Box | None:
        """Take the best of some boxes with their costs that are free, if any is.

        A label may lie on lines at a cost, on its `own` at none, and on the first `spared` not at all.
        """
        free = self._are_free(np.array([_corners(box) for box, _ in candidates]))
        best, least = None, float("inf")
        for box, cost in (candidates[at] for at in np.flatnonzero(free).tolist()):
            if cost >= least:
                continue
            lines, inside = self._under(box, own)
            if (lines < spared).any():
                continue
            cost += self._cost(lines, inside)
            if cost < least - 1e-9:
                best, least = box, cost
        if best is not None:
            self.take(best)
            lines, inside = self._under(best, own)
            self._covered[lines] |= inside
        return best

    def is_on_others(self, box: Box, own: int) -> bool:
        """Whether a box lies on lines other than its own."""
        return len(self._under(box, own)[0]) > 0

    def _are_free(self, boxes: np.ndarray) -> np.ndarray:
        """Which of some boxes (boxes x 4) are in the field and over nothing that is taken."""
        inside = (boxes[:, :2] >= 0).all(1) & (boxes[:, 2:] <= (self.width, self.height)).all(1)
        over = (boxes[:, None, :2] < self._taken[:, 2:]) & (self._taken[:, :2] < boxes[:, None, 2:])
        return np.asarray(inside & ~np.any(np.all(over, axis=2), axis=1))

    def _under(self, box: Box, own: int) -> tuple[np.ndarray, np.ndarray]:
        """The lines but for its own that a box lies on or touches, and which of their points it covers."""
        left, top, right, bottom = _corners(box)
        near = (self._low < (right, bottom)).all(1) & (self._high > (left, top)).all(1)
        lines = np.flatnonzero(near)
        lines = lines[lines != own]
        x, y = self._points[lines, :, 0], self._points[lines, :, 1]
        beside = (x > left - _THICK) & (x < right + _THICK)
        inside: np.ndarray = beside & (y > top - _THICK) & (y < bottom + _THICK)
        touched = np.any(inside, axis=1)
        return lines[touched], inside[touched]

    def _cost(self, lines: np.ndarray, inside: np.ndarray) -> float:
        """Of covering points of lines: by the length that was not covered before, more on heavy lines."""
        before = self._covered[lines]
        after = before | inside
        length = self._lengths[lines] * (after & ~before).mean(1)
        crossing = (0.4 + 0.6 * length / _CROSSED) * (0.3 + 0.7 * self._weights[lines] ** 0.5)
        beyond = [np.maximum(covered.mean(1) - _MOST_COVERED, 0) for covered in (after, before)]
        hidden = (beyond[0] - beyond[1]) / (1 - _MOST_COVERED)
        return float((_OVER_LINE * crossing + _HIDDEN * hidden).sum())


def _corners(box: Box) -> tuple[float, float, float, float]:
    return box.left, box.top, box.right, box.bottom
