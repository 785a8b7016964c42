"""Relation profiles: entities of one kind look alike, and hiding edges is as good as not having them."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strong_cases import random_graph

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.models.strong.profiles import DEGREE_SCALE, GraphProfiles

LIKE = torch.zeros(0, dtype=torch.float64)


def graph_of(seed, n_entities, n_relations, n_triples):
    return random_graph(np.random.default_rng(seed), n_entities, n_relations, n_triples)


def triples_of(graph):
    every = np.arange(graph.n_edges)
    return np.stack([graph.edge_heads(every), graph.relations, graph.tails], 1)


def features_of(profiles):
    """The features of each entity."""
    return profiles.features.dense(LIKE).numpy()[profiles.of_entity]


GRAPHS = st.builds(
    graph_of, st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 4), st.integers(0, 80)
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graph=GRAPHS)
def test_features_say_which_relations_an_entity_has_and_how_often(graph):
    counts = np.zeros((graph.n_entities, graph.n_relations))
    np.add.at(counts, tuple(triples_of(graph)[:, :2].T), 1)
    degree = counts.sum(1, keepdims=True)
    constant = np.ones((graph.n_entities, 1))
    logs = np.log(np.maximum(counts, 1))
    expected = np.concatenate([counts > 0, logs, constant, np.log1p(degree) / DEGREE_SCALE], 1)
    np.testing.assert_allclose(features_of(GraphProfiles(graph).whole), expected, rtol=1e-12)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graph=GRAPHS)
def test_entities_are_of_one_kind_where_their_profiles_are_equal(graph):
    profiles = GraphProfiles(graph).whole
    counts = np.zeros((graph.n_entities, graph.n_relations), np.int64)
    np.add.at(counts, tuple(triples_of(graph)[:, :2].T), 1)
    equal_profile = (counts[:, None] == counts[None]).all(2)
    assert np.array_equal(profiles.of_entity[:, None] == profiles.of_entity[None], equal_profile)
    assert np.array_equal(profiles.sizes, np.bincount(profiles.of_entity))
    assert len(profiles.features) == len(profiles.sizes)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(graph=GRAPHS, data=st.data())
def test_hiding_edges_equals_a_graph_without_them(graph, data):
    removed = data.draw(st.lists(st.integers(0, graph.n_edges - 1), unique=True)) if graph.n_edges else []
    removed = np.sort(np.array(removed, np.int64))
    kept = np.delete(triples_of(graph), removed, 0)
    smaller = KnowledgeGraph.from_ids(kept, graph.n_entities, graph.n_relations, add_inverses=False)
    profiles, expected = GraphProfiles(graph).without(removed), GraphProfiles(smaller).whole
    np.testing.assert_allclose(features_of(profiles), features_of(expected), rtol=1e-12)
    assert np.array_equal(profiles.sizes, np.bincount(profiles.of_entity, minlength=len(profiles.sizes)))
    assert len(profiles.features) == len(profiles.sizes)
    # Numbers differ, and one kind may have several; but no kind is two.
    pairs = {(a, b) for a, b in zip(profiles.of_entity.tolist(), expected.of_entity.tolist(), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs})


@settings(max_examples=20, deadline=None, derandomize=True)
@given(graph=GRAPHS)
def test_hiding_leaves_the_graph_s_own_profiles_as_they_are(graph):
    profiles = GraphProfiles(graph)
    before = profiles.whole.of_entity.copy(), profiles.whole.sizes.copy()
    everything = profiles.without(np.arange(graph.n_edges))
    assert profiles.without(np.empty(0, np.int64)) is profiles.whole
    assert np.array_equal(profiles.whole.of_entity, before[0])
    assert np.array_equal(profiles.whole.sizes, before[1])
    bare = np.zeros(2 * graph.n_relations + 2)
    bare[2 * graph.n_relations] = 1
    assert (features_of(everything) == bare).all()


def test_many_entities_of_few_profiles():
    """A hash table that is large, and chains that are long."""
    n = 5000
    triples = np.array([(v, v % 3, (v + 1) % n) for v in range(n)])
    profiles = GraphProfiles(KnowledgeGraph.from_ids(triples, n, 3)).whole
    assert len(profiles.sizes) < 10
    assert profiles.sizes.sum() == n
