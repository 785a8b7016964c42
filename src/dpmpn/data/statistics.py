"""What a dataset looks like: its sizes, and how closely its graph joins the pairs that are asked.

Multi-edge (PME in the paper): a validation fact whose head and tail a training fact joins; a training fact whose head
and tail another one joins. Directions don't count. A training fact from an entity to itself is multi-edge: its own
inverse is a second edge between the same two. The average shortest path is over pairs that a path joins, in the graph
of training facts and inverses; from an entity to itself it is 0.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np

from dpmpn.data.dataset import Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.data.leakage import joined_pairs, known_facts, pair_keys, stand_in
from dpmpn.kernels import inline_kernel, kernel

MAX_PAIRS = 50_000  # of more, a sample is measured: the paper's datasets are measured whole
_SEED = 0
UNREACHABLE = -1
_BLOCK = 128  # pairs a thread takes at once: progress is shown between blocks


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
    degree = np.bincount(facts[:, [0, 2]].ravel(), minlength=graph.n_entities)
    held_out = np.concatenate([dataset.valid, dataset.test])[:, 1]
    return {
        "name": dataset.name,
        "entities": graph.n_entities,
        "relations": len(np.union1d(np.flatnonzero(relations), held_out)),  # inverses do not count
        "train": len(dataset.train),
        "valid": len(dataset.valid),
        "test": len(dataset.test),
        "pme_train": _joined_twice(dataset.train, pairs, graph.n_entities),
        "pme_valid": joined_pairs(dataset),
        **_shortest_paths(graph, dataset.valid, progress, max_pairs),
        "degree": {**_sizes(degree), "entities_without_facts": int((degree == 0).sum())},
        "facts_per_relation": _sizes(relations[relations > 0]),
    }


def _joined_twice(triples: np.ndarray, pairs: np.ndarray, n_entities: int) -> float | None:
    """Share of the triples, each of which is in the sorted pairs, whose ends are joined by another edge."""
    if not len(triples):
        return None
    repeated = pairs[1:][pairs[1:] == pairs[:-1]]
    to_itself = triples[:, 0] == triples[:, 2]
    return float((stand_in(pair_keys(triples, n_entities), repeated) | to_itself).mean())


def _shortest_paths(
    graph: KnowledgeGraph, triples: np.ndarray, progress: Callable[[int, int], object] | None, max_pairs: int
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


def _sizes(values: np.ndarray) -> dict[str, float | None]:
    if not len(values):
        return {"mean": None, "median": None, "max": None}
    return {"mean": float(values.mean()), "median": float(np.median(values)), "max": int(values.max())}


def shortest_paths(
    graph: KnowledgeGraph,
    heads: np.ndarray,
    tails: np.ndarray,
    progress: Callable[[int, int], object] | None = None,
    threads: int | None = None,
) -> np.ndarray:
    """Number of edges on a shortest path of each pair: 0 to the entity itself, -1 where no path leads there."""
    offsets, neighbours = both_directions(graph)
    part = components(offsets, neighbours)
    lengths = np.full(len(heads), UNREACHABLE, np.int32)  # pairs
    # Within a component a path exists; without this test, a pair in two large components would walk one of them.
    joined = np.flatnonzero(part[heads] == part[tails])
    starts = range(0, len(joined), _BLOCK)
    threads = max(1, min(threads or os.cpu_count() or 1, len(starts)))
    # Who reached an entity last, and room for the entities reached from the head and from the tail.
    spaces = [
        (np.full(graph.n_entities, -1, np.int64), *np.empty((2, graph.n_entities), np.int32))
        for _ in range(threads)
    ]

    def measure(start: int) -> int:
        block = joined[start : start + _BLOCK]
        space = spaces.pop()  # there are as many as threads
        lengths[block] = _search(offsets, neighbours, heads[block], tails[block], 2 * start, *space)
        spaces.append(space)
        return len(block)

    with ThreadPoolExecutor(threads) as pool:
        done = len(heads) - len(joined)
        for finished in as_completed([pool.submit(measure, start) for start in starts]):
            done += finished.result()
            if progress is not None:
                progress(done, len(heads))
    return lengths


def both_directions(graph: KnowledgeGraph) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and neighbours of a graph whose edges lead both ways, as they are stored where inverses were added."""
    if graph.n_forward < graph.n_relations:
        return graph.offsets, graph.tails
    heads = graph.all_heads()
    ends = np.concatenate([heads, graph.tails])  # 2 n_edges
    order = np.argsort(ends, kind="stable")
    offsets = np.zeros(graph.n_entities + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=graph.n_entities), out=offsets[1:])
    return offsets, np.concatenate([graph.tails, heads])[order]


