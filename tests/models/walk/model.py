"""The smallest model there can be: a softmax over the edges of v', by a weight of (relation asked, relation)."""

import numpy as np
import torch
from torch import Tensor, nn
from walk.settings import WalkSettings

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import Frontier, Scan, Visited, attending_from, attending_to
from dpmpn.engine.learning import Targets
from dpmpn.engine.model import Loss, Model, ModelOnGraph
from dpmpn.engine.settings import Horizon
from dpmpn.engine.steps import FastSteps
from dpmpn.engine.trace import ReasoningTrace, TraceStep
from dpmpn.ops.pool import RowPools


class WalkModel(Model):
    """Attention walks along edges."""

    settings: WalkSettings

    def __init__(self, n_entities: int, n_relations: int, settings: WalkSettings) -> None:
        super().__init__()
        self.settings = settings
        self.entities = nn.Parameter(torch.empty(0, 1))  # it knows relations alone
        self.weights = nn.Parameter(torch.zeros(n_relations, n_relations + 1))

    def on(self, graph: KnowledgeGraph, reference: bool = False) -> "WalkOnGraph":
        return WalkOnGraph(self, graph, reference, RowPools(self.weights.dtype))


class WalkSteps(FastSteps):
    """The steps of one batch."""

    def __init__(self, model: WalkModel, graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon) -> None:
        super().__init__(graph, batch, horizon)
        self.model, self.n_steps = model, model.settings.n_steps_in_agnn
        self.visited = Visited.at_heads(batch.heads)
        self.attention = model.weights.new_ones(len(batch))
        self.traced: list[TraceStep] = []

    def attending_from(self, t: int) -> Frontier:
        if t == 0:
            return Frontier.at_heads(self.batch.heads)
        scores = self._attention_at(self.visited.slot).detach().numpy()
        return attending_from(self.visited, self.batch, self.horizon, scores, t)

    def _attention_at(self, slot: np.ndarray) -> Tensor:
        return torch.nn.functional.pad(self.attention, (0, 1))[torch.from_numpy(slot)]

    def step(self, t: int, frontier: Frontier, scan: Scan) -> None:
        before = self._attention_at(self.visited.slot[frontier.visited])
        before = (
            before / self._sum(before, scan.from_query, len(self.batch))[torch.from_numpy(scan.from_query)]
        )
        sender = np.repeat(np.arange(len(scan.from_node)), np.diff(scan.edge_offsets))
        asked = self.batch.relations[scan.from_query[sender]]
        weight = self.model.weights[torch.from_numpy(asked), torch.from_numpy(scan.edge_relation).long()]
        odds = (self.model.settings.sharpness * weight).exp()
        transition = odds / self._sum(odds, sender, len(scan.from_node))[torch.from_numpy(sender)]
        flow = transition * before[torch.from_numpy(sender)]
        self.attention, self.scanned = self._sum(flow, scan.edge_slot, scan.n_slots), scan
        scores = self.attention.detach().numpy()
        attended = attending_to(scan, self.batch, self.horizon, scores, t)
        is_attended = np.isin(np.arange(scan.n_slots), attended)
        self.traced.append(
            TraceStep(
                scan.from_query, scan.from_node, before.detach().numpy(), np.ones(len(before), bool),
                scan.edge_offsets, scan.edge_relation, scan.edge_tail, scan.edge_slot, flow.detach().numpy(),
                scan.slot_offsets, scan.slot_node, scores, scores, is_attended,
            )
        )  # fmt: skip
        self.visited = self.visited.after(scan, attended, np.zeros(scan.n_slots, np.int64), t)

    @staticmethod
    def _sum(values: Tensor, group: np.ndarray, n_groups: int) -> Tensor:
        return values.new_zeros(n_groups).index_add(0, torch.from_numpy(np.asarray(group, np.int64)), values)


class WalkOnGraph(ModelOnGraph[WalkModel]):
    """The walk on a graph."""

    def answer(self, batch: QueryBatch, horizon: Horizon) -> Answer:
        with torch.no_grad():
            return self.trace(batch, horizon)[0]

    def trace(self, batch: QueryBatch, horizon: Horizon) -> tuple[Answer, ReasoningTrace]:
        steps = WalkSteps(self.model, self.graph, batch, horizon)
        steps.run()
        answer = Answer(steps.scanned.slot_offsets, steps.scanned.slot_node, steps.attention)
        return answer, ReasoningTrace(batch.heads, batch.relations, steps.traced)

    def loss(self, batch: QueryBatch, targets: Targets, horizon: Horizon) -> Loss:
        answer, _ = self.trace(batch, horizon)
        at = targets.find(answer)
        reached = answer.attention[torch.from_numpy(at[at >= 0])]
        return Loss(-torch.log(reached + 1e-20).sum(), len(reached), 46.0 * int((at < 0).sum()))


MODEL = WalkModel
