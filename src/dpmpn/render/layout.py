"""Where nodes stand: the head at the left, the answer at the right, and the same subgraph always at the same places."""

from collections.abc import Mapping, Sequence

import numpy as np

from dpmpn.explain.explanation import Node, Subgraph
from dpmpn.render.arranging import Crowd, Graph, arranged, spread
from dpmpn.render.labels import EDGE_SIZE, NODE_SIZE, edge_lines, node_lines, size_of
from dpmpn.render.shapes import (
    LOOP_ROOM,
    Bundle,
    Disc,
    Label,
    Layout,
    bundled,
    gained,
    most_attention,
    strengths,
)

END_RADIUS = 13.0  # of the head and the answer
MOST_OTHERS = 300  # nodes besides the pruned subgraph's: more cannot be distinguished
Room = tuple[float, float, float, float]  # the middle of a box, and half its width and height
_SMALL, _LARGE = 3.0, 8.5  # of the others, from no attention to the most


def lay_out_pruned(
    pruned: Subgraph,
    head: str,
    answer: str,
    width: float,
    height: float,
    least_height: float = 0.0,
    keyed: bool = False,
    most: float | None = None,
) -> Layout:
    """Neighbours near each other, few crossings, and room for the labels of all nodes and lines.

    With `keyed` the lines will have short keys only; sizes go by the part of the attention `most`, which is that of the
    full subgraph where both are shown.
    """
    at_head, at_answer = index_of(pruned, head), index_of(pruned, answer)
    most = most_attention(pruned, (at_head, at_answer)) if most is None else most
    radii = _radii(pruned, (at_head, at_answer), most)
    bundles = bundled(pruned, [sum(e.share) for e in pruned.edges])
    labels = [
        size_of(("ab",) if keyed else edge_lines(bundle, len(bundles)), EDGE_SIZE) for bundle in bundles
    ]
    loops = _loops(bundles, labels, len(radii))
    sizes = np.array([_size(*parts) for parts in zip(pruned.nodes, radii, loops, strict=True)])
    straight = [at for at, bundle in enumerate(bundles) if not bundle.is_loop]
    graph = Graph(
        sizes / 2,
        sizes[:, 1] / 2 - np.array(radii) - 2 - loops[:, 1],
        np.array([(bundles[at].source, bundles[at].target) for at in straight], int).reshape(-1, 2),
        np.array([labels[at] for at in straight]).reshape(-1, 2) / 2 + 2,
        _wished(pruned, at_head, at_answer, sizes, width),
    )
    places = arranged(graph, at_head, at_answer, (width, height))
    top, bottom = _reach(graph, places)
    stretch = max(1.0, least_height / (bottom - top))  # only moves nodes apart
    places[:, 1] = (places[:, 1] - top) * stretch
    discs = _discs(range(len(radii)), places, radii)
    return Layout(width, (bottom - top) * stretch, discs, at_head, at_answer, most)


def lay_out_full(
    full: Subgraph,
    pruned: Subgraph,
    small: Layout,
    width: float,
    labels: Mapping[int, Label] | None = None,
    line_labels: Sequence[Label] = (),
) -> Layout:
    """Nodes of the pruned subgraph where they are there, the others by when they gained attention and from whom.

    Room is left for the labels of the former: where `labels` has them in the pruned picture, else below; and for some
    `line_labels` of that. Of the others those with the most attention have a place, MOST_OTHERS of them.
    """
    height = small.height
    at_head, at_answer = (index_of(full, pruned.nodes[at].name) for at in (small.head, small.answer))
    most = most_attention(full, (at_head, at_answer))
    radii = _radii(full, (at_head, at_answer), most)
    known = {
        node.name: (disc.x * width / small.width, disc.y)
        for node, disc in zip(pruned.nodes, small.discs.values(), strict=True)
    }
    shown = _drawn_nodes(full, known)
    nodes = [full.nodes[at] for at in shown]
    ends, flows = _exchanges(full, shown)
    crowd = Crowd(
        np.array([known.get(node.name, (np.nan, np.nan)) for node in nodes]),
        np.array([node.name in known for node in nodes]),
        np.array([radii[at] for at in shown]),
        np.bincount(ends[ends[:, 0] == ends[:, 1], 0], minlength=len(nodes)) > 0,
        np.array([gained(node)[1] for node in nodes]),
        ends,
        flows,
    )
    lines = _lines_of(pruned, small) * [width / small.width, 1.0]
    rooms = _line_rooms(line_labels, width / small.width)
    rooms += _rooms(pruned, small, labels or {}, known, width)  # these matter more: what is last is kept
    places = spread(crowd, lines, np.array(rooms).reshape(-1, 4), (width, height))
    return Layout(width, height, _discs(shown, places, crowd.radii), at_head, at_answer, most)


def _drawn_nodes(full: Subgraph, known: Mapping[str, object]) -> list[int]:
    """Indices of the nodes that are drawn: the known ones and the strongest others."""
    others = [at for at, node in enumerate(full.nodes) if node.name not in known]
    if len(others) > MOST_OTHERS:
        others.sort(key=lambda at: (-round(gained(full.nodes[at])[0], 9), at))
    left_out = set(others[MOST_OTHERS:])
    return [at for at in range(len(full.nodes)) if at not in left_out]


