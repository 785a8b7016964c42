"""The model for any graph as the engine uses it: the stronger model, told what relations are by the graph."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.settings import Horizon
from dpmpn.models.any_graph.fast import AnyGraphSteps
from dpmpn.models.any_graph.network import AnyGraphNetwork
from dpmpn.models.any_graph.reference import AnyGraphReference
from dpmpn.models.any_graph.statistics import RelationStatistics
from dpmpn.models.strong.asked import Asked
from dpmpn.models.strong.fast import row_pools
from dpmpn.models.strong.model import StrongModel, StrongOnGraph
from dpmpn.models.strong.profiles import Profiles
from dpmpn.models.strong.trace import StepRecord
from dpmpn.ops.pool import RowPools

_MOST_KEPT = 1 << 28  # bytes of what relations are: some 1,200 relations asked on a graph of 500


class AnyGraphModel(AnyGraphNetwork, StrongModel):
    """The model for any graph. Where it was trained does not matter to where it is asked."""

    _counted: tuple[KnowledgeGraph, RelationStatistics] | None = None

    def on(self, graph: KnowledgeGraph, reference: bool = False) -> "AnyGraphOnGraph":
        """On any graph; a tuned model on graphs of its relations."""
        return AnyGraphOnGraph(self, graph, reference, row_pools(self), self._statistics(graph))

    def _statistics(self, graph: KnowledgeGraph) -> RelationStatistics:
        """Counted, or counted on from the last graph where this one is that with other facts."""
        counted = self._counted  # once: another thread may ask on another graph
        if counted is not None and counted[0].relation_names is graph.relation_names:
            before, statistics = counted
            statistics = statistics if before is graph else statistics.after(before, graph)
        else:
            statistics = RelationStatistics.of(graph)
        self._counted = graph, statistics
        return statistics


class AnyGraphOnGraph(StrongOnGraph):
    """The model on a graph, whose relations it has looked at."""

    model: AnyGraphModel

    def __init__(
        self,
        model: AnyGraphModel,
        graph: KnowledgeGraph,
        reference: bool,
        pools: RowPools,
        statistics: RelationStatistics,
    ) -> None:
        super().__init__(model, graph, reference, pools)
        self.statistics = statistics
        self._kept: dict[int, Tensor] = {}  # by relation asked: what it was told

    def on_part(self, graph: KnowledgeGraph) -> "AnyGraphOnGraph":
        """With the statistics of the whole graph: a few facts alone could not say what relations mean."""
        part = AnyGraphOnGraph(self.model, graph, self.reference, row_pools(self.model), self.statistics)
        part._kept = self._kept
        return part

    def _steps(
        self, batch: QueryBatch, horizon: Horizon, profiles: Profiles, records: list[StepRecord] | None
    ) -> AnyGraphSteps:
        walks = self.statistics.walks
        return AnyGraphSteps(
            self.model, self.graph, batch, horizon, profiles, self.pools, self.asked, records, walks
        )

    def _reference_steps(self, batch: QueryBatch, horizon: Horizon) -> AnyGraphReference:
        walks = self.statistics.walks
        return AnyGraphReference(self.model, self.graph, batch, horizon, self.asked, walks)

    def asked(self, relations: np.ndarray) -> Asked:
        """What everything is to some relations asked; where the relation network is kept, so is what it says."""
        is_kept = self.model.settings.relation_network == "kept"
        told = self._kept_told(relations) if is_kept else self._told(relations)
        return self.model.asked_of_graph(relations, self.graph.inverse, told)

    def _told(self, relations: np.ndarray) -> Tensor:
        """What the relation network and the statistics say: asked x relations x (2 n_dims + N_FEATURES)."""
        features = self.statistics.features(relations).to(self.model.to_query.weight)
        return torch.cat(
            [self.model.relation_network(self.statistics, features, self.reference), features], 2
        )

    @torch.no_grad()
    def _kept_told(self, relations: np.ndarray) -> Tensor:
        new = np.unique([r for r in relations.tolist() if r not in self._kept])
        if len(new):
            found = self._told(new.astype(np.int64))
            if (len(self._kept) + len(new)) * found[0].nbytes > _MOST_KEPT:
                self._kept = {r: self._kept[r] for r in relations.tolist() if r in self._kept}
            self._kept.update(zip(new.tolist(), found, strict=True))
        return torch.stack([self._kept[r] for r in relations.tolist()])


MODEL: Callable[..., AnyGraphModel] = AnyGraphModel
