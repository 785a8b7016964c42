"""The model card: what is served, how it was trained and measured, and what may be asked of it."""

import platform
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from dpmpn.ask.reasoner import Reasoner
from dpmpn.config import to_dict
from dpmpn.errors import RunError
from dpmpn.files import read_json
from dpmpn.serve.examples import example_questions
from dpmpn.serve.limits import Limits
from dpmpn.train.run_folder import VERSIONS


def model_card(reasoner: Reasoner, run_dir: Path, limits: Limits) -> dict[str, Any]:
    """All that is told of a model; no path of this machine."""
    dataset, graph, changes = reasoner.dataset, reasoner.graph, reasoner.changes
    return {
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
        "metrics": _told(run_dir / "best.json").get("validation") or {},
        "versions": {
            "trained_with": _told(run_dir / VERSIONS),
            "served_with": {"dpmpn": metadata.version("dpmpn"), "python": platform.python_version()},
        },
        "examples": example_questions(reasoner),
        "limits": asdict(limits),
    }


def _told(path: Path) -> dict[str, Any]:
    """What a file of the run says; nothing where there is none."""
    with suppress(RunError):
        return read_json(path, "")
    return {}
