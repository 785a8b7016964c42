"""What drawings are made of: a few SVG elements, and text of a known width; all text is escaped.

Elements are put together by a function, not by templates: nearly all of them are computed one by one from coordinates,
with no running text between them that a template could show. Widths of text are those of DejaVu Sans; drawings force
them on whatever font is there, so nothing runs into its neighbour.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

from dpmpn.render.shapes import LINE_HEIGHT, OUTLINE, TEXT, Label

FONTS = "'DejaVu Sans', Verdana, sans-serif"
_ASCII = (  # thousandths of the font size, from the space to the tilde
    "318 401 460 838 636 950 780 275 390 390 500 838 318 361 318 337 636 636 636 636 636 636 636 636 636 636 337 337 "
    "838 838 838 531 1000 684 686 698 770 632 575 775 752 295 295 656 557 863 748 787 603 787 695 635 611 732 684 989 "
    "685 611 685 390 337 390 838 500 500 613 635 550 635 615 352 635 634 278 278 579 278 974 634 612 635 635 411 521 "
    "392 634 592 818 592 592 525 636 337 636 838"
)
_WIDTHS = {chr(32 + at): int(width) / 1000 for at, width in enumerate(_ASCII.split())}
_BOLD = 1.14  # as much wider than the plain letters
# White around the letters lifts them off the lines below.
_HALO = dict[str, str | float](
    stroke="#ffffff", stroke_width=3.0, stroke_linejoin="round", paint_order="stroke"
)
_BREAKS = "_/:.-, "  # a line may end after these
ELLIPSIS = "…"
NO_NAME = "(no name)"
_LONGEST = 400  # letters: no label shows more


def number(value: float) -> str:
    """A number as short as can be, to a tenth."""
    return f"{value:.1f}".removesuffix(".0") if abs(value) >= 0.05 else "0"


def element(tag: str, inside: str = "", **attributes: str | float) -> str:
    """An element; underscores in names of attributes stand for hyphens, `class_` for class."""
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}={quoteattr(value if isinstance(value, str) else number(value))}"
        for name, value in attributes.items()
    )
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def title(text: str) -> str:
    """What a pointer that rests on an element shows and a screen reader says."""
    return f"<title>{escape(readable(text))}</title>"


def text_line(
    text: str,
    x: float,
    y: float,
    size: float,
    anchor: str = "start",
    bold: bool = False,
    colour: str = TEXT,
    halo: bool = False,
) -> str:
    """A line of text that takes the width it was measured with, whatever the font."""
    attributes: dict[str, str | float] = {"x": x, "y": y, "font_size": size, "fill": colour}
    if anchor != "start":
        attributes["text_anchor"] = anchor
    if bold:
        attributes["font_weight"] = "bold"
    if halo:
        attributes |= _HALO
    attributes |= {"textLength": text_width(text, size, bold), "lengthAdjust": "spacingAndGlyphs"}
    return element("text", escape(text), **attributes)


def label_text(label: Label, colour: str = TEXT) -> str:
    """The lines of a label in the middle of its box."""
    (x, _), step = label.box.middle, label.size * LINE_HEIGHT
    first = label.box.top + label.size * 0.93
    return "".join(
        text_line(line, x, first + step * at, label.size, "middle", label.bold, colour, halo=True)
        for at, line in enumerate(label.lines)
    )


def polygon(points: Iterable[Sequence[float]], **attributes: str | float) -> str:
    """A filled shape by its corners."""
    return element(
        "polygon", "", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), **attributes
    )


def circle(x: float, y: float, radius: float, fill: str, outline: float) -> str:
    """A disc whose outline is so thick."""
    return element("circle", cx=x, cy=y, r=radius, fill=fill, stroke=OUTLINE, stroke_width=outline)


def readable(text: str) -> str:
    """Text as it can stand in XML on one line: what cannot be shown there becomes a space or a replacement mark."""
    text = "".join(c if _is_allowed(c) else " " if c.isspace() else "\ufffd" for c in text)
    return " ".join(text.split()) or NO_NAME


def _is_allowed(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp", "Cn") or character == " "


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of a line of text in a font of this size."""
    return sum(_character_width(c) for c in text) * size * (_BOLD if bold else 1.0)


