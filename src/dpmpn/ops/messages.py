"""Message passing, fused: first layers as sums of projections, then messages and their sums, block by block.

`W [h_i; r; h_j; q]` is `W1 h_i + W2 r + W3 h_j + W4 q`: each part is projected once per node, relation and query, and
an edge only adds rows. Compiled kernels, since the sum in PyTorch is one pass over memory per table and back.

A block of edges stays in the cache from the first layer to the sums of its messages, and the hidden layer is computed
again in the backward pass instead of being kept: the messages of a batch are many times the size of the cache.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import Floats, Ints, Rows, float_kernel
from dpmpn.ops.entry import applied, check_shapes
from dpmpn.ops.pool import RowPool

SLOPE = 0.2  # of leakyReLU, as in the authors' program
BLOCK = 2048  # edges
_NONE = np.empty(0, np.int64)


@float_kernel
def combine_forward(
    a: Rows, ia: Ints, b: Rows, ib: Ints, c: Rows, ic: Ints, d: Rows, id_: Ints, scale: Floats, slope: float,
    out: Rows,
) -> None:  # fmt: skip
    """out = leakyReLU(a[ia] + b[ib] + c[ic] + scale * d[id]); no `id_`: no fourth table, no `scale`: 1."""
    width = out.shape[1]
    for i in range(len(out)):
        row = out[i]
        if ia[i] >= 0:
            x = a[ia[i]]
            for k in range(width):
                row[k] = x[k]
        else:
            for k in range(width):
                row[k] = 0
        if ib[i] >= 0:
            x = b[ib[i]]
            for k in range(width):
                row[k] += x[k]
        if ic[i] >= 0:
            x = c[ic[i]]
            for k in range(width):
                row[k] += x[k]
        if len(id_) and id_[i] >= 0:
            x = d[id_[i]]
            s = scale[i] if len(scale) else out.dtype.type(1)
            for k in range(width):
                row[k] += s * x[k]
        for k in range(width):
            row[k] = max(row[k], slope * row[k])


@float_kernel
def _add_row(table: Rows, i: int, row: Floats, width: int) -> None:
    if i >= 0:
        x = table[i]
        for k in range(width):
            x[k] += row[k]


@float_kernel
def combine_backward(
    gradient: Rows, out: Rows, slope: float, ia: Ints, da: Rows, ib: Ints, db: Rows, ic: Ints, dc: Rows,
    id_: Ints, d: Rows, dd: Rows, scale: Floats, dscale: Floats,
) -> None:  # fmt: skip
    """Add the gradient of `combine_forward` to the gradients of its tables."""
    width = out.shape[1]
    one = out.dtype.type(1)
    row = np.empty(width, out.dtype)
    for i in range(len(out)):
        g, o = gradient[i], out[i]
        for k in range(width):
            row[k] = g[k] * (one if o[k] > 0 else slope)
        _add_row(da, ia[i], row, width)
        _add_row(db, ib[i], row, width)
        _add_row(dc, ic[i], row, width)
        if len(id_) and id_[i] >= 0:
            x, y = d[id_[i]], dd[id_[i]]
            if len(scale):
                total = out.dtype.type(0)
                s = scale[i]
                for k in range(width):
                    total += row[k] * x[k]
                    y[k] += s * row[k]
                dscale[i] = total
            else:
                for k in range(width):
                    y[k] += row[k]


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, a: Tensor, ia: Ints, b: Tensor, ib: Ints, c: Tensor, ic: Ints, d: Tensor, id_: Ints,
        scale: Tensor | None, token: Tensor | None, pool: RowPool | None,
    ) -> Tensor:  # fmt: skip
        d_values = (pool.values if pool is not None else d).numpy()
        scale_values = scale.numpy() if scale is not None else np.empty(0, a.numpy().dtype)
        out = torch.empty(len(ia), a.shape[1], dtype=a.dtype)
        slope = out.numpy().dtype.type(SLOPE)
        combine_forward(
            a.numpy(), ia, b.numpy(), ib, c.numpy(), ic, d_values, id_, scale_values, slope, out.numpy()
        )
        ctx.indices, ctx.pool, ctx.shapes = (ia, ib, ic, id_), pool, (a.shape, b.shape, c.shape, d.shape)
        ctx.scaled = scale is not None
        ctx.save_for_backward(out, d, *([scale] if ctx.scaled else []))
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        out, d, *rest = ctx.saved_tensors
        scale = rest[0] if ctx.scaled else out.new_empty(0)
        ia, ib, ic, id_ = ctx.indices
        da, db, dc = (out.new_zeros(shape) for shape in ctx.shapes[:3])
        pool = ctx.pool
        d_values, dd = (pool.values, pool.gradients) if pool is not None else (d, torch.zeros_like(d))
        dscale = torch.zeros_like(scale)
        slope = out.numpy().dtype.type(SLOPE)
        combine_backward(
            gradient.contiguous().numpy(), out.numpy(), slope, ia, da.numpy(), ib, db.numpy(), ic, dc.numpy(),
            id_, d_values.numpy(), dd.numpy(), scale.numpy(), dscale.numpy(),
        )  # fmt: skip
        return (
            da, None, db, None, dc, None,
            None if pool is not None else dd, None,
            dscale if ctx.scaled else None,
            None if pool is None else out.new_zeros(()), None,
        )  # fmt: skip


def combine_leaky(
    a: Tensor, ia: Ints, b: Tensor, ib: Ints, c: Tensor, ic: Ints,
    d: Tensor | RowPool | None = None, id_: Ints = _NONE, scale: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """leakyReLU(a[ia] + b[ib] + c[ic] + scale * d[id]), row by row; an index of -1 contributes nothing."""
    pool = d if isinstance(d, RowPool) else None
    table = d if isinstance(d, Tensor) else a.new_empty(0, a.shape[1])
    check_shapes(
        "combine_leaky", a=(a, "_ width"), ia=(ia, "rows"), b=(b, "_ width"), ib=(ib, "rows"),
        c=(c, "_ width"), ic=(ic, "rows"), d=(pool.values if pool else table, "_ width"),
        id_=(None if d is None else id_, "rows"), scale=(scale, "rows"),
    )  # fmt: skip
    return applied(_Combine)(a, ia, b, ib, c, ic, table, id_, scale, pool.token if pool else None, pool)


@float_kernel
def _sum_rows(messages: Rows, receiver: Ints, scale: Floats, out: Rows) -> None:
    width = out.shape[1]
    for e in range(len(receiver)):
        row, m, s = out[receiver[e]], messages[e], scale[receiver[e]]
        for k in range(width):
            row[k] += s * m[k]


@float_kernel
def _message_gradient(gradient: Rows, messages: Rows, receiver: Ints, scale: Floats, out: Rows) -> None:
    width = out.shape[1]
    one = out.dtype.type(1)
    for e in range(len(receiver)):
        row, m, g, s = out[e], messages[e], gradient[receiver[e]], scale[receiver[e]]
        for k in range(width):
            row[k] = s * g[k] * (one - m[k] * m[k])


def _hidden(tables: Sequence[Tensor], index: Sequence[Ints], out: Tensor) -> None:
    """The hidden layer of a block of edges."""
    a, b, c, d = (table.numpy() for table in tables)
    ia, ib, ic, id_ = index
    values = out.numpy()
    no_scale, slope = np.empty(0, values.dtype), values.dtype.type(SLOPE)
    combine_forward(a, ia, b, ib, c, ic, d, id_, no_scale, slope, values)


class _Messages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, c: Tensor, d: Tensor, weight: Tensor, bias: Tensor,
        index: tuple[Ints, ...], receiver: Ints, n_receivers: int, keep: bool,
    ) -> Tensor:  # fmt: skip
        count = np.maximum(np.bincount(receiver, minlength=n_receivers), 1)
        scale = (1.0 / np.sqrt(count)).astype(a.numpy().dtype)
        out = a.new_zeros(n_receivers, len(bias))
        messages = a.new_empty(len(receiver) if keep else min(BLOCK, len(receiver)), len(bias))
        hidden = a.new_empty(min(BLOCK, len(receiver)), a.shape[1])
        for start in range(0, len(receiver), BLOCK):
            rows = slice(start, start + BLOCK)
            block = messages[rows] if keep else messages[: len(receiver) - start]
            part = hidden[: len(block)]
            _hidden((a, b, c, d), [at[rows] for at in index], part)
            torch.addmm(bias, part, weight.t(), out=block).tanh_()
            _sum_rows(block.numpy(), receiver[rows], scale, out.numpy())
        ctx.save_for_backward(a, b, c, d, weight, bias, messages)
        ctx.index, ctx.receiver, ctx.scale = index, receiver, scale
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *tables, weight, bias, messages = ctx.saved_tensors
        da, db, dc, dd = (torch.zeros_like(x) for x in tables)
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        hidden = weight.new_empty(min(BLOCK, len(messages)), weight.shape[1])
        inner, dhidden = torch.empty_like(hidden), torch.empty_like(hidden)
        received, d = gradient.contiguous().numpy(), tables[3].numpy()
        no_scale, slope = np.empty(0, received.dtype), received.dtype.type(SLOPE)
        for start in range(0, len(messages), BLOCK):
            rows = slice(start, start + BLOCK)
            block = messages[rows]
            h, g, dh = hidden[: len(block)], inner[: len(block)], dhidden[: len(block)]
            ia, ib, ic, id_ = index = [at[rows] for at in ctx.index]
            _hidden(tables, index, h)
            _message_gradient(received, block.numpy(), ctx.receiver[rows], ctx.scale, g.numpy())
            torch.mm(g, weight, out=dh)
            dweight.addmm_(g.t(), h)
            dbias += g.sum(0)
            combine_backward(
                dh.numpy(), h.numpy(), slope, ia, da.numpy(), ib, db.numpy(), ic, dc.numpy(),
                id_, d, dd.numpy(), no_scale, no_scale,
            )  # fmt: skip
        return da, db, dc, dd, dweight, dbias, None, None, None, None


def pass_messages(
    tables: tuple[Tensor, ...],  # three or four, rows x n_dims
    index: tuple[Ints, ...],  # for each table, the row each edge takes; -1 for none
    weight: Tensor,
    bias: Tensor,
    receiver: Ints,
    n_receivers: int,
) -> Tensor:
    """1/sqrt(N(v)) * sum over the messages to v of tanh(W leakyReLU(sum of the edge's rows) + b); zero without any."""
    a, b, c, *rest = tables
    d = rest[0] if rest else a.new_empty(0, a.shape[1])
    index = index if rest else (*index, _NONE)
    check_shapes(
        "pass_messages", receiver=(receiver, "edges"),
        **{f"tables[{i}]": (table, "_ width") for i, table in enumerate(tables)},
        **{f"index[{i}]": (at, "edges") for i, at in enumerate(index[: len(tables)])},
        weight=(weight, "out width"), bias=(bias, "out"),
    )  # fmt: skip
    keep = torch.is_grad_enabled()  # for the backward pass
    return applied(_Messages)(a, b, c, d, weight, bias, index, receiver, n_receivers, keep)
