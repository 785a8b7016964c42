"""A score of each node: one hidden layer whose parts come from the node, its query and its kind, fused."""

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import float_kernel


@float_kernel
def _forward(node, query, of_query, kind, of_kind, weight, out):
    width = node.shape[1]
    for i in range(len(out)):
        n, q, w = node[i], query[of_query[i]], weight[of_query[i]]
        total = node.dtype.type(0)
        if len(of_kind):
            c = kind[of_kind[i]]
            for k in range(width):
                total += max(n[k] + q[k] + c[k], node.dtype.type(0)) * w[k]
        else:
            for k in range(width):
                total += max(n[k] + q[k], node.dtype.type(0)) * w[k]
        out[i] = total


@float_kernel
def _backward(gradient, node, query, of_query, kind, of_kind, weight, dnode, dquery, dkind, dweight):
    width = node.shape[1]
    zero = node.dtype.type(0)
    hidden = np.empty(width, node.dtype)
    for i in range(len(gradient)):
        n, q, w, g = node[i], query[of_query[i]], weight[of_query[i]], gradient[i]
        d, dq, dw = dnode[i], dquery[of_query[i]], dweight[of_query[i]]
        # Short loops over few rows each: only those the compiler vectorises.
        for k in range(width):
            hidden[k] = n[k] + q[k]
        if len(of_kind):
            c = kind[of_kind[i]]
            for k in range(width):
                hidden[k] += c[k]
        for k in range(width):
            d[k] = g * w[k] * (hidden[k] > zero)
        for k in range(width):
            dw[k] += g * max(hidden[k], zero)
        for k in range(width):
            dq[k] += d[k]
        if len(of_kind):
            dc = dkind[of_kind[i]]
            for k in range(width):
                dc[k] += d[k]


class _Score(torch.autograd.Function):
    @staticmethod
    def forward(ctx, node, query, of_query, kind, of_kind, weight):
        out = node.new_empty(len(node))
        _forward(node.numpy(), query.numpy(), of_query, kind.numpy(), of_kind, weight.numpy(), out.numpy())
        ctx.save_for_backward(node, query, kind, weight)
        ctx.of_query, ctx.of_kind = of_query, of_kind
        return out

    @staticmethod
    def backward(ctx, gradient):
        node, query, kind, weight = ctx.saved_tensors
        dnode = torch.empty_like(node)
        dquery, dkind, dweight = (torch.zeros_like(x) for x in (query, kind, weight))
        _backward(
            gradient.contiguous().numpy(), node.numpy(), query.numpy(), ctx.of_query, kind.numpy(), ctx.of_kind,
            weight.numpy(), dnode.numpy(), dquery.numpy(), dkind.numpy(), dweight.numpy(),
        )  # fmt: skip
        return dnode, dquery, None, dkind, None, dweight


_NO_KIND = np.empty(0, np.int64)


def scored(
    node: Tensor,  # nodes x hidden
    query: Tensor,  # queries x hidden
    of_query: np.ndarray,  # nodes
    weight: Tensor,  # queries x hidden
    kind: Tensor | None = None,  # kinds x hidden
    of_kind: np.ndarray = _NO_KIND,  # nodes
) -> Tensor:
    """weight[query] . ReLU(node + query[query] + kind[kind]) for each node."""
    if kind is None:
        kind = node.new_empty(0, node.shape[1])
    return _Score.apply(node, query, of_query, kind, of_kind, weight)
