"""Settings of the model for any graph."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import FLOAT
from dpmpn.engine.settings import Choice, GraphFacts, Horizon, MemoryNeed
from dpmpn.models.strong.settings import StrongSettings
from dpmpn.settings import option

PRIOR_UNITS = 16
"""Units of the hidden layer that the prior has beside its sum over relations."""


@dataclass(frozen=True)
class AnyGraphSettings(StrongSettings):
    """The stronger model's, and those of the network that says what its relations are."""

    name: ClassVar[str] = "any-graph"

    n_relation_layers: int = option(
        3, "layers over the graph of relations: how far relations learn of each other", at_least=0, at_most=16
    )
    relation_network: Literal["trained", "kept"] = option(
        "trained",
        "whether the network that says what relations are is trained, or kept as it is: then each relation asked is "
        "looked at once",
    )

    def memory_need(self, graph: KnowledgeGraph, horizon: Horizon, training: bool) -> MemoryNeed:
        """What the stronger model needs, and what each relation is to the one asked, with layers and gradients.

        Units of the prior are kept for gradients alone.
        """
        need = super().memory_need(graph, horizon, training)
        layers = self.n_relation_layers if training else 1
        relations = graph.n_relations * (layers * 24 + 16) * self.n_dims
        units = graph.n_entities * 3 * PRIOR_UNITS if training else 0
        return MemoryNeed(need.query + (relations + units) * FLOAT, need.node)

    @classmethod
    def derived(cls, facts: GraphFacts) -> Iterator[Choice]:
        """What suits the stronger model."""
        for key, value, why in super().derived(facts):
            if key == "model":
                yield key, cls.name, "what relations are follows from the graph: docs/any-graph.md"
            else:
                yield key, value, why
