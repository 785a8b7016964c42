"""Counts of relations: by their definition, in numbers, and where facts come and go."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.changed_graph import changed_graph
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.models.any_graph.reference import statistics_reference
from dpmpn.models.any_graph.statistics import N_FEATURES, RelationStatistics

sys.path.insert(0, str(Path(__file__).parent.parent / "strong"))
from strong_cases import random_graph

SEEDS = st.integers(0, 2**20)


def assert_same(found, expected):
    for name in ("owners", "joined", "edges", "inverse"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.n_entities == expected.n_entities


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=SEEDS, n_triples=st.integers(0, 120))
def test_counted_as_defined(seed, n_triples):
    graph = random_graph(np.random.default_rng(seed), 12, 4, n_triples)
    assert_same(RelationStatistics.of(graph), statistics_reference(graph))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_counted_on_where_facts_come_and_go(seed):
    rng = np.random.default_rng(seed)
    before = random_graph(rng, 12, 4, 60)
    names, relations = list(before.entities), list(before.relation_names)
    at = rng.choice(before.n_edges, 5)
    gone = [
        (names[int(h)], relations[int(r)], names[int(t)])
        for h, r, t in zip(before.edge_heads(at), before.relations[at], before.tails[at], strict=True)
    ]
    come = [
        (names[int(rng.integers(12))], relations[0], "someone new"),
        ("someone new", relations[1], names[3]),
    ]
    after, _ = changed_graph(before, come, gone)
    statistics = RelationStatistics.of(before)
    assert_same(statistics.after(before, after), RelationStatistics.of(after))
    assert_same(statistics, RelationStatistics.of(before))  # as they were


def test_shares_in_numbers():
    # Two people speak a language, one of them lives where it is spoken; relations: speaks, lives in; then inverses.
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 2], [1, 0, 2], [0, 1, 3], [0, 1, 2]]), 4, 2)
    statistics = RelationStatistics.of(graph)
    speaks, lives = 0, 1
    assert statistics.shared[speaks, lives] == 0.5  # one of two speakers lives somewhere
    assert statistics.shared[lives, speaks] == 1.0
    assert statistics.repeated[speaks, lives] == 0.5  # "0 lives in 2" joins what "0 speaks 2" joins
    assert statistics.repeated[lives, speaks] == 0.5
    assert statistics.repeated[speaks, speaks] == 0.0
    asked = statistics.features(np.array([speaks]))[0]
    assert asked.shape == (4, N_FEATURES)
    assert asked[:, 0].tolist() == [1, 0, 0, 0]
    assert asked[:, 1].tolist() == [0, 0, 1, 0]


def test_a_relation_without_an_inverse_has_none_of_its_shares():
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1], [0, 1, 1]]), 2, ["a", "b"], add_inverses=False)
    asked = RelationStatistics.of(graph).features(np.array([0]))[0]
    assert asked[0, 1] == 0 and asked[0, 3] == 0  # not its own inverse, and none of its entities has that
    assert asked[0, 2] == pytest.approx(1)
