"""An analysis made in its quick form, and what can be read back from its folder."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmpn.lab.reproduce.exhibit import Exhibit
from dpmpn.lab.reproduce.making import make
from dpmpn.lab.reproduce.workshop import Request, Watch


@dataclass(frozen=True)
class Made:
    """The folder of an exhibit, and what was said while it was made."""

    exhibit: Exhibit
    folder: Path
    said: list[str]

    def data(self) -> dict[str, Any]:
        """Rows and results."""
        return json.loads((self.folder / f"{self.exhibit.name}.json").read_text())

    def csv_rows(self) -> list[dict[str, str]]:
        """The rows of the CSV file."""
        with (self.folder / f"{self.exhibit.name}.csv").open() as file:
            return list(csv.DictReader(file))

    def cells(self) -> list[list[str]]:
        """The cells of the table in Markdown, without its head."""
        lines = (self.folder / f"{self.exhibit.name}.md").read_text().splitlines()
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
        return rows[2:]

    def text(self) -> str:
        """The whole Markdown file."""
        return (self.folder / f"{self.exhibit.name}.md").read_text()


def made(exhibit: Exhibit, folder: Path, seeds: tuple[int, ...] = (0,)) -> Made:
    """Make the quick form of an exhibit."""
    said: list[str] = []
    request = Request(seeds=seeds, quick=True, threads=1)
    make(exhibit, request, folder, Watch(say=said.append), f"dpmpn reproduce {exhibit.name} --quick")
    return Made(exhibit, folder, said)


def files_of(folder: Path) -> dict[str, bytes]:
    """All files but the runs, with what is in them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "runs" not in path.parts
    }


def scored(value: float, queries: int = 100, **more: Any) -> dict[str, Any]:
    """A result as a piece of work would give it, with the same value for all scores."""
    scores = dict.fromkeys(("mrr", "hits_at_1", "hits_at_3", "hits_at_10"), value)
    horizon = {"max_attending_from_per_step": 40, "max_sampling_per_node": 200, "strategy": "attention"}
    return {
        "scores": {"queries": 200, "both": {"realistic": scores, "coverage": 0.5}, "horizon": horizon},
        "training": {"queries": queries, "training_seconds": 10.0, "cpu_seconds": 15.0},
        "dataset": "WN18RR",
        "seed": 0,
        "queries_of_an_epoch": 1000,
        **more,
    }
