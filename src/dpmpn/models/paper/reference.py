"""The definition of the paper's model: Section 3 in plain PyTorch operations, on any device, nothing saved or shared.

IGNN states are computed for the whole graph, every layer sees its concatenated inputs per edge, and every visited node
is updated at every step. The fast path must equal this in values and gradients. What the paper leaves open (the small
dimension, one softmax entry per edge, self-loops) is as in the authors' program: docs/how-it-works.md.
"""

import numpy as np
import torch
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.reference import ReferenceScan, ReferenceSteps, rows_of
from dpmpn.engine.settings import Horizon
from dpmpn.models.paper.network import PaperNetwork


class PaperReference(ReferenceSteps):
    """The steps of a batch of queries x = <head, rel, ?>."""

    def __init__(
        self, network: PaperNetwork, graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon
    ) -> None:
        super().__init__(graph, batch, horizon, network.entities.device)
        self.network, self.n_steps = network, network.settings.n_steps_in_agnn
        self.ignn = full_graph_states(network, batch)  # entities x dims: calligraphic H
        self.q_head = network.entities[self.heads]  # queries x dims: q_head = e_head
        self.q_rel = network.relations[self.relations]  # queries x dims: q_rel = e_rel
        # Of each visited node, V of G^t(x):
        self.states = self.ignn[self.heads]  # visited x dims: H^0_v = calligraphic H_v of the head
        # Of each node that the last step scanned; before the first, of the heads:
        self.scanned = self.visited
        self.attention = network.entities.new_ones(len(batch))  # a^0 is one at the head
        self._attended = torch.arange(len(batch), device=self.device)  # indices of those attended to

    def attending_from(self, t: int) -> Tensor:
        """The nodes of the N1 largest attentions a^t among the visited ones."""
        if t == 0:
            return self.visited
        n1, scores = self.horizon.max_attending_from_per_step, self.attention_of(self.visited).detach()
        return self.visited[self.select(self.pruning.attending_from, n1, scores, self.visited, 2 * t - 1)]

    def attention_of(self, nodes: Tensor) -> Tensor:
        """a^t of some nodes: zero of those that the last step did not scan."""
        at, is_scanned = rows_of(self.scanned, nodes)
        return torch.where(is_scanned, self.attention[at], torch.zeros_like(self.attention[:1]))

    def step(self, t: int, frontier: Tensor, scan: ReferenceScan) -> None:
        """Attention a^{t+1} over the scanned nodes; messages to the N3 best of them; new states of all visited."""
        self.attention = self.next_attention(frontier, scan, self.attention_of(frontier))
        self.scanned = scan.nodes
        if t == self.n_steps - 1:  # a^T is the answer: nobody asks for H^T
            return
        n3 = self.horizon.max_attending_to_per_step
        scores = self.attention.detach()
        self._attended = self.select(self.pruning.attending_to, n3, scores, scan.nodes, 2 * t)
        self._visit(scan.nodes[self._attended])
        self.states = self.updated_states(frontier, scan)

    def next_attention(self, frontier: Tensor, scan: ReferenceScan, attention: Tensor) -> Tensor:
        """Equation 5 and a^{t+1} = T^t a^t / |T^t a^t|, over the scanned nodes."""
        transition, sender, slot = self.transition(frontier, scan)
        arriving = attention.new_zeros(len(scan.nodes)).index_add(0, slot, transition * attention[sender])
        query = scan.nodes // self.n_entities
        total = attention.new_zeros(len(self.heads)).index_add(0, query, arriving)[query]
        # Where chance drew none of the nodes that have attention, all of it is lost.
        return torch.where(total != 0, arriving / total.where(total != 0, 1.0), 0.0)

    def transition(self, frontier: Tensor, scan: ReferenceScan) -> tuple[Tensor, Tensor, Tensor]:
        """T^t of equation 5, one entry per edge or per pair (v', v), with the sender and the slot of each."""
        flow, query = self.network.attention, scan.from_query[scan.sender]
        # c_r(x) = [e_r, q_head, q_rel], in the small dimension: edges x (3 dims_att)
        c_r = [
            flow.small(self.network.relations[scan.relation]),
            flow.small(self.q_head)[query],
            flow.small(self.q_rel)[query],
        ]
        small = flow.small(self.states)  # visited x dims_att
        sender_row, _ = rows_of(self.visited, frontier[scan.sender])
        tail_row, is_visited = rows_of(self.visited, scan.nodes[scan.slot])
        tail_state = torch.where(is_visited[:, None], small[tail_row], torch.zeros_like(small[:1]))
        left = torch.cat([small[sender_row], *c_r], 1)  # H_v', c_r: edges x (4 dims_att)
        logits = flow.alpha1(left, torch.cat([tail_state, *c_r], 1))  # with H_v, zero where v is unseen
        logits = logits + flow.alpha2(left, torch.cat([flow.small(self.ignn)[scan.tail], *c_r], 1))
        sender, slot = scan.sender, scan.slot
        if self.network.settings.softmax == "pair":  # the sum over r of equation 5, inside of the softmax
            pairs, pair = torch.unique(sender * len(scan.nodes) + slot, return_inverse=True)
            logits = logits.new_zeros(len(pairs)).index_add(0, pair, logits)
            sender, slot = pairs // len(scan.nodes), pairs % len(scan.nodes)
        return _softmax(logits, sender, len(frontier)), sender, slot

    def updated_states(self, frontier: Tensor, scan: ReferenceScan) -> Tensor:
        """AGNN: H^{t+1}_v = H^t_v + delta(H^t_v, aggregated message, c_v), for every visited node; visited x dims."""
        agnn = self.network.agnn
        attended = torch.zeros(len(scan.nodes), dtype=torch.bool, device=self.device)
        attended[self._attended] = True
        kept = attended[scan.slot]  # messages run on the edges whose tail is attended to
        sender, slot, query = scan.sender[kept], scan.slot[kept], scan.from_query[scan.sender[kept]]
        sender_row, _ = rows_of(self.visited, frontier)
        row, _ = rows_of(self.visited, scan.nodes[slot])
        # M_{v'rv} = psi(H_v', c_r, H_v): edges x dims
        message = agnn.message(
            self.states[sender_row[sender]],
            self.network.relations[scan.relation[kept]],
            self.states[row],
            self.q_head[query],
            self.q_rel[query],
        )
        received = _aggregate(message, row, len(self.states))
        # The node state attending function: a^{t+1}_v W calligraphic H_v
        attending = agnn.attend(
            self.attention_of(self.visited)[:, None] * self.ignn[self.visited % self.n_entities]
        )
        query = self.visited // self.n_entities
        change: Tensor = agnn.update(self.states, received, attending, self.q_head[query], self.q_rel[query])
        return self.states + change

    def answer(self) -> Answer:
        """The final attention a^T."""
        counts = torch.bincount(self.scanned // self.n_entities, minlength=len(self.heads)).cpu().numpy()
        nodes = (self.scanned % self.n_entities).cpu().numpy().astype(np.int32)
        return Answer(np.concatenate([[0], np.cumsum(counts)]), nodes, self.attention)

    def _visit(self, nodes: Tensor) -> None:
        """Nodes join the visited ones; unseen nodes hold zero states."""
        merged = torch.unique(torch.cat([self.visited, nodes]))
        at, _ = rows_of(merged, self.visited)
        states = self.states.new_zeros(len(merged), self.states.shape[1])
        self.visited, self.states = merged, states.index_copy(0, at, self.states)


def reason_reference(
    network: PaperNetwork, graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon
) -> Answer:
    """Run all steps of a batch of queries."""
    steps = PaperReference(network, graph, batch, horizon)
    steps.run()
    return steps.answer()


def full_graph_states(network: PaperNetwork, batch: QueryBatch) -> Tensor:
    """IGNN: message passing over the sampled edges of each step tau, for all entities; entities x dims."""
    states = total = network.entities  # H^0_v = e_v
    for edges in batch.ignn_edges:
        sender, relation, receiver = (
            torch.tensor(x, dtype=torch.int64, device=states.device)
            for x in (edges.heads, edges.relations, edges.tails)
        )
        message = network.ignn.message(states[sender], network.relations[relation], states[receiver])  # psi
        received = _aggregate(message, receiver, len(states))
        states = states + network.ignn.update(states, received, network.entities)  # delta(H_v, M_v, e_v)
        total = total + states
    return total / (len(batch.ignn_edges) + 1) if network.settings.ignn_output == "pool" else states


def _aggregate(message: Tensor, receiver: Tensor, n_receivers: int) -> Tensor:
    """1 / sqrt(N(v)) times the sum over the messages to v."""
    total = message.new_zeros(n_receivers, message.shape[1]).index_add(0, receiver, message)
    count = torch.bincount(receiver, minlength=n_receivers).clamp(min=1)
    return total / count.to(total.dtype).sqrt()[:, None]


def _softmax(logits: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """A softmax over the entries of each group."""
    largest = logits.new_full((n_groups,), -torch.inf).scatter_reduce(0, group, logits.detach(), "amax")
    weight = (logits - largest[group]).exp()
    return weight / logits.new_zeros(n_groups).index_add(0, group, weight)[group]
