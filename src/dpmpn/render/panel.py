"""Draws one subgraph in its layout: lines by weight, discs by attention, and the labels that find room."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmpn.explain.explanation import Edge, Subgraph
from dpmpn.render.labels import Placer, edge_lines, place_edge_labels, place_node_labels
from dpmpn.render.markup import circle, element, label_text, number, polygon, text_width, title
from dpmpn.render.names import with_identifier
from dpmpn.render.shapes import (
    ANSWER,
    FAINT_LINE,
    FAINT_TEXT,
    HEAD,
    LINE,
    LINE_HEIGHT,
    TEXT,
    Box,
    Bundle,
    Curve,
    Label,
    Layout,
    arrow,
    arrow_signs,
    bundled,
    curve_of,
    gained,
    node_colour,
    strengths,
)

_FINE = 81  # points of a line: nearer to each other than the smallest label is wide


@dataclass(frozen=True)
class Panel:
    """The drawing of a subgraph: a group to be put into an SVG, and what is on it."""

    svg: str
    layout: Layout
    lines: tuple[Bundle, ...]
    node_labels: Mapping[int, Label]  # by index of the node
    edge_labels: Mapping[int, Label]  # by index of the line
    crowded: int  # labels of lines that lie on other lines too

    @property
    def shown_edges(self) -> int:
        """How many of the edges are drawn."""
        return sum(len(line.edges) for line in self.lines)


def draw_subgraph(
    subgraph: Subgraph,
    layout: Layout,
    weights: Sequence[float],
    most_lines: int = 40,
    most_labels: tuple[int, int] = (1000, 1000),
    kept: Subgraph | None = None,
    keys: Mapping[str, str] | None = None,
) -> Panel:
    """Draw a subgraph, of its lines only the heaviest.

    `weights` are those of its edges; `most_labels` how many nodes and lines are labelled at most; what is not in the
    subgraph `kept` steps back; `keys` are shown in the place of relations.
    """
    kept = kept or subgraph
    names, pairs = {node.name for node in kept.nodes}, set(_joined_names(kept, kept.edges))
    strong = [node.name in names for node in subgraph.nodes]
    bundles = bundled(subgraph, weights, layout.discs)
    stands_out = [pair in pairs for pair in _joined_names(subgraph, bundles)]
    order = sorted(range(len(bundles)), key=lambda at: not stands_out[at])[:most_lines]
    lines = tuple(bundles[at] for at in order)  # those that stand out, then the heaviest others
    n_strong = min(sum(stands_out), most_lines)
    curves = [curve_of(line, layout, strong) for line in lines]
    points = np.stack([c.points(_FINE) for c in curves]) if curves else np.zeros((0, 1, 2))
    heaviest = max((line.weight for line in lines), default=0.0)
    parts_of_heaviest = np.array([line.weight / heaviest if heaviest > 0 else 0.0 for line in lines])
    placer = Placer(layout.width, layout.height, points, parts_of_heaviest)
    placer.take(
        *(Box.around(disc.x, disc.y, 2 * disc.radius, 2 * disc.radius) for disc in layout.discs.values())
    )
    node_labels = place_node_labels(subgraph, layout, strong, placer, most_labels[0], n_strong)
    labelled = enumerate(lines[: min(n_strong, most_labels[1])])
    texts = {at: edge_lines(line, len(lines), keys, arrow_signs(line, layout)) for at, line in labelled}
    edge_labels = place_edge_labels(texts, lines, curves, placer)
    drawn = [
        _draw_line(subgraph, line, curves[at], float(parts_of_heaviest[at]), is_strong=at < n_strong)
        for at, line in enumerate(lines)
    ]
    colours = FAINT_TEXT, TEXT
    parts = [
        *reversed(drawn),  # the heaviest on top
        *_draw_discs(subgraph, layout, strong),
        *(
            element("g", _on_ground(label, FAINT_TEXT), class_="edge-label", data_edges=_indices(lines[at]))
            for at, label in edge_labels.items()
        ),
        *(
            element("g", _on_ground(label, colours[strong[at]]), class_="node-label", data_node=str(at))
            for at, label in node_labels.items()
        ),
    ]
    crowded = sum(placer.is_on_others(label.box, at) for at, label in edge_labels.items())
    return Panel("\n".join(parts), layout, lines, node_labels, edge_labels, crowded)


def _joined_names(subgraph: Subgraph, lines: Iterable[Edge | Bundle]) -> list[frozenset[str]]:
    """The names of the two nodes that each edge or line joins."""
    nodes = subgraph.nodes
    return [frozenset((nodes[line.source].name, nodes[line.target].name)) for line in lines]


def _on_ground(label: Label, colour: str) -> str:
    """Text on a white ground that interrupts lines: struck through it could not be read."""
    (middle, _), step = label.box.middle, label.size * LINE_HEIGHT
    white: dict[str, str | float] = {"height": step, "fill": "#ffffff", "opacity": "0.8"}
    grounds = []
    for at, line in enumerate(label.lines):
        width, top = text_width(line, label.size, label.bold) + 4, label.box.top + at * step
        grounds.append(element("rect", "", x=middle - width / 2, y=top, width=width, **white))
    return "".join(grounds) + label_text(label, colour)


def _draw_line(subgraph: Subgraph, line: Bundle, curve: Curve, part: float, is_strong: bool) -> str:
    """A line with arrows in the direction of its facts."""
    width = 0.8 + 3.6 * part**0.5
    colour = LINE if is_strong else FAINT_LINE
    points = [curve.start, curve.control, curve.end]
    (x0, y0), (x1, y1), (x2, y2) = ((number(x), number(y)) for x, y in points)
    curved = f"M{x0},{y0}Q{x1},{y1} {x2},{y2}"
    parts = [
        title("; ".join(_fact_title(subgraph, subgraph.edges[at]) for at in line.edges)),
        element("path", class_="line", d=curved, fill="none", stroke=colour, stroke_width=width),
    ]
    size = 5.0 + width
    for present, at_end in ((line.forward, True), (line.backward and not line.is_loop, False)):
        if present:
            parts.append(polygon(arrow(curve, at_end, size), class_="arrow", fill=colour))
    opacity = f"{(0.45 if is_strong else 0.25) + 0.5 * part**0.5:.2f}"
    return element("g", "".join(parts), class_="edge", data_edges=_indices(line), opacity=opacity)


def _indices(line: Bundle) -> str:
    return " ".join(map(str, line.edges))


def _fact_title(subgraph: Subgraph, edge: Edge) -> str:
    head, tail = subgraph.ends(edge)
    return f"{head.label or head.name} · {edge.relation_label} · {tail.label or tail.name}"


def _draw_discs(subgraph: Subgraph, layout: Layout, strong: Sequence[bool]) -> list[str]:
    """The discs, the largest last."""
    strength = strengths(subgraph, (layout.head, layout.answer), layout.most_attention)
    order = sorted(layout.discs, key=lambda at: (strong[at], layout.discs[at].radius, at))
    return [_draw_disc(subgraph, layout, at, strength[at]) for at in order]


def _draw_disc(subgraph: Subgraph, layout: Layout, at: int, strength: float) -> str:
    node, disc = subgraph.nodes[at], layout.discs[at]
    peak, when = gained(node)
    colour = HEAD if at == layout.head else ANSWER if at == layout.answer else node_colour(strength, when)
    role = "head: " if at == layout.head else "answer: " if at == layout.answer else ""
    outline = 1.6 if disc.radius > 10 else 0.9 if disc.radius > 5 else 0.6
    shapes = circle(*disc, colour, outline)
    if at == layout.head == layout.answer:
        shapes += element("circle", cx=disc.x, cy=disc.y, r=disc.radius * 0.55, fill=ANSWER)
    about = title(f"{role}{with_identifier(node)}; attention at most {peak:.1%}")
    return element("g", about + shapes, class_="node", data_node=str(at))
