"""The fast CPU path of the stronger model: pairs instead of edges, fused layers, profiles instead of entities."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import Frontier, Scan, Visited, attending_from, attending_to
from dpmpn.engine.settings import Horizon
from dpmpn.engine.steps import FastSteps
from dpmpn.engine.trace import Choice
from dpmpn.models.strong.asked import Asked
from dpmpn.models.strong.network import DIGITS, Step, StrongNetwork
from dpmpn.models.strong.profiles import Profiles
from dpmpn.models.strong.read_out import Reached
from dpmpn.models.strong.trace import StepRecord
from dpmpn.ops.expand import find_pairs, number_used
from dpmpn.ops.gate import LEAST_FLOW, Senders, gate, gated, inflows, receive
from dpmpn.ops.layers import scored, updated
from dpmpn.ops.pool import RowPools


def row_pools(network: StrongNetwork) -> RowPools:
    """The memory of a thread: the states of a batch, and the attention of each."""
    return RowPools(network.entities.dtype, states=network.settings.n_dims, attention=1)


class StrongSteps(FastSteps):
    """The steps of one batch."""

    def __init__(
        self,
        network: StrongNetwork,
        graph: KnowledgeGraph,
        batch: QueryBatch,
        horizon: Horizon,
        profiles: Profiles,
        pools: RowPools,
        ask: Callable[[np.ndarray], Asked],
        records: list[StepRecord] | None = None,
    ) -> None:
        super().__init__(graph, batch, horizon)
        self.network, self.profiles, self.n_steps = network, profiles, len(network.steps)
        pools.clear(torch.is_grad_enabled())
        self.states, self.attention = pools["states"], pools["attention"]
        # What depends on the relation asked alone is computed once for each of them.
        relations, self.of_asked = np.unique(batch.relations, return_inverse=True)
        asked = self.asked = ask(relations)
        of_asked = torch.from_numpy(self.of_asked)
        self.query = asked.query.index_select(0, of_asked)  # queries x n_dims
        of_profiles = asked.prior_of_profiles(profiles.features)  # profiles x relations asked
        self.prior = of_profiles.t().contiguous().index_select(0, of_asked)  # queries x profiles
        self.visited = Visited.at_heads(batch.heads)
        begin, row = self._begin(np.arange(len(batch)), batch.heads)
        self.states.append(self.query + begin.index_select(0, torch.from_numpy(row)))
        self.attention.append(self.query.new_ones(len(batch), 1))
        self.records = records  # what the steps did is added to it, where a trace is wanted

    def _begin(self, query: np.ndarray, entities: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """The states that entities of some queries begin with, of which some are equal, and the row of each."""
        if self.asked.begin is None:
            return self.query.new_zeros(1, self.query.shape[1]), np.zeros(len(entities), np.int64)
        profile, of_asked = self.profiles.of(query, entities), self.of_asked[query]
        return self.profiles.rows(self.asked.begin, profile, of_asked, len(self.asked))

    @property
    def scores(self) -> np.ndarray:
        """What the attending-from horizon chooses by: the attention of each row of the states."""
        return self.attention.values[: self.attention.size, 0].numpy()

    def attending_from(self, t: int) -> Frontier:
        """The best of all visited nodes."""
        visited = self.visited
        if t == 0:
            return Frontier.at_heads(self.batch.heads)
        scores = self.scores[visited.row].round(DIGITS)
        return attending_from(visited, self.batch, self.horizon, scores, t)

    def step(self, t: int, frontier: Frontier, scan: Scan) -> None:
        """Messages along the edges of a scan, and new states and attention of all that they lead to."""
        step = self.network.steps[t]
        scan, received = self._received(t, step, scan, frontier.visited)
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
        self.visited = self.visited.after(scan, everyone, first + everyone, t)

    def _received(self, t: int, step: Step, scan: Scan, senders_at: np.ndarray) -> tuple[Scan, Tensor]:
        """What is left of a scan within the attending-to horizon, and what each slot has of its in-edges.

        Message and flow are made once per sender and relation, what a relation adds once per relation asked.
        """
        rows = self.visited.row[senders_at]
        pair_offsets, pair_from = find_pairs(scan.edge_offsets, scan.edge_relation)
        pair_relation = scan.edge_relation[pair_offsets[:-1]].astype(np.int64)
        sent = self.states.read(torch.from_numpy(rows)) @ step.send
        relation, pair_row = self._relation_vectors(t, step, scan, pair_from, pair_relation)
        senders = Senders(self.attention, rows, sent, relation, self.network.settings.gates)
        flow = senders.flows(pair_from, pair_row)
        choice = None
        if self._is_too_wide(scan):
            scores = self._scores(scan, flow, pair_offsets, t)
            slots = attending_to(scan, self.batch, self.horizon, scores, t)
            if self.records is not None:
                choice = Choice.between(scan.slot_offsets, scan.slot_node, scores, slots)
            scan, before = scan.within(slots)
            pair_offsets = before[pair_offsets]
        state_row = self._state_rows(scan)
        pairs = (pair_offsets, pair_from, pair_row)
        received = receive(self.states, state_row, senders, flow, pairs, scan.edge_slot)
        if self.records is not None:
            message = gated(
                sent.detach()[pair_from], relation.detach()[pair_row], torch.from_numpy(flow)[:, None]
            )
            self.records.append(
                StepRecord(scan, self.visited, senders_at, message, flow, pair_offsets, received, choice)
            )
        return scan, received

    def _relation_vectors(
        self, t: int, step: Step, scan: Scan, pair_from: np.ndarray, pair_relation: np.ndarray
    ) -> tuple[Tensor, np.ndarray]:
        """What relations add to messages, once for each relation asked, and the row of each pair."""
        n_relations = self.graph.n_relations + 1
        used, pair_row = number_used(
            self.of_asked[scan.from_query[pair_from]] * n_relations + pair_relation,
            len(self.asked) * n_relations,
        )
        of_asked, of_relation = (torch.from_numpy(x) for x in np.divmod(used, n_relations))
        return self.network.relation_vectors(step, self.asked, of_asked, of_relation), pair_row

    def _state_rows(self, scan: Scan) -> np.ndarray:
        """The row of each slot's state; those that were not visited get the states that they begin with."""
        new = scan.slot_visited < 0
        rows: np.ndarray = self.visited.row[scan.slot_visited]
        begin, row = self._begin(scan.slot_query[new], scan.slot_node[new])
        rows[new] = self.states.append(begin) + row
        self.attention.append(begin.new_zeros(len(begin), 1))  # a row for each of the states
        return rows

    def _is_too_wide(self, scan: Scan) -> bool:
        """Whether a query's slots are more than the attending-to horizon keeps."""
        if self.pruning.attending_to == "all":
            return False
        return bool(np.diff(scan.slot_offsets).max(initial=0) > self.horizon.max_attending_to_per_step)

    def _scores(self, scan: Scan, flow: np.ndarray, pair_offsets: np.ndarray, t: int) -> np.ndarray:
        """What the attending-to horizon chooses slots by: the attention that flows to them.

        In the last step none of them will be expanded, and they are chosen as answers: with their priors.
        """
        logit = np.log(inflows(scan.n_slots, flow, pair_offsets, scan.edge_slot) + LEAST_FLOW)
        if t == self.n_steps - 1:
            profile = self.profiles.of(scan.slot_query, scan.slot_node)
            logit += self.prior.detach().numpy()[scan.slot_query, profile]
        return gate(torch.from_numpy(logit)).numpy().round(DIGITS)

    def read_out(self) -> Reached:
        """Logits of all visited nodes, and of the profiles of all others."""
        network, visited, asked = self.network, self.visited, self.asked
        profiles, prior = self.profiles, self.prior
        of_query = np.repeat(np.arange(len(self.batch)), np.diff(visited.offsets))
        of_asked, profile = self.of_asked[of_query], profiles.of(of_query, visited.node)
        logits = scored(
            self.states.read(torch.from_numpy(visited.row)) @ network.read_state,
            self.query @ network.read_query + network.read_bias,
            of_query,
            self.query @ network.read_weight_query + network.read_weight,
            *profiles.rows(asked.read, profile, of_asked, len(asked)),
        )
        at = torch.from_numpy(of_asked)
        is_head = torch.from_numpy(visited.node == self.batch.heads[of_query])
        visited_more, head_more = (x.index_select(0, at) for x in (asked.visited, asked.is_head))
        index = torch.from_numpy(of_query * len(profiles) + profile)
        logits = logits + prior.view(-1).index_select(0, index) + visited_more + head_more * is_head
        return Reached(visited.offsets, of_query, visited.node, logits, profiles, prior)
