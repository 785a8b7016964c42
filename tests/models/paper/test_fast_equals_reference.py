"""The fast path equals the reference in values and gradients, on random graphs with every awkward shape."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import NO_EDGES, QueryBatch, query_keys, sample_ignn_edges
from dpmpn.engine.learning import EntityRows
from dpmpn.engine.settings import STRATEGIES, Horizon
from dpmpn.models import build_model
from dpmpn.models.paper.fast import PaperSteps, row_pools
from dpmpn.models.paper.reference import PaperReference, reason_reference
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.ops.expand import NO_LIMIT, expand


def random_graph(rng, n_entities, n_relations, n_triples):
    """A graph with a hub (node 0), parallel edges, self-loop facts, and nodes without any edge."""
    heads = rng.integers(0, max(1, n_entities - 2), n_triples)
    tails = np.where(rng.random(n_triples) < 0.3, 0, rng.integers(0, max(1, n_entities - 2), n_triples))
    return KnowledgeGraph.from_ids(
        np.stack([heads, rng.integers(0, n_relations, n_triples), tails], 1), n_entities, n_relations
    )


def make_batch(graph, config, heads, relations, removed=(), seed=3):
    removed = np.unique(np.asarray(removed, np.int64))
    heads, relations = np.asarray(heads, np.int32), np.asarray(relations, np.int64)
    edges = sample_ignn_edges(graph, removed, config.n_steps_in_ignn, config.max_sampling_per_step, seed)
    return QueryBatch(heads, relations, query_keys(seed, heads, relations), removed, edges)


def gradients(network, loss, rows=None):
    shared = network.shared_parameters()
    inputs = [*shared.values(), rows.anchor if rows else network.entities]
    *found, table = torch.autograd.grad(loss, inputs, allow_unused=True)
    if rows:
        table = torch.zeros_like(network.entities)
        for entities, values in rows.gradients:
            table.index_add_(0, torch.from_numpy(entities).long(), values)
    return {**dict(zip(shared, found, strict=True)), "entities": table}


def loss_of(answer, weights_rng):
    """A scalar in which every query's attention counts, with weights that depend on the node alone."""
    weight = torch.from_numpy(weights_rng)[torch.from_numpy(answer.nodes).long()]
    return (torch.log(answer.attention + 1e-20) * weight).sum()


def compare(graph, batch, config, horizon):
    network = build_model(graph.n_entities, graph.n_relations, config, 5).double()
    with torch.no_grad():  # larger values than the initial ones, so that no term hides below the tolerance
        network.entities.mul_(20)
        network.relations.mul_(20)
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.3, 0.3)
    weights = np.random.default_rng(9).random(graph.n_entities)
    rows = EntityRows(network.entities, True)
    steps = PaperSteps(network, graph, batch, horizon, rows, row_pools(network))
    steps.run()
    fast = steps.answer()
    slow = reason_reference(network, graph, batch, horizon)
    assert np.array_equal(fast.offsets, slow.offsets)
    for q in range(len(batch)):
        part = slice(slow.offsets[q], slow.offsets[q + 1])
        order = np.argsort(fast.nodes[part])
        assert np.array_equal(fast.nodes[part][order], slow.nodes[part])
        np.testing.assert_allclose(
            fast.attention[part].detach().numpy()[order],
            slow.attention[part].detach().numpy(),
            rtol=1e-9,
            atol=1e-13,
        )
    fast_gradients = gradients(network, loss_of(fast, weights), rows)
    slow_gradients = gradients(network, loss_of(slow, weights))
    for name, expected in slow_gradients.items():
        found = fast_gradients[name]
        if expected is None or found is None:
            assert (expected is None or not expected.any()) and (found is None or not found.any()), name
            continue
        scale = expected.abs().max().clamp(min=1e-6)
        torch.testing.assert_close(
            found / scale, expected / scale, rtol=1e-7, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}"
        )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n_entities=st.integers(1, 30),
    n_relations=st.integers(1, 5),
    n_triples=st.integers(0, 120),
    n_steps=st.integers(1, 5),
    n_steps_in_ignn=st.integers(0, 2),
    limits=st.tuples(st.integers(1, 6), st.integers(1, 8), st.integers(1, 10)),
    per_relation=st.none() | st.integers(1, 4),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    softmax=st.sampled_from(["edge", "pair"]),
    ignn_output=st.sampled_from(["last", "pool"]),
)
def test_values_and_gradients(
    seed,
    n_entities,
    n_relations,
    n_triples,
    n_steps,
    n_steps_in_ignn,
    limits,
    per_relation,
    strategy,
    softmax,
    ignn_output,
):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_entities, n_relations, n_triples)
    config = PaperSettings(
        n_dims=6, n_dims_att=4, n_steps_in_ignn=n_steps_in_ignn, n_steps_in_agnn=n_steps,
        max_sampling_per_step=30, softmax=softmax, ignn_output=ignn_output,
    )  # fmt: skip
    removed = rng.choice(graph.n_edges, min(graph.n_edges, 5), replace=False)
    n_queries = int(rng.integers(1, 6))
    batch = make_batch(
        graph,
        config,
        rng.integers(0, n_entities, n_queries),
        rng.integers(0, graph.n_relations, n_queries),
        removed,
    )
    compare(graph, batch, config, Horizon(*limits, strategy, per_relation))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    limit=st.none() | st.integers(1, 12),
    per_relation=st.none() | st.integers(1, 4),
)
def test_both_draw_the_same_edges(seed, limit, per_relation):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(1, 20)), 2, int(rng.integers(0, 150)))
    removed = np.flatnonzero(rng.random(graph.n_edges) < 0.2)
    batch = make_batch(graph, PaperSettings(), rng.integers(0, graph.n_entities, 5), [0] * 5, removed, seed)
    no_limit = [NO_LIMIT if x is None else x for x in (limit, per_relation)]
    offsets, relations, tails, _ = expand(
        graph.offsets, graph.relations, graph.tails, batch.removed, NO_EDGES, batch.keys, 3,
        np.arange(5), batch.heads, no_limit[0], graph.self_loop, no_limit[1],
    )  # fmt: skip
    fast = list(zip(np.repeat(np.arange(5), np.diff(offsets)), relations, tails, strict=True))
    horizon = Horizon(
        5, graph.n_edges + 1 if limit is None else limit, 5, max_sampling_per_relation=per_relation
    )
    network = build_model(graph.n_entities, graph.n_relations, PaperSettings(n_dims=2), 0)
    steps = PaperReference(network, graph, batch, horizon)
    slow = steps.scan(3, steps.visited)
    rows = zip(slow.sender.tolist(), slow.relation.tolist(), slow.tail.tolist(), strict=True)
    assert fast == sorted(rows)  # the self-loop's relation is the highest


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_hub_above_the_sampling_limit(strategy):
    triples = [(0, 0, v) for v in range(1, 60)] + [(v, 1, v % 7) for v in range(60)]
    graph = KnowledgeGraph.from_ids(np.array(triples), 60, 2)
    config = PaperSettings(n_dims=8, n_dims_att=4, n_steps_in_agnn=4, max_sampling_per_step=50)
    batch = make_batch(graph, config, [0, 3, 59], [0, 1, 2])
    compare(graph, batch, config, Horizon(5, 9, 12, strategy=strategy))


def test_one_node_without_edges():
    graph = KnowledgeGraph.from_ids(np.empty((0, 3), np.int64), 1, 1)
    config = PaperSettings(n_dims=4, n_dims_att=2, n_steps_in_agnn=3)
    compare(graph, make_batch(graph, config, [0], [0]), config, Horizon())
