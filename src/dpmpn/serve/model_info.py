"""What is served: the model, how it was trained and measured, what may be asked of it, and questions to begin with."""

import platform
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpmpn.ask.reasoner import Reasoner
from dpmpn.config import to_dict
from dpmpn.errors import RunError
from dpmpn.files import read_json
from dpmpn.serve.guard import Limits
from dpmpn.train.run_folder import VERSIONS

_MOST = 8  # questions to begin with
_LOOKED_AT = 2000  # facts: more would only take longer


def model_info(reasoner: Reasoner, run_dir: Path, limits: Limits) -> dict[str, Any]:
    """All that the API says of a model; no path of this machine."""
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
        "metrics": _written(run_dir / "best.json").get("validation") or {},
        "versions": {
            "trained_with": _written(run_dir / VERSIONS),
            "served_with": {"dpmpn": metadata.version("dpmpn"), "python": platform.python_version()},
        },
        "examples": example_questions(reasoner),
        "limits": asdict(limits),
    }


def _written(path: Path) -> dict[str, Any]:
    """What a file of the run says; nothing where there is none."""
    with suppress(RunError):
        return read_json(path, "")
    return {}


def example_questions(reasoner: Reasoner, most: int = _MOST) -> list[dict[str, Any]]:
    """Questions about well connected heads, from the test facts or, where there are none, from others."""
    graph, relation_names = reasoner.graph, reasoner.graph.relation_names
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
    return [
        {
            "head": graph.entities.name(head),
            "relation": relation_names.name(relation),
            "inverse": False,
            "head_label": graph.entities.label(head),
            "relation_label": relation_names.label(relation),
        }
        for head, relation in questions.select("head", "relation").head(most).iter_rows()
    ]
