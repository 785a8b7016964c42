"""Figures that others published, each with its source: what stands beside ours in a table."""

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

from dpmpn.evaluate.metrics import TITLES

_FILE = "published.toml"


@dataclass(frozen=True)
class PublishedRow:
    """A system's filtered scores in percent on one dataset, as they were printed; None where they were not."""

    system: str
    scores: dict[str, float | None]  # by the keys of all metrics
    source: str
    later: bool  # than the paper
    printed: dict[str, str]  # the scores with the standard deviations that stood beside them

    def score(self, metric: str, missing: float) -> float:
        """A score, or what stands for one that was not printed."""
        value = self.scores[metric]
        return missing if value is None else value

    def as_dict(self) -> dict[str, Any]:
        """Plain values, the scores among them by their metrics."""
        values = asdict(self)
        return {"system": values.pop("system"), **values.pop("scores"), **values}

    def shown(self, metric: str) -> str:
        """A score as it was printed; a dash where it was not."""
        return self.printed.get(metric, "-")


def published_rows(dataset: str) -> list[PublishedRow]:
    """The rows of a dataset in the order of the paper's tables, later systems last; none for other datasets."""
    return [_row(values) for values in _file().get(dataset, [])]


def published_map() -> dict[str, dict[str, str]]:
    """MAP in percent on the NELL995 tasks as printed in the paper: system, then task."""
    return dict(_file()["NELL995"])


def source_names() -> dict[str, str]:
    """Where figures were taken from, by the key that rows name."""
    return dict(_file()["sources"])


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((resources.files("dpmpn.lab") / _FILE).read_text("utf-8"))


def _row(values: dict[str, Any]) -> PublishedRow:
    printed = dict(values["scores"])
    numbers = {metric: float(text.split("(")[0]) for metric, text in printed.items()}
    return PublishedRow(
        system=values["system"],
        scores={metric: numbers.get(metric) for metric in TITLES},
        source=source_names()[values["source"]],
        later=values.get("later", False),
        printed=printed,
    )
