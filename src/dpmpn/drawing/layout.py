"""Where nodes stand: the head at the left, the answer at the right, and the same subgraph always at the same places."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmpn.drawing.arranging import arranged, spread
from dpmpn.drawing.colours import gained, strengths
from dpmpn.drawing.labels import node_lines, size_of
from dpmpn.explain.subgraph import Node, Subgraph

END_RADIUS = 13.0  # of the head and the answer
_SMALL, _LARGE = 3.0, 8.5  # of the others, from no attention to the most
_MARGIN = 8.0


@dataclass(frozen=True)
class Disc:
    """The place and size of a node."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Layout:
    """The discs of a subgraph's nodes, in their order, in a field that is so wide and high; y goes down."""

    width: float
    height: float
    discs: tuple[Disc, ...]
    head: int  # places among the nodes
    answer: int


def lay_out(
    full: Subgraph,
    pruned: Subgraph,
    head: str,
    answer: str,
    widths: tuple[float, float] = (440.0, 540.0),
    height: float = 440.0,
) -> tuple[Layout, Layout]:
    """The layouts of the full and of the pruned subgraph; what both have stands at the same part of width and height."""
    small = lay_out_pruned(pruned, head, answer, widths[1], height)
    return lay_out_full(full, pruned, small, head, answer, widths[0]), small


def lay_out_pruned(pruned: Subgraph, head: str, answer: str, width: float, height: float) -> Layout:
    """Neighbours near each other, few crossings, and room for the labels of all nodes."""
    at_head, at_answer = place_of(pruned, head), place_of(pruned, answer)
    radii = _radii(pruned, (at_head, at_answer))
    sizes = np.array([_size(node, radius) for node, radius in zip(pruned.nodes, radii, strict=True)])
    ends = sorted({(min(e.source, e.target), max(e.source, e.target)) for e in pruned.edges})
    when = np.array([_mean_time(node.share) for node in pruned.nodes])
    places = arranged(sizes, np.array(ends, int).reshape(-1, 2), when, at_head, at_answer, width, height, _MARGIN)
    return _layout(places, radii, at_head, at_answer, width, height)


def lay_out_full(
    full: Subgraph, pruned: Subgraph, small: Layout, head: str, answer: str, width: float
) -> Layout:
    """Nodes of the pruned subgraph where they are there, the others by when they gained attention and from whom."""
    height = small.height
    at_head, at_answer = place_of(full, head), place_of(full, answer)
    radii = _radii(full, (at_head, at_answer))
    known = {
        node.name: (disc.x * width / small.width, disc.y)
        for node, disc in zip(pruned.nodes, small.discs, strict=True)
    }
    pinned = np.array([node.name in known for node in full.nodes])
    start = np.array([known.get(node.name, (np.nan, np.nan)) for node in full.nodes])
    when = np.array([gained(node)[1] for node in full.nodes])
    ends = np.array([(e.source, e.target) for e in full.edges], int).reshape(-1, 2)
    flows = np.array([sum(e.flow) for e in full.edges])
    places = spread(start, pinned, np.array(radii), when, ends, flows, width, height)
    return _layout(places, radii, at_head, at_answer, width, height)


def place_of(subgraph: Subgraph, name: str) -> int:
    """Where a node stands among the subgraph's."""
    return next(at for at, node in enumerate(subgraph.nodes) if node.name == name)


def _layout(
    places: np.ndarray, radii: Sequence[float], head: int, answer: int, width: float, height: float
) -> Layout:
    rounded = np.round(places, 1).tolist()  # below what is seen, above what differs between machines
    discs = tuple(Disc(x, y, round(radius, 1)) for (x, y), radius in zip(rounded, radii, strict=True))
    return Layout(width, height, discs, head, answer)


def _radii(subgraph: Subgraph, apart: tuple[int, int]) -> list[float]:
    strength = strengths(subgraph, apart)
    return [
        END_RADIUS if at in apart else _SMALL + (_LARGE - _SMALL) * strength[at]
        for at in range(len(subgraph.nodes))
    ]


def _size(node: Node, radius: float) -> tuple[float, float]:
    """The width and height that a disc takes with its label below."""
    width, height = size_of(node_lines(node), bold=radius >= END_RADIUS)
    return max(width, 2 * radius) + 8, 2 * radius + height + 6


def _mean_time(share: Sequence[float]) -> float:
    total = sum(share)
    return sum(t * part for t, part in enumerate(share)) / total if total > 0 else 0.0
