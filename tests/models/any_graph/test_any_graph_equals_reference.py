"""The model for any graph: the fast path against the definition, and what its answers must not depend on."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from any_graph_cases import any_graph_config, any_graph_engine, any_graph_network, relations_renumbered
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.engine.engine import Engine

sys.path.insert(0, str(Path(__file__).parent.parent / "strong"))
from strong_cases import SWITCHES, WIDE, assert_same_gradients, by_query, random_graph, random_targets

SEEDS = st.integers(0, 2**20)
NARROW = {"max_attending_from_per_step": 3, "max_sampling_per_node": 5, "max_attending_to_per_step": 6}


def case(seed, tuned=False, **changes):
    rng = np.random.default_rng(seed)
    n_relations = int(rng.integers(1, 5))
    graph = random_graph(rng, int(rng.integers(3, 30)), n_relations, int(rng.integers(1, 120)))
    config = any_graph_config(**changes)
    engines = [
        any_graph_engine(graph, config, graph.n_relations if tuned else 0, seed, reference=reference)
        for reference in (False, True)
    ]
    heads, relations = rng.integers(0, graph.n_entities, 6), rng.integers(0, graph.n_relations, 6)
    removed = np.sort(rng.choice(graph.n_edges, min(3, graph.n_edges), replace=False))
    return engines, heads, relations, removed, random_targets(rng, 6, graph.n_entities)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=SEEDS,
    tuned=st.booleans(),
    network=st.sampled_from(["trained", "kept"]),
    vectors=st.sampled_from(SWITCHES["relation_vectors"]),
    horizon=st.sampled_from([WIDE, NARROW]),
)
def test_fast_path_equals_the_definition(seed, tuned, network, vectors, horizon):
    form = {"relation_network": network, "relation_vectors": vectors if tuned else "query", **horizon}
    (fast, plain), heads, relations, removed, targets = case(seed, tuned, **form)
    batches = [engine.asking_batch(heads, relations, removed) for engine in (fast, plain)]
    for (nodes, p), (expected_nodes, expected) in zip(
        by_query(fast.answer(batches[0])), by_query(plain.answer(batches[1])), strict=True
    ):
        np.testing.assert_array_equal(nodes, expected_nodes)
        np.testing.assert_allclose(p, expected, rtol=1e-7, atol=1e-12)
    found, expected = fast.gradients(batches[0], targets), plain.gradients(batches[1], targets)
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)
    assert_same_gradients(found, expected, fast.model, rtol=1e-6)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_ids_of_relations_do_not_matter(seed):
    """It knows no relation by its number: whoever renames them gets the same answers."""
    (engine, _), heads, relations, *_ = case(seed, **WIDE)
    graph, n = engine.graph, engine.graph.n_forward
    new_id = np.random.default_rng(seed).permutation(n)
    both = np.concatenate([new_id, new_id + n])
    other = Engine(engine.model, relations_renumbered(graph, new_id), engine.config)
    found = other.answer(other.asking_batch(heads, both[relations])).of_all(graph.n_entities)
    every = engine.answer(engine.asking_batch(heads, relations)).of_all(graph.n_entities)
    np.testing.assert_allclose(found, every, rtol=1e-4)  # shares are of single precision


def test_it_answers_on_one_graph_after_another():
    config = any_graph_config(relation_network="kept")
    model = any_graph_network(config)
    for seed, n_relations in ((1, 2), (2, 5), (3, 1)):
        graph = random_graph(np.random.default_rng(seed), 20, n_relations, 60)
        engine = Engine(model, graph, config)
        batch = engine.asking_batch(np.array([0, 1]), np.array([0, 2 * n_relations - 1]))
        alone = any_graph_engine(graph, config)
        torch.testing.assert_close(
            engine.answer(batch).attention,
            alone.answer(alone.asking_batch(batch.heads, batch.relations)).attention,
        )


def test_its_size_does_not_depend_on_the_graph_and_tables_begin_at_nothing():
    """A model tuned to a graph answers at first as the one for any graph does."""
    config = any_graph_config()
    graph = random_graph(np.random.default_rng(0), 20, 3, 80)
    model = any_graph_network(config)
    tuned = model.tuned_to(graph, config.model)
    assert tuned.queries.shape[0] == graph.n_relations
    heads, relations = np.arange(6), np.arange(6)
    engines = [Engine(m, graph, config) for m in (model, tuned)]
    one, other = (e.answer(e.asking_batch(heads, relations)).attention for e in engines)
    torch.testing.assert_close(one, other)
