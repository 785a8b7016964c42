"""The legend below a picture: what colours, sizes, lines and keys mean."""

from collections.abc import Callable, Sequence

from dpmpn.render.colours import ANSWER, EARLY, HEAD, LINE, LITTLE, OUTLINE, node_colour
from dpmpn.render.markup import element, polygon, text_line, title
from dpmpn.render.text_width import broken, readable, text_width

_SIZE, _KEY_SIZE = 10.0, 9.5
_INDENT = 22.0
_GAP = 20.0
ROW = 30.0

Mark = tuple[float, Callable[[float, float], str], str]  # width, drawing at a left end and height, text


def draw_legend(width: float) -> tuple[str, float]:
    """The legend in rows no wider than given, and its height."""
    parts, x, y = [], 0.0, ROW / 2
    for mark_width, drawing, text in _MARKS:
        taken = mark_width + 6 + text_width(text, _SIZE)
        if x > 0 and x + taken > width:
            x, y = 0.0, y + ROW
        parts.append(drawing(x, y) + text_line(text, x + mark_width + 6, y + 3.6, _SIZE))
        x += taken + _GAP
    return element("g", "".join(parts), class_="legend"), y + ROW / 2


def draw_keys(keys: Sequence[tuple[str, str]], width: float) -> tuple[str, float]:
    """What keys stand for, in two columns where the texts are short enough, and the height."""
    texts = [readable(text) for _, text in keys]
    rows = -(-len(texts) // 2)
    columns = [
        max((text_width(t, _KEY_SIZE) for t in part), default=0.0) for part in (texts[:rows], texts[rows:])
    ]
    if sum(columns) + 2 * _INDENT + _GAP > width:
        rows, columns = len(texts), [width - _INDENT, 0.0]
    parts = []
    for at, ((key, _), text) in enumerate(zip(keys, texts, strict=True)):
        x = (
            0.0
            if at < rows
            else min(max(columns[0] + _INDENT + _GAP, width / 2), width - columns[1] - _INDENT)
        )
        y = (at % rows + 1) * _KEY_SIZE * 1.45
        (shown,) = broken(text, width - x - _INDENT, 1, _KEY_SIZE)
        about = "" if shown == text else title(text)
        line = text_line(key, x, y, _KEY_SIZE, bold=True) + text_line(shown, x + _INDENT, y, _KEY_SIZE)
        parts.append(element("g", about + line))
    return element("g", "".join(parts), class_="keys"), rows * _KEY_SIZE * 1.45 + (14 if keys else 0)


def _disc(radius: float, colour: str) -> Callable[[float, float], str]:
    return lambda x, y: element(
        "circle",
        cx=x + radius,
        cy=y,
        r=radius,
        fill=colour,
        stroke=OUTLINE,
        stroke_width=1.6 if radius > 10 else 0.9,
    )


def _scale(x: float, y: float) -> str:
    """Discs from early to late."""
    return "".join(_disc(6.0, node_colour(1.0, at / 4))(x + at * 15, y) for at in range(5))


def _weights(x: float, y: float) -> str:
    return polygon([(x, y - 0.4), (x + 34, y - 2.4), (x + 34, y + 2.4), (x, y + 0.4)], fill=LINE)


def _arrow(x: float, y: float) -> str:
    line = element("path", d=f"M{x},{y}H{x + 20}", stroke=LINE, stroke_width=1.5)
    return line + polygon([(x + 28, y), (x + 20, y - 3.4), (x + 20, y + 3.4)], fill=LINE)


_MARKS: tuple[Mark, ...] = (
    (26.0, _disc(13.0, HEAD), "head"),
    (26.0, _disc(13.0, ANSWER), "answer"),
    (72.0, _scale, "gained attention early … late"),
    (6.0, _disc(3.0, LITTLE), "little (grey, small)"),
    (16.0, _disc(8.0, EARLY), "much (large)"),
    (34.0, _weights, "carried little … much"),
    (28.0, _arrow, "direction of the fact"),
)
