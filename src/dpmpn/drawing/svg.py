"""The picture of an explanation: the full subgraph and the pruned one side by side, as a self-contained SVG."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from dpmpn.drawing.colours import FAINT_TEXT
from dpmpn.drawing.layout import Layout, lay_out_full, lay_out_pruned
from dpmpn.drawing.legend import draw_legend
from dpmpn.drawing.markup import FONTS, element, number, text_line, title
from dpmpn.drawing.panel import Panel, draw_subgraph
from dpmpn.drawing.strongest import strongest_part
from dpmpn.drawing.text import broken, readable, text_width
from dpmpn.explain.subgraph import Subgraph

if TYPE_CHECKING:
    from dpmpn.explain.explanation import Explanation

WIDTH = 1000.0
_MARGIN, _BETWEEN = 14.0, 24.0
_FULL_PART = 0.45  # of the width
_TITLE, _PLAIN, _KEY = 15.0, 11.5, 9.5  # sizes of letters
FULL_LINES, PRUNED_LINES = 120, 30  # more cannot be told apart
FULL_LABELS = (40, 12)  # of nodes and lines
_CROWDED = 0.3  # the part of labels that may lie on other lines before keys are better
_ROOM = 850.0  # for each node of the full subgraph


@dataclass(frozen=True)
class Half:
    """One half of a picture: the panel, the caption's lines below it, and what short keys on its lines mean."""

    panel: Panel
    caption: tuple[str, ...]
    keys: tuple[tuple[str, str], ...] = ()


def draw_svg(explanation: "Explanation") -> str:
    """Draw an explanation; the same one always gives the same text."""
    question, answer = explanation.question, explanation.answer
    inner = WIDTH - 2 * _MARGIN - _BETWEEN
    widths = round(inner * _FULL_PART), round(inner * (1 - _FULL_PART))
    shown, n_paths = strongest_part(explanation.pruned, explanation.paths, PRUNED_LINES)
    small, panel, keys = _draw_pruned(explanation, shown, widths)
    large = lay_out_full(
        explanation.full, shown, small, question.head, answer.answer, widths[0], panel.node_labels
    )
    weights = [sum(edge.flow) for edge in explanation.full.edges]
    full = draw_subgraph(explanation.full, large, weights, FULL_LINES, FULL_LABELS, shown, keys)
    told = f"Answer: {answer.label}, probability {answer.probability:.3f}, rank {answer.rank}"
    left = Half(full, broken(_full_caption(explanation, full), widths[0], 3, _PLAIN))
    caption = _pruned_caption(explanation, shown, n_paths)
    right = Half(panel, broken(caption, widths[1], 3, _PLAIN), tuple((k, v) for v, k in (keys or {}).items()))
    return _page(str(question), told, left, right)


def _draw_pruned(
    explanation: "Explanation", shown: Subgraph, widths: tuple[float, float]
) -> tuple[Layout, Panel, dict[str, str] | None]:
    """The pruned half, as high as its labels need; where they need too much, short keys stand on its lines."""
    head, answer = explanation.question.head, explanation.answer.answer
    weights = [sum(edge.share) for edge in shown.edges]
    height = min(520.0, 230.0 + 22.0 * len(shown.nodes))
    least = min(560.0, max(240.0, len(explanation.full.nodes) * _ROOM / widths[0]))
    for factor in (1.0, 1.3):
        layout = lay_out_pruned(shown, head, answer, widths[1], height * factor, least)
        panel = draw_subgraph(shown, layout, weights)
        if len(panel.edge_labels) == len(panel.lines) and panel.crowded <= _CROWDED * len(panel.lines):
            return layout, panel, None
        if len(panel.edge_labels) < 0.85 * len(panel.lines):
            break  # more height would not help
    layout = lay_out_pruned(shown, head, answer, widths[1], height, least, keyed=True)
    relations = dict.fromkeys(label for line in panel.lines for label, _, _ in line.relations)
    keys = {label: _key(at) for at, label in enumerate(relations)}
    return layout, draw_subgraph(shown, layout, weights, keys=keys), keys


