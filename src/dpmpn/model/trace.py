"""What a query did at each step: the subgraph, the attention and the flow an explanation is read from."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class TraceStep:
    """One step of a batch of queries; nodes and edges grouped by query."""

    from_query: np.ndarray  # nodes with attention: their query,
    from_node: np.ndarray  # entity
    from_attention: np.ndarray  # attention a^t,
    attended_from: np.ndarray  # and whether the step expanded it; the attention of others only waited
    edge_offsets: np.ndarray  # sampled edges of each of these nodes, self-loop last
    edge_relation: np.ndarray
    edge_tail: np.ndarray  # entity
    edge_slot: np.ndarray  # the scanned node the edge leads to
    flow: np.ndarray  # the share of a^{t+1} that each edge carried: flows into a node add up to its attention
    slot_offsets: np.ndarray  # scanned nodes of each query:
    slot_node: np.ndarray  # entity,
    slot_attention: np.ndarray  # attention a^{t+1},
    slot_score: np.ndarray  # the score that horizons choose by (in the paper, the attention),
    attended_to: np.ndarray  # and whether it is in the attending-to horizon


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
