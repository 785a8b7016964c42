"""The definition of the model: Section 3 in plain PyTorch operations, on any device, with nothing saved or shared.

IGNN states are computed for the whole graph, every layer sees its concatenated inputs per edge, and every visited
node is updated at every step. The fast path must equal this in values and gradients.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import ATTENTION_FLOOR, STRATEGIES
from dpmpn.models.paper.network import Network
from dpmpn.ops.permutation import combine_torch, permuted_torch


@dataclass(frozen=True, eq=False)
class Edges:
    """Edges of a step, one row each, self-loops last."""

    sender: Tensor  # position among the attending-from nodes
    relation: Tensor
    tail: Tensor  # entity


def reason_reference(network: Network, graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon) -> Answer:
    """Run all steps of a batch of queries and return the final attention."""
    device = network.entities.device
    on_device = OnDevice(graph, batch, device)
    head, relation, n_entities = on_device.heads, on_device.query_relations, graph.n_entities
    pruning = STRATEGIES[horizon.strategy]
    q_head, q_rel = network.entities[head], network.relations[relation]  # queries x dims
    ignn = full_graph_states(network, batch, device)  # entities x dims

    query = torch.arange(len(batch), device=device)
    visited = query * n_entities + head  # (query, node) as one number, ascending
    states = ignn[head]
    from_key, from_attention = visited, network.entities.new_ones(len(batch))
    limits = edge_limits(horizon)
    for step in range(network.config.n_steps_in_agnn):
        from_query = from_key // n_entities
        edges = sampled_edges(on_device, from_query, from_key % n_entities, step, *limits)
        scanned, edge_slot = torch.unique(
            from_query[edges.sender] * n_entities + edges.tail, return_inverse=True
        )
        attention = attend(
            network, edges, edge_slot, scanned, visited, states, ignn, q_head, q_rel, from_key, from_attention
        )
        if step == network.config.n_steps_in_agnn - 1:
            break
        scores = attention.detach()
        chosen = select(
            pruning.attending_to, horizon.max_attending_to_per_step, scores, scanned, on_device, 2 * step
        )
        visited, states = _with_new(visited, states, scanned[chosen])
        states = pass_messages(
            network,
            edges,
            edge_slot,
            scanned,
            chosen,
            visited,
            states,
            ignn,
            q_head,
            q_rel,
            from_key,
            attention,
        )
        visible = torch.zeros_like(scores)
        visible[chosen] = scores[chosen]
        frontier = select(
            pruning.attending_from,
            horizon.max_attending_from_per_step,
            visible,
            scanned,
            on_device,
            2 * step + 1,
        )
        from_key, from_attention = scanned[frontier], attention[frontier]
    counts = torch.bincount(scanned // n_entities, minlength=len(batch)).cpu().numpy()
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Answer(offsets, (scanned % n_entities).cpu().numpy().astype(np.int32), attention)


class OnDevice:
    """The graph and the batch as tensors on the device."""

    def __init__(self, graph: KnowledgeGraph, batch: QueryBatch, device: torch.device) -> None:
        def tensor(x):
            return torch.tensor(np.asarray(x), dtype=torch.int64, device=device)

        self.n_entities, self.self_loop, self.device = graph.n_entities, graph.self_loop, device
        self.offsets, self.relations, self.tails = (
            tensor(x) for x in (graph.offsets, graph.relations, graph.tails)
        )
        self.heads, self.query_relations = tensor(batch.heads), tensor(batch.relations)
        self.keys = tensor(batch.keys.view(np.int64))
        self.removed = tensor(batch.removed)


def full_graph_states(network: Network, batch: QueryBatch, device: torch.device) -> Tensor:
    """IGNN: message passing over the sampled edges, for all entities."""
    states = embeddings = network.entities
    total = states
    for edges in batch.ignn_edges:
        sender, receiver = (
            torch.tensor(x, dtype=torch.int64, device=device) for x in (edges.heads, edges.tails)
        )
        relation = network.relations[torch.tensor(edges.relations, device=device)]
        message = network.ignn.message(states[sender], relation, states[receiver])
        received = _aggregate(message, receiver, len(states))
        states = states + network.ignn.update(states, received, embeddings)
        total = total + states
    return total / (len(batch.ignn_edges) + 1) if network.config.ignn_output == "pool" else states


def _aggregate(message: Tensor, receiver: Tensor, n_receivers: int) -> Tensor:
    """Sum over the messages of a node, divided by the square root of their number."""
    total = message.new_zeros(n_receivers, message.shape[1]).index_add(0, receiver, message)
    count = torch.bincount(receiver, minlength=n_receivers).clamp(min=1)
    return total / count.to(total.dtype).sqrt()[:, None]


def edge_limits(horizon: Horizon) -> tuple[int | None, int | None]:
    """How many edges of a node are drawn, and of one of its relations; None for all."""
    if not STRATEGIES[horizon.strategy].sampling:
        return None, None
    return horizon.max_sampling_per_node, horizon.max_sampling_per_relation


def sampled_edges(
    on: OnDevice, query: Tensor, node: Tensor, step: int, limit: int | None, per_relation: int | None
) -> Edges:
    """Remaining out-edges of each attending-from node, and its self-loop.

    At most `per_relation` of each relation are drawn, and at most `limit` of what is left.
    """
    key = combine_torch(combine_torch(on.keys[query], step), node)
    before = torch.searchsorted(on.removed, on.offsets)  # removed edges before each node's edges
    remaining = on.offsets - before
    first, available = remaining[node], remaining[node + 1] - remaining[node]
    candidates = None
    if per_relation is not None:
        candidates, available = _drawn_per_relation(on, first, available, key, per_relation)
        first = available.cumsum(0) - available
    sender, position = _drawn(available if limit is None else available.clamp(max=limit), available, key)
    place = first[sender] + position
    edge = _edge_at(on, place) if candidates is None else candidates[place]
    every = torch.arange(len(node), device=on.device)
    return Edges(
        torch.cat([sender, every]),
        torch.cat([on.relations[edge], torch.full_like(node, on.self_loop)]),
        torch.cat([on.tails[edge], node]),
    )


def _drawn_per_relation(
    on: OnDevice, first: Tensor, available: Tensor, key: Tensor, per_relation: int
) -> tuple[Tensor, Tensor]:
    """Edges drawn from each relation of each node, in the graph's order, and how many each node has of them."""
    sender, position = _drawn(available, available, key)
    edge = _edge_at(on, first[sender] + position)
    # Edges of a node come sorted by relation, so that those of a (node, relation) are neighbours.
    pair, size = torch.unique_consecutive(
        sender * (on.self_loop + 1) + on.relations[edge], return_counts=True
    )
    pair_key = combine_torch(key[pair // (on.self_loop + 1)], pair % (on.self_loop + 1))
    group, position = _drawn(size.clamp(max=per_relation), size, pair_key)
    kept = ((size.cumsum(0) - size)[group] + position).sort().values
    return edge[kept], torch.bincount(sender[kept], minlength=len(available))


def _drawn(count: Tensor, size: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """`count` positions of 0..size-1 in each group, by the permutation of its key where they are not all."""
    group = torch.repeat_interleave(torch.arange(len(count), device=count.device), count)
    position = torch.arange(len(group), device=count.device) - torch.repeat_interleave(
        count.cumsum(0) - count, count
    )
    pruned = (count < size)[group]
    position[pruned] = permuted_torch(position[pruned], size[group][pruned], key[group][pruned])
    return group, position


def _edge_at(on: OnDevice, place: Tensor) -> Tensor:
    """Ids of the edges at these places among those that are not removed."""
    order = torch.arange(len(on.removed), device=on.device)
    return place + torch.searchsorted(on.removed - order, place, right=True)


def rows_of(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of `wanted` in ascending `keys`, and whether each is there."""
    at = torch.searchsorted(keys, wanted).clamp(max=len(keys) - 1)
    return at, keys[at] == wanted


def attend(
    network, edges, edge_slot, scanned, visited, states, ignn, q_head, q_rel, from_key, from_attention
) -> Tensor:
    """The attention flow: transition logits, softmax per attending-from node, and the next distribution."""
    flow = network.attention
    n_entities = len(network.entities)
    query = (from_key // n_entities)[edges.sender]
    context = (
        flow.small(network.relations[edges.relation]), flow.small(q_head)[query], flow.small(q_rel)[query]
    )  # fmt: skip
    from_row, _ = rows_of(visited, from_key)
    tail_row, tail_known = rows_of(visited, scanned[edge_slot])
    small = flow.small(states)
    left = torch.cat([small[from_row][edges.sender], *context], 1)
    unseen_zero = torch.where(tail_known[:, None], small[tail_row], torch.zeros_like(small[:1]))
    right1 = torch.cat([unseen_zero, *context], 1)
    right2 = torch.cat([flow.small(ignn)[edges.tail], *context], 1)
    logits = flow.alpha1(left, right1) + flow.alpha2(left, right2)
    if network.config.softmax == "pair":
        pairs, pair_of = torch.unique(edges.sender * len(scanned) + edge_slot, return_inverse=True)
        logits = logits.new_zeros(len(pairs)).index_add(0, pair_of, logits)
        sender, slot = pairs // len(scanned), pairs % len(scanned)
    else:
        sender, slot = edges.sender, edge_slot
    transition = _softmax(logits, sender, len(from_key))
    reached = logits.new_zeros(len(scanned)).index_add(0, slot, transition * from_attention[sender])
    slot_query = scanned // n_entities
    total = logits.new_zeros(len(q_head)).index_add(0, slot_query, reached)
    return reached / total[slot_query]


def _softmax(logits: Tensor, group: Tensor, n_groups: int) -> Tensor:
    largest = logits.new_full((n_groups,), -torch.inf).scatter_reduce(0, group, logits.detach(), "amax")
    weight = (logits - largest[group]).exp()
    return weight / logits.new_zeros(n_groups).index_add(0, group, weight)[group]


def select(how: str, limit: int, scores: Tensor, scanned: Tensor, on: OnDevice, step: int) -> Tensor:
    """Positions of each query's best scores above the floor, ties to the lower node id, ascending."""
    query, node = scanned // on.n_entities, scanned % on.n_entities
    passing = scores > ATTENTION_FLOOR
    if how == "all":
        return passing.nonzero()[:, 0]
    if how == "random":
        drawn = combine_torch(combine_torch(combine_torch(on.keys[query], step), -2), node)
        scores = (drawn >> 11) & ((1 << 53) - 1)
    at = passing.nonzero()[:, 0]
    at = at[torch.argsort(scores[at], descending=True, stable=True)]  # `scanned` ascends, so ties are by node
    at = at[torch.argsort(query[at], stable=True)]
    first = torch.searchsorted(query[at], query[at])
    rank = torch.arange(len(at), device=at.device) - first
    return at[rank < limit].sort().values


def _with_new(visited: Tensor, states: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
    """Visited nodes and states joined by attended-to nodes, whose states begin as zeros."""
    merged = torch.unique(torch.cat([visited, attended]))
    at, _ = rows_of(merged, visited)
    return merged, states.new_zeros(len(merged), states.shape[1]).index_copy(0, at, states)


def pass_messages(
    network, edges, edge_slot, scanned, chosen, visited, states, ignn, q_head, q_rel, from_key, attention
) -> Tensor:
    """AGNN: messages on edges into the attending-to horizon, then an update of every visited node."""
    n_entities = len(network.entities)
    attended = torch.zeros(len(scanned), dtype=torch.bool, device=scanned.device)
    attended[chosen] = True
    kept = attended[edge_slot]
    sender, relation, slot = edges.sender[kept], edges.relation[kept], edge_slot[kept]
    query = (from_key // n_entities)[sender]
    from_row, _ = rows_of(visited, from_key)
    to_row, _ = rows_of(visited, scanned[slot])
    message = network.agnn.message(
        states[from_row[sender]], network.relations[relation], states[to_row], q_head[query], q_rel[query]
    )
    received = _aggregate(message, to_row, len(states))
    at, scanned_now = rows_of(scanned, visited)
    node_attention = torch.where(scanned_now, attention[at], torch.zeros_like(attention[:1]))
    query = visited // n_entities
    attended_ignn = network.agnn.attend(node_attention[:, None] * ignn[visited % n_entities])
    return states + network.agnn.update(states, received, attended_ignn, q_head[query], q_rel[query])
