"""What a server says of itself: the model it serves, with questions to begin with, and what it did, for Prometheus."""

import os
import platform
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from dpmpn.config import to_dict
from dpmpn.errors import RunError
from dpmpn.explain.explanation import Question
from dpmpn.files import read_json
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.run_folder import START, VERSIONS

_MOST = 8  # questions to begin with
_LOOKED_AT = 2000  # facts: more would only take longer
_SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # in which several processes count together
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_QUESTIONS = (1, 2, 4, 8, 16, 32, 64)


def model_info(reasoner: Reasoner, run_dir: Path | None) -> dict[str, Any]:
    """All that the API says of a model, which has no folder if it is pre-trained; no path of this machine."""
    dataset, graph, changes = reasoner.dataset, reasoner.graph, reasoner.changes
    trained_with = _written(run_dir, VERSIONS)
    return {
        "model": "any-graph" if reasoner.is_pretrained else "tuned" if START in trained_with else "trained",
        "dataset": {
            "name": dataset.name,
            "entities": graph.n_entities,
            "relations": graph.n_forward,
            "edges": graph.n_edges,
            **{split: len(dataset.split(split)) for split in ("train", "valid", "test")},
            "has_labels": graph.entities.has_labels,
            "facts_added": changes.added if changes else 0,
            "facts_removed": changes.removed if changes else 0,
        },
        "configuration": to_dict(reasoner.config),
        "metrics": _written(run_dir, "best.json").get("validation") or {},
        "versions": {
            "trained_with": trained_with,
            "served_with": {"dpmpn": metadata.version("dpmpn"), "python": platform.python_version()},
        },
        "examples": [asdict(question) for question in example_questions(reasoner)],
    }


def _written(run_dir: Path | None, name: str) -> dict[str, Any]:
    """What a file of the run says; nothing where there is none."""
    if run_dir is not None:
        with suppress(RunError):
            return read_json(run_dir / name, "")
    return {}


def example_questions(reasoner: Reasoner, most: int = _MOST) -> list[Question]:
    """Questions about well connected heads, from the test facts or, where there are none, from others."""
    graph = reasoner.graph
    splits = (reasoner.dataset.split(split) for split in ("test", "valid", "train"))
    facts = next((split for split in splits if len(split)), np.zeros((0, 3), np.int64))
    facts = facts[np.linspace(0, len(facts) - 1, min(len(facts), _LOOKED_AT)).astype(np.int64)]
    questions = (
        pl.DataFrame({"head": facts[:, 0], "relation": facts[:, 1]})
        .with_columns(degree=np.diff(graph.offsets)[facts[:, 0]])
        .filter(pl.col("degree") > 0)
        .sort("degree", descending=True, maintain_order=True)
        .with_columns(nth=pl.int_range(pl.len()).over("relation"))
        .sort("nth", maintain_order=True)  # first one question of each relation, then another of each
        .unique(["head", "relation"], keep="first", maintain_order=True)
    )
    chosen = questions.select("head", "relation").head(most).iter_rows()
    return [Question.of(graph, head, relation, inverse=False) for head, relation in chosen]


class Metrics:
    """The metrics of one application, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        if _SHARED_FOLDER not in os.environ:
            ProcessCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, multiprocess_mode="livesum", registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter(
            "dpmpn_requests", "Requests by route and status of the answer", ["route", "status"]
        )
        self.seconds = histogram(
            "dpmpn_request_seconds", "Seconds until a request was answered", ["route"], buckets=_SECONDS
        )
        self.in_flight = gauge("dpmpn_requests_in_flight", "Requests being answered")
        self.waiting = gauge("dpmpn_waiting", "What waits to be worked on", ["queue"])
        self.batches = histogram("dpmpn_batch_questions", "Questions asked together", buckets=_QUESTIONS)
        self.refused = counter("dpmpn_refused", "Requests refused because of too many others", ["queue"])
        self.recent = counter("dpmpn_asked_recently", "Questions that did not have to be asked again")

    def text(self) -> bytes:
        """All metrics as Prometheus reads them, those of other processes of this server included."""
        if _SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        from prometheus_client.multiprocess import MultiProcessCollector

        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
