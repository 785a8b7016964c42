"""Growing and pruning in plain PyTorch operations, on any device: what the compiled kernels must equal.

A node of a query is one number, query * n_entities + node, so that sorted numbers group nodes by query.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import ATTENTION_FLOOR
from dpmpn.engine.settings import Horizon
from dpmpn.engine.steps import Steps
from dpmpn.ops.permutation import combine_torch, permuted_torch


@dataclass(frozen=True, eq=False)
class ReferenceScan:
    """The edges drawn in a step, self-loops last, and the nodes they lead to."""

    sender: Tensor  # edges: index among the nodes attended from
    relation: Tensor  # edges
    tail: Tensor  # edges: entity
    slot: Tensor  # edges: index among the scanned nodes
    from_query: Tensor  # nodes attended from
    nodes: Tensor  # scanned nodes, ascending and unique: query * n_entities + entity


class ReferenceSteps(Steps[Tensor, ReferenceScan]):
    """Steps on tensors; the nodes attended from are given as numbers (query, node)."""

    def __init__(
        self, graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon, device: torch.device
    ) -> None:
        super().__init__(graph, batch, horizon)

        def tensor(x: npt.ArrayLike) -> Tensor:
            return torch.tensor(np.asarray(x), dtype=torch.int64, device=device)

        self.n_entities, self.device = graph.n_entities, device
        self.heads, self.relations = tensor(batch.heads), tensor(batch.relations)  # queries
        self.keys, self.removed = tensor(batch.keys.view(np.int64)), tensor(batch.removed)
        self._offsets, self._relations, self._tails = map(
            tensor, (graph.offsets, graph.relations, graph.tails)
        )
        self.visited = torch.arange(len(batch), device=device) * graph.n_entities + self.heads  # V of G^0

    def scan(self, t: int, frontier: Tensor) -> ReferenceScan:
        """Remaining out-edges of each attending-from node, and its self-loop."""
        query, node = frontier // self.n_entities, frontier % self.n_entities
        sender, edge = self._sampled(t, query, node)
        every = torch.arange(len(node), device=self.device)
        sender = torch.cat([sender, every])
        tail = torch.cat([self._tails[edge], node])
        loops = torch.full_like(node, self.graph.self_loop)
        nodes, slot = torch.unique(query[sender] * self.n_entities + tail, return_inverse=True)
        return ReferenceScan(sender, torch.cat([self._relations[edge], loops]), tail, slot, query, nodes)

    def select(self, how: str, limit: int, scores: Tensor, nodes: Tensor, draw: int) -> Tensor:
        """Indices of each query's best nodes, ties to the lower entity, ascending.

        By attention only nodes above the floor are chosen; chance asks for none.
        """
        query, entity = nodes // self.n_entities, nodes % self.n_entities
        at = torch.arange(len(nodes), device=nodes.device)
        if how == "all":
            return at
        if how == "random":
            drawn = combine_torch(combine_torch(combine_torch(self.keys[query], draw), -2), entity)
            scores = (drawn >> 11) & ((1 << 53) - 1)
        else:
            at = at[scores > ATTENTION_FLOOR]
        at = at[
            torch.argsort(scores[at], descending=True, stable=True)
        ]  # `nodes` ascend, so ties are by entity
        at = at[torch.argsort(query[at], stable=True)]
        rank = torch.arange(len(at), device=at.device) - torch.searchsorted(query[at], query[at])
        return at[rank < limit].sort().values

    def _sampled(self, t: int, query: Tensor, node: Tensor) -> tuple[Tensor, Tensor]:
        """The index of each edge's node, and the edge: `per_relation` of each relation are drawn, and N2 of those."""
        limit, per_relation = None, None
        if self.pruning.sampling:
            limit, per_relation = self.horizon.max_sampling_per_node, self.horizon.max_sampling_per_relation
        key = combine_torch(combine_torch(self.keys[query], t), node)
        remaining = self._offsets - torch.searchsorted(
            self.removed, self._offsets
        )  # edges before each node's
        first, available = remaining[node], remaining[node + 1] - remaining[node]
        candidates = None
        if per_relation is not None:
            candidates, available = self._capped(first, available, key, per_relation)
            first = available.cumsum(0) - available
        sender, position = _drawn(available if limit is None else available.clamp(max=limit), available, key)
        index = first[sender] + position
        return sender, self._edge_at(index) if candidates is None else candidates[index]

    def _capped(
        self, first: Tensor, available: Tensor, key: Tensor, per_relation: int
    ) -> tuple[Tensor, Tensor]:
        """Edges drawn from each relation of each node, in the graph's order, and how many each node has of them."""
        sender, position = _drawn(available, available, key)
        edge, n_relations = self._edge_at(first[sender] + position), self.graph.self_loop + 1
        # Edges of a node come sorted by relation, so that those of a (node, relation) are neighbours.
        pair, size = torch.unique_consecutive(
            sender * n_relations + self._relations[edge], return_counts=True
        )
        pair_key = combine_torch(key[pair // n_relations], pair % n_relations)
        group, position = _drawn(size.clamp(max=per_relation), size, pair_key)
        kept = ((size.cumsum(0) - size)[group] + position).sort().values
        return edge[kept], torch.bincount(sender[kept], minlength=len(available))

    def _edge_at(self, index: Tensor) -> Tensor:
        """Ids of the edges at these indices among those that are not removed."""
        order = torch.arange(len(self.removed), device=self.device)
        return index + torch.searchsorted(self.removed - order, index, right=True)


def _drawn(count: Tensor, size: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """`count` positions of 0..size-1 in each group, by the permutation of its key where they are not all."""
    group = torch.repeat_interleave(torch.arange(len(count), device=count.device), count)
    before = torch.repeat_interleave(count.cumsum(0) - count, count)
    position = torch.arange(len(group), device=count.device) - before
    pruned = (count < size)[group]
    position[pruned] = permuted_torch(position[pruned], size[group][pruned], key[group][pruned])
    return group, position


def rows_of(numbers: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of `wanted` in ascending `numbers`, and whether each is there."""
    at = torch.searchsorted(numbers, wanted).clamp(max=len(numbers) - 1)
    return at, numbers[at] == wanted
