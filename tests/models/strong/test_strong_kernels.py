"""The fused operations of the stronger model equal plain PyTorch, and their gradients differences of their values."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.nn.functional import layer_norm

from dpmpn.ops.gate import GATES, LEAST_FLOW, Senders, gate, gated, inflows, receive
from dpmpn.ops.layers import SparseRows, scored, sparse_product, updated
from dpmpn.ops.pool import RowPool

WIDTH = 4
STATE_ROWS = np.array([2, 1, 0, 2, 1])  # slots
SENDER_ROWS = np.array([1, 2, 0])
PAIRS = np.array([0, 2, 3, 3, 6]), np.array([0, 0, 1, 2]), np.array([4, 1, 1, 0])  # one pair has no edge
EDGE_SLOT = np.array([0, 3, 1, 4, 0, 2])  # every slot has an edge
OF_QUERY, OF_KIND = np.array([0, 0, 1, 1, 1, 2]), np.array([3, 1, 1, 0, 3, 2])


def leaf(rng, *shape):
    return torch.from_numpy(rng.normal(size=shape)).requires_grad_()


def same(fused, plain, inputs):
    torch.testing.assert_close(fused, plain, rtol=1e-10, atol=1e-12)
    weight = torch.linspace(-1, 1, fused.numel(), dtype=fused.dtype).view_as(fused)
    found = torch.autograd.grad((fused * weight).sum(), inputs)
    expected = torch.autograd.grad((plain * weight).sum(), inputs)
    for x, y in zip(found, expected, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11)


def test_the_gate_rises_from_0_to_1():
    x = torch.tensor([-1e9, -3.0, 0.0, 3.0, 1e9], dtype=torch.float64)
    assert gate(x).tolist() == pytest.approx([0, 0.125, 0.5, 0.875, 1], abs=1e-8)
    assert gradcheck(gate, leaf(np.random.default_rng(0), 7))
    rng = np.random.default_rng(1)
    assert gradcheck(gated, tuple(leaf(rng, 3, columns) for columns in (2 * WIDTH, 3 * WIDTH, 1)))


def received(states, attention, sent, relation, gates="edges"):
    pools = RowPool(WIDTH, states.dtype, capacity=1), RowPool(1, states.dtype, capacity=1)
    for pool, rows in zip(pools, (states, attention), strict=True):
        pool.clear(differentiable=True)
        pool.append(rows)
    senders = Senders(pools[1], SENDER_ROWS, sent, relation, gates)
    return receive(pools[0], STATE_ROWS, senders, senders.flows(*PAIRS[1:]), PAIRS, EDGE_SLOT)


def plainly_received(states, attention, sent, relation, gates="edges"):
    old = states[torch.from_numpy(STATE_ROWS)]
    pair = np.repeat(np.arange(len(PAIRS[1])), np.diff(PAIRS[0]))
    sender, row = torch.from_numpy(PAIRS[1][pair]), torch.from_numpy(PAIRS[2][pair])
    slot, flow = torch.from_numpy(EDGE_SLOT), attention[torch.from_numpy(SENDER_ROWS)][sender]
    if gates == "off":
        flow = torch.ones_like(flow)
    elif gates == "edges":
        flow = flow * gate(sent[sender][:, -1:] + relation[row][:, -1:])
    value, opened = sent[sender][:, : 2 * WIDTH].split(WIDTH, 1)
    added, added_to_gate, factor = relation[row][:, : 3 * WIDTH].split(WIDTH, 1)
    value, opened = value + value * factor + added, opened + added_to_gate
    message = flow * value * (1 + opened / (1 + opened.abs())) / 2
    total, inflow = (x.new_zeros(len(old), x.shape[1]).index_add(0, slot, x) for x in (message, flow))
    count = torch.from_numpy(np.bincount(EDGE_SLOT)).to(states)[:, None]
    return torch.cat([old, total, total / count, count.log(), (inflow + LEAST_FLOW).log()], 1)


def messages(rng):
    attention = torch.from_numpy(rng.uniform(0.1, 1, (3, 1))).requires_grad_()
    return leaf(rng, 3, WIDTH), attention, leaf(rng, 3, 2 * WIDTH + 1), leaf(rng, 5, 3 * WIDTH + 1)


def test_flows_add_up():
    flow = np.array([0.5, 0.25, 1.0, 0.125])  # the third pair has no edge
    assert inflows(5, flow, PAIRS[0], EDGE_SLOT).tolist() == [0.625, 0.25, 0.125, 0.5, 0.125]


@pytest.mark.parametrize("gates", GATES)
def test_messages(gates):
    inputs = messages(np.random.default_rng(0))
    if gates == "off":  # attention has no part in them
        inputs = (inputs[0], inputs[1].detach(), *inputs[2:])
    same(received(*inputs, gates), plainly_received(*inputs, gates), [x for x in inputs if x.requires_grad])


def test_gradients_of_messages():
    """Not of states and attention: a pool adds up the gradients of a graph that is gone through several times."""
    states, attention, *inputs = messages(np.random.default_rng(1))
    assert gradcheck(lambda *x: received(states.detach(), attention.detach(), *x), inputs)


def update_inputs(rng):
    shapes = (6, 3 * WIDTH + 2), (3 * WIDTH + 2, WIDTH), (3, WIDTH), (WIDTH,), (WIDTH,)
    return tuple(leaf(rng, *shape) for shape in shapes)


def update(received, change, query, weight, bias):
    return updated(received, change, query, OF_QUERY, weight, bias)


def test_updates():
    inputs = received, change, query, weight, bias = update_inputs(np.random.default_rng(2))
    normal = layer_norm(received @ change + query[torch.from_numpy(OF_QUERY)], (WIDTH,), weight, bias)
    same(update(*inputs), received[:, :WIDTH] + torch.relu(normal), inputs)
    assert gradcheck(update, inputs)


def score(node, query, weight, kind=None):
    if kind is None:
        return scored(node, query, OF_QUERY, weight)
    return scored(node, query, OF_QUERY, weight, kind, OF_KIND)


@pytest.mark.parametrize("has_kinds", [False, True])
def test_scores(has_kinds):
    rng = np.random.default_rng(3)
    inputs = node, query, weight, kind = leaf(rng, 6, WIDTH), *(leaf(rng, n, WIDTH) for n in (3, 3, 4))
    inputs = inputs if has_kinds else inputs[:3]
    of_query = torch.from_numpy(OF_QUERY)
    hidden = node + query[of_query] + (kind[torch.from_numpy(OF_KIND)] if has_kinds else 0)
    same(score(*inputs), (torch.relu(hidden) * weight[of_query]).sum(1), inputs)
    assert gradcheck(score, inputs)


def test_sparse_products():
    rng = np.random.default_rng(4)
    matrix = SparseRows(np.array([0, 2, 2, 4]), np.array([0, 3, 1, 3]), np.array([0.5, -2.0, 1.5, 3.0]), 4)
    x = leaf(rng, 4, WIDTH)
    dense = matrix.dense(x)
    assert dense.tolist() == [[0.5, 0, 0, -2], [0, 0, 0, 0], [0, 1.5, 0, 3]]
    same(sparse_product(matrix, x), dense @ x, (x,))
    turned = leaf(rng, WIDTH, 4)
    same(sparse_product(matrix, turned.t()), dense @ turned.t(), (turned,))
    assert gradcheck(lambda y: sparse_product(matrix, y), x)


def test_single_precision_agrees_with_double():
    rng = np.random.default_rng(5)
    for operation, inputs in (
        (received, messages(rng)),
        (update, update_inputs(rng)),
        (score, tuple(leaf(rng, n, WIDTH) for n in (6, 3, 3, 4))),
    ):
        exact = operation(*inputs)
        rounded = operation(*(x.detach().float() for x in inputs))
        assert rounded.dtype == torch.float32
        torch.testing.assert_close(rounded.double(), exact, rtol=1e-4, atol=1e-5)
