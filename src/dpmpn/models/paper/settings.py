"""Settings of the paper's model, and the sizes that follow from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import FLOAT, INTEGERS_PER_EDGE, attended_to, largest_scan
from dpmpn.engine.settings import (
    MOST_DIMS,
    MOST_STEPS,
    Choice,
    GraphFacts,
    Horizon,
    MemoryNeed,
    ModelSettings,
)
from dpmpn.settings import option


@dataclass(frozen=True)
class PaperSettings(ModelSettings):
    """Sizes and forms of the paper's two graph networks and its attention module."""

    name: ClassVar[str] = "paper"

    n_dims_att: int = option(
        50, "dimensions in which the attention module works", at_least=1, at_most=MOST_DIMS
    )
    n_steps_in_ignn: int = option(
        2, "steps of the inattentive GNN; 0 leaves the embeddings", at_least=0, at_most=MOST_STEPS
    )
    max_sampling_per_step: int = option(10_000, "edges drawn for each step of the IGNN", at_least=1)
    softmax: Literal["edge", "pair"] = option(
        "edge", "one softmax entry per edge (the authors' program) or per node pair (the paper's equation)"
    )
    ignn_output: Literal["last", "pool"] = option(
        "last", "the last IGNN state, or the mean over its steps including step 0"
    )

    @property
    def ignn_draws(self) -> tuple[int, int]:
        """Edges are drawn afresh for each step of the inattentive GNN."""
        return self.n_steps_in_ignn, self.max_sampling_per_step

    def least_values(self, graph: KnowledgeGraph) -> int:
        """Both tables of embeddings, and a matrix of each width."""
        rows = graph.n_entities + graph.n_relations + 1
        return rows * self.n_dims + self.n_dims**2 + self.n_dims_att**2

    def size_on(self, graph: KnowledgeGraph) -> tuple[str, str]:
        """It grows with the entities."""
        sizes = f"n_dims = {self.n_dims} and n_dims_att = {self.n_dims_att} on {graph.n_entities:,} entities"
        return sizes, "lower n_dims"

    def memory_need(self, graph: KnowledgeGraph, horizon: Horizon, training: bool) -> MemoryNeed:
        """A step's vectors.

        Per edge: the message (n_dims) and both sides of the attention (4 n_dims_att). Per updated node: state,
        projection, hidden layer, change, new state and its gradient (6 n_dims). Per node that is scanned: what the
        IGNN makes of it, which is its embedding, the IGNN's steps and what they feed, with gradients.
        """
        edges = largest_scan(graph, horizon)
        attended = attended_to(edges, horizon)
        total = 0
        for step in range(self.n_steps_in_agnn):
            updated = min(edges + attended, 1 + (step + 1) * attended, graph.n_entities)
            values = edges * (self.n_dims + 4 * self.n_dims_att) + updated * 6 * self.n_dims
            needed = values * FLOAT + edges * INTEGERS_PER_EDGE
            total = total + needed if training else max(total, needed)
        return MemoryNeed(total, (6 + 4 * self.n_steps_in_ignn) * self.n_dims * FLOAT)

    @classmethod
    def derived(cls, facts: GraphFacts) -> Iterator[Choice]:
        """What suits a graph without a preset, after the paper's own choices."""
        small, sparse = facts.is_small, facts.is_sparse
        triples = f"{facts.n_train:,} training triples are"
        size = (
            f"{triples} few, so states are small" if small else f"{triples} enough for the paper's dimensions"
        )
        far = facts.distance + (", but the graph is small" if small and sparse else "")
        huge = facts.n_train > 1_000_000
        sampled = "some are drawn at each step" if facts.max_degree > 200 else "none is left out"
        attended = "the best 200" if facts.n_entities > 200 else "all"
        yield "n_dims", 32 if small else 100, size
        yield "n_dims_att", 16 if small else 50, "half of n_dims, as in the paper"
        yield "n_steps_in_agnn", (8 if sparse else 6) - (2 if small else 0), far
        yield "n_steps_in_ignn", 1 if huge else 2, f"as in the paper on {'YAGO3-10' if huge else 'WN18RR'}"
        yield "max_attending_from_per_step", 20, "as in the paper"
        yield "max_sampling_per_node", 200, f"{facts.busiest}, so {sampled}"
        whom = f"of {facts.n_entities:,} entities, {attended} can get messages in a step"
        yield "max_attending_to_per_step", 200, whom
        if small:
            yield "batch_size", 32, "small batches make more updates from few triples"
        elif facts.degree > 30:  # FB15K-237 37, FB15K 65: the paper takes batches of 80 there
            yield "batch_size", 80, "the graph is dense, as FB15K-237 is"
        else:
            yield "batch_size", 100, "as in the paper"
