"""The picture of an explanation as PNG, painted from its SVG."""

from typing import TYPE_CHECKING

from dpmpn.drawing.svg import draw_svg
from dpmpn.errors import ConfigError

if TYPE_CHECKING:
    from dpmpn.explain.explanation import Explanation


def draw_png(explanation: "Explanation", scale: float = 2) -> bytes:
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
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale))
