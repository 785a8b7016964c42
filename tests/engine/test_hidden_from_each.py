"""One question asked on many changed graphs in one batch: each answer is that of its own graph."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.config import Config
from dpmpn.data.changed_graph import only_edges
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import STRATEGIES
from dpmpn.models import build_model

SMALL = {
    "paper": {"n_dims": 4, "n_dims_att": 3, "n_steps_in_agnn": 3},
    "strong": {"n_dims": 4, "n_steps_in_agnn": 3},
    "any-graph": {"relation_vectors": "query", "n_dims": 4, "n_steps_in_agnn": 2},
}
NARROW = {"max_attending_from_per_step": 3, "max_sampling_per_node": 4, "max_attending_to_per_step": 6}
quick = settings(max_examples=25, deadline=None, derandomize=True)


def random_graph(rng):
    """A hub (entity 0), parallel edges, loops; the last two entities have no edge."""
    n, facts = int(rng.integers(4, 25)), int(rng.integers(1, 90))
    heads, tails = rng.integers(0, n - 2, (2, facts))
    tails = np.where(rng.random(facts) < 0.3, 0, tails)
    return KnowledgeGraph.from_ids(np.stack([heads, rng.integers(0, 3, facts), tails], 1), n, 3)


def random_engine(seed, model, **changes):
    rng = np.random.default_rng(seed)
    graph, config = random_graph(rng), Config().replace(model=model, threads=1, **SMALL[model] | changes)
    network = build_model(graph.n_entities, graph.n_relations, config.model, seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():  # larger values than the initial ones, so that no term hides below the tolerance
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return rng, Engine(network, graph, config)


def random_sets(rng, graph, count=6):
    """Nothing, everything, and some edges, of which several sets hold the same."""
    every = np.arange(graph.n_edges)
    some = [every[rng.random(graph.n_edges) < share] for share in rng.random(count)]
    return [every[:0], every, *some]


def without(graph, removed):
    return only_edges(graph, np.setdiff1d(np.arange(graph.n_edges), removed))


def asked(engine, head, relation, removed):
    return engine.answer(engine.without_each(head, relation, removed)).of_all(engine.graph.n_entities)


MODELS = st.sampled_from(sorted(SMALL))


@quick
@given(seed=st.integers(0, 10_000), model=MODELS, strategy=st.sampled_from(sorted(STRATEGIES)))
def test_each_answer_is_that_of_the_graph_without_its_edges(seed, model, strategy):
    """All edges are the IGNN's here; what is counted of relations is left as it was, on both sides."""
    rng, engine = random_engine(seed, model, strategy=strategy, **NARROW)
    graph, head, relation = engine.graph, int(rng.integers(0, 3)), int(rng.integers(0, 6))
    sets = random_sets(rng, graph)
    found = asked(engine, head, relation, sets)
    for removed, probability in zip(sets, found, strict=True):
        other = engine.beside(without(graph, removed))
        batch = other.asking_batch(np.array([head]), np.array([relation]))
        alone = other.answer(batch).of_all(graph.n_entities)[0]
        np.testing.assert_allclose(probability, alone, rtol=1e-7, atol=1e-12)


@quick
@given(seed=st.integers(0, 10_000), model=MODELS)
def test_it_is_by_definition_each_question_alone(seed, model):
    """Also where the IGNN drew some edges only: the others stay drawn."""
    changes = {"max_sampling_per_step": 20, "n_steps_in_ignn": 2} if model == "paper" else {}
    rng, engine = random_engine(seed, model, **NARROW, **changes)
    head, relation, sets = int(rng.integers(0, 3)), int(rng.integers(0, 6)), random_sets(rng, engine.graph)
    reference = Engine(engine.model, engine.graph, engine.config, reference=True)
    expected = asked(reference, head, relation, sets)
    np.testing.assert_allclose(asked(engine, head, relation, sets), expected, rtol=1e-7, atol=1e-12)


@quick
@given(seed=st.integers(0, 10_000), model=MODELS)
def test_traces_and_parts_of_a_batch_see_the_same(seed, model):
    rng, engine = random_engine(seed, model, **NARROW)
    head, relation, sets = int(rng.integers(0, 3)), int(rng.integers(0, 6)), random_sets(rng, engine.graph)
    batch, n = engine.without_each(head, relation, sets), engine.graph.n_entities
    expected = engine.answer(batch).of_all(n)
    answer, trace = engine.trace(batch)
    np.testing.assert_allclose(answer.of_all(n), expected, rtol=1e-7, atol=1e-12)
    for step in trace.steps:
        owner = np.repeat(step.from_query, np.diff(step.edge_offsets))
        heads = np.repeat(step.from_node, np.diff(step.edge_offsets))
        edges = engine.graph.find_edges(heads, step.edge_relation, step.edge_tail)
        for query, removed in enumerate(sets):
            assert not np.isin(edges[owner == query], removed).any()
    some = slice(1, 4)
    np.testing.assert_allclose(engine.answer(batch.part(some)).of_all(n), expected[some], rtol=1e-7)
    engine._fitting[engine.config.asking_horizon(), False] = 3  # as if no more fitted into memory
    np.testing.assert_allclose(engine.answer(batch).of_all(n), expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("model", sorted(SMALL))
def test_the_engine_beside_is_another_in_nothing_but_its_memory(model):
    rng, engine = random_engine(3, model)
    sets = random_sets(rng, engine.graph)
    beside = engine.beside()
    assert beside.threads == 1 and beside._on_graph.pools is not engine._on_graph.pools
    np.testing.assert_allclose(asked(beside, 0, 1, sets), asked(engine, 0, 1, sets), rtol=1e-12)


def test_what_relations_mean_stays_what_the_whole_graph_says():
    _, engine = random_engine(5, "any-graph")
    few = only_edges(engine.graph, np.arange(2))
    assert engine.beside(few)._on_graph.statistics is engine._on_graph.statistics
    assert replace(few).n_edges == 2
