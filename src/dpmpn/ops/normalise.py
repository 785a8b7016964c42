"""The update of a state: old + ReLU(norm(a linear map of what it received)), fused, with its own backward pass."""

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import float_kernel

EPSILON = 1e-5  # beside the variance, as in PyTorch's layer_norm


@float_kernel
def _forward(received, normal, query, of_query, weight, bias, out, scale):
    """`normal` holds the change, and is normalised in its place."""
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
def _backward(gradient, normal, scale, of_query, weight, bias, dnormal, dquery, dweight, dbias):
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
    def forward(ctx, received, change, query, of_query, weight, bias):
        normal = received @ change
        out, scale = torch.empty_like(normal), normal.new_empty(len(normal))
        arrays = [x.numpy() for x in (received, normal, query)]
        _forward(*arrays, of_query, weight.numpy(), bias.numpy(), out.numpy(), scale.numpy())
        ctx.save_for_backward(received, change, normal, scale, weight, bias, query)
        ctx.of_query = of_query
        return out

    @staticmethod
    def backward(ctx, gradient):
        received, change, normal, scale, weight, bias, query = ctx.saved_tensors
        dnormal, dquery = torch.empty_like(normal), torch.zeros_like(query)
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        _backward(
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
    of_query: np.ndarray,  # nodes
    weight: Tensor,
    bias: Tensor,
) -> Tensor:
    """old + ReLU(weight * norm(received @ change + query) + bias) for each node."""
    return _Update.apply(received, change, query, of_query, weight, bias)
