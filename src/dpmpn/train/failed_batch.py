"""What is kept of a batch whose loss or gradient is not a number: enough to look at it, and to compute it again.

`failed-batch-<position>.json` holds
  position                  queries trained before this batch; seed and position fix all that is random in it
  loss                      the batch's loss, as text where it is not finite
  queries                   head, relation and tail of each fact that was asked for, by name
  gradients_not_finite      how many values of each parameter's gradient are not finite
  parameters_not_finite     how many values of each parameter are not finite
  entities_not_finite       names of entities whose gradient is not finite, at most 100
  largest_parameters        the largest absolute value of each parameter
  seed, learning_rate, schedule, grad_clipnorm, batch_size, joint_targets, leak_removal,
  fact_dropout, threads
  weights                   name of the file with the model's weights at that moment
`failed-batch-<position>.safetensors` holds those weights.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.learning import Gradients, Targets
from dpmpn.engine.model import Model
from dpmpn.errors import Diverged
from dpmpn.files import write_json, write_whole
from dpmpn.train.checkpoint import has_checkpoint, named_tensors
from dpmpn.train.tensors import write_tensors

_MOST_ENTITIES = 100


def diverged(folder: Path, what: str) -> Diverged:
    """What to say of a training that cannot go on: what happened, what is kept, and what to do."""
    kept, go_on = "no checkpoint was written yet", "begin again with --resume"
    if has_checkpoint(folder):
        kept, go_on = "the last checkpoint is intact", "continue with --resume"
    return Diverged(
        f"training diverged: {what}; {kept}: lower --learning-rate or --grad-clipnorm and {go_on}, or train again with "
        "another --out if that fails again at once"
    )


def no_gradients(model: Model) -> Gradients:
    """What stands for the gradients of a batch that could not be computed."""
    table, n_shared = model.entities, sum(p.numel() for p in model.shared_parameters().values())
    nothing = table.new_empty(0, table.shape[1])
    return Gradients(math.nan, 0, table.new_zeros(n_shared), np.empty(0, np.int64), nothing)


def is_finite(gradients: Gradients) -> bool:
    """Whether a batch can be learnt from: norms are finite, too, as a gradient is divided by them and squared."""
    norms = torch.stack([gradients.rows.norm(), gradients.shared.norm()])
    return math.isfinite(gradients.loss) and bool(torch.isfinite(norms).all())


def save_failed_batch(
    folder: Path,
    position: int,
    batch: QueryBatch,
    targets: Targets,
    gradients: Gradients,
    model: Model,
    graph: KnowledgeGraph,
    config: Config,
) -> Path:
    """Write a batch, and the weights it met, into the run folder; the JSON file."""
    name = f"failed-batch-{position:012d}"
    weights = folder / f"{name}.safetensors"
    write_whole(weights, lambda file: write_tensors(file, named_tensors(model)))
    values = {
        "position": position,
        "loss": _plain(float(gradients.loss)),
        "queries": _queries(graph, batch, targets),
        **_not_finite(gradients, model, graph),
        "largest_parameters": {
            name: _plain(float(parameter.detach().abs().max()) if parameter.numel() else 0.0)
            for name, parameter in model.named_parameters()
        },
        "seed": config.run.seed,
        "learning_rate": config.training.learning_rate,
        "schedule": config.training.schedule,
        "grad_clipnorm": config.training.grad_clipnorm,
        "batch_size": config.training.batch_size,
        "joint_targets": config.training.joint_targets,
        "leak_removal": config.training.leak_removal,
        "fact_dropout": config.training.fact_dropout,
        "threads": config.run.threads,
        "weights": weights.name,
    }
    path = folder / f"{name}.json"
    write_json(path, values)
    return path


def _queries(graph: KnowledgeGraph, batch: QueryBatch, targets: Targets) -> list[dict[str, str]]:
    entities, relations = graph.entities, graph.relation_names
    asked = batch.heads[targets.query], batch.relations[targets.query], targets.entities
    return [
        {
            "head": entities.name(int(head)),
            "relation": relations.name(int(relation)),
            "tail": entities.name(int(tail)),
        }
        for head, relation, tail in zip(*asked, strict=True)
    ]


def _not_finite(gradients: Gradients, model: Model, graph: KnowledgeGraph) -> dict[str, Any]:
    shared = model.shared_parameters()
    parts = torch.split(gradients.shared, [parameter.numel() for parameter in shared.values()])
    found = dict(zip(shared, parts, strict=True)) | {"entities": gradients.rows}
    bad_rows = (~torch.isfinite(gradients.rows)).any(1).cpu().numpy()
    bad_entities = gradients.entities[bad_rows][:_MOST_ENTITIES]
    return {
        "gradients_not_finite": _counts(found),
        "parameters_not_finite": _counts(dict(model.named_parameters())),
        "entities_not_finite": [graph.entities.name(int(entity)) for entity in bad_entities],
    }


def _counts(tensors: dict[str, Any]) -> dict[str, int]:
    counts = {name: _count(tensor) for name, tensor in tensors.items()}
    return {name: count for name, count in counts.items() if count}


def _count(tensor: Tensor) -> int:
    return int((~torch.isfinite(tensor.detach())).sum())


def _plain(value: float) -> float | str:
    """A number that JSON can hold, or its name."""
    return value if math.isfinite(value) else str(value)
