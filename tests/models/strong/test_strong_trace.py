"""The trace of the stronger model: probability that flowed from the head along edges of the graph to the answers."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strong_cases import WIDE, by_query, random_engine

from dpmpn.engine.learning import Targets
from dpmpn.engine.settings import STRATEGIES
from dpmpn.explain.flow import AnswerFlow, QueryFlow
from dpmpn.models.strong.trace import StepRecord, contributions

CLOSE = {"rtol": 1e-9, "atol": 1e-15}
LIMITS = ("max_attending_from_per_step", "max_sampling_per_node", "max_attending_to_per_step")


def removed_of(graph, hides):
    return np.arange(0, graph.n_edges, 4) if hides else np.empty(0, np.int64)


def traced(engine, heads, relations, hides):
    """The batch, its answer and its trace."""
    batch = engine.asking_batch(heads, relations, removed_of(engine.graph, hides))
    return batch, *engine.trace(batch)


CASES = given(
    seed=st.integers(0, 10_000),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    limits=st.tuples(st.integers(1, 5), st.integers(1, 7), st.integers(2, 12)),
    hides=st.booleans(),
)


def engine_of(seed, strategy, limits):
    return random_engine(seed, 5, strategy=strategy, **dict(zip(LIMITS, limits, strict=True)))


@settings(max_examples=30, deadline=None, derandomize=True)
@CASES
def test_flow_is_kept_from_the_head_to_the_answers(seed, strategy, limits, hides):
    engine, heads, relations = engine_of(seed, strategy, limits)
    batch, answer, trace = traced(engine, heads, relations, hides)
    plain = engine.answer(batch)
    np.testing.assert_allclose(answer.attention.numpy(), plain.attention.numpy(), **CLOSE)
    assert np.array_equal(answer.nodes, plain.nodes)
    assert len(trace.steps) == engine.config.model.n_steps_in_agnn
    assert np.array_equal(trace.steps[0].from_node, heads)
    before = None
    for step in trace.steps:
        into = np.bincount(step.edge_slot, step.flow, len(step.slot_node))
        np.testing.assert_allclose(into, step.slot_attention, **CLOSE)
        sender = np.repeat(np.arange(len(step.from_node)), np.diff(step.edge_offsets))
        out = np.bincount(sender, step.flow, len(step.from_node))
        np.testing.assert_allclose(out, step.from_attention, **CLOSE)
        assert (step.flow >= 0).all()
        if before is not None:  # what was there after a step is there before the next one
            assert np.array_equal(step.from_node, before.slot_node)
            np.testing.assert_allclose(step.from_attention, before.slot_attention, **CLOSE)
        before = step
    for query, (nodes, attention) in enumerate(by_query(answer)):
        part = slice(*before.slot_offsets[query : query + 2])
        order = np.argsort(before.slot_node[part])
        assert np.array_equal(before.slot_node[part][order], nodes)
        np.testing.assert_allclose(before.slot_attention[part][order], attention, **CLOSE)
        assert trace.visited(query) == set(nodes.tolist())


@settings(max_examples=30, deadline=None, derandomize=True)
@CASES
def test_flow_goes_along_edges_that_are_not_hidden(seed, strategy, limits, hides):
    engine, heads, relations = engine_of(seed, strategy, limits)
    graph = engine.graph
    batch, _, trace = traced(engine, heads, relations, hides)
    for step in trace.steps:
        assert np.array_equal(step.slot_node[step.edge_slot], step.edge_tail)
        sender = np.repeat(np.arange(len(step.from_node)), np.diff(step.edge_offsets))
        slot_query = np.repeat(np.arange(len(heads)), np.diff(step.slot_offsets))
        assert np.array_equal(slot_query[step.edge_slot], step.from_query[sender])
        head, loop = step.from_node[sender], step.edge_relation == graph.self_loop
        assert np.array_equal(head[loop], step.edge_tail[loop])
        assert np.array_equal(
            np.bincount(sender[loop], minlength=len(step.from_node)) > 0, np.ones(len(step.from_node), bool)
        )
        edges = graph.find_edges(head[~loop], step.edge_relation[~loop], step.edge_tail[~loop])
        assert (edges >= 0).all()
        assert not np.isin(edges, batch.removed).any()
        assert step.attended_from[sender[~loop]].all()
        if strategy != "boundary":
            assert np.bincount(step.from_query[step.attended_from]).max() <= limits[0]
        if strategy != "nodes":
            assert np.diff(step.edge_offsets).max() <= limits[1] + 1
        if strategy in ("attention", "three_times"):
            assert np.bincount(slot_query[step.attended_to], minlength=1).max() <= limits[2]


@settings(max_examples=20, deadline=None, derandomize=True)
@CASES
def test_all_that_reached_an_answer_came_from_the_head(seed, strategy, limits, hides):
    engine, heads, relations = engine_of(seed, strategy, limits)
    _, answer, trace = traced(engine, heads, relations, hides)
    for query, (nodes, _) in enumerate(by_query(answer)):
        flow = QueryFlow.of(trace, query)
        for node in nodes[:4]:
            of_answer = AnswerFlow.to(flow, int(node))
            expected = np.zeros(len(flow.nodes))
            expected[flow.head] = 1
            assert of_answer.is_reached
            np.testing.assert_allclose(of_answer.at[0], expected, rtol=1e-9, atol=1e-12)


def edges_of_flow(graph, flow, entity):
    """Ids of the graph's edges along which anything came to an answer, either way."""
    of_answer, found = AnswerFlow.to(flow, entity), []
    for step, share in zip(flow.steps, of_answer.shares, strict=True):
        used = (share > 0) & (step.relation != graph.self_loop)
        ends = flow.nodes[step.head[used]], step.relation[used], flow.nodes[step.tail[used]]
        found.append(graph.find_edges(*ends))
    return np.unique(np.concatenate(found))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_without_the_edges_of_its_flow_an_answer_is_lost(seed):
    engine, heads, relations = random_engine(seed, 1, **WIDE)
    _, answer, trace = traced(engine, heads, relations, hides=False)
    others = answer.nodes[answer.nodes != heads[0]]
    assume(len(others))
    best = int(others[answer.attention.numpy()[answer.nodes != heads[0]].argmax()])
    removed = edges_of_flow(engine.graph, QueryFlow.of(trace), best)
    assert len(removed)
    without = engine.answer(engine.asking_batch(heads, relations, removed))
    assert best not in without.nodes  # everything is within the horizon, so no other way is left
    n_entities = engine.graph.n_entities
    assert answer.of_all(n_entities)[0, best] != without.of_all(n_entities)[0, best]


