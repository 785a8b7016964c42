"""Counts where chains of given relations lead from many heads, and how much of that is stated."""

import numpy as np

from dpmpn.kernels import Ints, inline_kernel, kernel

_AT_MOST = 3  # budgets that are spent if the last head takes so many
_BY_SETS = 3  # hops at the end of a chain that are followed for sets of entities at once


@kernel
def _run(node: int, relation: int, offsets: Ints, relations: Ints) -> tuple[int, int]:
    """The edges of one relation that a node has: from and to."""
    first, stop = offsets[node], offsets[node + 1]
    low, high = first, stop
    while low < high:
        middle = (low + high) // 2
        if relations[middle] < relation:
            low = middle + 1
        else:
            high = middle
    first, high = low, stop
    while low < high:
        middle = (low + high) // 2
        if relations[middle] <= relation:
            low = middle + 1
        else:
            high = middle
    return first, low


@inline_kernel
def _is_fact(head: int, relation: int, tail: int, fact: tuple[int, int, int, int]) -> bool:
    """Whether an edge is a fact (head, relation, tail and the inverse relation), read either way."""
    return (head == fact[0] and relation == fact[1] and tail == fact[2]) or (
        head == fact[2] and relation == fact[3] and tail == fact[0]
    )


@kernel
def count_chains(
    heads: Ints, hops: Ints, asked: int, inverse: Ints, offsets: Ints, relations: Ints, tails: Ints,
    wanted_offsets: Ints, wanted: Ints, hidden_head: int, hidden_tail: int, budget: int,
) -> Ints:  # fmt: skip
    """For each head: the answers that a chain leads to, how many the graph states, and how many others are wanted.

    A chain goes along one edge of each hop, a pair of relations of which it takes either (-1 is none), and passes no
    entity twice. So it never takes the edge that it leads to, nor its reverse, unless it has a single hop.
    `wanted_offsets` are those of each head's row of `wanted`. The fact <hidden_head, asked, hidden_tail> is neither
    used nor counted; -1 hides none. Heads that would begin after `budget` edges were looked at have no row,
    nor has one that would take a multiple of that by itself.

    All but the last three hops are followed path by path, those for all entities at once: an entity is on some path
    without another if it has two predecessors, or one that is not that other, so two are kept of each.
    """
    n_hops, n_nodes = len(hops), len(offsets) - 1
    n_before = max(n_hops - _BY_SETS, 0)
    rows = np.zeros((len(heads), 3), np.int64)
    on_path = np.zeros(n_nodes, np.bool_)  # the head, and what was gone through path by path
    # The last head, counted from 1, for which a node is stated, wanted or found.
    stated_by, wanted_by = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    found_by = np.zeros(n_nodes, np.int64)
    # In which set of entities a node was met last, and where it stands there.
    met_at, place = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    now, later = np.empty((n_nodes, 3), np.int64), np.empty((n_nodes, 3), np.int64)  # node, two predecessors
    path = np.empty(n_before + 1, np.int64)
    edge, stop = np.zeros(n_before + 1, np.int64), np.zeros(n_before + 1, np.int64)
    side = np.zeros(n_before + 1, np.int64)
    looks, met = 0, 0
    hidden = (hidden_head, asked, hidden_tail, inverse[asked])
    for row in range(len(heads)):
        if looks > budget:
            return rows[:row]
        head = heads[row]
        first, last = _run(head, asked, offsets, relations)
        for e in range(first, last):
            stated_by[tails[e]] = row + 1
        for i in range(wanted_offsets[row], wanted_offsets[row + 1]):
            wanted_by[wanted[i]] = row + 1
        path[0], depth = head, 0
        on_path[head] = True
        side[0], edge[0], stop[0] = 0, 0, 0
        while depth >= 0:
            if looks > _AT_MOST * budget:
                return rows[:row]
            if depth < n_before:  # go on to the next edge of the beginning, or one back
                node, chosen = path[depth], -1
                while chosen < 0:
                    if edge[depth] == stop[depth]:
                        if side[depth] == 2:
                            break
                        relation = hops[depth, side[depth]]
                        side[depth] += 1
                        if relation >= 0:
                            edge[depth], stop[depth] = _run(node, relation, offsets, relations)
                        continue
                    e = edge[depth]
                    edge[depth] += 1
                    looks += 1
                    if on_path[tails[e]] or _is_fact(node, relations[e], tails[e], hidden):
                        continue
                    chosen = e
                if chosen < 0:
                    on_path[node] = False
                    depth -= 1
                    continue
                depth += 1
                path[depth] = tails[chosen]
                on_path[path[depth]] = True
                side[depth], edge[depth], stop[depth] = 0, 0, 0
                continue
            # The last hops, from the end of this beginning.
            now[0, 0], now[0, 1], now[0, 2] = path[depth], -1, -1
            n_now = 1
            for hop in range(n_before, n_hops):
                n_later = 0
                met += 1
                for i in range(n_now):
                    node, before, other = now[i, 0], now[i, 1], now[i, 2]
                    for which in range(2):
                        relation = hops[hop, which]
                        if relation < 0:
                            continue
                        first, last = _run(node, relation, offsets, relations)
                        looks += last - first
                        for e in range(first, last):
                            tail = tails[e]
                            if on_path[tail] or tail == node or (tail == before and other < 0):
                                continue
                            if _is_fact(node, relation, tail, hidden):
                                continue
                            if hop == n_hops - 1:
                                if found_by[tail] != row + 1 and not _is_fact(head, asked, tail, hidden):
                                    found_by[tail] = row + 1
                                    rows[row, 0] += 1
                                    if stated_by[tail] == row + 1:
                                        rows[row, 1] += 1
                                    elif wanted_by[tail] == row + 1:
                                        rows[row, 2] += 1
                                continue
                            if met_at[tail] != met:
                                met_at[tail], place[tail] = met, n_later
                                later[n_later, 0], later[n_later, 1], later[n_later, 2] = tail, node, -1
                                if hop == n_before:
                                    later[n_later, 1] = -1  # it is on the path, so nobody goes back to it
                                n_later += 1
                            elif hop > n_before and later[place[tail], 1] != node:
                                later[place[tail], 2] = node
                now, later = later, now
                n_now = n_later
            on_path[path[depth]] = False
            depth -= 1
    return rows