def _full_caption(explanation: "Explanation", panel: Panel) -> str:
    full = explanation.full
    caption = f"full subgraph: {_counted(len(full.nodes), 'node')}, {_counted(len(full.edges), 'edge')}"
    left_out = len(full.edges) - panel.shown_edges
    return caption + (f"; the strongest {panel.shown_edges} shown" if left_out else "")


def _pruned_caption(explanation: "Explanation", shown: Subgraph, n_paths: int) -> str:
    pruned = explanation.pruned
    caption = (
        f"pruned: {_counted(len(pruned.nodes), 'node')}, {_counted(len(pruned.facts), 'fact')} that carried "
        f"{100 * explanation.kept_share:.0f} % of the answer's attention"
    )
    if len(shown.edges) < len(pruned.edges):
        carried = 100 * sum(path.share for path in explanation.paths[:n_paths])
        caption += f"; shown: the {n_paths} strongest paths, {len(shown.facts)} facts, {carried:.0f} %"
    return caption


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _key(at: int) -> str:
    """a, b ... z, a1, b1 ..."""
    return chr(ord("a") + at % 26) + (str(at // 26) if at >= 26 else "")


def _page(asked: str, told: str, left: Half, right: Half) -> str:
    parts, y = [], _MARGIN
    for line in broken(asked, WIDTH - 2 * _MARGIN, 2, _TITLE, bold=True):
        y += _TITLE * 1.3
        parts.append(text_line(line, _MARGIN, y, _TITLE, bold=True))
    y += _PLAIN * 1.5
    (answer,) = broken(told, WIDTH - 2 * _MARGIN, 1, _PLAIN)
    parts.append(text_line(answer, _MARGIN, y, _PLAIN, colour=FAINT_TEXT))
    y += 14
    beginning = _MARGIN + left.panel.width + _BETWEEN
    lowest = max(_half(parts, left, _MARGIN, y), _half(parts, right, beginning, y))
    ruler = beginning - _BETWEEN / 2
    parts.append(element("path", d=f"M{number(ruler)},{number(y)}V{number(lowest)}", stroke="#d5d5d5"))
    legend, taken = draw_legend(WIDTH - 2 * _MARGIN)
    y = lowest + 12
    parts.append(element("g", legend, transform=f"translate({number(_MARGIN)},{number(y)})"))
    height = y + taken + _MARGIN
    summary = f"{' '.join(left.caption)}. {' '.join(right.caption)}."
    about = title(f"{asked}, {told}") + f"<desc>{escape(readable(summary))}</desc>"
    ground = element("rect", width=WIDTH, height=height, fill="#ffffff")
    return element(
        "svg",
        "\n".join([about, ground, *parts]) + "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        width=WIDTH,
        height=height,
        font_family=FONTS,
        role="img",
    )


def _half(parts: list[str], half: Half, x: float, y: float) -> float:
    """Add a half to the parts; where it ends."""
    place = f"translate({number(x)},{number(y)})"
    parts.append(element("g", "\n" + half.panel.svg + "\n", transform=place))
    y += half.panel.height + 4
    for line in half.caption:
        y += _PLAIN * 1.35
        parts.append(text_line(line, x, y, _PLAIN))
    return _keys(parts, half, x, y) + 6


def _keys(parts: list[str], half: Half, x: float, y: float) -> float:
    """Add what the keys mean, in two columns where the relations are short enough."""
    texts = [readable(relation) for _, relation in half.keys]
    indent = 26.0
    widest = max((text_width(text, _KEY) for text in texts), default=0.0)
    columns = 2 if widest + indent <= half.panel.width / 2 - 8 else 1
    column = half.panel.width / columns
    rows = -(-len(texts) // columns)
    y += 4 if texts else 0
    for at, ((key, _), text) in enumerate(zip(half.keys, texts, strict=True)):
        left, low = x + at // rows * column, y + (at % rows + 1) * _KEY * 1.4
        (shown,) = broken(text, column - indent - 8, 1, _KEY)
        about = "" if shown == text else title(text)
        parts.append(text_line(key, left + 8, low, _KEY, bold=True))
        parts.append(element("g", about + text_line(shown, left + indent, low, _KEY)))
    return y + rows * _KEY * 1.4
