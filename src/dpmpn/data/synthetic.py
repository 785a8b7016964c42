"""Synthetic graphs with power-law degrees, alike at every size: for measuring how cost grows."""

import numpy as np

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph

EXPONENT = 2.2
MAX_DEGREE = 2_000
N_RELATIONS = 20
TRIPLES_PER_ENTITY = 5
_HELD_OUT = 2_000


def power_law_dataset(n_edges: int, seed: int = 0) -> Dataset:
    """A data set whose graph has about `n_edges` edges, inverses included.

    Both ends of a triple are drawn with weights from the same truncated power law whatever the size, so that what a
    query meets around its head does not depend on how large the graph is.
    """
    rng = np.random.default_rng(seed)
    n_triples = n_edges // 2
    n_entities = max(2, n_triples // TRIPLES_PER_ENTITY)
    weights = np.minimum((1 - rng.random(n_entities)) ** (-1 / (EXPONENT - 1)), MAX_DEGREE)
    bounds = np.cumsum(weights)
    ends = np.searchsorted(bounds, rng.random((2, n_triples)) * bounds[-1])
    relations = rng.integers(0, N_RELATIONS, n_triples)
    triples = np.unique(np.stack([ends[0], relations, ends[1]], 1).astype(np.int32), axis=0)
    triples = triples[rng.permutation(len(triples))]
    held_out, train = triples[:_HELD_OUT], triples[_HELD_OUT:]
    graph = KnowledgeGraph.from_ids(train, n_entities, N_RELATIONS)
    half = len(held_out) // 2
    return Dataset(
        name=f"synthetic-{n_edges}", graph=graph, train=train, valid=held_out[:half], test=held_out[half:],
        both_directions=True, candidates=None, folder=None,
    )  # fmt: skip
