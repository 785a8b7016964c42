"""The paper's model as the engine uses it."""

import numpy as np
import torch
from torch import nn

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.learning import EntityRows, Targets
from dpmpn.engine.model import Loss, ModelOnGraph
from dpmpn.engine.settings import Horizon
from dpmpn.engine.trace import ReasoningTrace, TraceStep
from dpmpn.models.paper.fast import PaperSteps, row_pools
from dpmpn.models.paper.network import PaperNetwork
from dpmpn.models.paper.reference import reason_reference
from dpmpn.models.paper.unseen import extended_table

LOSS_FLOOR = 1e-20


class PaperModel(PaperNetwork):
    """The paper's model: IGNN, AGNN and attention flow."""

    def on(self, graph: KnowledgeGraph, reference: bool = False) -> "PaperOnGraph":
        """By the fast path, or by the equations of Section 3 themselves."""
        return PaperOnGraph(self, graph, reference, row_pools(self))

    def extended(self, trained: KnowledgeGraph, graph: KnowledgeGraph) -> "PaperModel":
        """With a row for every entity of a grown graph."""
        extended = PaperModel.__new__(PaperModel)
        nn.Module.__init__(extended)
        extended.settings = self.settings
        extended.entities = nn.Parameter(extended_table(self.entities.detach(), trained, graph), False)
        extended.relations = self.relations
        extended.ignn, extended.agnn, extended.attention = self.ignn, self.agnn, self.attention
        return extended


class PaperOnGraph(ModelOnGraph[PaperModel]):
    """The paper's model on a graph."""

    @torch.no_grad()
    def answer(self, batch: QueryBatch, horizon: Horizon) -> Answer:
        """The final attention of every query."""
        if self.reference:
            return reason_reference(self.model, self.graph, batch, horizon)
        return self._run(batch, horizon, EntityRows(self.model.entities, differentiable=False)).answer()

    @torch.no_grad()
    def trace(self, batch: QueryBatch, horizon: Horizon) -> tuple[Answer, ReasoningTrace]:
        """The final attention, and the flow that came to it."""
        rows, traced = EntityRows(self.model.entities, differentiable=False), list[TraceStep]()
        steps = self._run(batch, horizon, rows, traced)
        return steps.answer(), ReasoningTrace(batch.heads, batch.relations, traced)

    def loss(self, batch: QueryBatch, targets: Targets, horizon: Horizon) -> Loss:
        """The sum over the targets of -log(a^T[target] + 1e-20)."""
        rows = None if self.reference else EntityRows(self.model.entities, differentiable=True)
        if rows is None:
            answer = reason_reference(self.model, self.graph, batch, horizon)
        else:
            answer = self._run(batch, horizon, rows).answer()
        at = targets.find(answer)
        reached = at >= 0
        probability = answer.attention[torch.from_numpy(at[reached]).to(answer.attention.device)]
        total = -torch.log(probability + LOSS_FLOOR).sum()
        # A target that was not reached costs a constant and teaches nothing.
        unreached = -np.log(LOSS_FLOOR) * int((~reached).sum())
        return Loss(total, int(reached.sum()), unreached, rows)

    def _run(
        self, batch: QueryBatch, horizon: Horizon, rows: EntityRows, traced: list[TraceStep] | None = None
    ) -> PaperSteps:
        steps = PaperSteps(self.model, self.graph, batch, horizon, rows, self.pools, traced)
        steps.run()
        return steps


MODEL = PaperModel
