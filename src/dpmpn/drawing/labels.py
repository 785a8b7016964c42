"""Places labels so that none lies over another or over a node; what finds no room is left to the titles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmpn.drawing.bundles import Bundle
from dpmpn.drawing.text import broken, text_width
from dpmpn.explain.subgraph import Node

NODE_SIZE, EDGE_SIZE = 11.0, 9.5  # of the letters
LINE_HEIGHT = 1.18
_NODE_WIDTH = 148.0  # the most a line of a node's label may take
_EDGE_WIDTHS = 160.0, 132.0  # and of a line's, where lines are few and where they are many
_FEW = 8
_OVER_LINE = 0.7  # the cost of each line under a label, in parts of a line's half length or a label's side
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

    def __init__(self, width: float, height: float, points: np.ndarray) -> None:
        self.width, self.height = width, height
        self._points = points  # lines x points x 2: where text is harder to read
        self._taken: list[Box] = []

    def take(self, box: Box) -> None:
        """Keep a box free of labels."""
        self._taken.append(box)

    def place(self, candidates: Iterable[tuple[Box, float]], own: int = -1, spared: int = 0) -> Box | None:
        """Take the best of some boxes with their costs that are free, if any is.

        A label may lie on lines at a cost, on its `own` at none, and on the first `spared` not at all.
        """
        best, least = None, float("inf")
        for box, cost in candidates:
            if cost >= least or not self.is_free(box):
                continue
            under = self._is_on(box)
            if under[:spared].any():
                continue
            cost += _OVER_LINE * float(under.sum()) - (own >= 0 and under[own])
            if cost < least - 1e-9:
                best, least = box, cost
        if best is not None:
            self.take(best)
        return best

    def is_free(self, box: Box) -> bool:
        """Whether it is in the field and over nothing that is taken."""
        return box.is_inside(self.width, self.height) and not any(
            box.overlaps(taken) for taken in self._taken
        )

    def is_on_others(self, box: Box, own: int) -> bool:
        """Whether a box lies on lines other than its own."""
        on = self._is_on(box)
        return int(on.sum()) > int(on[own])

    def _is_on(self, box: Box) -> np.ndarray:
        """For each line whether a box lies on it or touches it."""
        x, y = self._points[..., 0], self._points[..., 1]
        beside = (x > box.left - _THICK) & (x < box.right + _THICK)
        inside: np.ndarray = beside & (y > box.top - _THICK) & (y < box.bottom + _THICK)
        return np.any(inside, axis=1)
