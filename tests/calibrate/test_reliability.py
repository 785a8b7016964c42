"""Reliability by hand, and its drawing: the same twice, in two formats, and refused with a sentence."""

import builtins
from pathlib import Path

import numpy as np
import pytest

from dpmpn.calibrate.reliability import reliability, save_plot
from dpmpn.errors import DataError


def test_the_error_by_hand() -> None:
    found = reliability(np.array([0.05, 0.05, 0.95, 0.95]), np.array([0.0, 1, 1, 1]))
    assert found.error == pytest.approx((0.9 + 0.1) / 4)  # bins: |0.1 - 1| and |1.9 - 2|
    assert (found.predicted, found.right) == (pytest.approx(0.5), 0.75)
    assert [bin.predictions for bin in found.bins] == [2, 2]


def test_weights_stand_for_many() -> None:
    said, right = np.array([0.2, 0.2, 0.7]), np.array([0.0, 1, 1])
    weighted = reliability(said, right, np.array([3.0, 1.0, 2.0]))
    repeated = reliability(np.repeat(said, [3, 1, 2]), np.repeat(right, [3, 1, 2]))
    assert weighted.error == pytest.approx(repeated.error)
    assert [bin.right for bin in weighted.bins] == [bin.right for bin in repeated.bins]
    assert weighted.bins[0].high > repeated.bins[0].high  # three cases that are one say less


PAIR = (reliability(np.linspace(0, 1, 50), np.ones(50)), reliability(np.ones(50), np.ones(50)))
PANELS = {"first answers": PAIR, "all": PAIR}


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".PNG", b"\x89PNG")]
)
def test_the_same_drawing_is_the_same_file(tmp_path: Path, suffix: str, begins: bytes) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    settings = dict(matplotlib.rcParams)
    for path in (one, other):
        save_plot(PANELS, path, "families")
    assert one.read_bytes() == other.read_bytes()
    assert one.read_bytes().startswith(begins)
    assert dict(matplotlib.rcParams) == settings


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.svg or \.png"):
        save_plot(PANELS, tmp_path / "drawing.bmp", "families")


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataError, match="extra 'plot'"):
        save_plot(PANELS, tmp_path / "drawing.svg", "families")
