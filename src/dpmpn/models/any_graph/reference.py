"""The definition of what the model for any graph adds to the stronger one: statistics, and rules in its steps."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.reference import ReferenceScan
from dpmpn.engine.settings import Horizon
from dpmpn.models.any_graph.network import RULE_LEVELS, AnyGraphNetwork
from dpmpn.models.any_graph.statistics import RelationStatistics
from dpmpn.models.any_graph.walks import DOUBT, FEWEST_HITS, Rules, Walks, WalksOf
from dpmpn.models.strong.asked import Asked
from dpmpn.models.strong.reference import StrongReference


def statistics_reference(graph: KnowledgeGraph) -> RelationStatistics:
    """What counting must come to, by tables of entities and of pairs; for small graphs. Walks: `walks_reference`."""
    heads, n = graph.all_heads().astype(np.int64), graph.n_relations
    has = np.zeros((graph.n_entities, n), np.int64)
    has[heads, graph.relations] = 1  # entities x relations
    pairs, of_pair = np.unique(heads * graph.n_entities + graph.tails, return_inverse=True)
    joins = np.zeros((len(pairs), n), np.int64)
    joins[of_pair, graph.relations] = 1  # pairs of entities x relations
    joined = joins.T @ joins
    np.fill_diagonal(joined, 0)  # a relation does not repeat itself
    owners, n_entities = has.T @ has, int(has.any(1).sum())
    return RelationStatistics(owners, joined, joins.sum(0), n_entities, graph.inverse, Walks(graph))


def walks_reference(graph: KnowledgeGraph) -> list[WalksOf]:
    """All walks of two steps, one by one: what is counted where nothing is sampled."""
    n = graph.n_relations
    edges: dict[int, list[tuple[int, int]]] = {entity: [] for entity in range(graph.n_entities)}
    for head, relation, tail in zip(graph.all_heads(), graph.relations, graph.tails, strict=True):
        edges[int(head)].append((int(relation), int(tail)))
    hits, walks = np.zeros((2, n, n, n))  # asked x first x second
    reached, facts = np.zeros((n, n)), np.zeros(n)
    for head, own in edges.items():
        walked = [
            (first, second, end)
            for first, middle in own
            for second, end in edges[middle]
            if head not in (middle, end) and end != middle
        ]
        for asked in {relation for relation, _ in own}:
            tails = {tail for relation, tail in own if relation == asked}
            facts[asked] += len(tails)
            for first, second, end in walked:
                hits[asked, first, second] += end in tails
                walks[asked, first, second] += 1
            for first, end in {(first, end) for first, _, end in walked}:
                reached[asked, first] += end in tails
    first = (hits.sum(2) / (walks.sum(2) + DOUBT)).astype(np.float32)
    second = (hits.sum(1) / (walks.sum(1) + DOUBT)).astype(np.float32)
    shares = (reached / np.maximum(facts, 1)[:, None]).astype(np.float32)
    found = []
    for asked in range(n):
        pairs = np.argwhere(hits[asked] >= FEWEST_HITS)
        confidence = (hits[asked] / (walks[asked] + DOUBT))[tuple(pairs.T)]
        rules = Rules(pairs @ np.array([n, 1]), confidence)
        found.append(WalksOf(first[asked], second[asked], shares[asked], rules))
    return found


class AnyGraphReference(StrongReference):
    """The steps of the stronger model; in the second, rules say where edges go on to the answer."""

    network: AnyGraphNetwork

    def __init__(
        self,
        network: AnyGraphNetwork,
        graph: KnowledgeGraph,
        batch: QueryBatch,
        horizon: Horizon,
        ask: Callable[[np.ndarray], Asked],
        walks: Walks,
    ) -> None:
        super().__init__(network, graph, batch, horizon, ask)
        rules = (walks.of(q).rules for q in batch.relations.tolist())  # of each query
        self._rules = [dict(zip(of.keys.tolist(), of.confidence.tolist(), strict=True)) for of in rules]
        # By number of a node: the relations by which the head leads to it.
        self._led: dict[int, list[int]] = {}

    def relation_vectors(self, t: int, scan: ReferenceScan) -> Tensor:
        """What the relation of each edge adds, in the second step with the level of its best rule."""
        vectors = super().relation_vectors(t, scan)
        if t == 0:
            for slot, relation in zip(scan.slot.tolist(), scan.relation.tolist(), strict=True):
                self._led.setdefault(int(scan.nodes[slot]), []).append(relation)
        if t != 1:
            return vectors
        sender = self.visited[self._senders][scan.sender].tolist()
        confidence = [
            self._confidence(node, relation)
            for node, relation in zip(sender, scan.relation.tolist(), strict=True)
        ]
        level = torch.searchsorted(
            torch.from_numpy(RULE_LEVELS), torch.tensor(confidence, dtype=torch.float64)
        )
        return vectors + self.network.rule_levels[level.to(vectors.device)]

    def _confidence(self, sender: int, relation: int) -> float:
        """Of the best rule: a relation by which the head led to the sender, then this one."""
        rules, n = self._rules[sender // self.n_entities], self.graph.n_relations
        if relation == n:  # the self-loop
            return 0.0
        led = [first for first in self._led.get(sender, ()) if first < n]
        return max((rules.get(first * n + relation, 0.0) for first in led), default=0.0)
