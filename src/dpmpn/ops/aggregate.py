"""Second layer of a message and its aggregation: sum of tanh(W x + b) over a node's messages, by sqrt(count)."""

import numpy as np
import torch
from numba import njit
from torch import Tensor


@njit(nogil=True, cache=True, fastmath=True)
def _sum_rows(messages, receiver, scale, out):
    width = out.shape[1]
    for e in range(len(receiver)):
        row, m, s = out[receiver[e]], messages[e], scale[receiver[e]]
        for k in range(width):
            row[k] += s * m[k]


@njit(nogil=True, cache=True, fastmath=True)
def _tanh_gradient(gradient, messages, receiver, scale, out):
    width = out.shape[1]
    one = out.dtype.type(1)
    for e in range(len(receiver)):
        row, m, g, s = out[e], messages[e], gradient[receiver[e]], scale[receiver[e]]
        for k in range(width):
            row[k] = s * g[k] * (one - m[k] * m[k])


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, receiver, n_receivers):
        messages = torch.addmm(bias, x, weight.t()).tanh_()  # edges x dims
        counts = np.bincount(receiver, minlength=n_receivers)
        scale = (1.0 / np.sqrt(np.maximum(counts, 1))).astype(messages.numpy().dtype)
        out = messages.new_zeros(n_receivers, messages.shape[1])
        _sum_rows(messages.numpy(), receiver, scale, out.numpy())
        ctx.save_for_backward(x, weight, messages)
        ctx.receiver, ctx.scale = receiver, scale
        return out

    @staticmethod
    def backward(ctx, gradient):
        x, weight, messages = ctx.saved_tensors
        inner = torch.empty_like(messages)
        _tanh_gradient(gradient.contiguous().numpy(), messages.numpy(), ctx.receiver, ctx.scale, inner.numpy())
        return inner @ weight, inner.t() @ x, inner.sum(0), None, None


def aggregate_messages(x: Tensor, weight: Tensor, bias: Tensor, receiver: np.ndarray, n_receivers: int) -> Tensor:
    """1/sqrt(N(v)) * sum of tanh(W x + b) over the messages to v; zero where there are none."""
    return _Aggregate.apply(x, weight, bias, receiver, n_receivers)
