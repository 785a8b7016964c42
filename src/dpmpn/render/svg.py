"""The picture of an explanation, as SVG and as PNG: the full subgraph and the pruned one side by side."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path as FilePath

from dpmpn.errors import ConfigError
from dpmpn.explain.explanation import ExplanationData
from dpmpn.explain.paths import Fact, Path
from dpmpn.explain.subgraph import Subgraph
from dpmpn.render.colours import most_attention
from dpmpn.render.figure import INNER, Half, compose
from dpmpn.render.layout import index_of, lay_out_full, lay_out_pruned
from dpmpn.render.markup import FONTS
from dpmpn.render.names import DisplayNames, renamed
from dpmpn.render.panel import Panel, draw_subgraph
from dpmpn.wording import counted, percent, probability_shown

_FULL_PART = 0.45  # of the width
FULL_LINES, PRUNED_LINES = 120, 30  # more cannot be distinguished
FULL_LABELS = (40, 12)  # of nodes and lines
_CROWDED = 0.3  # the part of labels that may lie on other lines before keys are better
_ROOM = 850.0  # for each node of the full subgraph
_PROBE = (
    f'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20" font-family="{FONTS}">'
    '<text x="2" y="15">{}</text></svg>'
)


def draw_svg(explanation: ExplanationData) -> str:
    """Draw an explanation; the same one always gives the same text."""
    question, answer = explanation.question, explanation.answer
    widths = round(INNER * _FULL_PART), round(INNER * (1 - _FULL_PART))
    names = DisplayNames.of(explanation.full, question)
    whole = renamed(explanation.full, names)
    part, n_paths = strongest_part(explanation.pruned, explanation.paths, PRUNED_LINES)
    shown = renamed(part, names)
    ends = question.head, answer.answer
    pruned, keys = _draw_pruned(whole, shown, ends, widths)
    line_labels = [*pruned.edge_labels.values()][: FULL_LABELS[1]]
    large = lay_out_full(whole, shown, pruned.layout, widths[0], pruned.node_labels, line_labels)
    flows = [sum(edge.flow) for edge in whole.edges]
    full = draw_subgraph(whole, large, flows, FULL_LINES, FULL_LABELS, shown, keys)
    probability = probability_shown(answer.probability)
    return compose(
        names.question(question),
        f"Answer: {names.entity(answer.answer)}, probability {probability}, rank {answer.rank:,}",
        Half(full, _caption_of_full(whole, full)),
        Half(pruned, _caption_of_pruned(explanation, shown, n_paths)),
        [(key, relation) for relation, key in (keys or {}).items()],
    )


def _draw_pruned(
    full: Subgraph, shown: Subgraph, ends: tuple[str, str], widths: tuple[float, float]
) -> tuple[Panel, dict[str, str] | None]:
    """The pruned half, as high as its labels need; where they need too much, short keys stand on its lines."""
    weights = [sum(edge.share) for edge in shown.edges]
    height = min(520.0, 230.0 + 22.0 * len(shown.nodes))
    least = min(560.0, max(240.0, len(full.nodes) * _ROOM / widths[0]))
    most = most_attention(full, (index_of(full, ends[0]), index_of(full, ends[1])))
    for factor in (1.0, 1.3):
        layout = lay_out_pruned(shown, *ends, widths[1], height * factor, least, most=most)
        panel = draw_subgraph(shown, layout, weights)
        if len(panel.edge_labels) == len(panel.lines) and panel.crowded <= _CROWDED * len(panel.lines):
            return panel, None
        if len(panel.edge_labels) < 0.85 * len(panel.lines):
            break  # more height would not help
    layout = lay_out_pruned(shown, *ends, widths[1], height, least, keyed=True, most=most)
    relations = dict.fromkeys(label for line in panel.lines for label, _, _ in line.relations)
    keys = {label: _key(at) for at, label in enumerate(relations)}
    return draw_subgraph(shown, layout, weights, keys=keys), keys


def _caption_of_full(full: Subgraph, panel: Panel) -> str:
    """What there is, and how much of it is drawn: the pruned part and the strongest besides."""
    n_nodes = len(panel.layout.discs)
    caption = f"full subgraph: {counted(len(full.nodes), 'node')}, {counted(len(full.edges), 'edge')}"
    if n_nodes < len(full.nodes):
        return f"{caption}; {counted(n_nodes, 'node')} and {counted(panel.shown_edges, 'edge')} shown"
    return caption + (f"; {panel.shown_edges:,} shown" if panel.shown_edges < len(full.edges) else "")


def _caption_of_pruned(explanation: ExplanationData, shown: Subgraph, n_paths: int) -> str:
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


def strongest_part(pruned: Subgraph, paths: Sequence[Path], most_lines: int) -> tuple[Subgraph, int]:
    """What the strongest paths are made of, as many as need no more lines than given, and how many these are.

    At least one path with facts is shown, and all if they fit; whole paths are taken, so no line ends nowhere.
    """
    facts: set[Fact] = set()
    n_paths = 0
    for path in paths:
        more = facts | set(path.facts)
        if facts and len(_pairs(more)) > most_lines:
            break
        facts, n_paths = more, n_paths + 1
    if n_paths == len(paths):
        return pruned, n_paths
    names = {name for head, _, tail in facts for name in (head, tail)}
    kept = [at for at, node in enumerate(pruned.nodes) if node.name in names]
    index = {at: new for new, at in enumerate(kept)}
    edges = (
        edge._replace(source=index[edge.source], target=index[edge.target])
        for edge in pruned.edges
        if pruned.fact(edge) in facts
    )
    return Subgraph(tuple(pruned.nodes[at] for at in kept), tuple(edges)), n_paths


def _pairs(facts: set[Fact]) -> set[frozenset[str]]:
    return {frozenset((head, tail)) for head, _, tail in facts}


def draw_png(explanation: ExplanationData, scale: float = 2) -> bytes:
    """Draw an explanation with `scale` dots for each unit of the SVG."""
    return painted(draw_svg(explanation), scale)


def painted(svg: str, scale: float = 2) -> bytes:
    """An SVG as PNG."""
    try:
        import resvg_py
    except ImportError as error:
        raise ConfigError(
            "pictures in PNG need the extra 'draw': pip install 'dpmpn[draw]'; SVG needs nothing"
        ) from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, font_dirs=_font_folders()))


def _font_folders() -> list[str]:
    """Where to look for fonts besides the system's: nowhere if that has any, else where matplotlib brings some."""
    if _shows_text([]):
        return []
    spec = find_spec("matplotlib")
    if spec is not None and spec.origin is not None:
        folder = str(FilePath(spec.origin).parent / "mpl-data" / "fonts" / "ttf")
        if _shows_text([folder]):
            return [folder]
    raise ConfigError(
        "no font was found on this machine, so a PNG would have no words; install one (for instance the package "
        "fonts-dejavu) or take SVG, which is read with the fonts of whoever looks at it"
    )


def _shows_text(folders: list[str]) -> bool:
    """Whether a letter leaves a mark; without fonts it is left out silently."""
    import resvg_py

    blank, letter = (
        resvg_py.svg_to_bytes(svg_string=_PROBE.format(text), font_dirs=folders) for text in ("", "A")
    )
    return bool(blank != letter)
