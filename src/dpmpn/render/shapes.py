"""The shapes of a picture: discs of nodes, their colours, lines with all the facts that join two nodes, and labels."""

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmpn.explain.explanation import Node, Subgraph

HEAD = "#ffd21f"
ANSWER = "#d7261e"
LITTLE = "#c9c9c9"
EARLY = "#ffd21f"
BETWEEN = "#f58a1f"
LATE = "#d7261e"
OUTLINE = "#3c3c3c"
TEXT = "#1c1c1c"
FAINT_TEXT = "#4a4a4a"
LINE = "#4a5a6a"
FAINT_LINE = "#9aa6b2"


def gained(node: Node) -> tuple[float, float]:
    """The most attention a node ever had, and when it gained its attention: 0 is the first step, 1 the last."""
    rises = [
        max(0.0, after - before) for before, after in zip(node.attention, node.attention[1:], strict=False)
    ]
    total = sum(rises)
    if total <= 0 or len(rises) < 2:
        return max(node.attention, default=0.0), 0.0
    when = sum(t * rise for t, rise in enumerate(rises)) / total
    return max(node.attention), when / (len(rises) - 1)


def most_attention(subgraph: Subgraph, apart: tuple[int, ...]) -> float:
    """The most attention any node ever had but for those named apart: the head and the answer."""
    return max((gained(node)[0] for at, node in enumerate(subgraph.nodes) if at not in apart), default=0.0)


def strengths(subgraph: Subgraph, apart: tuple[int, ...], most: float | None = None) -> list[float]:
    """How much attention each node had, from 0 to 1 for the `most`: that of the strongest but for those named apart.

    The root of the part is taken: attention falls off so quickly that most nodes would look alike.
    """
    if most is None:
        most = most_attention(subgraph, apart)
    return [min(1.0, gained(node)[0] / most) ** 0.5 if most > 0 else 0.0 for node in subgraph.nodes]


def node_colour(strength: float, when: float) -> str:
    """Grey for little attention; else from yellow for early to red for late."""
    hue = _mix(EARLY, BETWEEN, when * 2) if when < 0.5 else _mix(BETWEEN, LATE, when * 2 - 1)
    return _mix(LITTLE, hue, min(1.0, max(0.0, strength)))


def _mix(first: str, second: str, part: float) -> str:
    """A colour between two: the first at 0, the second at 1."""
    parts = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in parts)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))


LINE_HEIGHT = 1.18  # of text, in sizes of its letters
LOOP_ROOM = 14.0  # that a line from a node to itself takes above its disc
# Parts of its length by which a line leaves the straight.
_BENDS = (0.0, 0.08, -0.08, 0.16, -0.16, 0.24, -0.24)


class Disc(NamedTuple):
    """The place and size of a node."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Layout:
    """The discs of a subgraph's nodes in a field that is so wide and high; y goes down."""

    width: float
    height: float
    discs: Mapping[int, Disc]  # by index of the node, ascending; not all nodes of a large one have any
    head: int  # indices of nodes
    answer: int
    most_attention: float  # of the others: sizes and colours go by the part of it


class Box(NamedTuple):
    """A rectangle by its corners."""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> "Box":
        """The box with this middle."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def middle(self) -> tuple[float, float]:
        """Its middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


@dataclass(frozen=True)
class Label:
    """Lines of text and where they stand."""

    lines: tuple[str, ...]
    box: Box
    size: float
    bold: bool = False


@dataclass(frozen=True)
class Bundle:
    """A line between two nodes: all edges that join them, whichever way attention or the facts go."""

    source: int  # indices of nodes; source < target, or the same
    target: int
    edges: tuple[int, ...]  # indices of the subgraph's edges
    weight: float  # the sum of theirs
    relations: tuple[tuple[str, bool, bool], ...]  # label, is there a fact to the target, and one back

    @property
    def forward(self) -> bool:
        """Whether a fact goes from source to target."""
        return any(forward for _, forward, _ in self.relations)

    @property
    def backward(self) -> bool:
        """Whether a fact goes from target to source."""
        return any(backward for _, _, backward in self.relations)

    @property
    def is_loop(self) -> bool:
        """Whether it joins a node with itself."""
        return self.source == self.target


def bundled(
    subgraph: Subgraph, weights: Sequence[float], between: Container[int] | None = None
) -> tuple[Bundle, ...]:
    """The lines of a subgraph, or of those `between` some of its nodes, the heaviest first."""
    groups: dict[tuple[int, int], list[int]] = {}
    for at, edge in enumerate(subgraph.edges):
        if between is not None and not (edge.source in between and edge.target in between):
            continue
        ends = min(edge.source, edge.target), max(edge.source, edge.target)
        groups.setdefault(ends, []).append(at)
    bundles = (_bundle(subgraph, *ends, edges, weights) for ends, edges in groups.items())
    return tuple(sorted(bundles, key=lambda b: (-round(b.weight, 9), b.source, b.target)))


