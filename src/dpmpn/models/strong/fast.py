"""The fast CPU path of the stronger model: pairs instead of edges, fused layers, kinds instead of entities."""

import numpy as np
import torch
from torch import Tensor

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import (
    DIGITS,
    STRATEGIES,
    Frontier,
    Scan,
    Visited,
    attending_to,
    expand_frontier,
    select,
)
from dpmpn.engine.trace import Choice, ReasoningTrace
from dpmpn.models.strong.network import Step, StrongNetwork, asked_relations
from dpmpn.models.strong.profiles import Profiles
from dpmpn.models.strong.reached import Reached
from dpmpn.models.strong.softmax import probabilities
from dpmpn.models.strong.trace import StepRecord, contributions, fill_trace
from dpmpn.ops.expand import find_pairs, number_used
from dpmpn.ops.gate import LEAST_FLOW, Senders, gate, gated, inflows, receive
from dpmpn.ops.normalise import updated
from dpmpn.ops.pool import RowPool
from dpmpn.ops.score import scored
from dpmpn.ops.sparse import sparse_product


class Workspace:
    """Memory that one thread uses again for batch after batch."""

    def __init__(self, network: StrongNetwork) -> None:
        self.states = RowPool(network.config.n_dims, network.entities.dtype)
        self.attention = RowPool(1, network.entities.dtype)

    def clear(self, differentiable: bool) -> None:
        """Make ready for the next batch."""
        self.states.clear(differentiable)
        self.attention.clear(differentiable)