@kernel
def components(offsets: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """The smallest entity of each entity's connected component."""
    parent = np.arange(len(offsets) - 1, dtype=np.int32)
    for entity in range(len(parent)):
        for edge in range(offsets[entity], offsets[entity + 1]):
            first, second = _root(parent, entity), _root(parent, neighbours[edge])
            parent[max(first, second)] = min(first, second)
    for entity in range(len(parent)):
        parent[entity] = _root(parent, entity)
    return parent


@inline_kernel
def _root(parent: np.ndarray, entity: int) -> int:
    while parent[entity] != entity:
        parent[entity] = parent[parent[entity]]  # halves the way for the next one who asks
        entity = parent[entity]
    return entity


@kernel
def _search(
    offsets: np.ndarray,
    neighbours: np.ndarray,
    heads: np.ndarray,
    tails: np.ndarray,
    mark: int,
    reached: np.ndarray,
    from_head: np.ndarray,
    from_tail: np.ndarray,
) -> np.ndarray:
    """Lengths of pairs that are known to be joined.

    Whole levels are expanded, from the side whose outermost level has fewer edges. Before two sides of depths a and b
    meet, no path is as short as a + b; so the first entity that both reach lies on a path of length a + b + 1. Each
    search marks entities with two numbers of its own, from `mark` on, so that nothing is cleared between searches.
    """
    lengths = np.empty(len(heads), np.int32)
    for pair in range(len(heads)):
        head, tail, own_mark = heads[pair], tails[pair], mark + 2 * pair
        if head == tail:
            lengths[pair] = 0
            continue
        from_head[0], from_tail[0] = head, tail
        reached[head], reached[tail] = own_mark, own_mark + 1
        head_start, head_stop, head_edges = 0, 1, offsets[head + 1] - offsets[head]
        tail_start, tail_stop, tail_edges = 0, 1, offsets[tail + 1] - offsets[tail]
        length, met = 0, False
        # In a component both sides grow until they meet; a damaged graph with edges one way ends the search, too.
        while not met and head_stop > head_start and tail_stop > tail_start:
            length += 1
            if head_edges <= tail_edges:
                start, head_start = head_start, head_stop
                head_stop, head_edges, met = _level(
                    offsets, neighbours, reached, from_head, start, head_stop, own_mark, own_mark + 1
                )
            else:
                start, tail_start = tail_start, tail_stop
                tail_stop, tail_edges, met = _level(
                    offsets, neighbours, reached, from_tail, start, tail_stop, own_mark + 1, own_mark
                )
        lengths[pair] = length if met else UNREACHABLE
    return lengths


@kernel
def _level(
    offsets: np.ndarray,
    neighbours: np.ndarray,
    reached: np.ndarray,
    queue: np.ndarray,
    start: int,
    stop: int,
    own: int,
    other: int,
) -> tuple[int, int, bool]:
    """Append what queue[start:stop] reaches newly; the queue's new end, the new ones' edges, and whether we met."""
    end, edges = stop, 0
    for at in range(start, stop):
        for edge in range(offsets[queue[at]], offsets[queue[at] + 1]):
            entity = neighbours[edge]
            if reached[entity] == other:
                return end, edges, True
            if reached[entity] != own:
                reached[entity] = own
                queue[end] = entity
                end += 1
                edges += offsets[entity + 1] - offsets[entity]
    return end, edges, False
