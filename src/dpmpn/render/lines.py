"""The course of lines between nodes: straight, or bent around a node that would be in the way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmpn.render.bundles import Bundle
from dpmpn.render.layout import LOOP_ROOM, Disc, Layout

_BENDS = (
    0.0,
    0.08,
    -0.08,
    0.16,
    -0.16,
    0.24,
    -0.24,
)  # parts of the length by which a line leaves the straight


@dataclass(frozen=True)
class Course:
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
        return a * np.array(self.start) + b * np.array(self.control) + c * np.array(self.end)


def course(bundle: Bundle, layout: Layout, avoided: Sequence[bool]) -> Course:
    """The least bent course that goes through the fewest other nodes, of those that are to be avoided."""
    source, target = layout.discs[bundle.source], layout.discs[bundle.target]
    if bundle.is_loop:
        return _loop(source)
    others = np.array(
        [
            (disc.x, disc.y, disc.radius)
            for at, disc in layout.discs.items()
            if avoided[at] and at not in (bundle.source, bundle.target)
        ]
    ).reshape(-1, 3)
    best, fewest = None, math.inf
    for bend in _BENDS:
        curve = _bent(source, target, bend)
        cost = _hits(curve, others) + abs(bend) * 3
        if _leaves(curve, layout):
            cost += 100
        if cost < fewest:
            best, fewest = curve, cost
        if fewest == 0:
            break
    assert best is not None
    return best


def ways(bundle: Bundle, layout: Layout) -> tuple[str, str]:
    """Arrows for text, as a line goes from its source to its target on the picture, and back."""
    source, target = layout.discs[bundle.source], layout.discs[bundle.target]
    dx, dy = target.x - source.x, target.y - source.y
    if abs(dx) * 2 >= abs(dy):
        return ("→", "←") if dx >= 0 else ("←", "→")
    return ("↓", "↑") if dy >= 0 else ("↑", "↓")


def arrow(course: Course, at_end: bool, size: float) -> list[tuple[float, float]]:
    """The corners of an arrow head at an end of a course."""
    tip = course.end if at_end else course.start
    back = course.control if course.control != tip else (course.start if at_end else course.end)
    dx, dy = tip[0] - back[0], tip[1] - back[1]
    length = math.hypot(dx, dy) or 1.0
    dx, dy = dx / length, dy / length
    foot = tip[0] - dx * size, tip[1] - dy * size
    half = size * 0.42
    return [tip, (foot[0] - dy * half, foot[1] + dx * half), (foot[0] + dy * half, foot[1] - dx * half)]


def _bent(source: Disc, target: Disc, bend: float) -> Course:
    dx, dy = target.x - source.x, target.y - source.y
    control = (source.x + target.x) / 2 - dy * bend, (source.y + target.y) / 2 + dx * bend
    return Course(_rim(source, control), control, _rim(target, control))


def _rim(disc: Disc, towards: tuple[float, float]) -> tuple[float, float]:
    """Where a line to a point leaves a disc."""
    dx, dy = towards[0] - disc.x, towards[1] - disc.y
    length = math.hypot(dx, dy) or 1.0
    reach = min(disc.radius + 1.5, length * 0.9)
    return disc.x + dx / length * reach, disc.y + dy / length * reach


def _loop(disc: Disc) -> Course:
    """Above the disc, as high as the layout left room for it and half of a heavy line."""
    left, right = disc.x - disc.radius * 0.6, disc.x + disc.radius * 0.6
    foot, top = disc.y - disc.radius * 0.9, disc.y - disc.radius - LOOP_ROOM + 3
    return Course((left, foot), (disc.x, 2 * top - foot), (right, foot))


def _hits(curve: Course, others: np.ndarray) -> float:
    """How many other discs a curve touches; small ones count less."""
    away = curve.points()[:, None] - others[None, :, :2]
    touched = (np.hypot(away[..., 0], away[..., 1]) < others[:, 2] + 2).any(0)
    return float((touched * np.clip(others[:, 2] / 8, 0, 1) ** 2).sum())


def _leaves(curve: Course, layout: Layout) -> bool:
    points = curve.points()
    return bool((points < 2).any() or (points > np.array([layout.width - 2, layout.height - 2])).any())
