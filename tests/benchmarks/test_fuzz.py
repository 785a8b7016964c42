"""The fuzzing harness counts what it tries and keeps what fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fuzz

ROOT = Path(__file__).parents[2]


def test_a_short_run_counts_its_cases(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "benchmarks" / "fuzz.py", "--only", "config", "--examples", "5"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run(
        [*command, "--minutes", "0.02", "--out", tmp_path / "fuzz.json"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    result = json.loads((tmp_path / "fuzz.json").read_text())
    found = result["random"]
    assert list(found["targets"]) == ["config"] and found["cases"] > 5 and not found["failures"]


def test_all_kinds_of_input_are_targets() -> None:
    targets = {fuzz._target(file.name) for file in fuzz.files_of("")}
    assert targets >= {
        "readers",
        "questions",
        "storage",
        "checkpoint",
        "calibration",
        "config",
        "requests",
        "names",
        "output",
    }
    assert all(fuzz._properties(file) for file in fuzz.files_of(""))
