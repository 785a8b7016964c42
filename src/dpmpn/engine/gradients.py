"""Gradients of a part of a batch, and their sum over its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmpn.ops.entry import applied


@dataclass(frozen=True, eq=False)
class Gradients:
    """Loss and its gradients: one vector for all shared parameters, rows for the entity table."""

    loss: float
    reached: int  # targets that the attention reached
    shared: Tensor  # all shared parameters, one after another
    entities: np.ndarray  # ids, unique and ascending
    rows: Tensor  # one gradient row for each


def flat_gradients(parameters: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> Tensor:
    """Gradients one after another in one vector; zeros where a parameter was not used."""
    pairs = zip(parameters, gradients, strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).reshape(-1) for p, g in pairs])


def sum_rows(pairs: list[tuple[np.ndarray, Tensor]], empty: Tensor) -> tuple[np.ndarray, Tensor]:
    """Gradient rows of the same entity added up, entities ascending."""
    if not pairs:
        return np.empty(0, np.int64), empty
    entities, at = np.unique(np.concatenate([e for e, _ in pairs]), return_inverse=True)
    rows = torch.cat([rows for _, rows in pairs])
    total = rows.new_zeros(len(entities), rows.shape[1])
    total.index_add_(0, torch.from_numpy(at).to(total.device), rows)
    return entities.astype(np.int64), total


def sum_gradients(parts: list[Gradients]) -> Gradients:
    """The gradients of parts together; those of the shared parameters are added to the first part's, in place."""
    if len(parts) == 1:
        return parts[0]
    shared = parts[0].shared
    for part in parts[1:]:
        shared += part.shared
    entities, rows = sum_rows([(part.entities, part.rows) for part in parts], parts[0].rows)
    return Gradients(sum(p.loss for p in parts), sum(p.reached for p in parts), shared, entities, rows)


class EntityRows:
    """Reads of the entity table that leave their gradients as rows, in `gradients`."""

    def __init__(self, table: Tensor, differentiable: bool) -> None:
        self.table = table.detach()
        self.anchor = torch.zeros((), dtype=table.dtype, requires_grad=differentiable)
        self.gradients: list[tuple[np.ndarray, Tensor]] = []  # (entity ids, rows)

    def read(self, entities: np.ndarray) -> Tensor:
        """The embeddings of these entities."""
        return applied(_ReadRows)(self.anchor, entities, self)


class _ReadRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, entities: np.ndarray, rows: EntityRows) -> Tensor:
        ctx.entities, ctx.rows = entities, rows
        return rows.table[torch.from_numpy(entities).long()]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ctx.rows.gradients.append((ctx.entities, gradient))
        return gradient.new_zeros(()), None, None
