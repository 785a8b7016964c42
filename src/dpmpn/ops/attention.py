"""Edge attention, fused: bilinear logits per edge, softmax per attending-from node, and the flow to the next step."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import Floats, Ints, Rows, float_kernel, kernel
from dpmpn.ops.entry import applied, check_shapes
from dpmpn.ops.messages import SLOPE
from dpmpn.ops.pool import RowPool

_EdgeIndex = tuple[Ints, Ints, Ints, Ints, Ints, Ints]


@float_kernel
def _logits_forward(
    m: Rows, const: Floats, rel: Rows, qry: Rows, vis: Rows, nodes: Rows, pair_offsets: Ints, pair_relation: Ints,
    pair_query: Ints, edge_slot: Ints, slot_state: Ints, slot_id: Ints, slope: float, out: Floats,
) -> None:  # fmt: skip
    att = vis.shape[1]
    base, first = np.empty(2 * att, m.dtype), np.empty(att, m.dtype)
    for p in range(len(pair_relation)):
        left, r, q = m[p], rel[pair_relation[p]], qry[pair_query[p]]
        for k in range(2 * att):
            base[k] = r[k] + q[k]
        unvisited = const[p]
        for k in range(att):
            first[k] = left[k] * max(base[k], slope * base[k])
        for k in range(att):
            unvisited += first[k]
        for e in range(pair_offsets[p], pair_offsets[p + 1]):
            slot = edge_slot[e]
            total = m.dtype.type(0)
            state = slot_state[slot]
            if state >= 0:
                row = vis[state]
                for k in range(att):
                    x = base[k] + row[k]
                    total += left[k] * max(x, slope * x)
                total += const[p]
            else:
                total = unvisited
            row = nodes[slot_id[slot]]
            second = m.dtype.type(0)
            for k in range(att):
                x = base[att + k] + row[k]
                second += left[att + k] * max(x, slope * x)
            out[e] = total + second


@float_kernel
def _logits_backward(
    grad: Floats, m: Rows, rel: Rows, qry: Rows, vis: Rows, nodes: Rows, pair_offsets: Ints, pair_relation: Ints,
    pair_query: Ints, edge_slot: Ints, slot_state: Ints, slot_id: Ints, slope: float, dm: Rows, dconst: Floats,
    drel: Rows, dqry: Rows, dvis: Rows, dnodes: Rows,
) -> None:  # fmt: skip
    att = vis.shape[1]
    one = m.dtype.type(1)
    base, dbase = np.empty(2 * att, m.dtype), np.empty(2 * att, m.dtype)
    for p in range(len(pair_relation)):
        left, dleft = m[p], dm[p]
        r, q = rel[pair_relation[p]], qry[pair_query[p]]
        for k in range(2 * att):
            base[k] = r[k] + q[k]
            dbase[k] = 0
        all_edges, unvisited = m.dtype.type(0), m.dtype.type(0)
        for e in range(pair_offsets[p], pair_offsets[p + 1]):
            g, slot = grad[e], edge_slot[e]
            all_edges += g
            state = slot_state[slot]
            if state >= 0:
                row, drow = vis[state], dvis[state]
                for k in range(att):
                    x = base[k] + row[k]
                    s = one if x > 0 else slope
                    dleft[k] += g * s * x
                    dx = g * left[k] * s
                    drow[k] += dx
                    dbase[k] += dx
            else:
                unvisited += g
            row, drow = nodes[slot_id[slot]], dnodes[slot_id[slot]]
            for k in range(att):
                x = base[att + k] + row[k]
                s = one if x > 0 else slope
                dleft[att + k] += g * s * x
                dx = g * left[att + k] * s
                drow[k] += dx
                dbase[att + k] += dx
        for k in range(att):
            s = one if base[k] > 0 else slope
            dleft[k] += unvisited * s * base[k]
            dbase[k] += unvisited * left[k] * s
        dconst[p] = all_edges
        dr, dq = drel[pair_relation[p]], dqry[pair_query[p]]
        for k in range(2 * att):
            dr[k] += dbase[k]
            dq[k] += dbase[k]


class _EdgeLogits(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, left: Tensor, const: Tensor, rel: Tensor, qry: Tensor, vis: Tensor, token: Tensor,
        pool: RowPool, index: _EdgeIndex,
    ) -> Tensor:  # fmt: skip
        out = torch.empty(len(index[3]), dtype=left.dtype)
        slope = out.numpy().dtype.type(SLOPE)
        _logits_forward(
            left.numpy(), const.numpy(), rel.numpy(), qry.numpy(), vis.numpy(), pool.values.numpy(),
            *index, slope, out.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(left, rel, qry, vis)
        ctx.pool, ctx.index = pool, index
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, rel, qry, vis = ctx.saved_tensors
        pool: RowPool = ctx.pool
        index: _EdgeIndex = ctx.index
        dleft, drel, dqry, dvis = (torch.zeros_like(x) for x in (left, rel, qry, vis))
        dconst = left.new_empty(len(left))
        slope = left.numpy().dtype.type(SLOPE)
        _logits_backward(
            gradient.contiguous().numpy(), left.numpy(), rel.numpy(), qry.numpy(), vis.numpy(), pool.values.numpy(),
            *index, slope,
            dleft.numpy(), dconst.numpy(), drel.numpy(), dqry.numpy(), dvis.numpy(), pool.gradients.numpy(),
        )  # fmt: skip
        return dleft, dconst, drel, dqry, dvis, left.new_zeros(()), None, None


def edge_logits(
    left: Tensor,  # pairs x 2 n_dims_att: W^T of the left sides of alpha1 and alpha2
    const: Tensor,  # pairs: the part of the logit that does not depend on the tail
    relation: Tensor,  # relations x 2 n_dims_att: right sides, the relation's part
    query: Tensor,  # queries x 2 n_dims_att: right sides, the query's part
    visited: Tensor,  # states x n_dims_att: right side of alpha1, the tail's AGNN part
    nodes: RowPool,  # entities x n_dims_att: right side of alpha2, the tail's IGNN part
    pair_offsets: Ints,
    pair_relation: Ints,
    pair_query: Ints,
    edge_slot: Ints,
    slot_state: Ints,  # row of `visited`, -1 for nodes not visited yet (zero after the projection)
    slot_id: Ints,  # row of `nodes`
) -> Tensor:
    """Transition logits alpha1 + alpha2 of every edge.

    left[p] . leakyReLU([visited[v]; nodes[v]] + relation[r] + query[q]) + const[p]
    """
    check_shapes(
        "edge_logits", left=(left, "pairs width"), const=(const, "pairs"), relation=(relation, "relations width"),
        query=(query, "queries width"), visited=(visited, f"states {left.shape[1] // 2}"),
        nodes=(nodes.values, f"_ {left.shape[1] // 2}"), pair_offsets=(pair_offsets, "pairs+1"),
        pair_relation=(pair_relation, "pairs"), pair_query=(pair_query, "pairs"), edge_slot=(edge_slot, "edges"),
        slot_state=(slot_state, "slots"), slot_id=(slot_id, "slots"),
    )  # fmt: skip
    index = (pair_offsets, pair_relation, pair_query, edge_slot, slot_state, slot_id)
    return applied(_EdgeLogits)(left, const, relation, query, visited, nodes.token, nodes, index)


@kernel
def parallel_edges(edge_offsets: Ints, edge_slot: Ints, n_slots: int) -> Ints:
    """For each edge, how many edges lead from its attending-from node to its tail."""
    count = np.zeros(n_slots, np.int64)
    out = np.empty(len(edge_slot), np.int64)
    for i in range(len(edge_offsets) - 1):
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            count[edge_slot[e]] += 1
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            out[e] = count[edge_slot[e]]
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            count[edge_slot[e]] = 0
    return out


@kernel
def _sum_parallel(values: Floats, edge_offsets: Ints, edge_slot: Ints, n_slots: int) -> Floats:
    """Each edge's value replaced by the sum over the edges parallel to it."""
    total = np.zeros(n_slots, values.dtype)
    out = np.empty_like(values)
    for i in range(len(edge_offsets) - 1):
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            total[edge_slot[e]] += values[e]
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            out[e] = total[edge_slot[e]]
        for e in range(edge_offsets[i], edge_offsets[i + 1]):
            total[edge_slot[e]] = 0
    return out


