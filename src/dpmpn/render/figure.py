"""Puts a picture together: title, two halves with captions, keys and legend on a white ground."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from dpmpn.render.colours import ANSWER, EARLY, FAINT_TEXT, HEAD, LINE, LITTLE, node_colour
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
from dpmpn.render.panel import Panel

WIDTH = 1000.0
_MARGIN, _BETWEEN = 14.0, 24.0
INNER = WIDTH - 2 * _MARGIN - _BETWEEN  # for both halves
_TITLE, _PLAIN = 15.0, 11.5  # sizes of letters
_LEGEND, _KEY = 10.0, 9.5  # of those below
_INDENT, _GAP, _ROW = 22.0, 20.0, 30.0

Mark = tuple[float, Callable[[float, float], str], str]  # width, drawing at a left end and height, text


@dataclass(frozen=True)
class Half:
    """One half of a picture: the panel, and the caption below it."""

    panel: Panel
    caption: str


def compose(
    question: str, about_answer: str, left: Half, right: Half, keys: Sequence[tuple[str, str]] | None = None
) -> str:
    """The whole SVG: the question, what is said about its answer, the halves, what keys on lines mean, the legend."""
    parts: list[str] = []
    y = _title_lines(parts, question, about_answer)
    beginning = _MARGIN + left.panel.layout.width + _BETWEEN
    lowest = max(_half(parts, left, _MARGIN, y), _half(parts, right, beginning, y))
    ruler = number(beginning - _BETWEEN / 2)
    parts.append(element("path", d=f"M{ruler},{number(y)}V{number(lowest)}", stroke="#d5d5d5"))
    y = lowest + 8
    for drawing, taken in (_key_list(keys or (), WIDTH - 2 * _MARGIN), _legend(WIDTH - 2 * _MARGIN)):
        parts.append(element("g", drawing, transform=f"translate({number(_MARGIN)},{number(y)})"))
        y += taken
    height = y + _MARGIN
    about = f"{left.caption}. {right.caption}."
    ground = element("rect", width=WIDTH, height=height, fill="#ffffff")
    return element(
        "svg",
        "\n".join(
            [
                title(f"{question} {about_answer}"),
                f"<desc>{escape(readable(about))}</desc>",
                ground,
                *parts,
                "",
            ]
        ),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        width=WIDTH,
        height=height,
        font_family=FONTS,
        role="img",
    )


def _title_lines(parts: list[str], question: str, about_answer: str) -> float:
    """Add the title; where it ends."""
    y = _MARGIN
    for line in wrapped(question, WIDTH - 2 * _MARGIN, 2, _TITLE, bold=True):
        y += _TITLE * 1.3
        parts.append(text_line(line, _MARGIN, y, _TITLE, bold=True))
    for line in wrapped(about_answer, WIDTH - 2 * _MARGIN, 2, _PLAIN):
        y += _PLAIN * 1.5
        parts.append(text_line(line, _MARGIN, y, _PLAIN, colour=FAINT_TEXT))
    return y + 14


def _half(parts: list[str], half: Half, x: float, y: float) -> float:
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


def _key_list(keys: Sequence[tuple[str, str]], width: float) -> tuple[str, float]:
    """What keys stand for, in two columns where the texts are short enough, and the height."""
    texts = [readable(text) for _, text in keys]
    rows = -(-len(texts) // 2)
    columns = [max((text_width(t, _KEY) for t in part), default=0.0) for part in (texts[:rows], texts[rows:])]
    if sum(columns) + 2 * _INDENT + _GAP > width:
        rows, columns = len(texts), [width - _INDENT, 0.0]
    parts = []
    for at, ((key, _), text) in enumerate(zip(keys, texts, strict=True)):
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


_MARKS: tuple[Mark, ...] = (
    (26.0, _disc_mark(13.0, HEAD), "head"),
    (26.0, _disc_mark(13.0, ANSWER), "answer"),
    (72.0, _scale, "gained attention early … late"),
    (6.0, _disc_mark(3.0, LITTLE), "little (grey, small)"),
    (16.0, _disc_mark(8.0, EARLY), "much (large)"),
    (34.0, _weights, "carried little … much"),
    (28.0, _arrow, "direction of the fact"),
)
