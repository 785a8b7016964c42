"""Puts a picture together: title, two halves with captions, keys and legend on a white ground."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from dpmpn.render.colours import FAINT_TEXT
from dpmpn.render.legend import draw_keys, draw_legend
from dpmpn.render.markup import FONTS, element, number, text_line, title
from dpmpn.render.panel import Panel
from dpmpn.render.text_width import broken, readable

WIDTH = 1000.0
_MARGIN, _BETWEEN = 14.0, 24.0
INNER = WIDTH - 2 * _MARGIN - _BETWEEN  # for both halves
_TITLE, _PLAIN = 15.0, 11.5  # sizes of letters


@dataclass(frozen=True)
class Half:
    """One half of a picture: the panel, and the caption below it."""

    panel: Panel
    caption: str


def compose(
    asked: str, told: str, left: Half, right: Half, keys: Sequence[tuple[str, str]] | None = None
) -> str:
    """The whole SVG: what was asked, what is told of the answer, the halves, what keys on lines mean, the legend."""
    parts: list[str] = []
    y = _heading(parts, asked, told)
    beginning = _MARGIN + left.panel.width + _BETWEEN
    lowest = max(_half(parts, left, _MARGIN, y), _half(parts, right, beginning, y))
    ruler = number(beginning - _BETWEEN / 2)
    parts.append(element("path", d=f"M{ruler},{number(y)}V{number(lowest)}", stroke="#d5d5d5"))
    y = lowest + 8
    for drawing, taken in (draw_keys(keys or (), WIDTH - 2 * _MARGIN), draw_legend(WIDTH - 2 * _MARGIN)):
        parts.append(element("g", drawing, transform=f"translate({number(_MARGIN)},{number(y)})"))
        y += taken
    height = y + _MARGIN
    about = f"{left.caption}. {right.caption}."
    ground = element("rect", width=WIDTH, height=height, fill="#ffffff")
    return element(
        "svg",
        "\n".join([title(f"{asked} {told}"), f"<desc>{escape(readable(about))}</desc>", ground, *parts, ""]),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        width=WIDTH,
        height=height,
        font_family=FONTS,
        role="img",
    )


def _heading(parts: list[str], asked: str, told: str) -> float:
    """Add the title; where it ends."""
    y = _MARGIN
    for line in broken(asked, WIDTH - 2 * _MARGIN, 2, _TITLE, bold=True):
        y += _TITLE * 1.3
        parts.append(text_line(line, _MARGIN, y, _TITLE, bold=True))
    for line in broken(told, WIDTH - 2 * _MARGIN, 2, _PLAIN):
        y += _PLAIN * 1.5
        parts.append(text_line(line, _MARGIN, y, _PLAIN, colour=FAINT_TEXT))
    return y + 14


def _half(parts: list[str], half: Half, x: float, y: float) -> float:
    """Add a half; where it ends."""
    place = f"translate({number(x)},{number(y)})"
    parts.append(element("g", "\n" + half.panel.svg + "\n", transform=place))
    y += half.panel.height + 4
    for line in broken(half.caption, half.panel.width, 3, _PLAIN):
        y += _PLAIN * 1.35
        parts.append(text_line(line, x, y, _PLAIN))
    return y + 6