@pytest.mark.parametrize(("by_flow", "edges"), [(0.0, [10.0, 5.0]), (3.0, [12.0, 4.0])])
def test_what_speaks_against_an_answer_counts(by_flow, edges):
    # One slot with messages of 2 and -1 along flows of 1/2 and 1/4: state, sum, mean, logs of number and flow.
    received = torch.tensor([[3.0, 1.0, 0.5, np.log(2), np.log(0.75)]], requires_grad=True)
    logits = (received * torch.tensor([-1.0, 4.0, 2.0, 7.0, by_flow])).sum(1)
    record = StepRecord(
        scan=SimpleNamespace(edge_slot=np.array([0, 0])),
        visited=None,
        senders_at=np.array([0]),
        message=torch.tensor([[2.0], [-1.0]]),
        flow=np.array([0.5, 0.25], np.float32),
        pair_offsets=np.array([0, 1, 2]),
        received=received,
        choice=None,
    )
    ((edge, earlier),) = contributions([record], logits, torch.ones(1))
    np.testing.assert_allclose(edge, edges, rtol=1e-6)  # |message * (4 + 2 / 2) + flow * by_flow / 0.75|
    np.testing.assert_allclose(earlier, [3.0], rtol=1e-6)


@pytest.mark.parametrize("work", ["trace", "gradients"])
def test_no_memory_is_left_behind(work):
    engine, heads, relations = engine_of(0, "attention", (3, 5, 8))
    batch = engine.asking_batch(heads, relations)
    engine.trace(batch) if work == "trace" else engine.gradients(batch, Targets.single(heads))
    pools = engine._on_graph.pools
    assert all(
        pool.token.grad_fn is None for pool in pools.values()
    )  # which would keep all that it was made of
    states = weakref.ref(pools["states"])
    del engine, pools
    gc.collect()
    assert states() is None
