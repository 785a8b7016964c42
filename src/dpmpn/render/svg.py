"""The picture of an explanation: the full subgraph and the pruned one side by side, as a self-contained SVG."""

from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.subgraph import Subgraph
from dpmpn.render.colours import most_attention
from dpmpn.render.figure import INNER, Half, compose
from dpmpn.render.layout import Layout, lay_out_full, lay_out_pruned, place_of
from dpmpn.render.names import DisplayNames, renamed
from dpmpn.render.panel import Panel, draw_subgraph
from dpmpn.render.strongest import strongest_part
from dpmpn.wording import counted, percent, probability_shown

_FULL_PART = 0.45  # of the width
FULL_LINES, PRUNED_LINES = 120, 30  # more cannot be told apart
FULL_LABELS = (40, 12)  # of nodes and lines
_CROWDED = 0.3  # the part of labels that may lie on other lines before keys are better
_ROOM = 850.0  # for each node of the full subgraph


def draw_svg(explanation: ExplanationData) -> str:
    """Draw an explanation; the same one always gives the same text."""
    question, answer = explanation.question, explanation.answer
    widths = round(INNER * _FULL_PART), round(INNER * (1 - _FULL_PART))
    names = DisplayNames.of(explanation.full, question)
    whole = renamed(explanation.full, names)
    part, n_paths = strongest_part(explanation.pruned, explanation.paths, PRUNED_LINES)
    shown = renamed(part, names)
    ends = question.head, answer.answer
    small, pruned, keys = _draw_pruned(whole, shown, ends, widths)
    line_labels = [*pruned.edge_labels.values()][: FULL_LABELS[1]]
    large = lay_out_full(whole, shown, small, *ends, widths[0], pruned.node_labels, line_labels)
    flows = [sum(edge.flow) for edge in whole.edges]
    full = draw_subgraph(whole, large, flows, FULL_LINES, FULL_LABELS, shown, keys)
    probability = probability_shown(answer.probability)
    return compose(
        names.question(question),
        f"Answer: {names.entity(answer.answer)}, probability {probability}, rank {answer.rank:,}",
        Half(full, _full_caption(whole, full)),
        Half(pruned, _pruned_caption(explanation, shown, n_paths)),
        [(key, relation) for relation, key in (keys or {}).items()],
    )


def _draw_pruned(
    full: Subgraph, shown: Subgraph, ends: tuple[str, str], widths: tuple[float, float]
) -> tuple[Layout, Panel, dict[str, str] | None]:
    """The pruned half, as high as its labels need; where they need too much, short keys stand on its lines."""
    weights = [sum(edge.share) for edge in shown.edges]
    height = min(520.0, 230.0 + 22.0 * len(shown.nodes))
    least = min(560.0, max(240.0, len(full.nodes) * _ROOM / widths[0]))
    most = most_attention(full, (place_of(full, ends[0]), place_of(full, ends[1])))
    for factor in (1.0, 1.3):
        layout = lay_out_pruned(shown, *ends, widths[1], height * factor, least, most=most)
        panel = draw_subgraph(shown, layout, weights)
        if len(panel.edge_labels) == len(panel.lines) and panel.crowded <= _CROWDED * len(panel.lines):
            return layout, panel, None
        if len(panel.edge_labels) < 0.85 * len(panel.lines):
            break  # more height would not help
    layout = lay_out_pruned(shown, *ends, widths[1], height, least, keyed=True, most=most)
    relations = dict.fromkeys(label for line in panel.lines for label, _, _ in line.relations)
    keys = {label: _key(at) for at, label in enumerate(relations)}
    return layout, draw_subgraph(shown, layout, weights, keys=keys), keys


def _full_caption(full: Subgraph, panel: Panel) -> str:
    """What there is, and how much of it is drawn: the pruned part and the strongest besides."""
    caption = f"full subgraph: {counted(len(full.nodes), 'node')}, {counted(len(full.edges), 'edge')}"
    if panel.shown_nodes < len(full.nodes):
        return (
            f"{caption}; {counted(panel.shown_nodes, 'node')} and {counted(panel.shown_edges, 'edge')} shown"
        )
    return caption + (f"; {panel.shown_edges:,} shown" if panel.shown_edges < len(full.edges) else "")


def _pruned_caption(explanation: ExplanationData, shown: Subgraph, n_paths: int) -> str:
    """What there is, what part of the answer's attention its facts carried, and how much of it is drawn."""
    pruned, paths = explanation.pruned, explanation.paths
    nodes = counted(len(pruned.nodes), "node")
    waited = sum(path.share for path in paths if not path.facts)  # only where the answer is the head itself
    if not pruned.edges:
        part = "" if percent(waited) == "100%" else f"{percent(waited)} of "
        why = f"{part}the answer's attention waited at the head" if waited else "no path carried much"
        return f"pruned: {nodes}, no facts: {why}"
    carried = percent(min(sum(path.share for path in paths if path.facts), 1.0))
    caption = f"pruned: {nodes}, {counted(len(pruned.facts), 'fact')} that carried {carried} of the answer's attention"
    if waited:
        caption += f"; {percent(waited)} waited at the head"
    if len(shown.edges) < len(pruned.edges):
        part = percent(sum(path.share for path in paths[:n_paths] if path.facts))
        strongest = "strongest path" if n_paths == 1 else f"{n_paths} strongest paths"
        caption += f"; shown: the {strongest}, {counted(len(shown.facts), 'fact')}, {part}"
    return caption


def _key(at: int) -> str:
    """a, b ... z, a1, b1 ..."""
    return chr(ord("a") + at % 26) + (str(at // 26) if at >= 26 else "")
