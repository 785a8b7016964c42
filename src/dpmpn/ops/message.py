"""Messages, fused: hidden layer from summed projections, second layer, tanh and aggregation, block by block.

A block of edges stays in the cache from the first layer to the aggregation, and the hidden layer is computed again in
the backward pass instead of being kept: the messages of a batch are many times the size of the cache.
"""

import numpy as np
import torch
from torch import Tensor

from dpmpn.kernels import float_kernel
from dpmpn.ops.combine import NONE, SLOPE, combine_backward, combine_forward

BLOCK = 2048  # edges


@float_kernel
def _sum_rows(messages, receiver, scale, out):
    width = out.shape[1]
    for e in range(len(receiver)):
        row, m, s = out[receiver[e]], messages[e], scale[receiver[e]]
        for k in range(width):
            row[k] += s * m[k]


@float_kernel
def _tanh_gradient(gradient, messages, receiver, scale, out):
    width = out.shape[1]
    one = out.dtype.type(1)
    for e in range(len(receiver)):
        row, m, g, s = out[e], messages[e], gradient[receiver[e]], scale[receiver[e]]
        for k in range(width):
            row[k] = s * g[k] * (one - m[k] * m[k])


class _Messages(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c, d, weight, bias, index, receiver, n_receivers, keep):
        kind = a.numpy().dtype
        scale = (1.0 / np.sqrt(np.maximum(np.bincount(receiver, minlength=n_receivers), 1))).astype(kind)
        out = a.new_zeros(n_receivers, len(bias))
        messages = a.new_empty(len(receiver) if keep else min(BLOCK, len(receiver)), len(bias))
        hidden = a.new_empty(min(BLOCK, len(receiver)), a.shape[1])
        tables = [x.numpy() for x in (a, b, c, d)]
        no_scale = np.empty(0, kind)
        for start in range(0, len(receiver), BLOCK):
            rows = slice(start, start + BLOCK)
            block = messages[rows] if keep else messages[: len(receiver) - start]
            part = hidden[: len(block)]
            arguments = [x for table, at in zip(tables, index, strict=True) for x in (table, at[rows])]
            combine_forward(*arguments, no_scale, kind.type(SLOPE), part.numpy())
            torch.addmm(bias, part, weight.t(), out=block).tanh_()
            _sum_rows(block.numpy(), receiver[rows], scale, out.numpy())
        ctx.save_for_backward(a, b, c, d, weight, bias, messages)
        ctx.index, ctx.receiver, ctx.scale = index, receiver, scale
        return out

    @staticmethod
    def backward(ctx, gradient):
        a, b, c, d, weight, bias, messages = ctx.saved_tensors
        kind = a.numpy().dtype
        slope, no_scale = kind.type(SLOPE), np.empty(0, kind)
        tables = [x.numpy() for x in (a, b, c, d)]
        grads = [torch.zeros_like(x) for x in (a, b, c, d)]
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        hidden = a.new_empty(min(BLOCK, len(messages)), a.shape[1])
        inner, dhidden = torch.empty_like(hidden), torch.empty_like(hidden)
        gradient = gradient.contiguous().numpy()
        for start in range(0, len(messages), BLOCK):
            rows = slice(start, start + BLOCK)
            block = messages[rows]
            h, g, dh = hidden[: len(block)], inner[: len(block)], dhidden[: len(block)]
            index = [at[rows] for at in ctx.index]
            arguments = [x for table, at in zip(tables, index, strict=True) for x in (table, at)]
            combine_forward(*arguments, no_scale, slope, h.numpy())
            _tanh_gradient(gradient, block.numpy(), ctx.receiver[rows], ctx.scale, g.numpy())
            torch.mm(g, weight, out=dh)
            dweight.addmm_(g.t(), h)
            dbias += g.sum(0)
            combine_backward(
                dh.numpy(), h.numpy(), slope, index[0], grads[0].numpy(), index[1], grads[1].numpy(),
                index[2], grads[2].numpy(), index[3], tables[3], grads[3].numpy(), no_scale, no_scale,
            )  # fmt: skip
        return *grads, dweight, dbias, None, None, None, None


def pass_messages(
    tables: tuple[Tensor, ...],  # three or four, rows x n_dims
    index: tuple[np.ndarray, ...],  # for each table, the row each edge takes; -1 for none
    weight: Tensor,
    bias: Tensor,
    receiver: np.ndarray,
    n_receivers: int,
) -> Tensor:
    """1/sqrt(N(v)) * sum over the messages to v of tanh(W leakyReLU(sum of the edge's rows) + b); zero without any."""
    a, b, c, *rest = tables
    d = rest[0] if rest else a.new_empty(0, a.shape[1])
    index = index if rest else (*index, NONE)
    keep = torch.is_grad_enabled()  # for the backward pass
    return _Messages.apply(a, b, c, d, weight, bias, index, receiver, n_receivers, keep)
