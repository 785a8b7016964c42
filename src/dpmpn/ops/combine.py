"""First layers on concatenated vectors, as sums of projections: leakyReLU(sum of one row from each table).

`W [h_i; r; h_j; q]` is `W1 h_i + W2 r + W3 h_j + W4 q`: each part is projected once per node, relation and query, and
an edge only adds rows. Compiled kernels, since the sum in PyTorch is one pass over memory per table and back.
"""

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import float_kernel
from dpmpn.ops.pool import RowPool

SLOPE = 0.2  # of leakyReLU, as in the authors' program
NONE = np.empty(0, np.int64)


@float_kernel
def combine_forward(a, ia, b, ib, c, ic, d, id_, scale, slope, out):
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
def _add_row(table, i, row, width):
    if i >= 0:
        x = table[i]
        for k in range(width):
            x[k] += row[k]


@float_kernel
def combine_backward(gradient, out, slope, ia, da, ib, db, ic, dc, id_, d, dd, scale, dscale):
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
    def forward(ctx, a, ia, b, ib, c, ic, d, id_, scale, token, pool):
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
    def backward(ctx, gradient):
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
    a: Tensor,
    ia: np.ndarray,
    b: Tensor,
    ib: np.ndarray,
    c: Tensor,
    ic: np.ndarray,
    d: Tensor | RowPool | None = None,
    id_: np.ndarray = NONE,
    scale: Tensor | None = None,
) -> Tensor:
    """leakyReLU(a[ia] + b[ib] + c[ic] + scale * d[id]), row by row; an index of -1 contributes nothing."""
    pool = d if isinstance(d, RowPool) else None
    table = d if isinstance(d, Tensor) else a.new_empty(0, a.shape[1])
    return _Combine.apply(a, ia, b, ib, c, ic, table, id_, scale, pool.token if pool else None, pool)
