"""The attention of one query as it flowed from step to step, and the part of it that reached an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmpn.engine.trace import Choice, ReasoningTrace


@dataclass(frozen=True, eq=False)
class StepFlow:
    """The edges of one step of a query; heads and tails are indices among the query's nodes."""

    head: np.ndarray
    relation: np.ndarray  # ids of the graph; its self-loop stands for attention that waited
    tail: np.ndarray
    flow: np.ndarray  # of a^{t+1}: flows into a node add up to its attention


@dataclass(frozen=True, eq=False)
class QueryFlow:
    """What the steps of one query did."""

    head: int  # index of the query's head among the nodes
    nodes: np.ndarray  # entities that were ever scanned, ascending
    attention: np.ndarray  # (steps + 1) x nodes: a^0 ... a^T
    score: np.ndarray  # (steps + 1) x nodes: what the horizons chose by
    attended_from: np.ndarray  # steps x nodes
    attended_to: np.ndarray  # steps x nodes
    steps: tuple[StepFlow, ...]
    choices: tuple[Choice | None, ...] = ()  # of each step: what N3 left out before it had attention

    @classmethod
    def of(cls, trace: ReasoningTrace, query: int = 0) -> "QueryFlow":
        """Read the flow of one query from the trace of a batch."""
        slots = [slice(*step.slot_offsets[query : query + 2]) for step in trace.steps]
        scanned = [step.slot_node[slot] for step, slot in zip(trace.steps, slots, strict=True)]
        nodes = np.unique(np.concatenate([trace.heads[query : query + 1], *scanned]))
        head = int(np.searchsorted(nodes, trace.heads[query]))
        n_steps = len(trace.steps)
        attention, score = np.zeros((2, n_steps + 1, len(nodes)))
        attention[0, head] = score[0, head] = 1.0
        attended_from, attended_to = np.zeros((2, n_steps, len(nodes)), bool)
        steps = []
        for t, (step, slot) in enumerate(zip(trace.steps, slots, strict=True)):
            index = np.searchsorted(nodes, step.slot_node[slot])
            attention[t + 1, index] = step.slot_attention[slot]
            score[t + 1, index] = step.slot_score[slot]
            attended_to[t, index] = step.attended_to[slot]
            senders = slice(*np.searchsorted(step.from_query, [query, query + 1]))
            sending = np.searchsorted(nodes, step.from_node[senders])
            attended_from[t, sending] = step.attended_from[senders]
            edges = slice(step.edge_offsets[senders.start], step.edge_offsets[senders.stop])
            steps.append(
                StepFlow(
                    np.repeat(sending, np.diff(step.edge_offsets[senders.start : senders.stop + 1])),
                    step.edge_relation[edges],
                    index[step.edge_slot[edges] - slot.start],
                    step.flow[edges].astype(np.float64),
                )
            )
        choices = tuple(step.choice and step.choice.of(query) for step in trace.steps)
        return cls(head, nodes, attention, score, attended_from, attended_to, tuple(steps), choices)

    @property
    def waiting(self) -> int:
        """The relation of self-loops, which every node that is attended from has: the last of the graph's ids."""
        return max(int(step.relation.max(initial=0)) for step in self.steps)

    def index(self, entity: int) -> int:
        """The index of an entity among the nodes, -1 if it was never scanned."""
        at = int(np.searchsorted(self.nodes, entity))
        return at if at < len(self.nodes) and self.nodes[at] == entity else -1


@dataclass(frozen=True, eq=False)
class EdgesInTime:
    """Some edges of a query, each once and sorted by head, relation and tail, with what is theirs at each step."""

    head: np.ndarray  # indices among the query's nodes
    relation: np.ndarray
    tail: np.ndarray
    flow: np.ndarray  # edges x steps
    share: np.ndarray  # edges x steps: parts of the answer's attention


@dataclass(frozen=True, eq=False)
class AnswerFlow:
    """The part of each flow that reached one answer.

    Of the attention at v after step t the part flow / (sum of flows into v) came along an edge. Back from the answer,
    the part of the answer's attention that came along an edge is that times the part that was at v; parts of one step
    add up to 1, and so do those at the nodes of one time.
    """

    query: QueryFlow
    answer: int  # index among the nodes, -1 if it was never scanned

    @classmethod
    def to(cls, query: QueryFlow, entity: int) -> "AnswerFlow":
        """The flow to an entity."""
        return cls(query, query.index(entity))

    @property
    def shares(self) -> tuple[np.ndarray, ...]:
        """For each step, the part of the answer's attention that came along each of its edges."""
        return self._parts[0]

    @property
    def at(self) -> np.ndarray:
        """The part of the answer's attention that was at each node at each time: (steps + 1) x nodes."""
        return self._parts[1]

    @cached_property
    def _parts(self) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        n_steps, n_nodes = len(self.query.steps), len(self.query.nodes)
        at = np.zeros((n_steps + 1, n_nodes))
        at[n_steps, self.answer] = 1.0
        shares = []
        for t in reversed(range(n_steps)):
            step = self.query.steps[t]
            received = np.bincount(step.tail, step.flow, n_nodes)
            per_flow = np.divide(at[t + 1], received, out=np.zeros(n_nodes), where=received > 0)
            share = step.flow * per_flow[step.tail]
            at[t] = np.bincount(step.head, share, n_nodes)
            shares.append(share)
        return tuple(reversed(shares)), at

    def edges(self, chosen: Sequence[np.ndarray]) -> EdgesInTime:
        """Put together what some edges of each step, by their indices, brought over time."""
        steps, n_nodes = list(zip(self.query.steps, chosen, strict=True)), len(self.query.nodes)
        head, relation, tail, flow = (
            np.concatenate([getattr(step, column)[at] for step, at in steps])
            for column in ("head", "relation", "tail", "flow")
        )
        share = np.concatenate([share[at] for share, at in zip(self.shares, chosen, strict=True)])
        time = np.repeat(np.arange(len(steps)), [len(at) for at in chosen])
        n_relations = int(relation.max(initial=0)) + 1
        keys = (head * n_relations + relation.astype(np.int64)) * n_nodes + tail
        key, index = np.unique(keys, return_inverse=True)
        over_time = np.zeros((2, len(key), len(steps)))
        over_time[:, index, time] = flow, share
        rest, tails = np.divmod(key, n_nodes)
        return EdgesInTime(*np.divmod(rest, n_relations), tails, *over_time)

    @property
    def is_reached(self) -> bool:
        """Whether any attention came to the answer."""
        return self.answer >= 0 and bool(self.query.attention[-1, self.answer] > 0)
