"""The definition of the stronger model in plain PyTorch operations: a message per edge, a logit per entity.

Runs on any device. The fast path must equal it in values and gradients; docs/stronger.md explains it.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer, Unlisted
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.learning import Targets
from dpmpn.engine.reference import ReferenceScan, ReferenceSteps, rows_of
from dpmpn.engine.settings import Horizon
from dpmpn.models.strong.asked import Asked
from dpmpn.models.strong.network import DIGITS, Step, StrongNetwork
from dpmpn.models.strong.profiles import DEGREE_SCALE
from dpmpn.ops.gate import LEAST_FLOW, MessageColumns, gate, gated

_LEAST_LOGIT = -1e30  # and not minus infinity: where all entities are answers, that would have no gradient


class StrongReference(ReferenceSteps):
    """The steps of a batch of queries, and the read-out."""

    def __init__(
        self,
        network: StrongNetwork,
        graph: KnowledgeGraph,
        batch: QueryBatch,
        horizon: Horizon,
        ask: Callable[[np.ndarray], Asked],
    ) -> None:
        super().__init__(graph, batch, horizon, network.entities.device)
        self.network, self.n_steps = network, len(network.steps)
        self.asked = ask(batch.relations)  # each query by itself
        self.query = self.asked.query  # queries x dims: z_q
        profiles_on = network.settings.profiles != "off"
        self.profile = profile_features(graph, batch.removed, profiles_on).to(
            self.query
        )  # entities x features
        self.prior = self.asked.prior_of_entities(self.profile)  # queries x entities
        begin = self.query.new_zeros(1, self.n_entities, self.query.shape[1])
        if self.asked.begin is not None:
            begin = self.profile @ self.asked.of_each(self.asked.begin)
        # queries * entities x dims: the state that each entity begins with
        self.begin = begin.expand(len(batch), -1, -1).flatten(0, 1)
        # Of each visited node:
        self.states = self.query + self.begin[self.visited]  # visited x dims
        self.attention = self.query.new_ones(len(batch))  # visited
        self._senders = torch.arange(len(batch), device=self.device)  # indices of those attended from

    def attending_from(self, t: int) -> Tensor:
        """Of all visited nodes those of the N1 largest attentions; first the heads."""
        if t > 0:
            n1, scores = (
                self.horizon.max_attending_from_per_step,
                self.attention.detach().round(decimals=DIGITS),
            )
            self._senders = self.select(self.pruning.attending_from, n1, scores, self.visited, 2 * t - 1)
        return self.visited[self._senders]

    def step(self, t: int, frontier: Tensor, scan: ReferenceScan) -> None:
        """Messages along all edges, to the N3 nodes where most attention flows; their new states and attention."""
        step = self.network.steps[t]
        message, flow = self.messages(t, scan)  # edges x dims, edges
        inflow = flow.new_zeros(len(scan.nodes)).index_add(0, scan.slot, flow)  # scanned
        attended = self.attending_to(t, inflow.detach(), scan.nodes)
        kept = torch.isin(scan.slot, attended)
        slot, message = torch.searchsorted(attended, scan.slot[kept]), message[kept]
        nodes, inflow = scan.nodes[attended], inflow[attended]
        self._visit(nodes)
        row, _ = rows_of(self.visited, nodes)
        received = message.new_zeros(len(nodes), message.shape[1]).index_add(0, slot, message)  # nodes x dims
        count = torch.bincount(slot, minlength=len(nodes))[:, None].to(received)
        query = self.query[nodes // self.n_entities]
        new = updated_state(step, self.states[row], received, count, inflow[:, None], query)
        self.states = self.states.index_copy(0, row, new)
        self.attention = self.attention.index_copy(0, row, node_attention(step, new, query))

    def messages(self, t: int, scan: ReferenceScan) -> tuple[Tensor, Tensor]:
        """A message for each edge, and its flow.

        flow * (W1 h * (1 + k(r, q)) + v(r, q)) * gate(W2 h + u(r, q)), and attention * gate(w . h + f(r, q)).
        """
        network, step = self.network, self.network.steps[t]
        relation = self.relation_vectors(t, scan)  # edges x MessageColumns.of_relation: v, u, k and f
        sent = (self.states[self._senders] @ step.send)[scan.sender]  # edges x MessageColumns.of_sender
        flow, at = self.attention[self._senders][scan.sender], MessageColumns(self.query.shape[1])
        if network.settings.gates == "edges":
            flow = flow * gate(sent[:, at.flow] + relation[:, at.flow])
        elif network.settings.gates == "off":
            flow = torch.ones_like(flow)
        return gated(sent, relation, flow[:, None]), flow

    def relation_vectors(self, t: int, scan: ReferenceScan) -> Tensor:
        """What the relation of each edge adds to its message, in the light of the relation asked."""
        query = scan.from_query[scan.sender]
        return self.network.relation_vectors(self.network.steps[t], self.asked, query, scan.relation)

    def attending_to(self, t: int, inflow: Tensor, nodes: Tensor) -> Tensor:
        """Of the scanned nodes those that get messages: where most attention flows, in the last step with the prior."""
        logit = (inflow + LEAST_FLOW).log()
        if t == self.n_steps - 1:
            logit = logit + self.prior.detach().reshape(-1)[nodes]
        n3, scores = self.horizon.max_attending_to_per_step, gate(logit).round(decimals=DIGITS)
        return self.select(self.pruning.attending_to, n3, scores, nodes, 2 * t)

    @property
    def logits(self) -> Tensor:
        """The prior of every entity's profile, and for visited ones what a hidden layer makes of state and profile.

        queries x entities.
        """
        network, query, node = self.network, self.visited // self.n_entities, self.visited % self.n_entities
        read = (self.profile @ self.asked.of_each(self.asked.read)).expand(len(self.heads), -1, -1)
        hidden = torch.relu(
            self.states @ network.read_state
            + self.query[query] @ network.read_query
            + network.read_bias
            + read[query, node]
        )
        weight = self.query[query] @ network.read_weight_query + network.read_weight
        is_head = node == self.heads[query]
        more = self.asked.visited[query] + self.asked.is_head[query] * is_head
        own = self.prior.reshape(-1)[self.visited] + (hidden * weight).sum(1) + more
        return self.prior.reshape(-1).index_copy(0, self.visited, own).view_as(self.prior)

    def answer(self) -> Answer:
        """The probabilities of all entities, each with a profile of its own."""
        probability = self.logits.softmax(1)
        query, node = self.visited // self.n_entities, self.visited % self.n_entities
        counts = torch.bincount(query, minlength=len(self.heads))
        offsets = np.concatenate([[0], counts.cumsum(0).cpu().numpy()])
        unlisted = Unlisted(np.arange(self.n_entities), probability)
        return Answer(offsets, node.cpu().numpy().astype(np.int32), probability[query, node], unlisted)

    def n_visited(self, targets: Targets) -> int:
        """How many of the targets were visited."""
        wanted = torch.from_numpy(targets.query * self.n_entities + targets.entities).to(self.device)
        return int(torch.isin(wanted, self.visited).sum())

    def _visit(self, nodes: Tensor) -> None:
        """Nodes join the visited ones, with the states that their profiles begin with and no attention."""
        merged = torch.unique(torch.cat([self.visited, nodes]))
        at, _ = rows_of(merged, self.visited)
        self.states = self.begin[merged].index_copy(0, at, self.states)
        self.attention = self.attention.new_zeros(len(merged)).index_copy(0, at, self.attention)
        self.visited = merged


def updated_state(
    step: Step, old: Tensor, received: Tensor, count: Tensor, inflow: Tensor, query: Tensor
) -> Tensor:
    """h <- h + ReLU(norm(W [h, sum of n messages, their mean, log n, log flow] + U q)): nodes x dims."""
    have = torch.cat([old, received, received / count, count.log(), (inflow + LEAST_FLOW).log()], 1)
    change = have @ step.change + query @ step.change_query
    return old + torch.relu(functional.layer_norm(change, change.shape[1:], step.norm_weight, step.norm_bias))


def node_attention(step: Step, state: Tensor, query: Tensor) -> Tensor:
    """The attention of a node: gate(w . ReLU(W h + U q) + b)."""
    hidden = torch.relu(state @ step.score_state + query @ step.score_query)
    return gate(hidden @ step.score_weight + step.score_bias)


def profile_features(graph: KnowledgeGraph, removed: np.ndarray, are_on: bool) -> Tensor:
    """For each relation whether an entity has it and the logarithm of how often; a constant; the degree.

    entities x features. Where profiles are off, all entities have that of one without edges.
    """
    kept = np.full(graph.n_edges, are_on)
    kept[removed] = False
    heads = graph.edge_heads(np.arange(graph.n_edges))[kept].astype(np.int64)
    key = heads * graph.n_relations + graph.relations[kept]
    counted = np.bincount(key, minlength=graph.n_entities * graph.n_relations)
    counts = torch.from_numpy(counted).view(graph.n_entities, graph.n_relations).double()
    degree = counts.sum(1, keepdim=True)
    logs = counts.clamp(min=1).log()
    return torch.cat([(counts > 0).double(), logs, torch.ones_like(degree), degree.log1p() / DEGREE_SCALE], 1)


def loss_reference(logits: Tensor, targets: Targets) -> Tensor:
    """Sum over the targets of -log softmax over the target and all entities that are no known answers."""
    answers = torch.zeros_like(logits, dtype=torch.bool)
    known = np.repeat(np.arange(len(targets)), np.diff(targets.known_offsets))
    answers[torch.from_numpy(known), torch.from_numpy(targets.known)] = True
    query, entity = torch.from_numpy(targets.query), torch.from_numpy(targets.entities)
    answers[query, entity] = True
    rest = torch.logsumexp(logits.masked_fill(answers, _LEAST_LOGIT), 1)[query]
    own = logits[query, entity]
    return (torch.logaddexp(own, rest) - own).sum()