def _bundle(
    subgraph: Subgraph, source: int, target: int, edges: list[int], weights: Sequence[float]
) -> Bundle:
    """Relations stand in the order of the weight that went along them."""
    heaviest: dict[str, float] = {}
    directions: dict[str, tuple[str, bool, bool]] = {}
    for at in edges:
        edge = subgraph.edges[at]
        forward = (edge.source == source) != edge.inverse
        label, was_forward, was_backward = directions.get(edge.relation, (edge.relation_label, False, False))
        directions[edge.relation] = label, was_forward or forward, was_backward or not forward
        heaviest[edge.relation] = heaviest.get(edge.relation, 0.0) + weights[at]
    order = sorted(directions, key=lambda relation: (-round(heaviest[relation], 9), relation))
    relations = tuple(directions[relation] for relation in order)
    return Bundle(source, target, tuple(edges), sum(weights[at] for at in edges), relations)


@dataclass(frozen=True)
class Curve:
    """A curve from disc to disc with one control point."""

    start: tuple[float, float]
    control: tuple[float, float]
    end: tuple[float, float]

    def at(self, part: float) -> tuple[float, float]:
        """The point at a part of the way."""
        (x0, y0), (x1, y1), (x2, y2) = self.start, self.control, self.end
        a, b, c = (1 - part) ** 2, 2 * part * (1 - part), part**2
        return a * x0 + b * x1 + c * x2, a * y0 + b * y1 + c * y2

    def points(self, count: int = 25) -> np.ndarray:
        """Points along it."""
        part = np.linspace(0, 1, count)[:, None]
        a, b, c = (1 - part) ** 2, 2 * part * (1 - part), part**2
        return np.asarray(a * np.array(self.start) + b * np.array(self.control) + c * np.array(self.end))


def curve_of(bundle: Bundle, layout: Layout, avoided: Sequence[bool]) -> Curve:
    """The least bent curve that goes through the fewest other nodes, of those that are to be avoided."""
    source, target = layout.discs[bundle.source], layout.discs[bundle.target]
    if bundle.is_loop:
        return _loop(source)
    ends = bundle.source, bundle.target
    others = [disc for at, disc in layout.discs.items() if avoided[at] and at not in ends]
    costs: dict[float, Curve] = {}
    for bend in _BENDS:
        curve = _bent(source, target, bend)
        cost = _hits(curve, np.array(others).reshape(-1, 3)) + abs(bend) * 3 + 100 * _leaves(curve, layout)
        costs.setdefault(cost, curve)
        if cost == 0:
            break
    return costs[min(costs)]


def arrow_signs(bundle: Bundle, layout: Layout) -> tuple[str, str]:
    """Arrows for text, as a line goes from its source to its target on the picture, and back."""
    source, target = layout.discs[bundle.source], layout.discs[bundle.target]
    dx, dy = target.x - source.x, target.y - source.y
    if abs(dx) * 2 >= abs(dy):
        return ("→", "←") if dx >= 0 else ("←", "→")
    return ("↓", "↑") if dy >= 0 else ("↑", "↓")


def arrow(curve: Curve, at_end: bool, size: float) -> list[tuple[float, float]]:
    """The corners of an arrow head at an end of a curve."""
    tip = curve.end if at_end else curve.start
    back = curve.control if curve.control != tip else (curve.start if at_end else curve.end)
    dx, dy = tip[0] - back[0], tip[1] - back[1]
    length = math.hypot(dx, dy) or 1.0
    dx, dy = dx / length, dy / length
    foot = tip[0] - dx * size, tip[1] - dy * size
    half = size * 0.42
    return [tip, (foot[0] - dy * half, foot[1] + dx * half), (foot[0] + dy * half, foot[1] - dx * half)]


def _bent(source: Disc, target: Disc, bend: float) -> Curve:
    dx, dy = target.x - source.x, target.y - source.y
    control = (source.x + target.x) / 2 - dy * bend, (source.y + target.y) / 2 + dx * bend
    return Curve(_rim(source, control), control, _rim(target, control))


def _rim(disc: Disc, towards: tuple[float, float]) -> tuple[float, float]:
    """Where a line to a point leaves a disc."""
    dx, dy = towards[0] - disc.x, towards[1] - disc.y
    length = math.hypot(dx, dy) or 1.0
    reach = min(disc.radius + 1.5, length * 0.9)
    return disc.x + dx / length * reach, disc.y + dy / length * reach


def _loop(disc: Disc) -> Curve:
    """Above the disc, as high as the layout left room for it and half of a heavy line."""
    left, right = disc.x - disc.radius * 0.6, disc.x + disc.radius * 0.6
    foot, top = disc.y - disc.radius * 0.9, disc.y - disc.radius - LOOP_ROOM + 3
    return Curve((left, foot), (disc.x, 2 * top - foot), (right, foot))


def _hits(curve: Curve, others: np.ndarray) -> float:
    """How many other discs a curve touches; small ones count less."""
    away = curve.points()[:, None] - others[None, :, :2]
    touched = (np.hypot(away[..., 0], away[..., 1]) < others[:, 2] + 2).any(0)
    return float((touched * np.clip(others[:, 2] / 8, 0, 1) ** 2).sum())


def _leaves(curve: Curve, layout: Layout) -> bool:
    points = curve.points()
    return bool((points < 2).any() or (points > np.array([layout.width - 2, layout.height - 2])).any())