class FastSteps:
    """The steps of one batch."""

    def __init__(
        self,
        network: StrongNetwork,
        graph: KnowledgeGraph,
        batch: QueryBatch,
        horizon: Horizon,
        workspace: Workspace,
        profiles: Profiles,
    ) -> None:
        self.network, self.graph, self.batch, self.horizon = network, graph, batch, horizon
        workspace.clear(torch.is_grad_enabled())
        self.states, self.attention = workspace.states, workspace.attention
        self.relation_of = torch.from_numpy(batch.relations)
        self.query = network.queries[self.relation_of]  # queries x n_dims
        # What depends on the relation asked alone is computed once for each of them.
        relations, self.of_asked = np.unique(batch.relations, return_inverse=True)
        self.asked = asked_relations(relations, graph.inverse)
        self.asked_query = network.queries[torch.from_numpy(relations)]
        self.turned = network.turned_relations(self.asked_query)
        self.kinds = profiles.without(batch.removed)
        prior = network.prior_rows(self.asked_query, self.asked)  # relations asked x features
        of_kinds = sparse_product(self.kinds.features, prior.t())  # kinds x relations asked
        self.prior = (
            of_kinds.t().contiguous().index_select(0, torch.from_numpy(self.of_asked))
        )  # queries x kinds
        n = len(batch)
        begin = self._begin()  # kinds x n_dims
        at_heads = torch.from_numpy(self.kinds.of_entity[batch.heads])
        self.states.append(self.query + begin.index_select(0, at_heads))
        self.begin_row = self.states.append(begin)
        self.attention.append(self.query.new_ones(n + len(begin), 1))
        self.visited = Visited(
            np.arange(n + 1), batch.heads.astype(np.int32), np.arange(n), np.zeros(n, np.int64)
        )
        self.records: list[StepRecord] | None = None  # a list where a trace is wanted

    def _begin(self) -> Tensor:
        """The state that an entity of each kind begins with."""
        if self.network.profile_state is None:
            return self.query.new_zeros(len(self.kinds.sizes), self.query.shape[1])
        return sparse_product(self.kinds.features, self.network.profile_state)

    @property
    def scores(self) -> np.ndarray:
        """What the attending-from horizon chooses by: the attention of each row of the states."""
        return self.attention.values[: self.attention.size, 0].numpy()

    def run(self) -> None:
        """All steps."""
        frontier = Frontier.at_heads(self.batch.heads)
        for number, step in enumerate(self.network.steps):
            if number:
                frontier = self._next_frontier(number)
            scan = expand_frontier(self.graph, self.batch, self.horizon, frontier, self.visited, number)
            self._step(step, scan, frontier.slot, number)

    def _step(self, step: Step, scan: Scan, from_place: np.ndarray, number: int) -> None:
        """Messages along the edges of a scan, and new states and attention of all that they lead to."""
        scan, received = self._received(step, scan, from_place, number)
        new = updated(
            received, step.change, self.query @ step.change_query, scan.slot_query,
            step.norm_weight, step.norm_bias,
        )  # fmt: skip
        score = scored(
            new @ step.score_state, self.query @ step.score_query, scan.slot_query,
            step.score_weight.expand(len(self.batch), -1).contiguous(),
        )  # fmt: skip
        attention = gate(score + step.score_bias)
        first = self.states.append(new)
        self.attention.append(attention[:, None])
        everyone = np.arange(scan.n_slots)
        self.visited = self.visited.after(scan, everyone, first + everyone, number)

    def _received(self, step: Step, scan: Scan, from_place: np.ndarray, number: int) -> tuple[Scan, Tensor]:
        """What is left of a scan within the attending-to horizon, and what each slot has of its in-edges.

        Message and flow are made once per sender and relation, what a relation adds once per relation asked.
        """
        rows = self.visited.row[from_place]
        pair_offsets, pair_from = find_pairs(scan.edge_offsets, scan.edge_relation)
        pair_relation = scan.edge_relation[pair_offsets[:-1]].astype(np.int64)
        n_relations = self.network.n_relations + 1
        used, pair_row = number_used(
            self.of_asked[scan.from_query[pair_from]] * n_relations + pair_relation,
            len(self.asked) * n_relations,
        )
        of_asked, of_relation = (torch.from_numpy(x) for x in np.divmod(used, n_relations))
        sent = self.states.read(torch.from_numpy(rows)) @ step.send
        relation = self.network.relation_vectors(
            step, self.asked_query, self.turned, self.asked, of_asked, of_relation
        )
        senders = Senders(self.attention, rows, sent, relation, self.network.config.gates)
        flow = senders.flows(pair_from, pair_row)
        choice = None
        if self._is_too_wide(scan):
            scores = self._scores(scan, flow, pair_offsets, number)
            slots = attending_to(scan, self.batch, self.horizon, scores, number)
            if self.records is not None:
                choice = Choice.between(scan.slot_offsets, scan.slot_node, scores, slots)
            scan, before = scan.within(slots)
            pair_offsets = before[pair_offsets]
        begin_row = self.begin_row + self.kinds.of_entity[scan.slot_node]
        state_row = np.where(scan.slot_visited >= 0, self.visited.row[scan.slot_visited], begin_row)
        pairs = (pair_offsets, pair_from, pair_row)
        received = receive(self.states, state_row, senders, flow, pairs, scan.edge_slot)
        if self.records is not None:
            message = gated(
                sent.detach()[pair_from], relation.detach()[pair_row], torch.from_numpy(flow)[:, None]
            )
            self.records.append(
                StepRecord(scan, self.visited, from_place, message, flow, pair_offsets, received, choice)
            )
        return scan, received

    def _is_too_wide(self, scan: Scan) -> bool:
        """Whether a query's slots are more than the attending-to horizon keeps."""
        if STRATEGIES[self.horizon.strategy].attending_to == "all":
            return False
        return np.diff(scan.slot_offsets).max(initial=0) > self.horizon.max_attending_to_per_step

    def _scores(self, scan: Scan, flow: np.ndarray, pair_offsets: np.ndarray, number: int) -> np.ndarray:
        """What the attending-to horizon chooses slots by: the attention that flows to them.

        In the last step none of them will be expanded, and they are chosen as answers: with their priors.
        """
        logit = np.log(inflows(scan.n_slots, flow, pair_offsets, scan.edge_slot) + LEAST_FLOW)
        if number == len(self.network.steps) - 1:
            logit += self.prior.detach().numpy()[scan.slot_query, self.kinds.of_entity[scan.slot_node]]
        return gate(torch.from_numpy(logit)).numpy().round(DIGITS)

    def _next_frontier(self, number: int) -> Frontier:
        """The best of all visited nodes."""
        visited, scores = self.visited, self.scores[self.visited.row].round(DIGITS)
        how = STRATEGIES[self.horizon.strategy].attending_from
        limit, groups = self.horizon.max_attending_from_per_step, (visited.offsets, visited.node)
        offsets, chosen = select(how, limit, scores, *groups, self.batch.keys, 2 * number - 1)
        query = np.repeat(np.arange(len(self.batch)), np.diff(offsets))
        return Frontier(offsets, query, visited.node[chosen], chosen)

    def read_out(self) -> Reached:
        """Logits of all visited nodes, and of the kinds of all others."""
        network, visited, relation = self.network, self.visited, self.relation_of
        kinds, prior = self.kinds, self.prior
        of_query = np.repeat(np.arange(len(self.batch)), np.diff(visited.offsets))
        of_kind = kinds.of_entity[visited.node]
        logits = scored(
            self.states.read(torch.from_numpy(visited.row)) @ network.read_state,
            self.query @ network.read_query + network.read_bias,
            of_query,
            self.query @ network.read_weight_query + network.read_weight,
            sparse_product(kinds.features, network.read_profile),
            of_kind,
        )
        at = torch.from_numpy(of_query)
        is_head = torch.from_numpy(visited.node == self.batch.heads[of_query])
        visited_more, head_more = (
            x[relation].index_select(0, at) for x in (network.visited, network.is_head)
        )
        place = torch.from_numpy(of_query * len(kinds.sizes) + of_kind)
        logits = logits + prior.view(-1).index_select(0, place) + visited_more + head_more * is_head
        return Reached(visited.offsets, of_query, visited.node, logits, kinds, prior)


def reach(
    network: StrongNetwork,
    graph: KnowledgeGraph,
    profiles: Profiles,
    batch: QueryBatch,
    horizon: Horizon,
    workspace: Workspace,
) -> Reached:
    """Run all steps of a batch of queries and read out."""
    steps = FastSteps(network, graph, batch, horizon, workspace, profiles)
    steps.run()
    return steps.read_out()


def reach_traced(
    network: StrongNetwork,
    graph: KnowledgeGraph,
    profiles: Profiles,
    batch: QueryBatch,
    horizon: Horizon,
    trace: ReasoningTrace,
) -> Reached:
    """The same, with what each step did added to a trace; needs gradients, so it takes two to three times as long."""
    workspace = Workspace(network)
    with torch.enable_grad():
        steps = FastSteps(network, graph, batch, horizon, workspace, profiles)
        steps.records = []
        steps.run()
        reached = steps.read_out()
        own, _ = probabilities(reached)
        brought = contributions(steps.records, reached.logits, own)
    scores = steps.scores
    workspace.clear(differentiable=False)  # its tokens would keep it, through autograd, for ever
    fill_trace(trace, steps.records, brought, steps.visited, own.detach().numpy(), scores, graph.self_loop)
    return reached
