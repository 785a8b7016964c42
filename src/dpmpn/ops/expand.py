"""Integer work of one reasoning step: expand, sample and relabel, in compiled kernels over CSR arrays."""

import numpy as np

from dpmpn.kernels import Bools, Ints, inline_kernel, kernel
from dpmpn.ops.permutation import ROUNDS, combine, draw, round_keys

NO_LIMIT = 2**62


@kernel
def _removed_range(removed: Ints, start: int, stop: int) -> tuple[int, int]:
    if not len(removed):
        return 0, 0
    return int(np.searchsorted(removed, start)), int(np.searchsorted(removed, stop))


@kernel
def _removed_of(removed: Ints, removed_offsets: Ints, query: int, start: int, stop: int) -> tuple[int, int]:
    """Where the removed edges from `start` to `stop` stand that are a query's."""
    if not len(removed_offsets):
        return _removed_range(removed, start, stop)
    first = removed_offsets[query]
    low, high = _removed_range(removed[first : removed_offsets[query + 1]], start, stop)
    return first + low, first + high


@kernel
def _relation_end(relations: Ints, at: int, stop: int) -> int:
    """The end of the edges that have the relation of the edge `at`."""
    return at + int(np.searchsorted(relations[at:stop], relations[at], side="right"))


@kernel
def _count_capped(relations: Ints, removed: Ints, start: int, stop: int, per_relation: int) -> int:
    """How many edges of a node are left when each relation keeps at most `per_relation`."""
    count, at = 0, start
    while at < stop:
        end = _relation_end(relations, at, stop)
        low, high = _removed_range(removed, at, end)
        count += min(end - at - (high - low), per_relation)
        at = end
    return count


@kernel
def _draw_capped(
    relations: Ints, removed: Ints, start: int, stop: int, per_relation: int, node_key: np.uint64, keys: Ints,
    out: Ints,
) -> None:  # fmt: skip
    """Positions among a node's remaining edges, ascending: `per_relation` drawn of each relation that has more."""
    n, before, at = 0, 0, start
    while at < stop:
        end = _relation_end(relations, at, stop)
        low, high = _removed_range(removed, at, end)
        available = end - at - (high - low)
        count = min(available, per_relation)
        drawn = out[n : n + count]
        if available > per_relation:
            round_keys(combine(node_key, relations[at]), keys)
            draw(available, keys, drawn)
            drawn += before
        else:
            for j in range(count):
                drawn[j] = before + j
        n, before, at = n + count, before + available, end