@float_kernel
def _flow_forward(
    logits: Floats, multiplicity: Ints, attention: Floats, from_query: Ints, edge_offsets: Ints, edge_slot: Ints,
    transition: Floats, total: Floats, out: Floats,
) -> None:  # fmt: skip
    for i in range(len(attention)):
        start, stop = edge_offsets[i], edge_offsets[i + 1]
        largest = logits[start]
        for e in range(start, stop):
            largest = max(largest, logits[e])
        normaliser = logits.dtype.type(0)
        for e in range(start, stop):
            transition[e] = np.exp(logits[e] - largest)
            if len(multiplicity):
                transition[e] /= multiplicity[e]
            normaliser += transition[e]
        for e in range(start, stop):
            transition[e] /= normaliser
            out[edge_slot[e]] += attention[i] * transition[e]
        total[from_query[i]] += attention[i]


@kernel
def _divide_by_query(values: Floats, slot_offsets: Ints, total: Floats) -> None:
    """Where the total is 0, all values are, and stay so."""
    for q in range(len(slot_offsets) - 1):
        if total[q] == 0:
            continue
        for s in range(slot_offsets[q], slot_offsets[q + 1]):
            values[s] /= total[q]


@float_kernel
def _flow_backward(
    grad: Floats, out: Floats, transition: Floats, multiplicity: Ints, attention: Floats, total: Floats,
    from_query: Ints, edge_offsets: Ints, edge_slot: Ints, slot_offsets: Ints, dlogits: Floats,
    dattention: Floats,
) -> None:  # fmt: skip
    for q in range(len(slot_offsets) - 1):
        weighted = grad.dtype.type(0)
        for s in range(slot_offsets[q], slot_offsets[q + 1]):
            weighted += grad[s] * out[s]
        # grad becomes d/d(unnormalised attention), including the normaliser's part: it is shared by all slots.
        for s in range(slot_offsets[q], slot_offsets[q + 1]):
            grad[s] = (grad[s] - weighted) / total[q] if total[q] != 0 else grad.dtype.type(0)
    for i in range(len(attention)):
        start, stop = edge_offsets[i], edge_offsets[i + 1]
        mean = grad.dtype.type(0)
        for e in range(start, stop):
            mean += transition[e] * grad[edge_slot[e]]
        dattention[i] = mean
        for e in range(start, stop):
            dlogits[e] = attention[i] * transition[e] * (grad[edge_slot[e]] - mean)
            if len(multiplicity):
                dlogits[e] *= multiplicity[e]


