"""The definition of the stronger model in plain PyTorch operations: a message per edge, a logit per entity.

Runs on any device. The fast path must equal it in values and gradients.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import DIGITS, STRATEGIES
from dpmpn.engine.targets import Targets
from dpmpn.models.paper.reference import Edges, OnDevice, edge_limits, rows_of, sampled_edges, select
from dpmpn.models.strong.network import Step, StrongNetwork, asked_relations
from dpmpn.models.strong.profiles import DEGREE_SCALE
from dpmpn.ops.gate import LEAST_FLOW, gate, gated

_LEAST_LOGIT = -1e30  # and not minus infinity: where all entities are answers, that would have no gradient


def reach_reference(
    network: StrongNetwork, graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon
) -> tuple[Tensor, Tensor]:
    """Logits of all entities, and which of them were visited: both queries x entities."""
    device, n_entities = network.entities.device, graph.n_entities
    on = OnDevice(graph, batch, device)
    pruning = STRATEGIES[horizon.strategy]
    limits = edge_limits(horizon)
    query = network.queries[on.query_relations]  # queries x n_dims
    turned = network.turned_relations(query)
    asked = asked_relations(batch.relations, graph.inverse).to(device)
    profile = profile_features(graph, batch.removed, network.config.profiles != "off").to(query)
    prior = network.prior_rows(query, asked) @ profile.t()  # queries x entities
    visited = (
        torch.arange(len(batch), device=device) * n_entities + on.heads
    )  # (query, node) as one number, ascending
    begin = query.new_zeros(n_entities, query.shape[1])
    if network.profile_state is not None:
        begin = profile @ network.profile_state
    states, attention = query + begin[on.heads], query.new_ones(len(batch))
    from_row = torch.arange(len(batch), device=device)  # of the visited nodes, those attended from
    for number, step in enumerate(network.steps):
        if number:
            from_row = select(
                pruning.attending_from, horizon.max_attending_from_per_step,
                attention.detach().round(decimals=DIGITS), visited, on, 2 * number - 1,
            )  # fmt: skip
        from_query = visited[from_row] // n_entities
        edges = sampled_edges(on, from_query, visited[from_row] % n_entities, number, *limits)
        scanned, slot = torch.unique(from_query[edges.sender] * n_entities + edges.tail, return_inverse=True)
        message, flow = messages(
            network, step, query, turned, asked, from_query, states[from_row], attention[from_row], edges
        )
        inflow = flow.new_zeros(len(scanned)).index_add(0, slot, flow)
        is_last = number == len(network.steps) - 1
        attended = _attended_to(horizon, inflow.detach(), prior if is_last else None, scanned, on, number)
        kept = torch.isin(slot, attended)
        slot, message = torch.searchsorted(attended, slot[kept]), message[kept]
        scanned, inflow = scanned[attended], inflow[attended]
        merged = torch.unique(torch.cat([visited, scanned]))
        at, _ = rows_of(merged, visited)
        states = begin[merged % n_entities].index_copy(0, at, states)
        attention = attention.new_zeros(len(merged)).index_copy(0, at, attention)
        visited, (row, _) = merged, rows_of(merged, scanned)
        received = message.new_zeros(len(scanned), message.shape[1]).index_add(0, slot, message)
        count = torch.bincount(slot, minlength=len(scanned))[:, None].to(received)
        new = update(step, states[row], received, count, inflow[:, None], query[scanned // n_entities])
        states = states.index_copy(0, row, new)
        attention = attention.index_copy(0, row, score(step, new, query[scanned // n_entities]))
    return read_out(network, graph, batch, visited, states, query, profile, prior)


def messages(
    network: StrongNetwork,
    step: Step,
    query: Tensor,
    turned: Tensor | None,
    asked: Tensor,
    from_query: Tensor,
    state: Tensor,
    attention: Tensor,
    edges: Edges,
) -> tuple[Tensor, Tensor]:
    """A message for each edge, and its flow.

    flow * (W1 h * (1 + k(r, q)) + v(r, q)) * gate(W2 h + u(r, q)), and attention * gate(w . h + f(r, q)).
    """
    relation = network.relation_vectors(step, query, turned, asked, from_query[edges.sender], edges.relation)
    sent = (state @ step.send)[edges.sender]
    flow = attention[edges.sender]
    if network.config.gates == "edges":
        flow = flow * gate(sent[:, -1] + relation[:, -1])
    elif network.config.gates == "off":
        flow = torch.ones_like(flow)
    return gated(sent, relation, flow[:, None]), flow


def update(step: Step, old: Tensor, received: Tensor, count: Tensor, inflow: Tensor, query: Tensor) -> Tensor:
    """h <- h + ReLU(norm(W [h, sum of n messages, their mean, log n, log flow] + U q))."""
    have = torch.cat([old, received, received / count, count.log(), (inflow + LEAST_FLOW).log()], 1)
    change = have @ step.change + query @ step.change_query
    return old + torch.relu(functional.layer_norm(change, change.shape[1:], step.norm_weight, step.norm_bias))


def score(step: Step, state: Tensor, query: Tensor) -> Tensor:
    """The attention of a node: gate(w . ReLU(W h + U q) + b)."""
    hidden = torch.relu(state @ step.score_state + query @ step.score_query)
    return gate(hidden @ step.score_weight + step.score_bias)


def read_out(
    network: StrongNetwork,
    graph: KnowledgeGraph,
    batch: QueryBatch,
    visited: Tensor,
    states: Tensor,
    query: Tensor,
    profile: Tensor,
    prior: Tensor,
) -> tuple[Tensor, Tensor]:
    """The prior of every entity's profile, and for visited ones what a hidden layer makes of state and profile."""
    device, n_entities = query.device, graph.n_entities
    relation = torch.tensor(batch.relations, device=device)
    of_query, node = visited // n_entities, visited % n_entities
    hidden = torch.relu(
        states @ network.read_state
        + query[of_query] @ network.read_query
        + network.read_bias
        + profile[node] @ network.read_profile
    )
    weight = query[of_query] @ network.read_weight_query + network.read_weight
    is_head = node == torch.tensor(batch.heads, device=device)[of_query]
    more = network.visited[relation][of_query] + network.is_head[relation][of_query] * is_head
    own = prior.reshape(-1)[visited] + (hidden * weight).sum(1) + more
    was_visited = torch.zeros_like(prior, dtype=torch.bool).reshape(-1)
    was_visited[visited] = True
    return prior.reshape(-1).index_copy(0, visited, own).view_as(prior), was_visited.view_as(prior)


