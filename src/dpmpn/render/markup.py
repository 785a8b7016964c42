"""The few SVG elements that drawings are made of; all text is escaped."""

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from dpmpn.render.colours import TEXT
from dpmpn.render.labels import LINE_HEIGHT, Label
from dpmpn.render.text_width import readable, text_width

FONTS = "'DejaVu Sans', Verdana, sans-serif"


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
    if halo:  # white around the letters lifts them off the lines below
        attributes |= {
            "stroke": "#ffffff",
            "stroke_width": 3.0,
            "stroke_linejoin": "round",
            "paint_order": "stroke",
        }
    attributes |= {"textLength": text_width(text, size, bold), "lengthAdjust": "spacingAndGlyphs"}
    return element("text", escape(text), **attributes)


def label_text(label: Label, colour: str = TEXT) -> str:
    """The lines of a label in the middle of its box."""
    x, step = (label.box.left + label.box.right) / 2, label.size * LINE_HEIGHT
    return "".join(
        text_line(
            line,
            x,
            label.box.top + step * at + label.size * 0.93,
            label.size,
            "middle",
            label.bold,
            colour,
            True,
        )
        for at, line in enumerate(label.lines)
    )


def polygon(points: Iterable[Sequence[float]], **attributes: str | float) -> str:
    """A filled shape by its corners."""
    return element(
        "polygon", "", points=" ".join(f"{number(x)},{number(y)}" for x, y in points), **attributes
    )
