"""Figures that others published, each with its source: what stands beside ours in a table."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_FILE = "published.toml"


@dataclass(frozen=True)
class PublishedRow:
    """A system's filtered scores in percent on one dataset, as they were printed; None where they were not."""

    system: str
    mrr: float | None
    hits_at_1: float | None
    hits_at_3: float | None
    hits_at_10: float | None
    source: str
    later: bool  # than the paper
    printed: dict[str, str]  # the scores with the standard deviations that stood beside them

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
    return tomllib.loads((resources.files("dpmpn.lab.figures") / _FILE).read_text("utf-8"))


def _row(values: dict[str, Any]) -> PublishedRow:
    printed = {metric: text for metric, text in values["scores"].items()}
    numbers = {metric: float(text.split("(")[0]) for metric, text in printed.items()}
    return PublishedRow(
        system=values["system"],
        **{metric: numbers.get(metric) for metric in ("mrr", "hits_at_1", "hits_at_3", "hits_at_10")},
        source=source_names()[values["source"]],
        later=values.get("later", False),
        printed=printed,
    )
