"""Append-only rows with gradients of their own: states are written once and read by row, without dense gradients.

Autograd would answer every read of some rows with a gradient as large as the whole table. A pool keeps one gradient
buffer instead, and reads add to their rows only. A token (a scalar that carries no value) runs through all writes and
reads, so that autograd visits a write only after everything that read from it or after it: then its rows' gradients
are complete.
"""

from typing import Any

import torch
from torch import Tensor

from dpmpn.kernels import Rows, float_kernel
from dpmpn.ops.entry import applied, check_shapes


class RowPool:
    """Rows of one width that grow by appending; `clear` starts anew in the same memory."""

    def __init__(self, width: int, dtype: torch.dtype, capacity: int = 1024) -> None:
        self.values = torch.empty(capacity, width, dtype=dtype)
        self.gradients = torch.empty(0, width, dtype=dtype)
        self.clear(differentiable=False)

    def clear(self, differentiable: bool) -> None:
        """Forget all rows."""
        self.differentiable = differentiable
        self.size = 0
        self.token = torch.zeros((), dtype=self.values.dtype, requires_grad=differentiable)

    def append(self, rows: Tensor) -> int:
        """Append rows and return the index of the first."""
        check_shapes("RowPool.append", pool=(self.values, "_ width"), rows=(rows, "rows width"))
        start = self.size
        self.token = applied(_Append)(self.token, rows, self)
        return start

    def append_updated(self, states: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> int:
        """Append states + tanh(W hidden + b), and tanh(W hidden + b) alone for hidden rows beyond the states.

        One pass with its own backward instead of five: the rows are written where they stay.
        """
        check_shapes(
            "RowPool.append_updated", pool=(self.values, "_ width"), states=(states, "states width"),
            hidden=(hidden, "rows hidden"), weight=(weight, "width hidden"), bias=(bias, "width"),
        )  # fmt: skip
        start = self.size
        self.token = applied(_AppendUpdated)(self.token, states, hidden, weight, bias, self)
        return start

    def read(self, rows: Tensor) -> Tensor:
        """The rows at these indices."""
        return applied(_Read)(self.token, rows, self)

    def _extend(self, count: int) -> slice:
        """Room for `count` more rows, with gradients zero."""
        start, stop = self.size, self.size + count
        if stop > len(self.values):
            capacity = max(stop, 2 * len(self.values))
            self.values = _grown(self.values, capacity, self.size)
        if self.differentiable and len(self.gradients) < len(self.values):
            self.gradients = _grown(self.gradients, len(self.values), min(self.size, len(self.gradients)))
        if self.differentiable:
            self.gradients[start:stop] = 0
        self.size = stop
        return slice(start, stop)


class RowPools(dict[str, RowPool]):
    """The pools that one thread uses again for batch after batch: fresh memory costs more than the sums made in it."""

    def __init__(self, dtype: torch.dtype, **widths: int) -> None:
        super().__init__({name: RowPool(width, dtype) for name, width in widths.items()})

    def clear(self, differentiable: bool = False) -> None:
        """Make ready for the next batch."""
        for pool in self.values():
            pool.clear(differentiable)


def _grown(buffer: Tensor, capacity: int, used: int) -> Tensor:
    larger = buffer.new_empty(capacity, buffer.shape[1])
    larger[:used] = buffer[:used]
    return larger


class _Append(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, rows: Tensor, pool: RowPool) -> Tensor:
        ctx.pool, ctx.rows = pool, pool._extend(len(rows))
        pool.values[ctx.rows] = rows
        return token.clone()

    @staticmethod
    def backward(ctx: Any, token_gradient: Tensor) -> tuple[Tensor | None, ...]:
        return token_gradient, ctx.pool.gradients[ctx.rows], None


@float_kernel
def _tanh_gradient(gradient: Rows, change: Rows, out: Rows) -> None:
    one = out.dtype.type(1)
    for i in range(len(out)):
        for k in range(out.shape[1]):
            out[i, k] = gradient[i, k] * (one - change[i, k] * change[i, k])


class _AppendUpdated(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, token: Tensor, states: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor, pool: RowPool
    ) -> Tensor:
        change = torch.addmm(bias, hidden, weight.t()).tanh_()
        ctx.pool, ctx.rows, ctx.n_states = pool, pool._extend(len(change)), len(states)
        rows = pool.values[ctx.rows]
        torch.add(states, change[: len(states)], out=rows[: len(states)])
        rows[len(states) :] = change[len(states) :]
        ctx.save_for_backward(hidden, weight, change)
        return token.clone()

    @staticmethod
    def backward(ctx: Any, token_gradient: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, change = ctx.saved_tensors
        gradient = ctx.pool.gradients[ctx.rows]
        inner = torch.empty_like(change)
        _tanh_gradient(gradient.numpy(), change.numpy(), inner.numpy())
        states = gradient[: ctx.n_states]
        return token_gradient, states, inner @ weight, inner.t() @ hidden, inner.sum(0), None


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, token: Tensor, rows: Tensor, pool: RowPool) -> Tensor:
        ctx.pool, ctx.rows = pool, rows
        return pool.values.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ctx.pool.gradients.index_add_(0, ctx.rows, gradient)
        return gradient.new_zeros(()), None, None
