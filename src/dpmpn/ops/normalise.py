"""The update of a state: old + ReLU(norm(change)), fused, with its own backward pass."""

import numpy as np
import torch
from numba import njit
from torch import Tensor

EPSILON = 1e-5  # beside the variance, as in PyTorch's layer_norm


@njit(nogil=True, cache=True, fastmath=True)
def _forward(received, change, query, of_query, weight, bias, out, scale):
    width = out.shape[1]
    inverse = out.dtype.type(1.0 / width)
    for i in range(len(out)):
        c, q, old, row = change[i], query[of_query[i]], received[i], out[i]
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
            c[k] *= s  # from here on the normalised change
            row[k] = old[k] + max(c[k] * weight[k] + bias[k], out.dtype.type(0))


@njit(nogil=True, cache=True, fastmath=True)
def _backward(gradient, normal, scale, of_query, weight, bias, dreceived, dchange, dquery, dweight, dbias):
    width = gradient.shape[1]
    inverse, zero = gradient.dtype.type(1.0 / width), gradient.dtype.type(0)
    for i in range(len(gradient)):
        g, n, d, dq, old = gradient[i], normal[i], dchange[i], dquery[of_query[i]], dreceived[i]
        mean, along = zero, zero
        for k in range(width):
            old[k] = g[k]
        for k in range(width, len(old)):
            old[k] = zero
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
    def forward(ctx, received, change, query, of_query, weight, bias):
        # `change` is this function's own: the normalised values take its place.
        out, scale = torch.empty_like(change), change.new_empty(len(change))
        arrays = [x.numpy() for x in (received, change, query)]
        _forward(*arrays, of_query, weight.numpy(), bias.numpy(), out.numpy(), scale.numpy())
        ctx.save_for_backward(change, scale, weight, bias, query)
        ctx.of_query, ctx.width = of_query, received.shape[1]
        return out

    @staticmethod
    def backward(ctx, gradient):
        normal, scale, weight, bias, query = ctx.saved_tensors
        dreceived = gradient.new_empty(len(gradient), ctx.width)
        dchange, dquery = torch.empty_like(normal), torch.zeros_like(query)
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        _backward(
            gradient.contiguous().numpy(), normal.numpy(), scale.numpy(), ctx.of_query, weight.numpy(), bias.numpy(),
            dreceived.numpy(), dchange.numpy(), dquery.numpy(), dweight.numpy(), dbias.numpy(),
        )  # fmt: skip
        return dreceived, dchange, dquery, None, dweight, dbias


def updated(
    received: Tensor,  # nodes x any number, old states on the left
    change: Tensor,  # nodes x n_dims; overwritten
    query: Tensor,  # queries x n_dims: added to the change of each of its nodes
    of_query: np.ndarray,  # nodes
    weight: Tensor,
    bias: Tensor,
) -> Tensor:
    """old + ReLU(weight * norm(change + query) + bias) for each node."""
    return _Update.apply(received, change, query, of_query, weight, bias)
