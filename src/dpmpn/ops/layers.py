"""Layers of the stronger model, fused, each with its own backward pass: update of states, score, sparse product."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import Floats, Ints, Rows, float_kernel
from dpmpn.ops.entry import applied, check_shapes

EPSILON = 1e-5  # beside the variance, as in PyTorch's layer_norm
_NO_PROFILE = np.empty(0, np.int64)


@float_kernel
def _update_forward(
    received: Rows, normal: Rows, query: Rows, of_query: Ints, weight: Floats, bias: Floats, out: Rows, scale: Floats,
) -> None:  # fmt: skip
    """`normal` holds the change, and is normalised in place."""
    width = out.shape[1]
    inverse = out.dtype.type(1.0 / width)
    for i in range(len(out)):
        c, q, old, row = normal[i], query[of_query[i]], received[i], out[i]
        mean, square = out.dtype.type(0), out.dtype.type(0)
        for k in range(width):
            c[k] += q[k]
            mean += c[k]
        mean *= inverse
        for k in range(width):
            c[k] -= mean
            square += c[k] * c[k]
        s = out.dtype.type(1) / np.sqrt(square * inverse + out.dtype.type(EPSILON))
        scale[i] = s
        for k in range(width):
            c[k] *= s
            row[k] = old[k] + max(c[k] * weight[k] + bias[k], out.dtype.type(0))


@float_kernel
def _update_backward(
    gradient: Rows, normal: Rows, scale: Floats, of_query: Ints, weight: Floats, bias: Floats,
    dnormal: Rows, dquery: Rows, dweight: Floats, dbias: Floats,
) -> None:  # fmt: skip
    width = gradient.shape[1]
    inverse, zero = gradient.dtype.type(1.0 / width), gradient.dtype.type(0)
    for i in range(len(gradient)):
        g, n, d, dq = gradient[i], normal[i], dnormal[i], dquery[of_query[i]]
        mean, along = zero, zero
        for k in range(width):
            passed = g[k] if n[k] * weight[k] + bias[k] > 0 else zero
            dweight[k] += passed * n[k]
            dbias[k] += passed
            d[k] = passed * weight[k]
            mean += d[k]
            along += d[k] * n[k]
        mean *= inverse
        along *= inverse
        for k in range(width):
            d[k] = scale[i] * (d[k] - mean - n[k] * along)
            dq[k] += d[k]


class _Update(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        received: Tensor,
        change: Tensor,
        query: Tensor,
        of_query: Ints,
        weight: Tensor,
        bias: Tensor,
    ) -> Tensor:
        normal = received @ change
        out, scale = torch.empty_like(normal), normal.new_empty(len(normal))
        _update_forward(
            received.numpy(), normal.numpy(), query.numpy(), of_query, weight.numpy(), bias.numpy(),
            out.numpy(), scale.numpy(),
        )  # fmt: skip
        ctx.save_for_backward(received, change, normal, scale, weight, bias, query)
        ctx.of_query = of_query
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        received, change, normal, scale, weight, bias, query = ctx.saved_tensors
        dnormal, dquery = torch.empty_like(normal), torch.zeros_like(query)
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        _update_backward(
            gradient.contiguous().numpy(), normal.numpy(), scale.numpy(), ctx.of_query, weight.numpy(), bias.numpy(),
            dnormal.numpy(), dquery.numpy(), dweight.numpy(), dbias.numpy(),
        )  # fmt: skip
        dreceived = dnormal @ change.t()
        dreceived[:, : gradient.shape[1]] += gradient
        return dreceived, received.t() @ dnormal, dquery, None, dweight, dbias


def updated(
    received: Tensor,  # nodes x any number, old states on the left
    change: Tensor,  # that number x n_dims
    query: Tensor,  # queries x n_dims: added to the change of each of its nodes
    of_query: Ints,  # nodes
    weight: Tensor,
    bias: Tensor,
) -> Tensor:
    """old + ReLU(weight * norm(received @ change + query) + bias) for each node."""
    check_shapes(
        "updated", received=(received, "nodes received"), change=(change, "received width"),
        query=(query, "queries width"), of_query=(of_query, "nodes"), weight=(weight, "width"), bias=(bias, "width"),
    )  # fmt: skip
    return applied(_Update)(received, change, query, of_query, weight, bias)


@float_kernel
def _score_forward(
    node: Rows, query: Rows, of_query: Ints, profile: Rows, of_profile: Ints, weight: Rows, out: Floats
) -> None:
    width = node.shape[1]
    for i in range(len(out)):
        n, q, w = node[i], query[of_query[i]], weight[of_query[i]]
        total = node.dtype.type(0)
        if len(of_profile):
            p = profile[of_profile[i]]
            for k in range(width):
                total += max(n[k] + q[k] + p[k], node.dtype.type(0)) * w[k]
        else:
            for k in range(width):
                total += max(n[k] + q[k], node.dtype.type(0)) * w[k]
        out[i] = total


@float_kernel
def _score_backward(
    gradient: Floats, node: Rows, query: Rows, of_query: Ints, profile: Rows, of_profile: Ints, weight: Rows,
    dnode: Rows, dquery: Rows, dprofile: Rows, dweight: Rows,
) -> None:  # fmt: skip
    width = node.shape[1]
    zero = node.dtype.type(0)
    hidden = np.empty(width, node.dtype)
    for i in range(len(gradient)):
        n, q, w, g = node[i], query[of_query[i]], weight[of_query[i]], gradient[i]
        d, dq, dw = dnode[i], dquery[of_query[i]], dweight[of_query[i]]
        # Short loops over few rows each: only those the compiler vectorises.
        for k in range(width):
            hidden[k] = n[k] + q[k]
        if len(of_profile):
            p = profile[of_profile[i]]
            for k in range(width):
                hidden[k] += p[k]
        for k in range(width):
            d[k] = g * w[k] * (hidden[k] > zero)
        for k in range(width):
            dw[k] += g * max(hidden[k], zero)
        for k in range(width):
            dq[k] += d[k]
        if len(of_profile):
            dp = dprofile[of_profile[i]]
            for k in range(width):
                dp[k] += d[k]


class _Score(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        node: Tensor,
        query: Tensor,
        of_query: Ints,
        profile: Tensor,
        of_profile: Ints,
        weight: Tensor,
    ) -> Tensor:
        out = node.new_empty(len(node))
        _score_forward(
            node.numpy(), query.numpy(), of_query, profile.numpy(), of_profile, weight.numpy(), out.numpy()
        )
        ctx.save_for_backward(node, query, profile, weight)
        ctx.of_query, ctx.of_profile = of_query, of_profile
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        node, query, profile, weight = ctx.saved_tensors
        dnode = torch.empty_like(node)
        dquery, dprofile, dweight = (torch.zeros_like(x) for x in (query, profile, weight))
        _score_backward(
            gradient.contiguous().numpy(), node.numpy(), query.numpy(), ctx.of_query, profile.numpy(), ctx.of_profile,
            weight.numpy(), dnode.numpy(), dquery.numpy(), dprofile.numpy(), dweight.numpy(),
        )  # fmt: skip
        return dnode, dquery, None, dprofile, None, dweight


def scored(
    node: Tensor,  # nodes x hidden
    query: Tensor,  # queries x hidden
    of_query: Ints,  # nodes
    weight: Tensor,  # queries x hidden
    profile: Tensor | None = None,  # profiles x hidden
    of_profile: Ints = _NO_PROFILE,  # nodes
) -> Tensor:
    """weight[query] . ReLU(node + query[query] + profile[profile]) for each node: one hidden layer."""
    check_shapes(
        "scored", node=(node, "nodes hidden"), query=(query, "queries hidden"), of_query=(of_query, "nodes"),
        weight=(weight, "queries hidden"), profile=(profile, "profiles hidden"),
        of_profile=(None if profile is None else of_profile, "nodes"),
    )  # fmt: skip
    if profile is None:
        profile = node.new_empty(0, node.shape[1])
    return applied(_Score)(node, query, of_query, profile, of_profile, weight)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A constant sparse matrix by rows."""

    offsets: np.ndarray  # rows + 1
    columns: np.ndarray  # int64
    values: np.ndarray
    n_columns: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def at(self, rows: np.ndarray, shift: np.ndarray, n_columns: int) -> "SparseRows":
        """Some rows, each with its columns moved."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return SparseRows(offsets, self.columns[at] + np.repeat(shift, lengths), self.values[at], n_columns)

    def dense(self, like: Tensor) -> Tensor:
        """The whole matrix, for small ones and tests."""
        out = np.zeros((len(self), self.n_columns))
        row = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        out[row, self.columns] = self.values
        return torch.from_numpy(out).to(like)


@float_kernel
def _product_forward(offsets: Ints, columns: Ints, values: Floats, x: Rows, out: Rows) -> None:
    width = x.shape[1]
    for i in range(len(out)):
        row = out[i]
        for j in range(offsets[i], offsets[i + 1]):
            v, column = out.dtype.type(values[j]), x[columns[j]]
            for k in range(width):
                row[k] += v * column[k]


@float_kernel
def _product_backward(offsets: Ints, columns: Ints, values: Floats, gradient: Rows, dx: Rows) -> None:
    width = dx.shape[1]
    for i in range(len(gradient)):
        row = gradient[i]
        for j in range(offsets[i], offsets[i + 1]):
            v, column = dx.dtype.type(values[j]), dx[columns[j]]
            for k in range(width):
                column[k] += v * row[k]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: SparseRows) -> Tensor:
        ctx.matrix, ctx.shape = matrix, x.shape
        out = x.new_zeros(len(matrix), x.shape[1])
        _product_forward(matrix.offsets, matrix.columns, matrix.values, x.contiguous().numpy(), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        matrix, dx = ctx.matrix, gradient.new_zeros(ctx.shape)
        _product_backward(
            matrix.offsets, matrix.columns, matrix.values, gradient.contiguous().numpy(), dx.numpy()
        )
        return dx, None


def sparse_product(matrix: SparseRows, x: Tensor) -> Tensor:
    """matrix @ x: rows x width."""
    check_shapes("sparse_product", x=(x, f"{matrix.n_columns} width"))
    return applied(_Product)(x, matrix)
