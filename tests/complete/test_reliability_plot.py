"""The drawing of reliability: the same twice, in two formats, and refused with a sentence."""

import builtins
from pathlib import Path

import pytest
from families import families

import dpmpn
from dpmpn.complete.calibration import Calibration, save_plot
from dpmpn.complete.measure import calibration_of
from dpmpn.errors import DataError

matplotlib = pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")


@pytest.fixture(scope="module")
def calibration(reasoner: dpmpn.Reasoner) -> Calibration:
    found = calibration_of(reasoner)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".PNG", b"\x89PNG")]
)
def test_the_same_drawing_is_the_same_file(
    calibration: Calibration, tmp_path: Path, suffix: str, begins: bytes
) -> None:
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    settings = dict(matplotlib.rcParams)
    for path in (one, other):
        save_plot(calibration, path, families().name)
    assert one.read_bytes() == other.read_bytes()
    assert one.read_bytes().startswith(begins)
    assert dict(matplotlib.rcParams) == settings


def test_another_format_is_refused(calibration: Calibration, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.svg or \.png"):
        save_plot(calibration, tmp_path / "drawing.bmp", "families")


def test_a_missing_extra_is_named(
    calibration: Calibration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataError, match="extra 'plot'"):
        save_plot(calibration, tmp_path / "drawing.svg", "families")
