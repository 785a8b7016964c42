"""The picture of an explanation as PNG, painted from its SVG."""

from importlib.util import find_spec
from pathlib import Path

from dpmpn.errors import ConfigError
from dpmpn.explain.explanation import ExplanationData
from dpmpn.render.markup import FONTS
from dpmpn.render.svg import draw_svg

_PROBE = (
    f'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20" font-family="{FONTS}">'
    '<text x="2" y="15">{}</text></svg>'
)


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
        folder = str(Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf")
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
