"""The strongest simple paths of a flow in time: which ways it took from start to end once its detours are erased."""

import heapq

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _mass_at(node, arriving, blocked, heads, tails, passing):
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
        later[:] = 0
    return here


@njit(nogil=True, cache=True)
def simple_paths(start, end, edge_offsets, heads, tails, passing, most, enough, floor, max_looks):
    """The simple paths that most of a unit of mass took from start to end, strongest first.

    The mass is at `start` at time 0 and moves along an edge at each time: of what is at the edge's head, the part
    passing[edge, time]; all of it is at `end` after the last time. A walk's path is what is left when its loops are
    erased in the order in which they close: a walk of the path v_0 ... v_k stays around v_i without v_0 ... v_{i-1}
    until it leaves for v_{i+1} for good. So the mass of a beginning of a path bounds that of all its continuations,
    and looking at the greatest first finds paths in order.

    Ends with `most` paths, or when they hold `enough` of the mass, or after `max_looks` beginnings; those that
    hold at most `floor` are let go. `edge_offsets` are those of each head's edges. Returns for each beginning the one
    before it and the edge that continued it, and for each path its last beginning and its share.
    """
    n_times = passing.shape[1] + 1
    n_nodes = len(edge_offsets) - 1
    before, through, at = [-1], [-1], [start]
    first = np.zeros(n_times)
    first[0] = 1.0
    arriving = [first]
    waiting = [(-1.0, 0)]  # a finished path stands there as -1 - its beginning
    ends, shares = [0][:0], [0.0][:0]
    found, looks = 0.0, 0
    blocked = np.zeros(n_nodes, np.bool_)
    while waiting and looks < max_looks and len(ends) < most and found < enough:
        mass, beginning = heapq.heappop(waiting)
        if beginning < 0:
            ends.append(-1 - beginning)
            shares.append(-mass)
            found -= mass
            continue
        looks += 1
        blocked[:] = False
        earlier = before[beginning]
        while earlier >= 0:
            blocked[at[earlier]] = True
            earlier = before[earlier]
        node = at[beginning]
        here = _mass_at(node, arriving[beginning], blocked, heads, tails, passing)
        if node == end:
            if here[-1] > floor:
                heapq.heappush(waiting, (-here[-1], -1 - beginning))
            continue
        blocked[node] = True
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            if blocked[tails[edge]]:
                continue
            there = np.zeros(n_times)
            there[1:] = here[:-1] * passing[edge]
            if there.sum() > floor:
                before.append(beginning)
                through.append(edge)
                at.append(tails[edge])
                arriving.append(there)
                heapq.heappush(waiting, (-there.sum(), len(at) - 1))
    return np.array(before), np.array(through), np.array(ends), np.array(shares)
