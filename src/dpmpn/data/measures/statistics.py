"""What a dataset looks like: its sizes, and how closely its graph joins the pairs that are asked.

Multi-edge (PME in the paper): a validation fact whose head and tail a training fact joins; a training fact whose head
and tail another one joins. Directions don't count. A training fact from an entity to itself is multi-edge: its own
inverse is a second edge between the same two. The average shortest path is over pairs that a path joins, in the graph
of training facts and inverses; from an entity to itself it is 0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.measures.leakage import known_facts, pair_keys, stand_in
from dpmpn.data.measures.shortest_path import UNREACHABLE, shortest_paths

MAX_PAIRS = 50_000  # of more, a sample is measured: the paper's datasets are measured whole
_SEED = 0


def statistics(
    dataset: Dataset, progress: Callable[[int, int], object] | None = None, max_pairs: int = MAX_PAIRS
) -> dict[str, Any]:
    """Every column of the paper's Table 1 and some more; plain numbers, None where there is nothing to count.

    `progress` is called with how many pairs were measured, and of how many. `degree` counts facts at both of their
    ends; `standard_error` is that of the average where only a sample of the pairs was measured.
    """
    graph = dataset.graph
    facts = known_facts(graph)
    pairs = np.sort(pair_keys(facts, graph.n_entities))
    relations = np.bincount(facts[:, 1], minlength=graph.n_relations)  # facts of each
    return {
        "name": dataset.name,
        "entities": graph.n_entities,
        "relations": _n_relations(dataset, relations),
        "train": len(dataset.train),
        "valid": len(dataset.valid),
        "test": len(dataset.test),
        "pme_train": _joined_twice(dataset.train, pairs, graph.n_entities),
        "pme_valid": _joined(dataset.valid, pairs, graph.n_entities),
        **_shortest_paths(graph, dataset.valid, progress, max_pairs),
        "degree": _degrees(facts, graph.n_entities),
        "facts_per_relation": _sizes(relations[relations > 0]),
    }


def _n_relations(dataset: Dataset, sizes: np.ndarray) -> int:
    """Relations of the file, those that only held-out facts have included, inverses not."""
    held_out = np.concatenate([dataset.valid[:, 1], dataset.test[:, 1]])
    return len(np.union1d(np.flatnonzero(sizes), held_out))


def _joined_twice(triples: np.ndarray, pairs: np.ndarray, n_entities: int) -> float | None:
    """Share of the triples, each of which is in the sorted pairs, whose ends are joined by another edge."""
    if not len(triples):
        return None
    repeated = pairs[1:][pairs[1:] == pairs[:-1]]
    to_itself = triples[:, 0] == triples[:, 2]
    return float((stand_in(pair_keys(triples, n_entities), repeated) | to_itself).mean())


def _joined(triples: np.ndarray, pairs: np.ndarray, n_entities: int) -> float | None:
    return float(stand_in(pair_keys(triples, n_entities), pairs).mean()) if len(triples) else None


def _shortest_paths(
    graph: KnowledgeGraph,
    triples: np.ndarray,
    progress: Callable[[int, int], object] | None,
    max_pairs: int,
) -> dict[str, Any]:
    is_sample = len(triples) > max_pairs
    if is_sample:
        triples = triples[np.random.default_rng(_SEED).choice(len(triples), max_pairs, replace=False)]
    lengths = shortest_paths(graph, triples[:, 0], triples[:, 2], progress)
    found = lengths[lengths != UNREACHABLE]
    error = float(found.std(ddof=1) / np.sqrt(len(found))) if is_sample and len(found) > 1 else None
    return {
        "average_shortest_path_valid": float(found.mean()) if len(found) else None,
        "shortest_path": {
            "pairs": len(lengths),
            "is_sample": is_sample,
            "standard_error": error,
            "unreachable": len(lengths) - len(found),
            "lengths": np.bincount(found).tolist(),  # how many pairs have length 0, 1, 2, ...
        },
    }


def _degrees(facts: np.ndarray, n_entities: int) -> dict[str, Any]:
    degree = np.bincount(facts[:, 0], minlength=n_entities) + np.bincount(facts[:, 2], minlength=n_entities)
    return {**_sizes(degree), "entities_without_facts": int((degree == 0).sum())}


def _sizes(values: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return {"mean": None, "median": None, "max": None}
    return {"mean": float(values.mean()), "median": float(np.median(values)), "max": int(values.max())}