def _character_width(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf"):
        return 0.0  # accents and joiners stand on their neighbours
    if unicodedata.east_asian_width(character) in "WF" or character == ELLIPSIS:
        return 1.0
    if category == "Ll" or unicodedata.bidirectional(character) in ("R", "AL"):
        return 0.66
    return 0.85


def wrapped(
    text: str, most_width: float, most_lines: int, size: float, bold: bool = False
) -> tuple[str, ...]:
    """The lines of a text, none wider than given; nothing is dropped unless it needs too many, then its middle is."""
    text = readable(text)
    if len(text) <= _LONGEST:
        lines = _even_lines(text, most_width, most_lines, size, bold)
        if len(lines) <= most_lines:
            return lines
    return _shortened(text, most_width, most_lines, size, bold)


def _even_lines(text: str, most_width: float, most_lines: int, size: float, bold: bool) -> tuple[str, ...]:
    """Filled lines, or as narrow ones as give no more of them: short last lines look like accidents."""
    lines = _filled(text, most_width, size, bold)
    widest = max(text_width(piece.rstrip(), size, bold) for piece in _pieces(text))
    if 1 < len(lines) <= most_lines:
        for part in (0.55, 0.65, 0.75, 0.85):
            narrower = _filled(text, most_width * part, size, bold)
            if len(narrower) == len(lines) and most_width * part >= widest:
                return narrower
    return lines


def _filled(text: str, most_width: float, size: float, bold: bool) -> tuple[str, ...]:
    lines, line = [], ""
    for piece in _pieces(text):
        while text_width((line + piece).rstrip(), size, bold) > most_width:
            if line:
                lines.append(line.rstrip())
                line = ""
            else:  # a piece that is wider than a line is broken anywhere
                fitting = _front(piece, most_width, size, bold)
                if fitting == piece:
                    break
                lines.append(fitting)
                piece = piece[len(fitting) :]
        line += piece
    return (*lines, line.rstrip()) if line.strip() else tuple(lines)


def _pieces(text: str) -> list[str]:
    """The text cut after each place where a line may end."""
    pieces, start = [], 0
    for at in range(1, len(text)):
        if text[at - 1] in _BREAKS and text[at] not in _BREAKS and at - start > 2:
            pieces.append(text[start:at])
            start = at
    return [*pieces, text[start:]]


def _shortened(text: str, most_width: float, most_lines: int, size: float, bold: bool) -> tuple[str, ...]:
    """As much of the front as the first lines hold, an ellipsis, and as much of the end as the last line holds."""
    if most_lines == 1:
        front = _front(text, most_width * 0.45, size, bold)
        return (
            front + ELLIPSIS + _back(text, most_width - text_width(front + ELLIPSIS, size, bold), size, bold),
        )
    above = _filled(text[:_LONGEST], most_width, size, bold)[: most_lines - 1]
    room = most_width - text_width(ELLIPSIS, size, bold)
    beginning = sum(map(len, above[:-1]))
    cut = _front(text[beginning:].lstrip(), room, size, bold) + ELLIPSIS
    return (*above[:-1], cut, _back(text, most_width, size, bold))


def _front(text: str, room: float, size: float, bold: bool) -> str:
    fits = 1
    while fits < len(text) and text_width(text[: fits + 1], size, bold) <= room:
        fits += 1
    return text[:fits]


def _back(text: str, room: float, size: float, bold: bool) -> str:
    """The end of a text, from after a place where a line may end if there is one near."""
    fits = 1
    while fits < len(text) and text_width(text[-fits - 1 :], size, bold) <= room:
        fits += 1
    back = text[-fits:]
    for at in range(1, len(back) // 2):
        if back[at - 1] in _BREAKS and back[at] not in _BREAKS:
            back = back[at:]
            break
    while unicodedata.category(back[0]) in ("Mn", "Me", "Cf") and len(back) > 1:
        back = back[1:]  # an accent without its letter
    return back