class _Flow(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, attention: Tensor, from_query: Ints, edge_offsets: Ints, edge_slot: Ints,
        slot_offsets: Ints, multiplicity: Ints,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        n_slots = int(slot_offsets[-1])
        values = logits.numpy()
        if len(multiplicity):
            values = _sum_parallel(values, edge_offsets, edge_slot, n_slots)
        transition, out = torch.empty_like(logits), logits.new_zeros(n_slots)
        total = np.zeros(len(slot_offsets) - 1, values.dtype)
        _flow_forward(
            values, multiplicity, attention.numpy(), from_query, edge_offsets, edge_slot,
            transition.numpy(), total, out.numpy(),
        )  # fmt: skip
        _divide_by_query(out.numpy(), slot_offsets, total)
        ctx.save_for_backward(transition, attention, out)
        ctx.index = from_query, edge_offsets, edge_slot, slot_offsets, multiplicity, total
        ctx.mark_non_differentiable(transition)
        return out, transition

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        transition, attention, out = ctx.saved_tensors
        from_query, edge_offsets, edge_slot, slot_offsets, multiplicity, total = ctx.index
        dlogits, dattention = torch.empty_like(transition), torch.empty_like(attention)
        _flow_backward(
            gradient.clone().numpy(), out.numpy(), transition.numpy(), multiplicity, attention.numpy(), total,
            from_query, edge_offsets, edge_slot, slot_offsets, dlogits.numpy(), dattention.numpy(),
        )  # fmt: skip
        return dlogits, dattention, None, None, None, None, None


def flow_attention(
    logits: Tensor,  # edges
    attention: Tensor,  # attending-from nodes: a^t
    from_query: Ints,
    edge_offsets: Ints,
    edge_slot: Ints,
    slot_offsets: Ints,
    softmax: str,
) -> tuple[Tensor, Tensor]:
    """The next attention a^{t+1} = T a / ||T a|| per slot, and the transition T per edge.

    softmax "edge": one softmax entry per edge, parallel edges add up. "pair": logits of parallel edges are summed to
    one entry per tail; the tail's transition is then shared evenly by its edges. A query none of whose senders has
    attention has none afterwards.
    """
    check_shapes(
        "flow_attention", logits=(logits, "edges"), attention=(attention, "senders"),
        from_query=(from_query, "senders"), edge_offsets=(edge_offsets, "senders+1"), edge_slot=(edge_slot, "edges"),
    )  # fmt: skip
    multiplicity: Ints = np.empty(0, np.int64)
    if softmax == "pair":
        multiplicity = parallel_edges(edge_offsets, edge_slot, int(slot_offsets[-1]))
    return applied(_Flow)(logits, attention, from_query, edge_offsets, edge_slot, slot_offsets, multiplicity)
