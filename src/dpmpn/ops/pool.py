"""Append-only rows with gradients of their own: states are written once and read by row, without dense gradients.

Autograd would answer every read of some rows with a gradient as large as the whole table. A pool keeps one gradient
buffer instead, and reads add to their rows only. A token (a scalar that carries no value) runs through all writes and
reads, so that autograd visits a write only after everything that read from it or after it: then its rows' gradients
are complete.
"""

import torch
from torch import Tensor


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
        start = self.size
        self.token = _Append.apply(self.token, rows, self)
        return start

    def read(self, rows: Tensor) -> Tensor:
        """The rows at these indices."""
        return _Read.apply(self.token, rows, self)

    def _reserve(self, n: int) -> None:
        if n > len(self.values):
            capacity = max(n, 2 * len(self.values))
            self.values = _grown(self.values, capacity, self.size)
        if self.differentiable and len(self.gradients) < len(self.values):
            self.gradients = _grown(self.gradients, len(self.values), min(self.size, len(self.gradients)))


def _grown(buffer: Tensor, capacity: int, used: int) -> Tensor:
    larger = buffer.new_empty(capacity, buffer.shape[1])
    larger[:used] = buffer[:used]
    return larger


class _Append(torch.autograd.Function):
    @staticmethod
    def forward(ctx, token, rows, pool):
        start, stop = pool.size, pool.size + len(rows)
        pool._reserve(stop)
        pool.values[start:stop] = rows
        if pool.differentiable:
            pool.gradients[start:stop] = 0
        pool.size = stop
        ctx.pool, ctx.start, ctx.stop = pool, start, stop
        return token.clone()

    @staticmethod
    def backward(ctx, token_gradient):
        return token_gradient, ctx.pool.gradients[ctx.start : ctx.stop], None


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx, token, rows, pool):
        ctx.pool, ctx.rows = pool, rows
        return pool.values[rows]

    @staticmethod
    def backward(ctx, gradient):
        ctx.pool.gradients.index_add_(0, ctx.rows, gradient)
        return gradient.new_zeros(()), None, None
