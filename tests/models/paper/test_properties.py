"""What must hold for every query: the bound on visited nodes, and the same answer alone or in any batch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fast_equals_reference import random_graph

from dpmpn.config import Config
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Targets
from dpmpn.engine.memory import largest_scan, queries_within
from dpmpn.engine.settings import STRATEGIES, Horizon, RunConfig
from dpmpn.errors import RunError
from dpmpn.models import build_model
from dpmpn.models.paper.settings import PaperSettings


def make_engine(seed, horizon=None, dtype=torch.float64, **run):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(2, 40)), 3, int(rng.integers(1, 150)))
    config = Config(
        model=PaperSettings(n_dims=6, n_dims_att=4, n_steps_in_agnn=4, max_sampling_per_step=25),
        horizon=horizon or Horizon(4, 6, 9),
        run=RunConfig(**{"threads": 1, "seed": seed, **run}),
    )
    network = build_model(graph.n_entities, graph.n_relations, config.model, seed).to(dtype)
    with torch.no_grad():
        network.entities.mul_(20)
        network.relations.mul_(20)
    heads = rng.integers(0, graph.n_entities, 9)
    relations = rng.integers(0, graph.n_relations, 9)
    return Engine(network, graph, config), heads, relations


def answers(engine, heads, relations):
    found = engine.answer(engine.asking_batch(heads, relations))
    parts = [slice(a, b) for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]
    return [(found.nodes[part], found.attention[part].numpy()) for part in parts]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    limits=st.tuples(st.integers(1, 5), st.integers(1, 7), st.integers(1, 9)),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    per_relation=st.none() | st.integers(1, 3),
)
def test_bound_on_visited_nodes(seed, limits, strategy, per_relation):
    horizon = Horizon(*limits, strategy, per_relation)
    engine, heads, relations = make_engine(seed, horizon)
    answer, trace = engine.trace(engine.asking_batch(heads, relations))
    bound = horizon.bound(engine.config.model.n_steps_in_agnn)
    for q in range(len(heads)):
        visited = trace.visited(q)
        assert bound is None or len(visited) <= bound
        assert len(visited) <= engine.graph.n_entities
        total = float(answer.attention[answer.offsets[q] : answer.offsets[q + 1]].sum())
        is_lost = total == 0 and STRATEGIES[strategy].attending_from == "random"
        assert is_lost or total == pytest.approx(1)
    for step in trace.steps:
        if strategy in ("attention", "three_times"):
            per_query = np.bincount(np.repeat(np.arange(9), np.diff(step.slot_offsets))[step.attended_to])
            assert per_query.max() <= limits[2]
        if strategy != "boundary":
            assert np.bincount(step.from_query).max() <= limits[0]
        if strategy != "nodes":
            assert np.diff(step.edge_offsets).max() <= limits[1] + 1
        scanned = np.bincount(step.from_query, np.diff(step.edge_offsets))
        assert scanned.max() <= largest_scan(engine.graph, horizon)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), strategy=st.sampled_from(sorted(STRATEGIES)))
def test_same_answer_alone_and_in_any_batch(seed, strategy):
    engine, heads, relations = make_engine(seed, Horizon(3, 5, 7, strategy=strategy))
    together = answers(engine, heads, relations)
    order = np.random.default_rng(seed).permutation(len(heads))
    shuffled = answers(engine, heads[order], relations[order])
    for place, q in enumerate(order):
        alone = answers(engine, heads[q : q + 1], relations[q : q + 1])[0]
        for nodes, attention in (alone, shuffled[place]):
            assert np.array_equal(nodes, together[q][0])
            np.testing.assert_allclose(attention, together[q][1], rtol=1e-9)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_flow_into_a_node_is_its_attention(seed):
    engine, heads, relations = make_engine(seed)
    _, trace = engine.trace(engine.asking_batch(heads, relations))
    for step in trace.steps:
        into = np.bincount(step.edge_slot, step.flow, len(step.slot_node))
        np.testing.assert_allclose(into, step.slot_attention, rtol=1e-9, atol=1e-15)


def gradients_of(engine, heads, relations, targets):
    found = engine.gradients(engine.asking_batch(heads, relations), targets)
    engine.close()
    return found


@pytest.mark.parametrize("run", [{"threads": 2}, {"memory_budget_mb": 1}])
def test_splitting_a_batch_changes_nothing(run):
    """Two processes, or a budget so small that every part holds few queries, give the same loss and gradients."""
    one, heads, relations = make_engine(4)
    heads, relations = np.tile(heads, 20), np.tile(relations, 20)
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 4, len(heads)))])
    nothing = np.zeros(len(heads) + 1, np.int64), np.empty(0, np.int64)
    targets = Targets(offsets, rng.integers(0, one.graph.n_entities, offsets[-1]), *nothing)
    split, *_ = make_engine(4, **run)
    expected = gradients_of(one, heads, relations, targets)
    found = gradients_of(split, heads, relations, targets)
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)
    assert found.reached == expected.reached
    assert np.array_equal(found.entities, expected.entities)
    torch.testing.assert_close(found.shared, expected.shared, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(found.rows, expected.rows, rtol=1e-7, atol=1e-9)


def test_the_loss_is_the_mean_over_all_targets():
    engine, heads, relations = make_engine(4)
    batch = engine.asking_batch(heads, relations)
    answer = engine.answer(batch)
    targets = Targets(
        np.array([0, 3, 3, *range(4, 11)]),  # three, none, then one each
        np.array([0, 1, engine.graph.n_entities - 1, *heads[2:]]),
        np.zeros(10, np.int64),
        np.empty(0, np.int64),
    )
    found = engine.gradients(batch, targets)
    reached = []
    for query, entity in zip(targets.query, targets.entities, strict=True):
        part = slice(answer.offsets[query], answer.offsets[query + 1])
        reached += answer.attention[part][torch.from_numpy(answer.nodes[part] == entity)].tolist()
    losses = -np.log(np.array(reached + [0.0] * (10 - len(reached))) + 1e-20)
    assert found.reached == len(reached) < 10
    assert found.loss == pytest.approx(losses.mean(), rel=1e-9)


def test_the_budget_splits_batches():
    engine, heads, relations = make_engine(4, memory_budget_mb=1)
    fitting = queries_within(2**20, engine.graph, engine.config.model, engine.config.horizon, training=True)
    each = engine.config.model.memory_need(engine.graph, engine.config.horizon, training=True).query
    assert fitting * each <= 2**20
    batch = engine.asking_batch(np.tile(heads, 20), np.tile(relations, 20))
    parts = engine._parts(batch, engine.config.horizon, training=True)
    assert len(parts) > 1
    assert max(part.stop - part.start for part in parts) <= fitting
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(len(batch)))


def test_float32_agrees_with_float64():
    """The precision of real runs: answers differ from the exact ones by rounding only."""
    exact, heads, relations = make_engine(11)
    rounded, *_ = make_engine(11, dtype=torch.float32)
    for (nodes, attention), (nodes32, attention32) in zip(
        answers(exact, heads, relations), answers(rounded, heads, relations), strict=True
    ):
        assert np.array_equal(nodes, nodes32)
        np.testing.assert_allclose(attention, attention32, rtol=2e-3, atol=1e-6)


def test_a_killed_worker_is_reported_and_replaced():
    engine, heads, relations = make_engine(4, threads=2)
    batch = engine.asking_batch(np.tile(heads, 2), np.tile(relations, 2))
    expected = engine.answer(batch)
    engine._workers.processes[0].kill()
    with pytest.raises(RunError, match="worker process ended"):
        engine.answer(batch)
    again = engine.answer(batch)
    engine.close()
    assert np.array_equal(again.nodes, expected.nodes)
    assert torch.equal(again.attention, expected.attention)


def test_no_questions_give_no_answers():
    engine, *_ = make_engine(4)
    answer = engine.answer(engine.asking_batch(np.empty(0), np.empty(0)))
    assert len(answer.nodes) == 0 and answer.offsets.tolist() == [0]
