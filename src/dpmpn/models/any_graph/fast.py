"""The fast CPU path of the model for any graph: that of the stronger model, and rules in its second step."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import Frontier, Scan
from dpmpn.engine.settings import Horizon
from dpmpn.kernels import Floats, Ints, kernel
from dpmpn.models.any_graph.network import RULE_LEVELS, AnyGraphNetwork
from dpmpn.models.any_graph.walks import Walks
from dpmpn.models.strong.asked import Asked
from dpmpn.models.strong.fast import StrongSteps
from dpmpn.models.strong.network import Step
from dpmpn.models.strong.profiles import Profiles
from dpmpn.models.strong.trace import StepRecord
from dpmpn.ops.expand import number_used
from dpmpn.ops.pool import RowPools


class AnyGraphSteps(StrongSteps):
    """The steps of one batch."""

    network: AnyGraphNetwork
    _first: Scan  # the edges of the first step

    def __init__(
        self,
        network: AnyGraphNetwork,
        graph: KnowledgeGraph,
        batch: QueryBatch,
        horizon: Horizon,
        profiles: Profiles,
        pools: RowPools,
        ask: Callable[[np.ndarray], Asked],
        records: list[StepRecord] | None,
        walks: Walks,
    ) -> None:
        super().__init__(network, graph, batch, horizon, profiles, pools, ask, records)
        self._walks = walks

    def step(self, t: int, frontier: Frontier, scan: Scan) -> None:
        """As the stronger model's; the first step's edges are kept for the second."""
        if t == 0:
            self._first = scan
        super().step(t, frontier, scan)

    def _relation_vectors(
        self, t: int, step: Step, scan: Scan, pair_from: np.ndarray, pair_relation: np.ndarray
    ) -> tuple[Tensor, np.ndarray]:
        """In the second step a relation has a row for each level of the rules by which it goes on."""
        vectors, pair_row = super()._relation_vectors(t, step, scan, pair_from, pair_relation)
        if t != 1:
            return vectors, pair_row
        level = np.searchsorted(RULE_LEVELS, self._confidence(scan, pair_from, pair_relation))
        n_levels = len(RULE_LEVELS) + 1
        used, pair_row = number_used(pair_row * n_levels + level, len(vectors) * n_levels)
        row, of_level = (torch.from_numpy(x) for x in np.divmod(used, n_levels))
        return vectors.index_select(0, row) + self.network.rule_levels.index_select(0, of_level), pair_row

    def _confidence(self, scan: Scan, pair_from: np.ndarray, pair_relation: np.ndarray) -> np.ndarray:
        """Of the best rule for each pair: a relation by which the head led to its sender, then its own."""
        rules = [self._walks.of(q).rules for q in self.asked.itself[:, 0].tolist()]
        offsets = np.concatenate([[0], np.cumsum([len(of.keys) for of in rules])])
        keys, confidence = (np.concatenate(parts) for parts in zip(*rules, strict=True))
        first = self._first
        return _best_rules(
            first.edge_offsets, first.edge_relation, first.edge_tail, self.of_asked, scan.from_query,
            scan.from_node, pair_from, pair_relation, offsets, keys, confidence, self.graph.n_relations,
        )  # fmt: skip


@kernel
def _best_rules(
    edge_offsets: Ints, edge_relation: Ints, edge_tail: Ints, of_asked: Ints, from_query: Ints, from_node: Ints,
    pair_from: Ints, pair_relation: Ints, rule_offsets: Ints, rule_keys: Ints, confidence: Floats, n_relations: int,
) -> Floats:  # fmt: skip
    """The largest confidence of (relation of a first edge to the pair's sender, relation of the pair), 0 where none."""
    best = np.zeros(len(pair_from))
    led, sender, n_led = np.empty(n_relations + 1, np.int64), -1, 0  # relations that lead to a sender
    for p in range(len(pair_from)):
        query = from_query[pair_from[p]]
        if pair_from[p] != sender:
            sender, n_led = pair_from[p], 0
            for e in range(edge_offsets[query], edge_offsets[query + 1]):
                # The last edge is the head's self-loop, of which there are no rules.
                if edge_tail[e] == from_node[sender] and edge_relation[e] < n_relations:
                    led[n_led] = edge_relation[e]
                    n_led += 1
        start, stop = rule_offsets[of_asked[query]], rule_offsets[of_asked[query] + 1]
        keys = rule_keys[start:stop]
        for i in range(n_led if pair_relation[p] < n_relations else 0):
            key = led[i] * n_relations + pair_relation[p]
            at = np.searchsorted(keys, key)
            if at < len(keys) and keys[at] == key:
                best[p] = max(best[p], confidence[start + at])
    return best