def profile_features(graph: KnowledgeGraph, removed: np.ndarray, told_apart: bool) -> Tensor:
    """For each relation whether an entity has it and the logarithm of how often; a constant; the degree.

    Where entities are not told apart by their profiles, all have that of one without edges.
    """
    kept = np.full(graph.n_edges, told_apart)
    kept[removed] = False
    heads = graph.edge_heads(np.arange(graph.n_edges))[kept].astype(np.int64)
    key = heads * graph.n_relations + graph.relations[kept]
    counted = np.bincount(key, minlength=graph.n_entities * graph.n_relations)
    counts = torch.from_numpy(counted).view(graph.n_entities, graph.n_relations).double()
    degree = counts.sum(1, keepdim=True)
    logs = counts.clamp(min=1).log()
    return torch.cat([(counts > 0).double(), logs, torch.ones_like(degree), degree.log1p() / DEGREE_SCALE], 1)


def loss_reference(logits: Tensor, targets: Targets, n_targets: int) -> Tensor:
    """Sum over the targets of -log softmax over the target and all entities that are no known answers."""
    answers = torch.zeros_like(logits, dtype=torch.bool)
    known = np.repeat(np.arange(len(targets)), np.diff(targets.known_offsets))
    answers[torch.from_numpy(known), torch.from_numpy(targets.known)] = True
    query, entity = torch.from_numpy(targets.query), torch.from_numpy(targets.entities)
    answers[query, entity] = True
    rest = torch.logsumexp(logits.masked_fill(answers, _LEAST_LOGIT), 1)[query]
    own = logits[query, entity]
    return (torch.logaddexp(own, rest) - own).sum() / n_targets


def _attended_to(
    horizon: Horizon, inflow: Tensor, prior: Tensor | None, scanned: Tensor, on: OnDevice, number: int
) -> Tensor:
    """Of the scanned nodes those that get messages: where most attention flows, in the last step with the prior."""
    logit = (inflow + LEAST_FLOW).log()
    if prior is not None:
        logit = logit + prior.detach().reshape(-1)[scanned]
    how, scores = STRATEGIES[horizon.strategy].attending_to, gate(logit).round(decimals=DIGITS)
    return select(how, horizon.max_attending_to_per_step, scores, scanned, on, 2 * number)
