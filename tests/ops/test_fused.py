"""The fused operations equal plain PyTorch twins in values and gradients."""

import numpy as np
import pytest
import torch
from torch.nn.functional import leaky_relu

from dpmpn.ops.attention import flow_attention
from dpmpn.ops.messages import BLOCK, combine_leaky, pass_messages
from dpmpn.ops.pool import RowPool

WIDTH = 5
SLOPE = 0.2  # of leakyReLU


def leaf(rng, *shape):
    return torch.from_numpy(rng.normal(size=shape)).requires_grad_()


def rows_of(table, index):
    """Rows of a table, zero where the index is -1."""
    at = torch.from_numpy(index)
    return torch.where((at >= 0)[:, None], table[at.clamp(min=0)], torch.zeros(1, dtype=table.dtype))


def same(fused, plain, inputs):
    torch.testing.assert_close(fused, plain, rtol=1e-10, atol=1e-12)
    weight = torch.linspace(-1, 1, fused.numel(), dtype=fused.dtype).view_as(fused)
    found = torch.autograd.grad((fused * weight).sum(), inputs)
    expected = torch.autograd.grad((plain * weight).sum(), inputs)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11)


def test_combine_with_a_scaled_pool():
    rng = np.random.default_rng(0)
    a, b, c, d, scale = (
        leaf(rng, 4, WIDTH),
        leaf(rng, 3, WIDTH),
        leaf(rng, 2, WIDTH),
        leaf(rng, 6, WIDTH),
        leaf(rng, 40),
    )
    index = [rng.integers(-1, n, 40) for n in (4, 3, 2, 6)]
    pool = RowPool(WIDTH, torch.float64, capacity=1)
    pool.clear(differentiable=True)
    pool.append(d)
    fused = combine_leaky(a, index[0], b, index[1], c, index[2], pool, index[3], scale)
    total = sum(rows_of(table, at) for table, at in zip((a, b, c), index[:3], strict=True))
    plain = leaky_relu(total + scale[:, None] * rows_of(d, index[3]), SLOPE)
    same(fused, plain, (a, b, c, d, scale))


@pytest.mark.parametrize("n_edges", [1, 7, BLOCK, 2 * BLOCK + 3])
def test_messages_across_blocks(n_edges):
    rng = np.random.default_rng(n_edges)
    tables = tuple(leaf(rng, n, WIDTH) for n in (4, 3, 5, 2))
    weight, bias = leaf(rng, WIDTH, WIDTH), leaf(rng, WIDTH)
    index = tuple(rng.integers(-1, len(table), n_edges) for table in tables)
    receiver = rng.integers(0, 6, n_edges)
    fused = pass_messages(tables, index, weight, bias, receiver, 8)
    hidden = leaky_relu(sum(map(rows_of, tables, index)), SLOPE)
    messages = torch.tanh(hidden @ weight.t() + bias)
    count = torch.from_numpy(np.maximum(np.bincount(receiver, minlength=8), 1)).double()
    total = torch.zeros(8, WIDTH, dtype=torch.float64).index_add(0, torch.from_numpy(receiver), messages)
    same(fused, total / count.sqrt()[:, None], (*tables, weight, bias))


def test_messages_without_gradients_are_the_same():
    rng = np.random.default_rng(1)
    tables = tuple(leaf(rng, 4, WIDTH) for _ in range(3))
    n_edges = BLOCK + 5
    index = tuple(rng.integers(0, 4, n_edges) for _ in tables)
    arguments = (tables, index, leaf(rng, WIDTH, WIDTH), leaf(rng, WIDTH), rng.integers(0, 3, n_edges), 3)
    with torch.no_grad():
        asked = pass_messages(*arguments)
    assert torch.equal(asked, pass_messages(*arguments).detach())


@pytest.mark.parametrize("softmax", ["edge", "pair"])
def test_flow(softmax):
    """Two queries, three attending-from nodes, with parallel edges; slots 0-2 and 3-4."""
    rng = np.random.default_rng(2)
    from_query, slot_offsets = np.array([0, 0, 1]), np.array([0, 3, 5])
    edge_offsets = np.array([0, 4, 6, 9])
    edge_slot = np.array([0, 1, 1, 2, 2, 0, 3, 4, 3])
    logits, attention = leaf(rng, 9), torch.tensor([0.3, 0.2, 0.9], dtype=torch.float64, requires_grad=True)
    fused, transition = flow_attention(
        logits, attention, from_query, edge_offsets, edge_slot, slot_offsets, softmax
    )
    reached = []
    for i in range(3):
        edges = range(edge_offsets[i], edge_offsets[i + 1])
        groups = [[e] for e in edges]
        if softmax == "pair":
            groups = [[e for e in edges if edge_slot[e] == s] for s in sorted({edge_slot[e] for e in edges})]
        shares = torch.softmax(torch.stack([logits[group].sum() for group in groups]), 0) * attention[i]
        reached += [(edge_slot[group[0]], share) for group, share in zip(groups, shares, strict=True)]
    plain = torch.stack([sum(share for slot, share in reached if slot == s) for s in range(5)])
    plain = torch.cat([plain[:3] / plain[:3].sum(), plain[3:] / plain[3:].sum()])
    same(fused, plain, (logits, attention))
    per_node = [transition[edge_offsets[i] : edge_offsets[i + 1]].sum() for i in range(3)]
    assert torch.allclose(torch.stack(per_node), torch.ones(3, dtype=torch.float64))


def test_pool_rows_read_twice_add_up_their_gradients():
    rng = np.random.default_rng(3)
    first, second = leaf(rng, 3, WIDTH), leaf(rng, 2, WIDTH)
    pool = RowPool(WIDTH, torch.float64, capacity=1)
    pool.clear(differentiable=True)
    pool.append(first)
    early = pool.read(torch.tensor([2, 0]))
    pool.append(second)
    late = pool.read(torch.tensor([4, 2]))
    everything = torch.cat([first, second])
    fused, plain = torch.cat([early, late]), everything[torch.tensor([2, 0, 4, 2])]
    same(fused, plain, (first, second))
