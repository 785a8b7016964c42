"""What is computed for a part of a batch: its answer, or its share of the loss and gradients."""

from copy import deepcopy

import numpy as np
import torch

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer, Unlisted
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.gradients import Gradients, flat_gradients, sum_rows
from dpmpn.engine.targets import Targets
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.models.paper.fast import Workspace, reason_fast
from dpmpn.models.paper.ignn import EntityRows
from dpmpn.models.paper.network import AnyNetwork, Network
from dpmpn.models.paper.reference import reason_reference
from dpmpn.models.strong.computer import StrongComputer
from dpmpn.models.strong.network import StrongNetwork

LOSS_FLOOR = 1e-20


class PaperComputer:
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

    def gradients(self, batch: QueryBatch, targets: Targets, horizon: Horizon, n_targets: int) -> Gradients:
        """The part's share of the mean over `n_targets` of -log(a^T[target] + 1e-20)."""
        rows = EntityRows(self.network.entities, differentiable=True)
        if self.reference:
            answer = reason_reference(self.network, self.graph, batch, horizon)
        else:
            answer = reason_fast(self.network, self.graph, batch, horizon, rows, self.workspace)
        at = targets.find(answer)
        reached = at >= 0
        probability = answer.attention[torch.from_numpy(at[reached]).to(answer.attention.device)]
        loss = -torch.log(probability + LOSS_FLOOR).sum() / n_targets
        # A target that was not reached costs a constant and teaches nothing.
        unreached = -np.log(LOSS_FLOOR) * int((~reached).sum()) / n_targets
        table = self.network.entities if self.reference else rows.anchor
        shared = list(self.network.shared_parameters().values())
        *found, dense = torch.autograd.grad(loss, [*shared, table], allow_unused=True)
        flat = flat_gradients(shared, found)
        if self.reference:
            everything = np.arange(len(self.network.entities))
            return Gradients(loss.item() + unreached, int(reached.sum()), flat, everything, dense)
        entities, summed = sum_rows(rows.gradients, flat.new_empty(0, self.network.config.n_dims))
        return Gradients(loss.item() + unreached, int(reached.sum()), flat, entities, summed)


Computer = PaperComputer | StrongComputer


def computer_for(network: AnyNetwork, graph: KnowledgeGraph, reference: bool) -> Computer:
    """What computes with a network of either model."""
    if isinstance(network, StrongNetwork):
        return StrongComputer(network, graph, reference)
    return PaperComputer(network, graph, reference)


def join_answers(parts: list[Answer]) -> Answer:
    """Answers one after another, each query's nodes ascending."""
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.offsets) for part in parts]))])
    nodes = np.concatenate([part.nodes for part in parts])
    attention = torch.cat([part.attention for part in parts])
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((nodes, query))
    prior = None
    if parts[0].prior is not None:
        prior = np.concatenate([part.prior for part in parts if part.prior is not None])[order]
    unlisted = parts[0].unlisted
    if unlisted is not None and len(parts) > 1:  # kinds are those of the batch, so the same in all parts
        rows = [part.unlisted.probability for part in parts if part.unlisted is not None]
        unlisted = Unlisted(unlisted.of_entity, torch.cat(rows))
    attention = attention[torch.from_numpy(order).to(attention.device)]
    return Answer(offsets, nodes[order], attention, unlisted, prior)
