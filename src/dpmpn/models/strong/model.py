"""The stronger model as the engine uses it."""

from dataclasses import replace

import numpy as np
import torch

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer, Apart, Unlisted
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.learning import Targets
from dpmpn.engine.model import Loss, ModelOnGraph
from dpmpn.engine.settings import Horizon
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.models.strong.asked import Asked
from dpmpn.models.strong.fast import StrongSteps, row_pools
from dpmpn.models.strong.network import StrongNetwork
from dpmpn.models.strong.profiles import GraphProfiles, Profiles
from dpmpn.models.strong.read_out import Reached, loss_of, prior_of, probabilities
from dpmpn.models.strong.reference import StrongReference, loss_reference
from dpmpn.models.strong.trace import StepRecord, contributions, traced_steps
from dpmpn.ops.pool import RowPools


class StrongModel(StrongNetwork):
    """The stronger model: states of relations alone, gated messages, and a read-out over all entities."""

    def on(self, graph: KnowledgeGraph, reference: bool = False) -> "StrongOnGraph":
        """By the fast path, or by the definition in plain PyTorch."""
        return StrongOnGraph(self, graph, reference, row_pools(self))


class StrongOnGraph(ModelOnGraph[StrongModel]):
    """The stronger model on a graph, whose profiles it counts."""

    def __init__(self, model: StrongModel, graph: KnowledgeGraph, reference: bool, pools: RowPools) -> None:
        super().__init__(model, graph, reference, pools)
        self._profiles = GraphProfiles(graph, model.settings.profiles != "off")

    def asked(self, relations: np.ndarray) -> Asked:
        """What everything is to some relations asked."""
        return self.model.asked(relations, self.graph.inverse)

    def _run(
        self, batch: QueryBatch, horizon: Horizon, records: list[StepRecord] | None = None
    ) -> StrongSteps:
        if batch.removed_offsets is None:
            profiles = self._profiles.without(batch.removed)
        else:
            profiles = self._profiles.without_each(batch.removed, batch.removed_offsets)
        steps = self._steps(batch, horizon, profiles, records)
        steps.run()
        return steps

    def _steps(
        self, batch: QueryBatch, horizon: Horizon, profiles: Profiles, records: list[StepRecord] | None
    ) -> StrongSteps:
        return StrongSteps(self.model, self.graph, batch, horizon, profiles, self.pools, self.asked, records)

    def _run_reference(self, batch: QueryBatch, horizon: Horizon) -> StrongReference:
        steps = self._reference_steps(batch, horizon)
        steps.run()
        return steps

    def _reference_steps(self, batch: QueryBatch, horizon: Horizon) -> StrongReference:
        return StrongReference(self.model, self.graph, batch, horizon, self.asked)

    @torch.no_grad()
    def answer(self, batch: QueryBatch, horizon: Horizon) -> Answer:
        """The probabilities of all entities, those of the visited ones listed."""
        if self.reference:
            return self._run_reference(batch, horizon).answer()
        return _answer(self._run(batch, horizon).read_out())

    def trace(self, batch: QueryBatch, horizon: Horizon) -> tuple[Answer, ReasoningTrace]:
        """The same with what each step brought; needs gradients, so it takes two to three times as long."""
        records: list[StepRecord] = []
        with torch.enable_grad():
            steps = self._run(batch, horizon, records)
            reached = steps.read_out()
            own, _ = probabilities(reached)
            brought = contributions(records, reached.logits, own)
        probability, loop = own.detach().numpy(), self.graph.self_loop
        traced = traced_steps(records, brought, steps.visited, probability, steps.scores, loop)
        self.pools.clear(differentiable=False)  # their tokens would keep them, through autograd, for ever
        with torch.no_grad():
            answer = replace(_answer(reached), prior=prior_of(reached).numpy())
        return answer, ReasoningTrace(batch.heads, batch.relations, traced)

    def loss(self, batch: QueryBatch, targets: Targets, horizon: Horizon) -> Loss:
        """The sum over the targets of -log p(target)."""
        if self.reference:
            steps = self._run_reference(batch, horizon)
            return Loss(loss_reference(steps.logits, targets), steps.n_visited(targets))
        return Loss(*loss_of(self._run(batch, horizon).read_out(), targets))


def _answer(reached: Reached) -> Answer:
    own, of_profile = (x.detach() for x in probabilities(reached))
    profiles, apart = reached.profiles, None
    if profiles.sizes.ndim > 1:
        query, entities = np.divmod(profiles.changed, len(profiles.of_entity))
        n_shared = len(profiles) - len(query)
        apart = Apart(query, entities, of_profile[query, n_shared + np.arange(len(query))])
        of_profile = of_profile[:, :n_shared]
    return Answer(reached.offsets, reached.nodes, own, Unlisted(profiles.of_entity, of_profile, apart))


MODEL = StrongModel
