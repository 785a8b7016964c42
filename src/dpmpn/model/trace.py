"""What a query did at each step: the subgraph, the attention and the flow an explanation is read from."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class TraceStep:
    """One step of a batch of queries; nodes and edges grouped by query."""

    from_query: np.ndarray  # attending-from nodes: their query,
    from_node: np.ndarray  # entity
    from_attention: np.ndarray  # and attention a^t
    edge_offsets: np.ndarray  # sampled edges of each attending-from node, self-loop last
    edge_relation: np.ndarray
    edge_tail: np.ndarray  # entity
    edge_slot: np.ndarray  # the scanned node the edge leads to
    transition: np.ndarray  # T^t per edge; `flow` makes the edge's flow of it
    slot_offsets: np.ndarray  # scanned nodes of each query:
    slot_node: np.ndarray  # entity,
    slot_attention: np.ndarray  # attention a^{t+1},
    attended_to: np.ndarray  # and whether it is in the attending-to horizon

    def flow(self) -> np.ndarray:
        """The share of a^{t+1} that each edge carried: flows into a node add up to its attention."""
        n_queries = len(self.slot_offsets) - 1
        total = np.bincount(self.from_query, self.from_attention, n_queries)
        sender = np.repeat(np.arange(len(self.from_node)), np.diff(self.edge_offsets))
        return self.transition * (self.from_attention / total[self.from_query])[sender]


@dataclass(frozen=True, eq=False)
class ReasoningTrace:
    """The sequence G^0(x) ... G^T(x) of a batch of queries."""

    heads: np.ndarray
    relations: np.ndarray
    steps: list[TraceStep] = field(default_factory=list)

    def visited(self, query: int) -> set[int]:
        """V of G^T: the head and every node a step attended to."""
        nodes = {int(self.heads[query])}
        for step in self.steps:
            of_query = slice(step.slot_offsets[query], step.slot_offsets[query + 1])
            nodes.update(step.slot_node[of_query][step.attended_to[of_query]].tolist())
        return nodes
