"""The picture of an explanation, as SVG and as PNG: the full subgraph and the pruned one side by side."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import NamedTuple
from xml.sax.saxutils import escape

from dpmpn.errors import ConfigError
from dpmpn.explain.explanation import ExplanationData, Subgraph
from dpmpn.explain.paths import Fact, Path
from dpmpn.render.layout import index_of, lay_out_full, lay_out_pruned
from dpmpn.render.markup import (
    FONTS,
    circle,
    element,
    number,
    polygon,
    readable,
    text_line,
    text_width,
    title,
    wrapped,
)
from dpmpn.render.names import displayed
from dpmpn.render.panel import Panel, draw_subgraph
from dpmpn.render.shapes import ANSWER, EARLY, FAINT_TEXT, HEAD, LINE, LITTLE, most_attention, node_colour
from dpmpn.wording import counted, percent, probability_shown, score_shown

_WIDTH, _MARGIN, _BETWEEN = 1000.0, 14.0, 24.0
_INNER = _WIDTH - 2 * _MARGIN - _BETWEEN  # for both halves
_FULL_PART = 0.45  # of that
FULL_LINES, PRUNED_LINES = 120, 30  # more cannot be distinguished
FULL_LABELS = (40, 12)  # of nodes and lines
_CROWDED = 0.3  # the part of labels that may lie on other lines before keys are better
_ROOM = 850.0  # for each node of the full subgraph
_PROBE = (
    f'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20" font-family="{FONTS}">'
    '<text x="2" y="15">{}</text></svg>'
)


_TITLE, _PLAIN = 15.0, 11.5  # sizes of letters
_LEGEND, _KEY = 10.0, 9.5  # of those below
_INDENT, _GAP, _ROW = 22.0, 20.0, 30.0


class _Half(NamedTuple):
    panel: Panel
    caption: str  # below it


def draw_svg(explanation: ExplanationData) -> str:
    """Draw an explanation; the same one always gives the same text."""
    explanation = displayed(explanation)
    full, answer = explanation.full, explanation.answer
    widths = round(_INNER * _FULL_PART), round(_INNER * (1 - _FULL_PART))
    shown, n_paths = strongest_part(explanation.pruned, explanation.paths, PRUNED_LINES)
    pruned, keys = _draw_pruned(full, shown, (explanation.question.head, answer.answer), widths)
    line_labels = [*pruned.edge_labels.values()][: FULL_LABELS[1]]
    layout = lay_out_full(full, shown, pruned.layout, widths[0], pruned.node_labels, line_labels)
    flows = [sum(edge.flow) for edge in full.edges]
    panel = draw_subgraph(full, layout, flows, FULL_LINES, FULL_LABELS, shown, keys)
    worth = f"score {score_shown(answer.score)}"
    if answer.probability is not None:
        worth = f"probability {probability_shown(answer.probability)}, {worth}"
    return _composed(
        str(explanation.question),
        f"Answer: {answer.label}, {worth}, rank {answer.rank:,}",
        _Half(panel, _caption_of_full(full, panel)),
        _Half(pruned, _caption_of_pruned(explanation, shown, n_paths)),
        keys,
    )


def _draw_pruned(
    full: Subgraph, shown: Subgraph, ends: tuple[str, str], widths: tuple[float, float]
) -> tuple[Panel, dict[str, str]]:
    """The pruned half, as high as its labels need; where they need too much, short keys stand on its lines."""
    weights = [sum(edge.share) for edge in shown.edges]
    height = min(520.0, 230.0 + 22.0 * len(shown.nodes))
    least = min(560.0, max(240.0, len(full.nodes) * _ROOM / widths[0]))
    most = most_attention(full, (index_of(full, ends[0]), index_of(full, ends[1])))
    for factor in (1.0, 1.3):
        layout = lay_out_pruned(shown, *ends, widths[1], height * factor, least, most=most)
        panel = draw_subgraph(shown, layout, weights)
        if len(panel.edge_labels) == len(panel.lines) and panel.crowded <= _CROWDED * len(panel.lines):
            return panel, {}
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
    """Where to look for fonts besides the system's: nowhere if that has any, else where ziafont brings one."""
    if _shows_text([]):
        return []
    spec = find_spec("ziafont")
    if spec is not None and spec.origin is not None:
        folder = str(FilePath(spec.origin).parent / "fonts")
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


def _composed(question: str, about_answer: str, left: _Half, right: _Half, keys: Mapping[str, str]) -> str:
    """The whole SVG: the question, what is said about its answer, the halves, what keys on lines mean, the legend."""
    parts: list[str] = []
    y = _title_lines(parts, question, about_answer)
    beginning = _MARGIN + left.panel.layout.width + _BETWEEN
    lowest = max(_half(parts, left, _MARGIN, y), _half(parts, right, beginning, y))
    ruler = number(beginning - _BETWEEN / 2)
    parts.append(element("path", d=f"M{ruler},{number(y)}V{number(lowest)}", stroke="#d5d5d5"))
    y = lowest + 8
    for drawing, taken in (_key_list(keys, _WIDTH - 2 * _MARGIN), _legend(_WIDTH - 2 * _MARGIN)):
        parts.append(element("g", drawing, transform=f"translate({number(_MARGIN)},{number(y)})"))
        y += taken
    height = y + _MARGIN
    inside = [
        title(f"{question} {about_answer}"),
        f"<desc>{escape(readable(f'{left.caption}. {right.caption}.'))}</desc>",
        element("rect", width=_WIDTH, height=height, fill="#ffffff"),
        *parts,
        "",
    ]
    return element(
        "svg",
        "\n".join(inside),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(_WIDTH)} {number(height)}",
        width=_WIDTH,
        height=height,
        font_family=FONTS,
        role="img",
    )


