"""Products of a constant sparse matrix with a dense one, in compiled loops over its rows."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import float_kernel


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix by rows."""

    offsets: np.ndarray  # rows + 1
    columns: np.ndarray  # int64
    values: np.ndarray
    n_columns: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def dense(self, like: Tensor) -> Tensor:
        """The whole matrix, for small ones and tests."""
        out = np.zeros((len(self), self.n_columns))
        row = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        out[row, self.columns] = self.values
        return torch.from_numpy(out).to(like)


@float_kernel
def _forward(offsets, columns, values, x, out):
    width = x.shape[1]
    for i in range(len(out)):
        row = out[i]
        for j in range(offsets[i], offsets[i + 1]):
            v, column = out.dtype.type(values[j]), x[columns[j]]
            for k in range(width):
                row[k] += v * column[k]


@float_kernel
def _backward(offsets, columns, values, gradient, dx):
    width = dx.shape[1]
    for i in range(len(gradient)):
        row = gradient[i]
        for j in range(offsets[i], offsets[i + 1]):
            v, column = dx.dtype.type(values[j]), dx[columns[j]]
            for k in range(width):
                column[k] += v * row[k]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, matrix):
        ctx.matrix, ctx.shape = matrix, x.shape
        out = x.new_zeros(len(matrix), x.shape[1])
        _forward(matrix.offsets, matrix.columns, matrix.values, x.contiguous().numpy(), out.numpy())
        return out

    @staticmethod
    def backward(ctx, gradient):
        matrix, dx = ctx.matrix, gradient.new_zeros(ctx.shape)
        _backward(matrix.offsets, matrix.columns, matrix.values, gradient.contiguous().numpy(), dx.numpy())
        return dx, None


def sparse_product(matrix: SparseRows, x: Tensor) -> Tensor:
    """matrix @ x: rows x width."""
    return _Product.apply(x, matrix)
