"""Paths that are not UTF-8: every command takes them, for what it reads and for what it writes."""

import json
import os
import shutil
from pathlib import Path

from accident_data import SETTINGS, write_family
from forked_cli import ForkedCli

from dpmpn.train.run_folder import run_path

ODD = os.fsdecode(b"odd\xff")


def test_every_command_works_where_names_are_not_utf_8(cli: ForkedCli, tmp_path: Path) -> None:
    here = tmp_path / ODD
    here.mkdir()
    family, run, graph, parts = (
        write_family(here / f"family{ODD}"),
        here / f"run{ODD}",
        here / "graph",
        here / "parts",
    )
    measured = shutil.copytree(run_path("demo"), here / f"measured{ODD}")
    questions, result = here / f"questions{ODD}.csv", here / f"result{ODD}.json"
    questions.write_text("head,relation\nchild0,mother\n")
    formats = "text,json,csv,svg,html,dot"
    for line in (
        ("train", family, "--out", run, *SETTINGS, "--max-queries", 20, "--json", result),
        ("train", family, "--out", run, "--resume", "--json", result),
        ("evaluate", run, "--json", result),
        ("predict", run, "child0", "mother", "--json", result),
        ("predict", run, "--queries", questions, "--out", here / "answers.csv"),
        ("predict", run, "--queries", questions, "--out", here / "answers.parquet"),
        ("explain", run, "child0", "mother", "--out", here / "why", "--format", formats),
        ("complete", run, "--out", here / "facts.csv", "--json", result),
        (
            "calibrate",
            measured,
            *("--questions", 30),
            *("--reliability", here / f"{ODD}.svg"),
            "--json",
            result,
        ),
        ("explain-eval", run, "--sample", 1, "--json", result),
        ("import", family / "train.txt", "--split", "none", "--out", graph / ODD, "--json", result),
        ("train", graph / ODD, "--out", here / "second", *SETTINGS, "--max-queries", 10),
        ("train", graph / ODD, "--out", here / "second", "--resume", "--max-queries", 20),
        ("inductive", family, "--out", parts / ODD, "--json", result),
        ("datasets", "stats", family, "--json", result),
    ):
        ended = cli.run(*line)
        assert (ended.code, ended.err) == (0, ""), ended
        assert not result.exists() or json.loads(result.read_text("utf-8"))
    assert json.loads((run / "dataset.json").read_text("utf-8"))["name"] == "familyodd\\xff"