def _exchanges(full: Subgraph, shown: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the edges between shown nodes, as indices among these, and what flowed along each."""
    index = np.full(len(full.nodes), -1)
    index[shown] = np.arange(len(shown))
    ends = index[np.array([(e.source, e.target) for e in full.edges], int).reshape(-1, 2)]
    between = (ends >= 0).all(1)
    flows = np.array([sum(e.flow) for e in full.edges])
    return ends[between], flows[between]


def _lines_of(pruned: Subgraph, small: Layout) -> np.ndarray:
    """The lines of the pruned subgraph, each by its two ends: lines x 2 x 2."""
    places = np.array([(disc.x, disc.y) for disc in small.discs.values()])
    ends = np.array([(edge.source, edge.target) for edge in pruned.edges], int).reshape(-1, 2)
    ends = ends[ends[:, 0] != ends[:, 1]]
    return np.asarray(places[np.unique(np.sort(ends, 1), axis=0)])


def _rooms(
    pruned: Subgraph,
    small: Layout,
    labels: Mapping[int, Label],
    places: Mapping[str, tuple[float, float]],
    width: float,
) -> list[Room]:
    """Boxes for the labels of nodes that are placed already."""
    rooms = []
    for at, disc in small.discs.items():
        node = pruned.nodes[at]
        end = disc.radius >= END_RADIUS
        wide, high = size_of(node_lines(node, end), NODE_SIZE, end)
        x, y = places[node.name]
        off_x, off_y = 0.0, disc.radius + 2 + high / 2
        if at in labels:
            middle = labels[at].box.middle
            off_x, off_y = middle[0] - disc.x, middle[1] - disc.y
        x = min(max(x + off_x, wide / 2 + 2), width - wide / 2 - 2)
        rooms.append((x, y + off_y, wide / 2 + 4, high / 2 + 2))
    return rooms


def _line_rooms(labels: Sequence[Label], shrunk: float) -> list[Room]:
    """Boxes for the labels of lines, where these lie when the field is narrower."""
    rooms = []
    for left, top, right, bottom in (label.box for label in labels):
        x, y = (left + right) / 2 * shrunk, (top + bottom) / 2
        rooms.append((x, y, (right - left) / 2 + 1, (bottom - top) / 2 + 1))
    return rooms


def index_of(subgraph: Subgraph, name: str) -> int:
    """The index of a node among the subgraph's."""
    return next(at for at, node in enumerate(subgraph.nodes) if node.name == name)


def _discs(shown: Sequence[int], places: np.ndarray, radii: Sequence[float] | np.ndarray) -> dict[int, Disc]:
    rounded = np.round(places, 1).tolist()  # below what is seen, above what differs between machines
    return {
        at: Disc(x, y, round(float(radius), 1))
        for at, (x, y), radius in zip(shown, rounded, radii, strict=True)
    }


def _radii(subgraph: Subgraph, apart: tuple[int, int], most: float) -> list[float]:
    strength = strengths(subgraph, apart, most)
    return [
        END_RADIUS if at in apart else _SMALL + (_LARGE - _SMALL) * strength[at]
        for at in range(len(subgraph.nodes))
    ]


def _loops(bundles: Sequence[Bundle], labels: Sequence[tuple[float, float]], n: int) -> np.ndarray:
    """The width and height that lines from nodes to themselves take above the discs, with their labels: nodes x 2."""
    loops = np.zeros((n, 2))
    for bundle, (width, height) in zip(bundles, labels, strict=True):
        if bundle.is_loop:
            loops[bundle.source] = width + 8, LOOP_ROOM + height
    return loops


def _size(node: Node, radius: float, loop: np.ndarray) -> tuple[float, float]:
    """The width and height that a disc takes with its label below and a line to itself above."""
    end = radius >= END_RADIUS
    width, height = size_of(node_lines(node, end), NODE_SIZE, end)
    return max(width, 2 * radius, loop[0]) + 6, 2 * radius + height + 6 + loop[1]


def _wished(subgraph: Subgraph, head: int, answer: int, sizes: np.ndarray, width: float) -> np.ndarray:
    """Places from left to right by when the answer's attention was at a node; head and answer at the sides."""
    when = np.array([_mean_time(node.share) for node in subgraph.nodes])
    between = np.delete(when, [head, answer])
    low, high = (between.min(), between.max()) if len(between) else (0.0, 0.0)
    part = (when - low) / (high - low) if high > low else np.full(len(when), 0.5)
    reach = min(0.25, 0.05 * len(between))
    wished = width * (0.5 + reach * (2 * part - 1))
    wished[answer] = width - sizes[answer, 0] / 2
    wished[head] = sizes[head, 0] / 2
    return wished


def _reach(graph: Graph, places: np.ndarray) -> tuple[float, float]:
    """From where to where nodes and the labels of lines go in height; labels of nodes may also stand above."""
    above = below = graph.half[:, 1] + np.abs(graph.drop)
    middles = places[graph.ends].mean(1)[:, 1]
    top = min((places[:, 1] - above).min(), (middles - graph.label[:, 1]).min(initial=np.inf))
    bottom = max((places[:, 1] + below).max(), (middles + graph.label[:, 1]).max(initial=-np.inf))
    return float(top), float(bottom)


def _mean_time(share: Sequence[float]) -> float:
    total = sum(share)
    return sum(t * part for t, part in enumerate(share)) / total if total > 0 else 0.0
