"""The strongest simple paths of a flow in time: how it came from start to end once its detours are erased.

Sums and products are loops: as operations on arrays they doubled the time to compile this, which whoever asks for the
first time waits for.
"""

import heapq

import numpy as np

from dpmpn.kernels import Bools, Floats, Ints, Rows, kernel


@kernel
def _mass_at(node: int, arriving: Floats, blocked: Bools, heads: Ints, tails: Ints, passing: Rows) -> Floats:
    """What is at `node` at each time: what arrives there, and what left and returned without a blocked node."""
    n_times, n_nodes = len(arriving), len(blocked)
    here = np.empty(n_times)
    now, later = np.zeros(n_nodes), np.zeros(n_nodes)
    for time in range(n_times):
        now[node] += arriving[time]
        here[time] = now[node]
        if time < n_times - 1:
            for edge in range(len(heads)):
                if now[heads[edge]] > 0 and not blocked[tails[edge]]:
                    later[tails[edge]] += now[heads[edge]] * passing[edge, time]
        now, later = later, now
        later.fill(0.0)
    return here


@kernel
def _blocked(beginning: int, before: list[int], at: list[int], n_nodes: int) -> Bools:
    """The nodes of a beginning but for its last: no continuation comes back to them."""
    blocked = np.zeros(n_nodes, np.bool_)
    earlier = before[beginning]
    while earlier >= 0:
        blocked[at[earlier]] = True
        earlier = before[earlier]
    return blocked


@kernel
def _best_ends(end: int, n_nodes: int, heads: Ints, tails: Ints, passing: Rows) -> Rows:
    """The largest product of parts along any walk from each node at each time to the end: times x nodes."""
    n_times = passing.shape[1] + 1
    best = np.zeros((n_times, n_nodes))
    best[n_times - 1, end] = 1.0
    for time in range(n_times - 2, -1, -1):
        for edge in range(len(heads)):
            product = passing[edge, time] * best[time + 1, tails[edge]]
            if product > best[time, heads[edge]]:
                best[time, heads[edge]] = product
    return best


@kernel
def _likely(arriving: Floats, best: Floats, length: int) -> float:
    """What the best single walk would bring; among equals a longer beginning goes first, so that some end."""
    mass = 0.0
    for time in range(len(arriving)):
        mass += arriving[time] * best[time]
    return mass * (1 + 1e-6 * length)


@kernel
def simple_paths(
    start: int, end: int, edge_offsets: Ints, heads: Ints, tails: Ints, passing: Rows, most: int, enough: float,
    floor: float, max_looks: int,
) -> tuple[Ints, Ints, Ints, Floats]:  # fmt: skip
    """The simple paths that most of a unit of mass took from start to end, in the order they were found.

    The mass is at `start` at time 0 and moves along an edge at each time: of what is at the edge's head, the part
    passing[edge, time]; all of it is at `end` after the last time. A walk's path is what is left when its loops are
    erased in the order in which they close: a walk of the path v_0 ... v_k stays around v_i without v_0 ... v_{i-1}
    until it leaves for v_{i+1} for good. So the mass of a beginning of a path bounds that of all its continuations,
    and looking at the greatest first finds paths in order.

    Where mass is spread so evenly that `max_looks` beginnings do not find enough, as many more are looked at in the
    order of their best single walk, which goes straight for the end: then shares are right, but a stronger path may be
    missing. Beginnings that hold at most `floor` are let go. `start` is not `end`; `edge_offsets` are those of each
    head's edges. Returns for each beginning the one before it and the edge that continued it, and for each path its
    last beginning and its share, until there are `most` paths or they hold `enough`.
    """
    n_times = passing.shape[1] + 1
    n_nodes = len(edge_offsets) - 1
    before, through, at, length = [-1], [-1], [start], [0]
    first = np.zeros(n_times)
    first[0] = 1.0
    arriving = [first]
    waiting = [(-1.0, 0)]  # a finished path stands there as -1 - its beginning
    ends, shares = [0][:0], [0.0][:0]
    found, looks = 0.0, 0
    best: Rows = np.empty((0, 0))
    while waiting and looks < 2 * max_looks and len(ends) < most and found < enough:
        if looks == max_looks and not len(best):
            best = _best_ends(end, n_nodes, heads, tails, passing)
            # Finished paths are as strong as anything can still become: they are taken at once from now on.
            waiting = [
                (-2.0 if b < 0 else -_likely(arriving[b], best[:, at[b]], length[b]), b) for _, b in waiting
            ]
            heapq.heapify(waiting)
        _, beginning = heapq.heappop(waiting)
        if beginning < 0:
            ends.append(-1 - beginning)
            shares.append(arriving[-1 - beginning][0])
            found += shares[-1]
            continue
        looks += 1
        node, blocked = at[beginning], _blocked(beginning, before, at, n_nodes)
        here = _mass_at(node, arriving[beginning], blocked, heads, tails, passing)
        if node == end:
            if here[-1] > floor:
                # Nothing arrives at an end at time 0: its share is kept there.
                arriving[beginning][0] = here[-1]
                heapq.heappush(waiting, (-2.0 if len(best) else -here[-1], -1 - beginning))
            continue
        blocked[node] = True
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            if blocked[tails[edge]]:
                continue
            there, total = np.zeros(n_times), 0.0
            for time in range(n_times - 1):
                there[time + 1] = here[time] * passing[edge, time]
                total += there[time + 1]
            if total > floor:
                before.append(beginning)
                through.append(edge)
                at.append(tails[edge])
                length.append(length[beginning] + 1)
                arriving.append(there)
                mass = _likely(there, best[:, tails[edge]], length[-1]) if len(best) else total
                heapq.heappush(waiting, (-mass, len(at) - 1))
    return np.array(before), np.array(through), np.array(ends), np.array(shares)
