"""What answers depend on, as a few values that say whether two models on two graphs are the same."""

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.data.dataset import SPLITS, Dataset

if TYPE_CHECKING:
    from dpmpn.engine.engine import Engine


def fingerprint(engine: "Engine", dataset: Dataset) -> dict[str, Any]:
    """What answers depend on: horizon, seed, and a hash of weights, settings, graph, names, labels and splits."""
    graph, config = dataset.graph, engine.config
    arrays: list[Any] = []
    for name, tensor in sorted(engine.model.state_dict().items()):
        arrays += [name.encode(), tensor.detach().cpu().numpy()]
    arrays += [graph.offsets, graph.relations, graph.tails, graph.inverse]
    for split in SPLITS:
        arrays += [np.array(len(dataset.split(split))), dataset.split(split)]
    for names in (graph.entities, graph.relation_names):
        arrays += [names.packed.text, names.packed.offsets]
    if graph.entities.labels is not None:
        arrays.append("\n".join(label or "" for label in graph.entities.labels["name"]).encode())
    arrays.append(json.dumps({"model": config.model.name, **asdict(config.model)}, sort_keys=True).encode())
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array if isinstance(array, bytes) else np.ascontiguousarray(array).data)
    return {
        "model_sha256": digest.hexdigest(),
        "horizon": asdict(config.asking_horizon()),
        "seed": config.run.seed,
    }
