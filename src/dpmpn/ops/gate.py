"""Messages of (sender, relation) pairs, gated and summed over the edges that carry them, without a row per edge.

All edges of a pair carry the same message, so it is made once and added to each receiver; the backward pass makes it
again instead of keeping it. The gate is a softsign and not a sigmoid: an exponential would not vectorise here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import Floats, Ints, Rows, float_kernel, kernel
from dpmpn.ops.entry import applied, check_shapes
from dpmpn.ops.pool import RowPool

# The flow of a pair: 1, its sender's attention, or what its relation lets through of that.
GATES = ("off", "nodes", "edges")
_OFF, _NODES, _EDGES = range(3)
# Added to the flow into a node before its logarithm is taken: closed gates let none through.
LEAST_FLOW = 1e-12


class MessageColumns:
    """The columns of what a sender and a relation bring to a message; the kernels below know them, too."""

    def __init__(self, n_dims: int) -> None:
        self.value, self.gate = slice(0, n_dims), slice(n_dims, 2 * n_dims)
        self.factor = slice(2 * n_dims, 3 * n_dims)  # of the value; relations alone have one
        self.flow = -1
        self.of_sender, self.of_relation = 2 * n_dims + 1, 3 * n_dims + 1  # how many columns each has


class ReceivedColumns:
    """The columns of what a node has when messages have come; the kernels below know them, too."""

    def __init__(self, n_dims: int) -> None:
        self.state, self.sum = slice(0, n_dims), slice(n_dims, 2 * n_dims)
        self.mean = slice(2 * n_dims, 3 * n_dims)
        self.log_count, self.log_flow = 3 * n_dims, 3 * n_dims + 1
        self.width = 3 * n_dims + 2


def gate(x: Tensor) -> Tensor:
    """A smooth step from 0 to 1: (1 + x / (1 + |x|)) / 2."""
    return (1 + x / (1 + x.abs())) / 2


def gated(sent: Tensor, relation: Tensor, flow: Tensor) -> Tensor:
    """Messages flow * (sent value * (1 + factor) + relation value) * gate(sent + relation's): see `receive`."""
    at = MessageColumns(sent.shape[1] // 2)
    value = sent[:, at.value] * (1 + relation[:, at.factor]) + relation[:, at.value]
    return flow * value * gate(sent[:, at.gate] + relation[:, at.gate])


@float_kernel
def _gated_forward(
    states: Rows, rows: Ints, sent: Rows, relation: Rows, flow: Floats, pair_offsets: Ints, pair_from: Ints,
    pair_row: Ints, edge_slot: Ints, out: Rows,
) -> tuple[Ints, Floats]:  # fmt: skip
    """For each slot: its state, sum and mean of its messages, the logs of their number and flow."""
    width = states.shape[1]
    half, one, least = out.dtype.type(0.5), out.dtype.type(1), out.dtype.type(LEAST_FLOW)
    count, inflow = np.zeros(len(rows), np.int64), np.zeros(len(rows), out.dtype)
    for s in range(len(rows)):
        row, state = out[s], states[rows[s]]
        for k in range(width):
            row[k] = state[k]
            row[width + k] = 0
    message = np.empty(width, out.dtype)
    for p in range(len(pair_from)):
        if pair_offsets[p] == pair_offsets[p + 1]:
            continue
        x, r, f = sent[pair_from[p]], relation[pair_row[p]], half * flow[p]
        for k in range(width):
            y = x[width + k] + r[width + k]
            message[k] = f * (x[k] * (one + r[2 * width + k]) + r[k]) * (one + y / (one + abs(y)))
        for e in range(pair_offsets[p], pair_offsets[p + 1]):
            row = out[edge_slot[e]]
            count[edge_slot[e]] += 1
            inflow[edge_slot[e]] += flow[p]
            for k in range(width):
                row[width + k] += message[k]
    for s in range(len(rows)):
        row = out[s]
        share = one / out.dtype.type(count[s])
        for k in range(width):
            row[2 * width + k] = share * row[width + k]
        row[3 * width] = np.log(out.dtype.type(count[s]))
        row[3 * width + 1] = np.log(inflow[s] + least)
    return count, inflow


@float_kernel
def _gated_backward(
    gradient: Rows, count: Ints, inflow: Floats, rows: Ints, dstates: Rows, attention: Rows, dattention: Rows,
    from_rows: Ints, gates: int, sent: Rows, dsent: Rows, relation: Rows, drelation: Rows, flow: Floats,
    pair_offsets: Ints, pair_from: Ints, pair_row: Ints, edge_slot: Ints,
) -> None:  # fmt: skip
    """Add the gradient of `_gated_forward` and `flows` to the gradients of what they read."""
    width = dstates.shape[1]
    half, one, least = gradient.dtype.type(0.5), gradient.dtype.type(1), gradient.dtype.type(LEAST_FLOW)
    summed, dinflow = np.empty((len(rows), width), gradient.dtype), np.empty(len(rows), gradient.dtype)
    for s in range(len(rows)):
        row, both, state = gradient[s], summed[s], dstates[rows[s]]
        share = one / gradient.dtype.type(count[s])
        for k in range(width):  # the sum is in the mean, too
            both[k] = row[width + k] + share * row[2 * width + k]
            state[k] += row[k]
        dinflow[s] = row[3 * width + 1] / (inflow[s] + least)
    total = np.empty(width, gradient.dtype)
    for p in range(len(pair_from)):
        if pair_offsets[p] == pair_offsets[p + 1]:
            continue
        for k in range(width):
            total[k] = 0
        df = gradient.dtype.type(0)
        for e in range(pair_offsets[p], pair_offsets[p + 1]):
            row = summed[edge_slot[e]]
            df += dinflow[edge_slot[e]]
            for k in range(width):
                total[k] += row[k]
        i, j = pair_from[p], pair_row[p]
        x, r, dx, dr, f = sent[i], relation[j], dsent[i], drelation[j], half * flow[p]
        along = gradient.dtype.type(0)
        for k in range(width):
            y = x[width + k] + r[width + k]
            factor = one + r[2 * width + k]
            value, below = x[k] * factor + r[k], one / (one + abs(y))
            opened = one + y * below
            along += total[k] * value * opened
            dvalue = f * total[k] * opened
            dgate = f * total[k] * value * below * below
            dx[k] += dvalue * factor
            dr[k] += dvalue
            dr[2 * width + k] += dvalue * x[k]
            dx[width + k] += dgate
            dr[width + k] += dgate
        df += half * along
        if gates == _NODES:
            dattention[from_rows[i], 0] += df
        elif gates == _EDGES:
            y = x[2 * width] + r[3 * width]
            below = one / (one + abs(y))
            dattention[from_rows[i], 0] += df * half * (one + y * below)
            dy = df * attention[from_rows[i], 0] * half * below * below
            dx[2 * width] += dy
            dr[3 * width] += dy


@float_kernel
def _flows(
    attention: Rows, from_rows: Ints, sent: Rows, relation: Rows, pair_from: Ints, pair_row: Ints, gates: int,
    flow: Floats,
) -> None:  # fmt: skip
    half, one = flow.dtype.type(0.5), flow.dtype.type(1)
    for p in range(len(flow)):
        i = pair_from[p]
        flow[p] = one if gates == _OFF else attention[from_rows[i], 0]
        if gates == _EDGES:
            y = sent[i, -1] + relation[pair_row[p], -1]
            flow[p] *= half * (one + y / (one + abs(y)))


@kernel
def inflows(n_slots: int, flow: Floats, pair_offsets: Ints, edge_slot: Ints) -> Floats:
    """The attention that flows into each slot."""
    into = np.zeros(n_slots, flow.dtype)
    for p in range(len(flow)):
        for e in range(pair_offsets[p], pair_offsets[p + 1]):
            into[edge_slot[e]] += flow[p]
    return into


@dataclass(frozen=True, eq=False)
class Senders:
    """What attending-from nodes send, and the relations along which they do."""

    attention: RowPool  # one column
    rows: Ints  # senders: the row of each one's attention
    sent: Tensor  # senders x MessageColumns.of_sender
    relation: Tensor  # relations' rows x MessageColumns.of_relation
    gates: str  # one of GATES

    def flows(self, pair_from: Ints, pair_row: Ints) -> Floats:
        """The attention that flows along each edge of a pair: the sender's, as far as the relation lets it."""
        flow = np.empty(len(pair_from), self.sent.detach().numpy().dtype)
        sent, relation = self.sent.detach().numpy(), self.relation.detach().numpy()
        attention = self.attention.values.numpy()
        _flows(attention, self.rows, sent, relation, pair_from, pair_row, GATES.index(self.gates), flow)
        return flow


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states_token: Tensor, attention_token: Tensor, sent: Tensor, relation: Tensor,
        pools: tuple[RowPool, RowPool], rows: Ints, from_rows: Ints, gates: int, flow: Floats,
        pairs: tuple[Ints, Ints, Ints], slot: Ints,
    ) -> Tensor:  # fmt: skip
        states = pools[0].values
        out = sent.new_empty(len(rows), ReceivedColumns(states.shape[1]).width)
        arrays = (states.numpy(), rows, sent.numpy(), relation.numpy(), flow)
        ctx.sums = _gated_forward(*arrays, *pairs, slot, out.numpy())
        ctx.save_for_backward(sent, relation)
        ctx.pools, ctx.arrays = pools, (rows, from_rows, gates, flow, pairs, slot)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, from_rows, gates, flow, (pair_offsets, pair_from, pair_row), slot = ctx.arrays
        count, inflow = ctx.sums
        (sent, relation), (states, attention) = ctx.saved_tensors, ctx.pools
        dsent, drelation = torch.zeros_like(sent), torch.zeros_like(relation)
        _gated_backward(
            gradient.contiguous().numpy(), count, inflow, rows, states.gradients.numpy(),
            attention.values.numpy(), attention.gradients.numpy(), from_rows, gates,
            sent.numpy(), dsent.numpy(), relation.numpy(), drelation.numpy(), flow,
            pair_offsets, pair_from, pair_row, slot,
        )  # fmt: skip
        token = gradient.new_zeros(())
        return token, token, dsent, drelation, *(None,) * 7


def receive(
    states: RowPool,
    rows: Ints,  # slots: the row of each one's state
    senders: Senders,
    flow: Floats,  # pairs: of `Senders.flows`
    pairs: tuple[Ints, Ints, Ints],  # edges' offsets, the sender, the relation's row
    edge_slot: Ints,
) -> Tensor:
    """What each slot has of its in-edges: slots x ReceivedColumns.width.

    Its state; the sum and the mean of the messages, flow * value * gate; and the logarithms of their number and of the
    sum of their flows. The sum tells how much speaks for a node, the mean what does.
    """
    pair_offsets, pair_from, pair_row = pairs
    columns = MessageColumns(states.values.shape[1])
    check_shapes(
        "receive", sent=(senders.sent, f"senders {columns.of_sender}"), senders=(senders.rows, "senders"),
        relation=(senders.relation, f"_ {columns.of_relation}"), attention=(senders.attention.values, "_ 1"),
        rows=(rows, "slots"), flow=(flow, "pairs"), pair_offsets=(pair_offsets, "pairs+1"),
        pair_from=(pair_from, "pairs"), pair_row=(pair_row, "pairs"), edge_slot=(edge_slot, "edges"),
    )  # fmt: skip
    pools, gates = (states, senders.attention), GATES.index(senders.gates)
    tensors = states.token, senders.attention.token, senders.sent, senders.relation
    return applied(_Gated)(*tensors, pools, rows, senders.rows, gates, flow, pairs, edge_slot)
