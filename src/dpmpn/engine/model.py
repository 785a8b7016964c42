"""What a model is to the engine: parameters, and the answers and gradients of a batch on a graph.

A model is a folder of `dpmpn.models`: its settings, its definition in plain PyTorch (the reference), and a fast path
that must equal it. Everything else (training, ranks, explanations, serving) is written once for all models.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.learning import EntityRows, Gradients, Targets, flat_gradients, sum_rows
from dpmpn.engine.settings import Horizon, ModelSettings
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.ops.pool import RowPools


class Model(nn.Module, ABC):
    """The parameters of a model, and what they become on a graph."""

    settings: ModelSettings
    entities: nn.Parameter
    """A row for each entity; no row in a model that knows relations alone, which can be asked on other graphs."""

    @abstractmethod
    def on(self, graph: KnowledgeGraph, reference: bool = False) -> "ModelOnGraph[Any]":
        """The model made ready for a graph, by the fast path or by its plain definition."""

    def extended(self, trained: KnowledgeGraph, graph: KnowledgeGraph) -> "Model":
        """The model for a graph that grew from the one it was trained on; all that does not change is shared."""
        return self

    def shared_parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter but the entity table, whose gradients are rows."""
        return {name: p for name, p in self.named_parameters() if name != "entities"}


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss of a part of a batch."""

    total: Tensor
    """Sum over its targets."""
    n_reached: int
    """Targets that attention came to."""
    constant: float = 0.0
    """What targets cost that teach nothing."""
    rows: EntityRows | None = None
    """The reads of the entity table, where the fast path made them; None for the table as a whole."""


_Model = TypeVar("_Model", bound=Model)


class ModelOnGraph(ABC, Generic[_Model]):
    """A model on a graph: computes parts of batches in this thread."""

    def __init__(self, model: _Model, graph: KnowledgeGraph, reference: bool, pools: RowPools) -> None:
        self.model, self.graph, self.reference = model, graph, reference
        self.pools = pools

    def on_part(self, graph: KnowledgeGraph) -> "ModelOnGraph[_Model]":
        """The same on a part of its graph, with memory of its own; what was counted on the whole graph stays."""
        return self.model.on(graph, self.reference)

    @abstractmethod
    def answer(self, batch: QueryBatch, horizon: Horizon) -> Answer:
        """The probabilities of what each query visited."""

    @abstractmethod
    def trace(self, batch: QueryBatch, horizon: Horizon) -> tuple[Answer, ReasoningTrace]:
        """The same with what each step did, by the fast path."""

    @abstractmethod
    def loss(self, batch: QueryBatch, targets: Targets, horizon: Horizon) -> Loss:
        """What the targets cost."""

    def gradients(self, batch: QueryBatch, targets: Targets, horizon: Horizon, n_targets: int) -> Gradients:
        """The part's share of the mean over `n_targets`, which are those of the whole batch."""
        loss = self.loss(batch, targets, horizon)
        mean = loss.total / n_targets
        shared, table = list(self.model.shared_parameters().values()), self.model.entities
        read = table if loss.rows is None else loss.rows.anchor
        *found, dense = torch.autograd.grad(mean, [*shared, read], allow_unused=True)
        self.pools.clear(differentiable=False)  # their tokens would keep the autograd graph of this batch
        value, flat = mean.item() + loss.constant / n_targets, flat_gradients(shared, found)
        if loss.rows is None:
            rows = torch.zeros_like(table) if dense is None else dense
            return Gradients(value, loss.n_reached, flat, np.arange(len(table)), rows)
        entities, rows = sum_rows(loss.rows.gradients, flat.new_empty(0, table.shape[1]))
        return Gradients(value, loss.n_reached, flat, entities, rows)