def _title_lines(parts: list[str], question: str, about_answer: str) -> float:
    """Add the title; where it ends."""
    y = _MARGIN
    for line in wrapped(question, _WIDTH - 2 * _MARGIN, 2, _TITLE, bold=True):
        y += _TITLE * 1.3
        parts.append(text_line(line, _MARGIN, y, _TITLE, bold=True))
    for line in wrapped(about_answer, _WIDTH - 2 * _MARGIN, 2, _PLAIN):
        y += _PLAIN * 1.5
        parts.append(text_line(line, _MARGIN, y, _PLAIN, colour=FAINT_TEXT))
    return y + 14


def _half(parts: list[str], half: _Half, x: float, y: float) -> float:
    """Add a half; where it ends."""
    place = f"translate({number(x)},{number(y)})"
    parts.append(element("g", "\n" + half.panel.svg + "\n", transform=place))
    y += half.panel.layout.height + 4
    for line in wrapped(half.caption, half.panel.layout.width, 3, _PLAIN):
        y += _PLAIN * 1.35
        parts.append(text_line(line, x, y, _PLAIN))
    return y + 6


def _legend(width: float) -> tuple[str, float]:
    """The legend in rows no wider than given, and its height."""
    parts, x, y = [], 0.0, _ROW / 2
    for mark_width, drawing, text in _MARKS:
        taken = mark_width + 6 + text_width(text, _LEGEND)
        if x > 0 and x + taken > width:
            x, y = 0.0, y + _ROW
        parts.append(drawing(x, y) + text_line(text, x + mark_width + 6, y + 3.6, _LEGEND))
        x += taken + _GAP
    return element("g", "".join(parts), class_="legend"), y + _ROW / 2


def _key_list(keys: Mapping[str, str], width: float) -> tuple[str, float]:
    """What the keys of relations stand for, in two columns where the texts are short enough, and the height."""
    texts = [readable(text) for text in keys]
    rows = -(-len(texts) // 2)
    columns = [max((text_width(t, _KEY) for t in part), default=0.0) for part in (texts[:rows], texts[rows:])]
    if sum(columns) + 2 * _INDENT + _GAP > width:
        rows, columns = len(texts), [width - _INDENT, 0.0]
    parts = []
    for at, (key, text) in enumerate(zip(keys.values(), texts, strict=True)):
        second = min(max(columns[0] + _INDENT + _GAP, width / 2), width - columns[1] - _INDENT)
        x = 0.0 if at < rows else second
        y = (at % rows + 1) * _KEY * 1.45
        (shown,) = wrapped(text, width - x - _INDENT, 1, _KEY)
        about = "" if shown == text else title(text)
        line = text_line(key, x, y, _KEY, bold=True) + text_line(shown, x + _INDENT, y, _KEY)
        parts.append(element("g", about + line))
    return element("g", "".join(parts), class_="keys"), rows * _KEY * 1.45 + (14 if keys else 0)


def _disc_mark(radius: float, colour: str) -> Callable[[float, float], str]:
    return lambda x, y: circle(x + radius, y, radius, colour, 1.6 if radius > 10 else 0.9)


def _scale(x: float, y: float) -> str:
    """Discs from early to late."""
    return "".join(_disc_mark(6.0, node_colour(1.0, at / 4))(x + at * 15, y) for at in range(5))


def _weights(x: float, y: float) -> str:
    return polygon([(x, y - 0.4), (x + 34, y - 2.4), (x + 34, y + 2.4), (x, y + 0.4)], fill=LINE)


def _arrow(x: float, y: float) -> str:
    line = element("path", d=f"M{x},{y}H{x + 20}", stroke=LINE, stroke_width=1.5)
    return line + polygon([(x + 28, y), (x + 20, y - 3.4), (x + 20, y + 3.4)], fill=LINE)


# Width, drawing at a left end and height, text.
_MARKS: tuple[tuple[float, Callable[[float, float], str], str], ...] = (
    (26.0, _disc_mark(13.0, HEAD), "head"),
    (26.0, _disc_mark(13.0, ANSWER), "answer"),
    (72.0, _scale, "gained attention early … late"),
    (6.0, _disc_mark(3.0, LITTLE), "little (grey, small)"),
    (16.0, _disc_mark(8.0, EARLY), "much (large)"),
    (34.0, _weights, "carried little … much"),
    (28.0, _arrow, "direction of the fact"),
)
