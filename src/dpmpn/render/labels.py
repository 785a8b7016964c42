"""Places labels so that none lies over another or over a node; what finds no room is left to the titles."""

from collections.abc import Mapping, Sequence

import numpy as np

from dpmpn.explain.explanation import Node, Subgraph
from dpmpn.render.markup import text_width, wrapped
from dpmpn.render.shapes import LINE_HEIGHT, Box, Bundle, Curve, Disc, Label, Layout, gained

NODE_SIZE, EDGE_SIZE = 11.0, 9.5  # of the letters
_NODE_WIDTH = 148.0  # the most a line of a node's label may take
_EDGE_WIDTHS = 160.0, 132.0  # and of a line's, where lines are few and where they are many
_FEW = 8
_OVER_LINE = 0.7  # the cost of crossing the heaviest line, in parts of a line's half length or a label's side
_CROSSED = 18.0  # the length of a line that a label covers where it crosses it
_MOST_COVERED = 0.5  # of a line's length: beyond, nobody sees where it goes
_HIDDEN = 8.0  # the cost of covering all of it beyond that
_THICK = 2.0  # half of a heavy line
_MOST_RELATIONS = 4  # that are named on one line between two nodes
_ALONG = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68, 0.26, 0.74, 0.2, 0.8)  # where a label may lie on its line
_NOTABLE = 0.1  # of the attention: a node that had so much is named even on a strong line
_GAP = 2.0


def node_lines(node: Node, bold: bool = False, most_lines: int = 3) -> tuple[str, ...]:
    """A node's label in lines."""
    return wrapped(node.label or node.name, _NODE_WIDTH, most_lines, NODE_SIZE, bold)


def edge_lines(
    bundle: Bundle, n_lines: int, keys: Mapping[str, str] | None = None, signs: tuple[str, str] = ("→", "←")
) -> tuple[str, ...]:
    """The relations of a bundle, one below the other; where its facts go both ways, an arrow says which goes how.

    It is narrower where there are many lines. With `keys` those are shown for the relations, side by side; `signs` are
    the arrows from source to target and back.
    """
    has_signs = len(bundle.relations) > 1 and bundle.forward and bundle.backward
    named = [
        (_sign(signs, forward, backward) if has_signs else "", label)
        for label, forward, backward in bundle.relations
    ]
    if keys:
        short = [sign.strip() + keys[label] for sign, label in named if label in keys]
        return (" ".join(short if len(short) == len(named) else [*short, "…"]),)
    width = _EDGE_WIDTHS[n_lines > _FEW]
    lines = [
        line for sign, label in named[:_MOST_RELATIONS] for line in wrapped(sign + label, width, 2, EDGE_SIZE)
    ]
    left = len(named) - _MOST_RELATIONS
    return (*lines, f"and {left} more") if left > 0 else tuple(lines)


def _sign(signs: tuple[str, str], forward: bool, backward: bool) -> str:
    if forward and backward:
        return "↔ " if signs[0] in "→←" else "↕ "
    return (signs[0] if forward else signs[1]) + " "


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
        self._taken = np.concatenate([self._taken, boxes])

    def place(self, candidates: Sequence[tuple[Box, float]], own: int = -1, spared: int = 0) -> Box | None:
        """Take the best of some boxes with their costs that are free, if any is.

        A label may lie on lines at a cost, on its `own` at none, and on the first `spared` not at all.
        """
        free = self._are_free(np.array([box for box, _ in candidates]))
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
        left, top, right, bottom = box
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


def place_node_labels(
    subgraph: Subgraph, layout: Layout, strong: Sequence[bool], placer: Placer, most: int, spared: int
) -> dict[int, Label]:
    """The labels of the ends first, then of nodes that stand out, then of those with most attention.

    The last do not lie on the lines that stand out, of which there are as many as `spared`, unless much of the
    attention was there: the rival of the answer has a name.
    """
    ends = (layout.head, layout.answer)
    peaks = {at: round(gained(subgraph.nodes[at])[0], 9) for at in layout.discs}
    order = sorted(peaks, key=lambda at: (at not in ends, not strong[at], -peaks[at], at))
    labels: dict[int, Label] = {}
    for at in order:
        if len(labels) >= most:
            break
        bold, size = at in ends, NODE_SIZE if strong[at] else NODE_SIZE - 2
        lines = node_lines(subgraph.nodes[at], bold, 3 if strong[at] else 2)
        width, height = size_of(lines, size, bold)
        places = _around(layout.discs[at], width + 4, height, layout.width)
        box = placer.place(places, spared=0 if strong[at] else spared)
        if box is None and peaks[at] >= _NOTABLE:
            box = placer.place(places)
        if box is not None:
            labels[at] = Label(lines, box, size, bold)
    return labels


def _around(disc: Disc, width: float, height: float, field: float) -> list[tuple[Box, float]]:
    """Places for a label at a disc: below, above, to its sides and aslant."""
    reach_x, reach_y = disc.radius + _GAP + width / 2, disc.radius + _GAP + height / 2
    places = [(0.0, reach_y, 0.0), (0.0, -reach_y, 0.4), (reach_x, 0.0, 0.5), (-reach_x, 0.0, 0.5)]
    aside = max(width / 2 - disc.radius, 0.0)
    # So that it is not cut off at the border.
    inwards = min(max(disc.x, width / 2), field - width / 2) - disc.x
    for x, cost in ((inwards, 0.1), (aside / 2, 0.3), (-aside / 2, 0.3), (aside, 0.6), (-aside, 0.6)):
        places += [(x, reach_y, cost), (x, -reach_y, cost + 0.4)]
    corner_x, corner_y = disc.radius * 0.7 + _GAP + width / 2, disc.radius * 0.7 + height / 2
    places += [(x, y, 0.8) for x in (corner_x, -corner_x) for y in (corner_y, -corner_y)]
    return [(Box.around(disc.x + x, disc.y + y, width, height), cost) for x, y, cost in places]


def place_edge_labels(
    texts: Mapping[int, tuple[str, ...]], lines: Sequence[Bundle], curves: Sequence[Curve], placer: Placer
) -> dict[int, Label]:
    """Labels on their lines, as near to the middle as there is room; above those that lead back to their node."""
    labels: dict[int, Label] = {}
    for at, text in texts.items():
        width, height = size_of(text, EDGE_SIZE)
        if lines[at].is_loop:
            x, y = curves[at].at(0.5)
            middles = [((x + part * width, y - height / 2 - 3), abs(part)) for part in (0.0, 0.25, -0.25)]
        else:
            middles = [(curves[at].at(part), 4 * abs(part - 0.5)) for part in _ALONG]
        box = placer.place([(Box.around(x, y, width + 6, height + 1), cost) for (x, y), cost in middles], at)
        if box is not None:
            labels[at] = Label(text, box, EDGE_SIZE)
    return labels
