"""IGNN states for the nodes a batch touches, computed when they are first reached.

A node's state after the last step needs the states before it of the node itself and of those that send to it over
sampled edges; so the levels below a set of nodes are found from the top down, and only those are computed.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.engine.batch import SampledEdges
from dpmpn.engine.learning import EntityRows
from dpmpn.kernels import Ints, kernel
from dpmpn.models.paper.network import PaperNetwork
from dpmpn.ops.expand import assign_ids, rehash, table_size
from dpmpn.ops.messages import combine_leaky, pass_messages


class NodeIds:
    """Numbers distinct entities in the order they are first seen."""

    def __init__(self) -> None:
        self.keys: Ints = np.full(1024, -1, np.int64)
        self.values: Ints = np.empty(1024, np.int64)
        self.size = 0

    def assign(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each node, and the nodes that are new."""
        needed = table_size(self.size + len(nodes))
        if needed > len(self.keys):
            self.keys, self.values = rehash(self.keys, self.values, needed)
        ids, new = assign_ids(nodes, self.keys, self.values, self.size)
        self.size += len(new)
        return ids, new


@kernel
def _edges_into(nodes: Ints, tails: Ints) -> tuple[Ints, Ints]:
    """Positions in `tails` (ascending) that name one of `nodes`, and which of the nodes it is."""
    edges, receiver = np.empty(len(tails), np.int64), np.empty(len(tails), np.int64)
    n = 0
    for i in range(len(nodes)):
        e = np.searchsorted(tails, nodes[i])
        while e < len(tails) and tails[e] == nodes[i]:
            edges[n], receiver[n] = e, i
            n += 1
            e += 1
    return edges[:n].copy(), receiver[:n].copy()


def ignn_states(
    network: PaperNetwork, rows: EntityRows, nodes: np.ndarray, sampled: tuple[SampledEdges, ...]
) -> Tensor:
    """The IGNN's output for distinct nodes."""
    levels = []  # one per step, last step first: (nodes to update, sender, relation, receiver)
    for edges in reversed(sampled):
        chosen, receiver = _edges_into(nodes, edges.tails)
        ids = NodeIds()
        ids.assign(nodes)
        sender, new = ids.assign(edges.heads[chosen])
        levels.append((len(nodes), sender, edges.relations[chosen], receiver))
        nodes = np.concatenate([nodes, new])
    embeddings = rows.read(nodes)
    states = embeddings
    n_output = levels[0][0] if levels else len(nodes)
    pool = network.settings.ignn_output == "pool"
    total = states[:n_output]
    for n_nodes, sender, relation, receiver in reversed(levels):
        states = _ignn_step(network, states, embeddings, n_nodes, sender, relation, receiver)
        total = total + states[:n_output] if pool else total
    return total / (len(levels) + 1) if pool else states


def _ignn_step(
    network: PaperNetwork,
    states: Tensor,
    embeddings: Tensor,
    n_nodes: int,
    sender: np.ndarray,
    relation: np.ndarray,
    receiver: np.ndarray,
) -> Tensor:
    """One step of message passing for the first `n_nodes` nodes; senders may be any."""
    dims = network.settings.n_dims
    message, update = network.ignn.message, network.ignn.update
    from_weight, relation_weight, to_weight = torch.split(message.first.weight, dims, 1)
    state_weight, message_weight, entity_weight = torch.split(update.first.weight, dims, 1)
    updated, _ = torch.split(states, [n_nodes, len(states) - n_nodes])
    if states is embeddings:  # the first step: one product instead of two
        x = functional.linear(updated, state_weight + entity_weight, update.first.bias)
    else:
        x = functional.linear(updated, state_weight, update.first.bias)
        x = torch.addmm(x, embeddings[:n_nodes], entity_weight.t())
    received = np.full(n_nodes, -1, np.int64)
    if len(receiver):
        by_relation = functional.linear(network.relations, relation_weight, message.first.bias)
        edges = np.arange(len(receiver))
        tables = (
            states[torch.from_numpy(sender)] @ from_weight.t(),
            by_relation,
            states[torch.from_numpy(receiver)] @ to_weight.t(),
        )
        receivers, compact = np.unique(receiver, return_inverse=True)
        second = message.second
        messages = pass_messages(
            tables, (edges, relation, edges), second.weight, second.bias, compact, len(receivers)
        )
        by_message = messages @ message_weight.t()
        received[receivers] = np.arange(len(receivers))
    else:
        by_message = x.new_empty(0, dims)
    every, none = np.arange(n_nodes), np.full(n_nodes, -1, np.int64)
    hidden = combine_leaky(x, every, by_message, received, by_message, none)
    return updated + torch.tanh(functional.linear(hidden, update.second.weight, update.second.bias))
