"""The picture of an explanation: the full subgraph and the pruned one side by side, as a self-contained SVG."""

from typing import TYPE_CHECKING

from dpmpn.drawing.colours import most_attention
from dpmpn.drawing.figure import INNER, Half, compose
from dpmpn.drawing.layout import Layout, lay_out_full, lay_out_pruned, place_of
from dpmpn.drawing.panel import Panel, draw_subgraph
from dpmpn.drawing.strongest import strongest_part
from dpmpn.explain.subgraph import Subgraph

if TYPE_CHECKING:
    from dpmpn.explain.explanation import Explanation

_FULL_PART = 0.45  # of the width
FULL_LINES, PRUNED_LINES = 120, 30  # more cannot be told apart
FULL_LABELS = (40, 12)  # of nodes and lines
_CROWDED = 0.3  # the part of labels that may lie on other lines before keys are better
_ROOM = 850.0  # for each node of the full subgraph


def draw_svg(explanation: "Explanation") -> str:
    """Draw an explanation; the same one always gives the same text."""
    question, answer = explanation.question, explanation.answer
    widths = round(INNER * _FULL_PART), round(INNER * (1 - _FULL_PART))
    shown, n_paths = strongest_part(explanation.pruned, explanation.paths, PRUNED_LINES)
    small, pruned, keys = _draw_pruned(explanation, shown, widths)
    large = lay_out_full(
        explanation.full, shown, small, question.head, answer.answer, widths[0], pruned.node_labels
    )
    flows = [sum(edge.flow) for edge in explanation.full.edges]
    full = draw_subgraph(explanation.full, large, flows, FULL_LINES, FULL_LABELS, shown, keys)
    return compose(
        str(question),
        f"Answer: {answer.label}, probability {_probability(answer.probability)}, rank {answer.rank}",
        Half(full, _full_caption(explanation, full)),
        Half(pruned, _pruned_caption(explanation, shown, n_paths)),
        [(key, relation) for relation, key in (keys or {}).items()],
    )


def _draw_pruned(
    explanation: "Explanation", shown: Subgraph, widths: tuple[float, float]
) -> tuple[Layout, Panel, dict[str, str] | None]:
    """The pruned half, as high as its labels need; where they need too much, short keys stand on its lines."""
    head, answer, full = explanation.question.head, explanation.answer.answer, explanation.full
    weights = [sum(edge.share) for edge in shown.edges]
    height = min(520.0, 230.0 + 22.0 * len(shown.nodes))
    least = min(560.0, max(240.0, len(full.nodes) * _ROOM / widths[0]))
    most = most_attention(full, (place_of(full, head), place_of(full, answer)))
    for factor in (1.0, 1.3):
        layout = lay_out_pruned(shown, head, answer, widths[1], height * factor, least, most=most)
        panel = draw_subgraph(shown, layout, weights)
        if len(panel.edge_labels) == len(panel.lines) and panel.crowded <= _CROWDED * len(panel.lines):
            return layout, panel, None
        if len(panel.edge_labels) < 0.85 * len(panel.lines):
            break  # more height would not help
    layout = lay_out_pruned(shown, head, answer, widths[1], height, least, keyed=True, most=most)
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


def _probability(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "below 0.001"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _key(at: int) -> str:
    """a, b ... z, a1, b1 ..."""
    return chr(ord("a") + at % 26) + (str(at // 26) if at >= 26 else "")
