"""`dpmpn calibrate`: measures a run again, says how good it is, draws it, and keeps it."""

import json
import shutil
from pathlib import Path

import pytest
from tiny_family import Call

from dpmpn.train.run_folder import run_path


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    run = tmp_path / "demo-run"
    shutil.copytree(run_path("demo"), run)
    return run


def test_it_measures_says_and_keeps(call: Call, demo: Path) -> None:
    kept = demo / "calibration.json"
    before = kept.read_bytes()
    result = call("calibrate", demo, "--questions", 60)
    assert result.code == 0, result.err
    assert (
        "first answers of questions that lack one" in result.out
        and "expected calibration error" in result.out
    )
    assert kept.read_bytes() != before
    first = kept.stat().st_mtime_ns
    call("complete", demo, "--top", 1)  # which takes what is kept
    assert kept.stat().st_mtime_ns == first


def test_json_and_drawing(call: Call, demo: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    drawing = tmp_path / "drawing.svg"
    result = call("calibrate", demo, "--questions", 200, "--reliability", drawing, "--json", "-")
    report = json.loads(result.out)
    assert report["cases"] == 200 < report["asked"]
    for errors in report["expected_calibration_error"].values():
        assert 0 <= errors["probability"] < errors["score"] < 1
    assert drawing.read_text().startswith("<?xml")


def test_mistakes_end_with_one_line(call: Call, demo: Path, trained: Path) -> None:
    for arguments, says in (
        ((demo, "--reliability", "drawing.bmp"), ".svg or .png"),
        ((demo, "--questions", "0"), "--questions"),
        ((trained,), "too few facts are held out"),
    ):
        result = call("calibrate", *arguments)
        assert result.code == 2 and says in result.err.splitlines()[-1]
