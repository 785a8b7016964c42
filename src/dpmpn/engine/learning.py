"""What a batch of training queries is to learn, and its gradients: of a part of it, and of its parts together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmpn.engine.answer import Answer
from dpmpn.kernels import Ints, kernel
from dpmpn.ops.entry import applied


@dataclass(frozen=True, eq=False)
class Targets:
    """The answers to learn of each query, and all its answers that training states."""

    offsets: np.ndarray  # int64, queries + 1
    entities: np.ndarray  # int64: the answers to learn
    known_offsets: np.ndarray  # int64, queries + 1
    known: np.ndarray  # int64, ascending within a query: right, too, so no rivals of an answer to learn

    @classmethod
    def single(cls, entities: np.ndarray) -> "Targets":
        """One answer for each query, and nothing known beside it."""
        n = len(entities)
        return cls(
            np.arange(n + 1), np.asarray(entities, np.int64), np.zeros(n + 1, np.int64), np.empty(0, np.int64)
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def query(self) -> np.ndarray:
        """The query of each answer to learn."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def part(self, rows: slice) -> "Targets":
        """Those of some of the queries."""
        return Targets(
            *_part(self.offsets, self.entities, rows), *_part(self.known_offsets, self.known, rows)
        )

    def find(self, answer: Answer) -> np.ndarray:
        """Position of each answer to learn among the nodes of its query, -1 if it was not reached."""
        return _find(self.offsets, self.entities, answer.offsets, answer.nodes)


def _part(offsets: np.ndarray, values: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """The rows of ragged values; `rows` are neighbours."""
    start, stop, _ = rows.indices(len(offsets) - 1)
    kept = offsets[start : max(start, stop) + 1]
    return kept - kept[0], values[kept[0] : kept[-1]]


@kernel
def _find(offsets: Ints, entities: Ints, node_offsets: Ints, nodes: Ints) -> Ints:
    # Nodes are not sorted, and a query has few targets: a sort of the nodes would cost more than all comparisons.
    at = np.full(len(entities), -1, np.int64)
    for q in range(len(offsets) - 1):
        for i in range(node_offsets[q], node_offsets[q + 1]):
            for k in range(offsets[q], offsets[q + 1]):
                if nodes[i] == entities[k]:
                    at[k] = i
    return at


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
