"""What a query did at each step: the subgraph, the attention and the flow an explanation is read from.

And how much of an answer came through entities that the model was not trained on.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dpmpn.data.graph import KnowledgeGraph

if TYPE_CHECKING:
    from dpmpn.engine.answer import Answer  # needs torch, which readers of a trace need not wait for


@dataclass(frozen=True, eq=False)
class Choice:
    """What an attending-to horizon chose between before the nodes had any attention."""

    offsets: np.ndarray  # queries + 1
    node: np.ndarray  # entities that edges led to
    score: np.ndarray  # what they were chosen by
    is_kept: np.ndarray  # whether they were chosen

    @classmethod
    def between(cls, offsets: np.ndarray, node: np.ndarray, score: np.ndarray, kept: np.ndarray) -> "Choice":
        """The choice that kept the nodes at some indices."""
        is_kept = np.zeros(len(node), bool)
        is_kept[kept] = True
        return cls(offsets, node, score, is_kept)

    def of(self, query: int) -> "Choice":
        """That of one query, the best first; of equals those with lower ids, as the horizons choose."""
        start, stop = self.offsets[query : query + 2]
        order = start + np.argsort(-self.score[start:stop], kind="stable")
        return Choice(np.array([0, stop - start]), self.node[order], self.score[order], self.is_kept[order])


@dataclass(frozen=True, eq=False)
class TraceStep:
    """One step of a batch of queries; nodes and edges grouped by query."""

    # Nodes with attention before the step:
    from_query: np.ndarray
    from_node: np.ndarray  # entity
    from_attention: np.ndarray  # a^t
    attended_from: np.ndarray  # whether the step expanded it; the attention of others only waited
    # Sampled edges of each of these nodes, self-loop last:
    edge_offsets: np.ndarray
    edge_relation: np.ndarray
    edge_tail: np.ndarray  # entity
    edge_slot: np.ndarray  # the scanned node the edge leads to
    flow: np.ndarray  # the share of a^{t+1} that the edge carried: flows into a node add up to its attention
    # Scanned nodes of each query:
    slot_offsets: np.ndarray
    slot_node: np.ndarray  # entity
    slot_attention: np.ndarray  # a^{t+1}
    slot_score: np.ndarray  # what horizons choose by; in the paper's model, the attention
    attended_to: np.ndarray  # whether it is in the attending-to horizon
    choice: Choice | None = (
        None  # where the horizon left nodes out, which are then not among the scanned ones
    )


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


def unseen_entities(trained: KnowledgeGraph, graph: KnowledgeGraph) -> np.ndarray:
    """Which entities of a grown graph have no edge in the graph of the training."""
    unseen = np.ones(graph.n_entities, bool)
    unseen[np.flatnonzero(np.diff(trained.offsets))] = False
    unseen[trained.tails] = False  # where relations have no inverses, tails have no edge of their own
    return unseen


def through_unseen(answer: "Answer", trace: ReasoningTrace, unseen: np.ndarray) -> np.ndarray:
    """The part of each answer's attention that came through unseen entities; 1 if the answer or its head is one.

    Of a node's attention a^{t+1} the part sum(flow * part of the sender) / a^{t+1} came that way; an unseen
    sender's part is 1.
    """
    n_entities = len(unseen)
    keys = np.arange(len(trace.heads)) * n_entities + trace.heads  # (query, node) as one number, ascending
    parts = unseen[trace.heads].astype(np.float64)
    for step in trace.steps:
        sender = step.from_query * n_entities + step.from_node
        at = np.minimum(np.searchsorted(keys, sender), len(keys) - 1)
        senders = parts[at] * (
            keys[at] == sender
        )  # others have no attention that could have come from anywhere
        flow = step.flow
        through = flow * np.repeat(senders, np.diff(step.edge_offsets))
        whole, part = (np.bincount(step.edge_slot, x, len(step.slot_node)) for x in (flow, through))
        parts = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
        parts[unseen[step.slot_node]] = 1.0
        query = np.repeat(np.arange(len(trace.heads)), np.diff(step.slot_offsets))
        keys = query * n_entities + step.slot_node
        order = np.argsort(keys)
        keys, parts = keys[order], parts[order]
    query = np.repeat(np.arange(len(trace.heads)), np.diff(answer.offsets))
    of_answer: np.ndarray = np.minimum(parts[np.searchsorted(keys, query * n_entities + answer.nodes)], 1.0)
    return of_answer
