import struct
import sys
import zlib
from pathlib import Path

import pytest
from hand_made import diamond

from dpmpn.errors import ConfigError
from dpmpn.render import svg
from dpmpn.render.markup import FONTS
from dpmpn.render.svg import draw_png, painted


def size_and_rows(image: bytes) -> tuple[int, int, bytes]:
    """Width, height and the unpacked rows of a PNG."""
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", image[16:24])
    packed, at = b"", 8
    while at < len(image):
        (length,) = struct.unpack(">I", image[at : at + 4])
        if image[at + 4 : at + 8] == b"IDAT":
            packed += image[at + 8 : at + 8 + length]
        at += length + 12
    return width, height, zlib.decompress(packed)


def test_a_png_is_as_large_as_asked_for_and_not_blank():
    pytest.importorskip("resvg_py")
    explanation = diamond()
    small, large = (size_and_rows(draw_png(explanation, scale)) for scale in (1, 2))
    assert small[0] == 1000 and large[0] == 2000
    assert abs(large[1] - 2 * small[1]) <= 1
    assert len(set(small[2])) > 50


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ConfigError, match=r"pip install 'dpmpn\[draw\]'"):
        painted("<svg/>")


def test_without_fonts_it_is_refused(monkeypatch):
    pytest.importorskip("resvg_py")
    monkeypatch.setattr(svg, "_shows_text", lambda folders: False)
    with pytest.raises(ConfigError, match="no font was found"):
        draw_png(diamond())


def test_fonts_are_looked_for_that_pictures_are_written_in():
    assert f'font-family="{FONTS}"' in svg._PROBE


def test_a_machine_without_fonts_takes_the_one_that_is_installed_with_the_extra(monkeypatch):
    pytest.importorskip("resvg_py")
    monkeypatch.setattr(svg, "_shows_text", lambda folders: bool(folders))
    (folder,) = svg._font_folders()
    assert list(Path(folder).glob("*.ttf"))
