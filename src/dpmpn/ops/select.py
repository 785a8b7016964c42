"""The best nodes of each query, by their scores or by chance."""

import numpy as np

from dpmpn.kernels import Float, Floats, Ints, kernel
from dpmpn.ops.permutation import combine


@kernel
def _nth_largest(values: Floats, n: int) -> Float:
    """The n-th largest of `values` (reordered in place) by quickselect."""
    low, high, target = 0, len(values) - 1, n - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    found: Float = values[target]
    return found


@kernel
def select_top(scores: Floats, offsets: Ints, nodes: Ints, limit: int, threshold: float) -> tuple[Ints, Ints]:
    """Per query the `limit` best scores above `threshold`, ties to the lower node id.

    Returns the offsets per query and the selected indices, ascending.
    """
    n_queries = len(offsets) - 1
    selected_offsets = np.zeros(n_queries + 1, np.int64)
    selected = np.empty(len(scores), np.int64)
    n = 0
    for q in range(n_queries):
        start, stop = offsets[q], offsets[q + 1]
        values = np.empty(stop - start, scores.dtype)  # what passes; never what is not a number
        passing = 0
        for i in range(start, stop):
            if scores[i] > threshold:
                values[passing] = scores[i]
                passing += 1
        if passing <= limit:
            for i in range(start, stop):
                if scores[i] > threshold:
                    selected[n] = i
                    n += 1
        else:
            cut = _nth_largest(values[:passing], limit)
            above = 0
            for i in range(start, stop):
                above += scores[i] > cut
            last_node = _last_tied_node(scores[start:stop], nodes[start:stop], cut, limit - above)
            for i in range(start, stop):
                if scores[i] > cut or (scores[i] == cut and nodes[i] <= last_node):
                    selected[n] = i
                    n += 1
        selected_offsets[q + 1] = n
    return selected_offsets, selected[:n].copy()


@kernel
def _last_tied_node(scores: Floats, nodes: Ints, cut: Float, room: int) -> int:
    """The highest node id that is still selected where `room` are left for the scores equal to `cut`."""
    tied = np.empty(len(nodes), np.int64)
    n = 0
    for i in range(len(nodes)):
        if scores[i] == cut:
            tied[n] = nodes[i]
            n += 1
    tied = tied[:n]
    tied.sort()
    return int(tied[room - 1])


@kernel
def hash_scores(query_keys: Ints, step: int, offsets: Ints, nodes: Ints) -> Floats:
    """A pseudorandom score in (0, 1] per (query, step, node): selecting the best of them is uniform sampling."""
    scores = np.empty(len(nodes), np.float64)
    for q in range(len(offsets) - 1):
        key = combine(combine(query_keys[q], step), -2)
        for i in range(offsets[q], offsets[q + 1]):
            scores[i] = ((combine(key, nodes[i]) >> np.uint64(11)) + np.uint64(1)) * 2.0**-53
    return scores
