"""The fast CPU path of the paper's model: ragged arrays instead of masks, projections per node instead of per edge."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import Frontier, Scan, Visited, attending_from, attending_to
from dpmpn.engine.learning import EntityRows
from dpmpn.engine.settings import Horizon
from dpmpn.engine.steps import FastSteps
from dpmpn.engine.trace import TraceStep
from dpmpn.models.paper.ignn import HiddenFromEach, NodeIds, ignn_states
from dpmpn.models.paper.network import PaperNetwork
from dpmpn.ops.attention import edge_logits, flow_attention
from dpmpn.ops.expand import find_pairs, message_edges
from dpmpn.ops.messages import combine_leaky, pass_messages
from dpmpn.ops.pool import RowPools


def row_pools(network: PaperNetwork) -> RowPools:
    """The memory of a thread: states, and for each node what the IGNN adds to attention and update."""
    settings = network.settings
    return RowPools(
        network.entities.dtype,
        states=settings.n_dims,
        node_right=settings.n_dims_att,  # right side of alpha2, the IGNN's part
        node_attended=settings.n_dims,  # the IGNN's part of the update, for attention 1
    )


class PaperSteps(FastSteps):
    """The steps of one batch, with what all of them share prepared."""

    def __init__(
        self,
        network: PaperNetwork,
        graph: KnowledgeGraph,
        batch: QueryBatch,
        horizon: Horizon,
        rows: EntityRows,
        pools: RowPools,
        traced: list[TraceStep] | None = None,
    ) -> None:
        super().__init__(graph, batch, horizon)
        self.network, self.rows, self.n_steps = network, rows, network.settings.n_steps_in_agnn
        self.ids = NodeIds()
        self.hidden = None if batch.removed_offsets is None else HiddenFromEach(graph, batch)
        pools.clear(rows.anchor.requires_grad)
        self.states = pools["states"]
        self.node_right, self.node_attended = pools["node_right"], pools["node_attended"]
        relation_of = torch.from_numpy(batch.relations)
        self._prepare_attention(relation_of)
        self._prepare_agnn(relation_of)
        ids, states = self._reach(np.arange(len(batch)), batch.heads)
        assert states is not None  # nothing was reached before
        self.states.append(states[torch.from_numpy(ids)])
        self.visited = Visited.at_heads(batch.heads)
        self.attention = network.entities.new_ones(len(batch))  # of each node that the last step scanned
        self.traced = traced  # what the steps did is added to it, where a trace is wanted

    def attending_from(self, t: int) -> Frontier:
        """The visited nodes with the most attention; those that the last step did not scan have none."""
        if t == 0:
            return Frontier.at_heads(self.batch.heads)
        scores = self._attention_at(self.visited.slot).detach().numpy()
        return attending_from(self.visited, self.batch, self.horizon, scores, t)

    def step(self, t: int, frontier: Frontier, scan: Scan) -> None:
        """The next attention, and new states of what it reached; the last step needs no states."""
        slot_id, _ = self._reach(scan.slot_query, scan.slot_node)
        states, slots = self._current_states(scan, t)
        slot_state = np.full(scan.n_slots, -1, np.int64)
        slot_state[slots] = np.arange(len(slots))
        before = self._attention_at(self.visited.slot[frontier.visited])
        self.attention, transition = self._attend(scan, states, slot_state, slot_id, before)
        self.scanned, is_last = scan, t == self.n_steps - 1
        if is_last and self.traced is None:
            return
        scores = self.attention.detach().numpy()
        attended = attending_to(scan, self.batch, self.horizon, scores, t)
        if self.traced is not None:
            self.traced.append(_trace_step(scan, before, scores, transition, attended))
        if is_last:
            return
        slot_row = self._update(scan, states, slots, slot_state, slot_id, attended)
        self.visited = self.visited.after(scan, attended, slot_row, t)

    def answer(self) -> Answer:
        """The final attention."""
        return Answer(self.scanned.slot_offsets, self.scanned.slot_node, self.attention)

    def _attention_at(self, slot: np.ndarray) -> Tensor:
        """The attention of nodes that the last step scanned, and 0 of others, which have the slot -1."""
        return functional.pad(self.attention, (0, 1))[torch.from_numpy(slot)]

    def _prepare_attention(self, relation_of: Tensor) -> None:
        attention = self.network.attention
        att = self.network.settings.n_dims_att
        heads = self.rows.read(self.batch.heads)
        self.query_head = heads
        small_relations = attention.small(self.network.relations)  # relations x att
        query = torch.cat([attention.small(heads), small_relations[relation_of]], 1)  # queries x 2 att
        sides = (attention.alpha1, attention.alpha2)
        left = torch.cat([side.left.weight for side in sides])  # 2 att x 4 att
        right = torch.cat([side.right.weight for side in sides])
        self.left_state = left[:, :att]
        self.left_relation = small_relations @ left[:, att : 2 * att].t()
        self.left_query = query @ left[:, 2 * att :].t() + torch.cat([side.left.bias for side in sides])
        self.right_state, self.right_node = right[:att, :att], right[att:, :att]
        self.right_relation = small_relations @ right[:, att : 2 * att].t()
        self.right_query = query @ right[:, 2 * att :].t() + torch.cat([side.right.bias for side in sides])
        self.center_bias = torch.cat([side.center.bias for side in sides])

    def _prepare_agnn(self, relation_of: Tensor) -> None:
        dims = self.network.settings.n_dims
        agnn = self.network.agnn
        query = torch.cat([self.query_head, self.network.relations[relation_of]], 1)  # queries x 2 dims
        first = agnn.message.first
        self.message_from, message_relation, self.message_to = torch.split(
            first.weight[:, : 3 * dims], dims, 1
        )
        self.message_relation = self.network.relations @ message_relation.t()
        self.message_query = functional.linear(query, first.weight[:, 3 * dims :], first.bias)
        first = agnn.update.first
        self.update_state, self.update_message, update_attended = torch.split(
            first.weight[:, : 3 * dims], dims, 1
        )
        self.update_query = functional.linear(query, first.weight[:, 3 * dims :], first.bias)
        self.attended = update_attended @ agnn.attend.weight  # dims x dims: both products in one

    def _reach(self, query: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, Tensor | None]:
        """Numbers of entities in this batch; those not met before get their IGNN states, which are returned."""
        ids, new = self.ids.assign(nodes if self.hidden is None else self.hidden.numbers(query, nodes))
        if not len(new):
            return ids, None
        edges = self.batch.ignn_edges if self.hidden is None else self.hidden.edges
        states = ignn_states(self.network, self.rows, new, edges, self.graph.n_entities)
        self.node_right.append(self.network.attention.small(states) @ self.right_node.t())
        self.node_attended.append(states @ self.attended.t())
        return ids, states

    def _current_states(self, scan: Scan, t: int) -> tuple[Tensor, np.ndarray]:
        """States of the scanned nodes that were visited, and the slot of each.

        A visited node that nothing reaches only gets updates for a zero message without attention. They are made up
        for here, when the node is next needed; nodes never needed again cost nothing.
        """
        slots = np.flatnonzero(scan.slot_visited >= 0)
        visited = self.visited
        missed = t - visited.step[scan.slot_visited[slots]]
        order = np.argsort(-missed, kind="stable")
        slots, missed = slots[order], missed[order]
        states = self.states.read(torch.from_numpy(visited.row[scan.slot_visited[slots]]))
        query = scan.slot_query[slots]
        finished = []
        for k in range(int(missed[0])):
            behind = int(np.searchsorted(-missed, -k))  # those that missed more than k updates
            finished.append(states[behind:])
            states = self._without_message(states[:behind], query[:behind])
        return torch.cat([states, *reversed(finished)]) if finished else states, slots

    def _without_message(self, states: Tensor, query: np.ndarray) -> Tensor:
        """States after an update with neither message nor attention."""
        update = self.network.agnn.update
        every, none = np.arange(len(states)), np.full(len(states), -1, np.int64)
        projected = states @ self.update_state.t()
        hidden = combine_leaky(projected, every, self.update_query, query, projected, none)
        return states + torch.tanh(functional.linear(hidden, update.second.weight, update.second.bias))

    def _attend(
        self, scan: Scan, states: Tensor, slot_state: np.ndarray, slot_id: np.ndarray, before: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The next attention over the scanned nodes, and the transition over the edges."""
        flow, att = self.network.attention, self.network.settings.n_dims_att
        pair_offsets, pair_from = find_pairs(scan.edge_offsets, scan.edge_relation)
        pair_relation = scan.edge_relation[pair_offsets[:-1]].astype(np.int64)
        pair_query = scan.from_query[pair_from]
        small = flow.small(states)
        from_state = slot_state[scan.from_slot]
        from_left = small[torch.from_numpy(from_state)] @ self.left_state.t()
        left = combine_leaky(
            from_left, pair_from, self.left_relation, pair_relation, self.left_query, pair_query
        )  # pairs x 2 att
        # `split`, not slices: the gradient of a slice is a zero tensor of the whole with the slice copied in.
        first, second = torch.split(left, att, 1)
        centered = torch.cat([first @ flow.alpha1.center.weight, second @ flow.alpha2.center.weight], 1)
        logits = edge_logits(
            centered, left @ self.center_bias, self.right_relation, self.right_query,
            small @ self.right_state.t(), self.node_right,
            pair_offsets, pair_relation, pair_query, scan.edge_slot, slot_state, slot_id,
        )  # fmt: skip
        return flow_attention(
            logits, before, scan.from_query, scan.edge_offsets, scan.edge_slot, scan.slot_offsets,
            self.network.settings.softmax,
        )  # fmt: skip

    def _messages(
        self, scan: Scan, states: Tensor, slot_state: np.ndarray, attended: np.ndarray
    ) -> tuple[Tensor, np.ndarray]:
        """Aggregated messages to the attended-to slots, and each slot's row among them (-1 for none)."""
        slot_message = np.full(scan.n_slots, -1, np.int64)
        slot_message[attended] = np.arange(len(attended))
        sender, relation, receiver = message_edges(
            scan.edge_offsets, scan.edge_slot, scan.edge_relation, slot_message
        )
        to_state = slot_state[attended]
        known = to_state[to_state >= 0]
        to_row = np.where(to_state >= 0, np.cumsum(to_state >= 0) - 1, -1)
        tables = (
            states[torch.from_numpy(slot_state[scan.from_slot])] @ self.message_from.t(),
            self.message_relation,
            states[torch.from_numpy(known)] @ self.message_to.t(),
            self.message_query,
        )
        index = (sender, relation, to_row[receiver], scan.from_query[sender])
        second = self.network.agnn.message.second
        return pass_messages(tables, index, second.weight, second.bias, receiver, len(attended)), slot_message

    def _update(
        self,
        scan: Scan,
        states: Tensor,
        slots: np.ndarray,
        slot_state: np.ndarray,
        slot_id: np.ndarray,
        attended: np.ndarray,
    ) -> np.ndarray:
        """New states of all scanned visited and all attended-to nodes; returns each slot's new row (-1 for none)."""
        messages, slot_message = self._messages(scan, states, slot_state, attended)
        update = self.network.agnn.update
        new = attended[slot_state[attended] < 0]
        slots = np.concatenate([slots, new])
        state_row = np.concatenate([np.arange(len(states)), np.full(len(new), -1, np.int64)])
        hidden = combine_leaky(
            states @ self.update_state.t(), state_row,
            messages @ self.update_message.t(), slot_message[slots],
            self.update_query, scan.slot_query[slots],
            self.node_attended, slot_id[slots],
            self.attention[torch.from_numpy(slots)],
        )  # fmt: skip
        first = self.states.append_updated(states, hidden, update.second.weight, update.second.bias)
        slot_row = np.full(scan.n_slots, -1, np.int64)
        slot_row[slots] = first + np.arange(len(slots))
        return slot_row


def _trace_step(
    scan: Scan, before: Tensor, scores: np.ndarray, transition: Tensor, attended: np.ndarray
) -> TraceStep:
    """What a step did: the flow along an edge is the sender's attention times the transition."""
    attended_to = np.zeros(scan.n_slots, bool)
    attended_to[attended] = True
    sent = before.detach().numpy()
    total = np.bincount(scan.from_query, sent, len(scan.slot_offsets) - 1)
    total[total == 0] = 1  # all of it was lost, and nothing flows
    sender = np.repeat(np.arange(len(sent)), np.diff(scan.edge_offsets))
    flow = transition.detach().numpy() * (sent / total[scan.from_query])[sender]
    return TraceStep(
        scan.from_query, scan.from_node, sent, np.ones(len(sent), bool),
        scan.edge_offsets, scan.edge_relation, scan.edge_tail, scan.edge_slot, flow,
        scan.slot_offsets, scan.slot_node, scores, scores, attended_to,
    )  # fmt: skip
