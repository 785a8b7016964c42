"""What the stronger model computes for a part of a batch: its answer, or its share of the loss and gradients."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer, Unlisted
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.gradients import Gradients, flat_gradients
from dpmpn.engine.targets import Targets
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.models.strong.fast import Workspace, reach, reach_traced
from dpmpn.models.strong.network import StrongNetwork
from dpmpn.models.strong.profiles import Profiles
from dpmpn.models.strong.reached import Reached
from dpmpn.models.strong.reference import loss_reference, reach_reference
from dpmpn.models.strong.softmax import loss_of, prior_of, probabilities


class StrongComputer:
    """Computes parts of batches in this thread, by the fast path or the reference."""

    def __init__(self, network: StrongNetwork, graph: KnowledgeGraph, reference: bool) -> None:
        self.network, self.graph, self.reference = network, graph, reference
        self.workspace, self.profiles = Workspace(network), Profiles(graph, network.config.profiles != "off")

    @torch.no_grad()
    def answer(self, batch: QueryBatch, horizon: Horizon, trace: ReasoningTrace | None = None) -> Answer:
        """The probabilities of all entities, those of the visited ones listed."""
        if trace is not None:  # traces are the fast path's, which is the CPU's
            network = self.network
            if network.entities.device.type != "cpu":
                network = deepcopy(network).cpu()
            reached = reach_traced(network, self.graph, self.profiles, batch, horizon, trace)
            return replace(_answer(reached), prior=prior_of(reached).numpy())
        if self.reference:
            return _dense_answer(*reach_reference(self.network, self.graph, batch, horizon))
        return _answer(reach(self.network, self.graph, self.profiles, batch, horizon, self.workspace))

    def gradients(self, batch: QueryBatch, targets: Targets, horizon: Horizon, n_targets: int) -> Gradients:
        """The part's share of the mean over `n_targets` of -log p(target)."""
        if self.reference:
            logits, visited = reach_reference(self.network, self.graph, batch, horizon)
            loss = loss_reference(logits, targets, n_targets)
            n_reached = int(
                visited[torch.from_numpy(targets.query), torch.from_numpy(targets.entities)].sum()
            )
        else:
            reached = reach(self.network, self.graph, self.profiles, batch, horizon, self.workspace)
            loss, n_reached = loss_of(reached, targets, n_targets)
        shared = list(self.network.shared_parameters().values())
        found = torch.autograd.grad(loss, shared, allow_unused=True)
        self.workspace.clear(differentiable=False)  # its tokens would keep the graph of this batch
        none = np.empty(0, np.int64), self.network.entities.detach()
        return Gradients(loss.item(), n_reached, flat_gradients(shared, found), *none)


def _answer(reached: Reached) -> Answer:
    own, of_kind = (x.detach() for x in probabilities(reached))
    return Answer(reached.offsets, reached.nodes, own, Unlisted(reached.kinds.of_entity, of_kind))


def _dense_answer(logits: Tensor, visited: Tensor) -> Answer:
    """Every entity is a kind of its own."""
    probability = logits.softmax(1)
    query, node = visited.nonzero(as_tuple=True)
    offsets = np.concatenate([[0], torch.bincount(query, minlength=len(logits)).cumsum(0).cpu().numpy()])
    every = np.arange(logits.shape[1])
    return Answer(
        offsets, node.cpu().numpy().astype(np.int32), probability[query, node], Unlisted(every, probability)
    )