@kernel
def expand(
    offsets: Ints, relations: Ints, tails: Ints, removed: Ints, removed_offsets: Ints, query_keys: Ints, step: int,
    from_query: Ints, from_node: Ints, limit: int, self_loop: int, per_relation: int = NO_LIMIT,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Sampled out-edges of every attending-from node, then its self-loop.

    `removed` holds the edge ids that queries must not see, ascending for each: those of query q stand at
    removed_offsets[q]:removed_offsets[q+1], and where there are no offsets, all are every query's. Of more than
    `per_relation` remaining edges of a node and a relation, `per_relation` are drawn by the permutation keyed by
    (query, step, node, relation); then, of more than `limit` edges left to a node, `limit` by the permutation keyed by
    (query, step, node). Returns the edges grouped by attending-from node, each group sorted by (relation, tail) with
    the self-loop last: their offsets, relations, tails and edge ids (-1 for self-loops).
    """
    n_from = len(from_node)
    edge_offsets = np.zeros(n_from + 1, np.int64)
    left = np.empty(n_from, np.int64)  # edges of each node that its relations' caps leave
    most = 0
    for i in range(n_from):
        start, stop = offsets[from_node[i]], offsets[from_node[i] + 1]
        low, high = _removed_of(removed, removed_offsets, from_query[i], start, stop)
        left[i] = stop - start - (high - low)
        if left[i] > per_relation:
            left[i] = _count_capped(relations, removed[low:high], start, stop, per_relation)
            most = max(most, left[i])
        edge_offsets[i + 1] = edge_offsets[i] + min(left[i], limit) + 1
    n_edges = edge_offsets[n_from]
    edge_relation, edge_tail = np.empty(n_edges, np.int32), np.empty(n_edges, np.int32)
    edge_id = np.empty(n_edges, np.int64)
    keys = np.empty(ROUNDS, np.uint64)
    capped = np.empty(most, np.int64)
    for i in range(n_from):
        node = from_node[i]
        start, stop = offsets[node], offsets[node + 1]
        low, high = _removed_of(removed, removed_offsets, from_query[i], start, stop)
        chosen = edge_id[edge_offsets[i] : edge_offsets[i + 1] - 1]
        node_key = combine(combine(query_keys[from_query[i]], step), node)
        if left[i] > limit:
            round_keys(node_key, keys)
            draw(left[i], keys, chosen)
        elif left[i] == stop - start:  # nothing is left out
            at = edge_offsets[i]
            for edge in range(start, stop):
                edge_relation[at], edge_tail[at], edge_id[at] = relations[edge], tails[edge], edge
                at += 1
            edge_relation[at], edge_tail[at], edge_id[at] = self_loop, node, -1
            continue
        else:
            for j in range(left[i]):
                chosen[j] = j
        if left[i] < stop - start - (high - low):
            _draw_capped(relations, removed[low:high], start, stop, per_relation, node_key, keys, capped)
            for j in range(len(chosen)):
                chosen[j] = capped[chosen[j]]
        skipped = low
        for j in range(len(chosen)):
            # The position among the remaining edges becomes an edge id by stepping over the removed ones before it.
            edge = start + chosen[j] + (skipped - low)
            while skipped < high and removed[skipped] <= edge:
                skipped += 1
                edge += 1
            chosen[j] = edge
            at = edge_offsets[i] + j
            edge_relation[at], edge_tail[at] = relations[edge], tails[edge]
        last = edge_offsets[i + 1] - 1
        edge_relation[last], edge_tail[last], edge_id[last] = self_loop, node, -1
    return edge_offsets, edge_relation, edge_tail, edge_id


@kernel
def find_pairs(edge_offsets: Ints, edge_relation: Ints) -> tuple[Ints, Ints]:
    """Runs of edges that share attending-from node and relation: what is computed once per (node, relation).

    Returns the offsets of the runs and the attending-from index of each.
    """
    n_edges = edge_offsets[-1]
    pair_offsets, pair_from = np.empty(n_edges + 1, np.int64), np.empty(n_edges, np.int64)
    n_pairs = 0
    for i in range(len(edge_offsets) - 1):
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            if e == edge_offsets[i] or edge_relation[e] != edge_relation[e - 1]:
                pair_offsets[n_pairs], pair_from[n_pairs] = e, i
                n_pairs += 1
    pair_offsets[n_pairs] = n_edges
    return pair_offsets[: n_pairs + 1].copy(), pair_from[:n_pairs].copy()


@kernel
def keep_edges(
    new_slot: Ints, edge_relation: Ints, edge_tail: Ints, edge_slot: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """The edges to slots that are kept (`new_slot` is not -1), with their new slots.

    Returns how many are left before each edge, and before the end, and their relations, tails and slots.
    """
    before = np.empty(len(edge_slot) + 1, np.int64)
    relation, tail = np.empty_like(edge_relation), np.empty_like(edge_tail)
    slot = np.empty_like(edge_slot)
    n = 0
    for e in range(len(edge_slot)):
        before[e] = n
        if new_slot[edge_slot[e]] >= 0:
            relation[n], tail[n], slot[n] = edge_relation[e], edge_tail[e], new_slot[edge_slot[e]]
            n += 1
    before[len(edge_slot)] = n
    return before, relation[:n], tail[:n], slot[:n]


@kernel
def number_used(values: Ints, n_values: int) -> tuple[Ints, Ints]:
    """The distinct values below `n_values`, in the order they are first met, and each value's number among them."""
    number = np.full(n_values, -1, np.int32)
    used, numbers = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    n = 0
    for i in range(len(values)):
        if number[values[i]] < 0:
            number[values[i]] = n
            used[n] = values[i]
            n += 1
        numbers[i] = number[values[i]]
    return used[:n].copy(), numbers


@inline_kernel
def probe(keys: Ints, key: int) -> int:
    """The index of `key` in an open-addressing table, or that of the free entry (-1) where it belongs."""
    mask = len(keys) - 1
    # Fibonacci hashing: neighbouring ids are common and must not form runs.
    at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return int(at)


@kernel
def table_size(n: int) -> int:
    """A power of two at least twice `n`."""
    size = 16
    while size < 2 * n:
        size *= 2
    return size


@kernel
def relabel(
    from_offsets: Ints, edge_offsets: Ints, edge_tail: Ints, visited_offsets: Ints, visited_node: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Number the distinct tails of each query's edges: the scanned nodes ("slots").

    Returns slot offsets per query, slot nodes, each slot's index in the visited nodes (-1 if not visited yet), and
    each edge's slot. Slots of a query come in the order their edges first name them.
    """
    n_queries = len(from_offsets) - 1
    n_edges = len(edge_tail)
    slot_offsets = np.zeros(n_queries + 1, np.int64)
    slot_node, slot_visited = np.empty(n_edges, np.int32), np.empty(n_edges, np.int64)
    edge_slot = np.empty(n_edges, np.int64)
    n_slots, largest = 0, 0
    for q in range(n_queries):
        edges = edge_offsets[from_offsets[q + 1]] - edge_offsets[from_offsets[q]]
        largest = max(largest, edges + visited_offsets[q + 1] - visited_offsets[q])
    full_size = table_size(largest)
    all_keys, all_values = np.full(full_size, -1, np.int64), np.empty(full_size, np.int64)
    for q in range(n_queries):
        first, last = edge_offsets[from_offsets[q]], edge_offsets[from_offsets[q + 1]]
        size = table_size(last - first + visited_offsets[q + 1] - visited_offsets[q])
        keys, values = all_keys[:size], all_values[:size]
        keys[:] = -1
        for i in range(visited_offsets[q], visited_offsets[q + 1]):
            at = probe(keys, visited_node[i])
            keys[at], values[at] = visited_node[i], -1 - i  # negative: visited, but no slot yet
        for e in range(first, last):
            node = edge_tail[e]
            at = probe(keys, node)
            if keys[at] == -1 or values[at] < 0:
                slot_node[n_slots] = node
                slot_visited[n_slots] = -1 if keys[at] == -1 else -1 - values[at]
                keys[at], values[at] = node, n_slots
                n_slots += 1
            edge_slot[e] = values[at]
        slot_offsets[q + 1] = n_slots
    return slot_offsets, slot_node[:n_slots].copy(), slot_visited[:n_slots].copy(), edge_slot


@kernel
def assign_ids(nodes: Ints, keys: Ints, values: Ints, n_known: int) -> tuple[Ints, Ints]:
    """Ids of nodes in a table that grows: returns each node's id and the nodes that are new, in order of their ids.

    The table must have room for all of them (`table_size`).
    """
    ids = np.empty(len(nodes), np.int64)
    new = np.empty(len(nodes), np.int32)
    n_new = 0
    for i in range(len(nodes)):
        at = probe(keys, nodes[i])
        if keys[at] == -1:
            keys[at], values[at] = nodes[i], n_known + n_new
            new[n_new] = nodes[i]
            n_new += 1
        ids[i] = values[at]
    return ids, new[:n_new].copy()


@kernel
def rehash(keys: Ints, values: Ints, size: int) -> tuple[Ints, Ints]:
    """The same table with room for more."""
    new_keys, new_values = np.full(size, -1, np.int64), np.empty(size, np.int64)
    for i in range(len(keys)):
        if keys[i] != -1:
            at = probe(new_keys, keys[i])
            new_keys[at], new_values[at] = keys[i], values[i]
    return new_keys, new_values


@kernel
def merge_visited(
    slot_offsets: Ints, slot_node: Ints, slot_visited: Ints, attended: Bools, visited_offsets: Ints,
    visited_node: Ints, visited_row: Ints, visited_step: Ints, slot_row: Ints, step: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints]:  # fmt: skip
    """Visited nodes after a step: scanned ones get their new state rows, attended-to new ones are appended.

    `attended[s]` says whether slot s is in the attending-to horizon; `slot_row[s]` is its new state row. Returns
    their offsets, and of each the node, the row of its state, the step of that, and its slot (-1 for none).
    """
    n_queries = len(slot_offsets) - 1
    n_new = 0
    for s in range(len(slot_node)):
        n_new += attended[s] and slot_visited[s] < 0
    offsets = np.zeros(n_queries + 1, np.int64)
    total = len(visited_node) + n_new
    node, row, current = np.empty(total, np.int32), np.empty(total, np.int64), np.empty(total, np.int64)
    slot = np.full(total, -1, np.int64)
    n = 0
    for q in range(n_queries):
        base = n - visited_offsets[q]
        for i in range(visited_offsets[q], visited_offsets[q + 1]):
            node[n], row[n], current[n] = visited_node[i], visited_row[i], visited_step[i]
            n += 1
        for s in range(slot_offsets[q], slot_offsets[q + 1]):
            if slot_visited[s] >= 0:
                at = base + slot_visited[s]
                row[at], current[at], slot[at] = slot_row[s], step, s
            elif attended[s]:
                node[n], row[n], current[n], slot[n] = slot_node[s], slot_row[s], step, s
                n += 1
        offsets[q + 1] = n
    return offsets, node, row, current, slot


@kernel
def message_edges(
    edge_offsets: Ints, edge_slot: Ints, edge_relation: Ints, slot_message: Ints
) -> tuple[Ints, Ints, Ints]:
    """Edges whose tail is attended to: their attending-from index, relation and message index (`slot_message`)."""
    n_edges = len(edge_slot)
    sender, relation = np.empty(n_edges, np.int64), np.empty(n_edges, np.int64)
    receiver = np.empty(n_edges, np.int64)
    n = 0
    for i in range(len(edge_offsets) - 1):
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            message = slot_message[edge_slot[e]]
            if message >= 0:
                sender[n], relation[n], receiver[n] = i, edge_relation[e], message
                n += 1
    return sender[:n].copy(), relation[:n].copy(), receiver[:n].copy()
