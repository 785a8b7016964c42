"""Settings of the smallest model there can be: attention walks along edges, by weights of their relations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import FLOAT, INTEGERS_PER_EDGE, largest_scan
from dpmpn.engine.settings import Choice, GraphFacts, Horizon, MemoryNeed, ModelSettings
from dpmpn.settings import option


@dataclass(frozen=True)
class WalkSettings(ModelSettings):
    """Attention walks along edges, by weights of their relations."""

    name: ClassVar[str] = "walk"

    sharpness: float = option(1.0, "what the weights of relations are multiplied by", above=0)

    def least_values(self, graph: KnowledgeGraph) -> int:
        """A weight for each pair of a relation asked and one that is walked along."""
        return graph.n_relations * (graph.n_relations + 1)

    def size_on(self, graph: KnowledgeGraph) -> tuple[str, str]:
        """It grows with the relations."""
        return f"{graph.n_relations:,} relations", "leave some out"

    def memory_need(self, graph: KnowledgeGraph, horizon: Horizon, training: bool) -> MemoryNeed:
        """A number for each edge of a step."""
        edges = largest_scan(graph, horizon) * (self.n_steps_in_agnn if training else 1)
        return MemoryNeed(edges * (FLOAT * 4 + INTEGERS_PER_EDGE))

    @classmethod
    def derived(cls, facts: GraphFacts) -> Iterator[Choice]:
        """It walks as far as answers are."""
        yield "n_steps_in_agnn", 3, facts.distance
