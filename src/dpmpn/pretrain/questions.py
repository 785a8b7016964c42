"""The questions of a split: each hidden fact in both directions, in batches of few relations."""

import numpy as np

from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.learning import Targets
from dpmpn.pretrain.splits import Split
from dpmpn.train.batches import by_question, cut, mixed_within, pieces, query_batch, targets_of

_WINDOW, _PER_RELATION = 1024, 3
"""Questions that are sorted by relation together, and at least how many for each relation of the graph.

What a model computes for a relation asked is then shared. With windows of 1,024 for the 1,418 relations of FB15K, a
batch of 32 had 10 of them and took 0.72 s, with these 5 and 0.36 s; on graphs of few relations a batch keeps several.
"""


class Questions:
    """All questions of a split, up to `joint_targets` answers in one, in an order that `draw` gives."""

    def __init__(self, split: Split, draw: np.random.Generator, batch_size: int, joint_targets: int) -> None:
        self.known = split.known
        triples, question = by_question(split.graph, split.graph.either_way(split.hidden))
        self.triples = triples[mixed_within(question, draw)]
        self._offsets = cut(question, joint_targets)
        window = max(_WINDOW, _PER_RELATION * split.graph.n_relations)
        self._batches = _batches(self.triples[self._offsets[:-1], 1], draw, batch_size, window)

    def __len__(self) -> int:
        """How many batches there are."""
        return len(self._batches)

    def batch(self, number: int, key: np.uint64) -> tuple[QueryBatch, Targets]:
        """One of the batches, sampled by a key."""
        offsets, rows = pieces(self._offsets, self._batches[number])
        triples = self.triples[rows]
        return query_batch(triples, offsets, key), targets_of(triples, offsets, self.known)


def _batches(relations: np.ndarray, draw: np.random.Generator, size: int, window: int) -> list[np.ndarray]:
    """Batches of questions with these relations, sorted by relation within windows of a random order."""
    order, batches = draw.permutation(len(relations)), []
    for start in range(0, len(order), window):
        some = order[start : start + window]
        some = some[np.argsort(relations[some], kind="stable")]
        parts = np.split(some, range(size, len(some), size))
        batches += [parts[i] for i in draw.permutation(len(parts))]
    return batches
