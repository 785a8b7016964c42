"""The demo fails when an answer it shows is wrong, and the tour shows the model that it trains."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs_reading import ROOT

RIGHT = {"Serbia": "Southern Europe", "Peru": "South America", "Kyrgyzstan": "Central Asia"}
TRAIN = "train countries --out"
TOUR = ROOT / "docs" / "tour.md"

# Notes what it is asked to do, and answers as the file says.
PROGRAM = """#!/bin/sh
echo "$*" >> {calls}
[ "$1" = predict ] || exit 0
while [ "$1" != --json ]; do [ "$1" = predict ] && country=$3; shift; done
cp "{answers}/$country.json" "$2"
"""


def demo(folder: Path, answers: dict[str, str]) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the demo with a program that gives these answers; how it ended, and what it called."""
    calls = folder / "calls"
    for country, answer in answers.items():
        (folder / f"{country}.json").write_text(json.dumps([{"answer": answer}, {"answer": "Asia"}]), "utf-8")
    program = folder / "dpmpn"
    program.write_text(PROGRAM.format(calls=calls, answers=folder), "utf-8")
    program.chmod(0o755)
    (folder / "python").symlink_to(sys.executable)
    ended = subprocess.run(
        ["sh", str(ROOT / "examples" / "demo.sh")],
        env={**os.environ, "BIN": str(folder), "RUN": "runs/demo"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended, calls.read_text("utf-8").splitlines()


def test_right_answers_pass(tmp_path: Path) -> None:
    ended, calls = demo(tmp_path, RIGHT)
    assert ended.returncode == 0 and not ended.stderr
    assert calls[0].startswith("predict demo Serbia in_subregion ")
    assert calls[1] == f"{TRAIN} runs/demo"
    assert calls[-1].startswith("complete runs/demo ")


@pytest.mark.parametrize("country", RIGHT)
def test_a_wrong_answer_fails(country: str, tmp_path: Path) -> None:
    ended, calls = demo(tmp_path, RIGHT | {country: "Euro"})
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[0] == (
        f"wrong answer: <{country}, in_subregion, ?> is {RIGHT[country]}, but the first answer was Euro"
    )
    assert not any(call.startswith("complete") for call in calls)


def test_every_wrong_answer_is_named(tmp_path: Path) -> None:
    ended, _ = demo(tmp_path, dict.fromkeys(RIGHT, "Euro"))
    assert ended.stderr.count("wrong answer: ") == 1  # nothing is trained after that


def test_the_same_model_is_toured() -> None:
    assert f"    $ dpmpn {TRAIN} runs/demo\n" in TOUR.read_text("utf-8")


def test_the_tour_shows_the_measured_figures() -> None:
    measured = json.loads((ROOT / "benchmarks" / "results" / "demo-test.json").read_text("utf-8"))
    tour = TOUR.read_text("utf-8").partition("$ dpmpn evaluate runs/demo --ties\n")[2]
    rows = re.findall(r" (realistic|optimistic|pessimistic) +(?:\d+  )?([\d. ]+)$", tour, re.MULTILINE)[:9]
    shown = [(ties, *map(float, figures.split()[:4])) for ties, figures in rows]
    assert shown == [
        (ties, *(round(100 * measured[direction][ties][name], 1) for name in names))
        for names in [("mrr", "hits_at_1", "hits_at_3", "hits_at_10")]
        for direction in ("both", "tail", "head")
        for ties in ("realistic", "optimistic", "pessimistic")
    ]
