"""What is computed for a part of a batch: its answer, or its share of the loss and gradients."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.model.answer import Answer
from dpmpn.model.batch import QueryBatch
from dpmpn.model.fast import Workspace, reason_fast
from dpmpn.model.fast_ignn import EntityRows
from dpmpn.model.network import Network
from dpmpn.model.reference import reason_reference
from dpmpn.model.trace import ReasoningTrace

LOSS_FLOOR = 1e-20


@dataclass(frozen=True, eq=False)
class Gradients:
    """Loss and its gradients: one vector for all shared parameters, rows for the entity table."""

    loss: float
    reached: int  # queries whose target the attention reached
    shared: Tensor  # all shared parameters, one after another
    entities: np.ndarray  # ids, unique and ascending
    rows: Tensor  # one gradient row for each


class Computer:
    """Computes parts of batches in this thread, by the fast path or the reference."""

    def __init__(self, network: Network, graph: KnowledgeGraph, reference: bool) -> None:
        self.network, self.graph, self.reference = network, graph, reference
        self.workspace = Workspace(network)

    @torch.no_grad()
    def answer(self, batch: QueryBatch, horizon: Horizon, trace: ReasoningTrace | None = None) -> Answer:
        """The final attention of every query."""
        if self.reference and trace is None:
            return reason_reference(self.network, self.graph, batch, horizon)
        network = self.network
        if network.entities.device.type != "cpu":  # traces are the fast path's, which is the CPU's
            network = deepcopy(network).cpu()
        rows = EntityRows(network.entities, differentiable=False)
        return reason_fast(network, self.graph, batch, horizon, rows, self.workspace, trace)

    def gradients(
        self, batch: QueryBatch, targets: np.ndarray, horizon: Horizon, n_queries: int
    ) -> Gradients:
        """The part's share of the mean over `n_queries` of -log(a^T[target] + 1e-20)."""
        rows = EntityRows(self.network.entities, differentiable=True)
        if self.reference:
            answer = reason_reference(self.network, self.graph, batch, horizon)
        else:
            answer = reason_fast(self.network, self.graph, batch, horizon, rows, self.workspace)
        at = answer.find(targets)
        reached = at >= 0
        probability = answer.attention[torch.from_numpy(at[reached]).to(answer.attention.device)]
        loss = -torch.log(probability + LOSS_FLOOR).sum() / n_queries
        # A target that was not reached costs a constant and teaches nothing.
        unreached = -np.log(LOSS_FLOOR) * int((~reached).sum()) / n_queries
        table = self.network.entities if self.reference else rows.anchor
        shared = list(self.network.shared_parameters().values())
        *found, dense = torch.autograd.grad(loss, [*shared, table], allow_unused=True)
        flat = torch.cat(
            [
                (torch.zeros_like(p) if g is None else g).reshape(-1)
                for p, g in zip(shared, found, strict=True)
            ]
        )
        if self.reference:
            everything = np.arange(len(self.network.entities))
            return Gradients(loss.item() + unreached, int(reached.sum()), flat, everything, dense)
        entities, summed = sum_rows(rows.gradients, flat.new_empty(0, self.network.config.n_dims))
        return Gradients(loss.item() + unreached, int(reached.sum()), flat, entities, summed)


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
    """The gradients of a whole batch."""
    if len(parts) == 1:
        return parts[0]
    shared = parts[0].shared.clone()
    for part in parts[1:]:
        shared += part.shared
    entities, rows = sum_rows([(part.entities, part.rows) for part in parts], parts[0].rows)
    return Gradients(sum(p.loss for p in parts), sum(p.reached for p in parts), shared, entities, rows)


def join_answers(parts: list[Answer]) -> Answer:
    """Answers one after another, each query's nodes ascending."""
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.offsets) for part in parts]))])
    nodes = np.concatenate([part.nodes for part in parts])
    attention = torch.cat([part.attention for part in parts])
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((nodes, query))
    return Answer(offsets, nodes[order], attention[torch.from_numpy(order).to(attention.device)])
