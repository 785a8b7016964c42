"""Growing and pruning the subgraph: attending-from, sampling and attending-to horizons, without any learned part."""

from dataclasses import dataclass

import numpy as np

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import NO_EDGES, QueryBatch
from dpmpn.engine.settings import STRATEGIES, Horizon
from dpmpn.ops.expand import NO_LIMIT, expand, keep_edges, merge_visited, relabel
from dpmpn.ops.select import hash_scores, select_top

ATTENTION_FLOOR = 1e-20  # nodes at or below it are not attended from or to


@dataclass(frozen=True, eq=False)
class Frontier:
    """The attending-from nodes, grouped by query."""

    offsets: np.ndarray  # queries + 1
    query: np.ndarray
    node: np.ndarray  # int32
    visited: np.ndarray  # index among the visited nodes

    @classmethod
    def at_heads(cls, heads: np.ndarray) -> "Frontier":
        """Before the first step: the head of each query."""
        every = np.arange(len(heads))
        return cls(np.arange(len(heads) + 1), every, heads.astype(np.int32), every)


@dataclass(frozen=True, eq=False)
class Visited:
    """Visited nodes of each query with the row of their last state and the step that state is for."""

    offsets: np.ndarray  # queries + 1
    node: np.ndarray  # int32
    row: np.ndarray
    step: np.ndarray
    slot: np.ndarray  # index among the nodes that the last step scanned, -1 for others

    @classmethod
    def at_heads(cls, heads: np.ndarray) -> "Visited":
        """Before the first step: the head of each query, whose states are the first rows."""
        n = len(heads)
        every = np.arange(n)
        return cls(np.arange(n + 1), heads.astype(np.int32), every, np.zeros(n, np.int64), every)

    def after(self, scan: "Scan", attended: np.ndarray, slot_row: np.ndarray, step: int) -> "Visited":
        """Visited nodes after a step: attended-to nodes join, scanned ones have new state rows."""
        is_attended = np.zeros(scan.n_slots, np.bool_)
        is_attended[attended] = True
        return Visited(
            *merge_visited(
                scan.slot_offsets, scan.slot_node, scan.slot_visited, is_attended,
                self.offsets, self.node, self.row, self.step, slot_row, step + 1,
            )
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scan:
    """Sampled edges of one step and the nodes they lead to ("slots"), grouped by query."""

    from_query: np.ndarray
    from_node: np.ndarray
    from_slot: np.ndarray  # the slot of each attending-from node: its self-loop leads there
    edge_offsets: np.ndarray  # attending-from nodes + 1
    edge_relation: np.ndarray  # int32
    edge_tail: np.ndarray  # int32
    edge_slot: np.ndarray
    slot_offsets: np.ndarray  # queries + 1
    slot_query: np.ndarray
    slot_node: np.ndarray  # int32
    slot_visited: np.ndarray  # index among the visited nodes, -1 for nodes not visited yet

    @property
    def n_slots(self) -> int:
        """Number of scanned nodes."""
        return len(self.slot_node)

    def within(self, slots: np.ndarray) -> tuple["Scan", np.ndarray]:
        """The same without the nodes that are not among these slots, ascending, and without the edges to them.

        Also how many edges are left before each of the edges there were, and in all.
        """
        index = np.full(self.n_slots, -1, np.int64)
        index[slots] = np.arange(len(slots))
        before, relation, tail, slot = keep_edges(index, self.edge_relation, self.edge_tail, self.edge_slot)
        scan = Scan(
            self.from_query, self.from_node, index[self.from_slot], before[self.edge_offsets],
            relation, tail, slot,
            np.searchsorted(slots, self.slot_offsets), self.slot_query[slots], self.slot_node[slots],
            self.slot_visited[slots],
        )  # fmt: skip
        return scan, before


def expand_frontier(
    graph: KnowledgeGraph,
    batch: QueryBatch,
    horizon: Horizon,
    frontier: Frontier,
    visited: Visited,
    step: int,
) -> Scan:
    """Sample edges of the attending-from nodes and number the nodes they lead to."""
    limit = per_relation = NO_LIMIT
    if STRATEGIES[horizon.strategy].sampling:
        limit, per_relation = horizon.max_sampling_per_node, horizon.max_sampling_per_relation or NO_LIMIT
    removed_offsets = NO_EDGES if batch.removed_offsets is None else batch.removed_offsets
    edge_offsets, edge_relation, edge_tail, _ = expand(
        graph.offsets, graph.relations, graph.tails, batch.removed, removed_offsets, batch.keys, step,
        frontier.query, frontier.node, limit, graph.self_loop, per_relation,
    )  # fmt: skip
    slot_offsets, slot_node, slot_visited, edge_slot = relabel(
        frontier.offsets, edge_offsets, edge_tail, visited.offsets, visited.node
    )
    slot_query = np.repeat(np.arange(len(batch)), np.diff(slot_offsets))
    return Scan(
        frontier.query, frontier.node, edge_slot[edge_offsets[1:] - 1],
        edge_offsets, edge_relation, edge_tail, edge_slot,
        slot_offsets, slot_query, slot_node, slot_visited,
    )  # fmt: skip


def select(
    how: str,
    limit: int,
    scores: np.ndarray,
    offsets: np.ndarray,
    nodes: np.ndarray,
    keys: np.ndarray,
    step: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Of each query's nodes at most `limit`, as a horizon chooses: their offsets and indices.

    Only a choice by attention needs them to have any: Section 2 draws nodes before there is attention.
    """
    if how == "all":
        return offsets, np.arange(len(nodes))
    if how == "random":
        scores = hash_scores(keys, step, offsets, nodes)
    return select_top(scores, offsets, nodes, limit, ATTENTION_FLOOR)


def attending_from(
    visited: Visited, batch: QueryBatch, horizon: Horizon, scores: np.ndarray, step: int
) -> Frontier:
    """The attending-from nodes of a step, chosen among all visited ones, whose scores these are."""
    how, limit = STRATEGIES[horizon.strategy].attending_from, horizon.max_attending_from_per_step
    offsets, chosen = select(how, limit, scores, visited.offsets, visited.node, batch.keys, 2 * step - 1)
    query = np.repeat(np.arange(len(batch)), np.diff(offsets))
    return Frontier(offsets, query, visited.node[chosen], chosen)


def attending_to(
    scan: Scan, batch: QueryBatch, horizon: Horizon, scores: np.ndarray, step: int
) -> np.ndarray:
    """The slots of the attending-to horizon, ascending."""
    how = STRATEGIES[horizon.strategy].attending_to
    slots = (scan.slot_offsets, scan.slot_node)
    return select(how, horizon.max_attending_to_per_step, scores, *slots, batch.keys, 2 * step)[1]
