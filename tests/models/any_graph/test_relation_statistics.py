"""Counts of relations: by their definition, in numbers, and where facts come and go."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.changed_graph import changed_graph
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.models.any_graph import walks as walks_module
from dpmpn.models.any_graph.reference import statistics_reference, walks_reference
from dpmpn.models.any_graph.statistics import N_FEATURES, RelationStatistics
from dpmpn.models.any_graph.walks import DOUBT, HEADS, Walks

sys.path.insert(0, str(Path(__file__).parent.parent / "strong"))
from strong_cases import random_graph

SEEDS = st.integers(0, 2**20)


def assert_same(found, expected):
    for name in ("owners", "joined", "edges", "inverse"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.n_entities == expected.n_entities


def assert_same_walks(found, expected):
    for walks, others in zip(found, expected, strict=True):
        for share, other in zip(walks[:3], others[:3], strict=True):
            np.testing.assert_array_equal(share, other)
        for part, other in zip(walks.rules, others.rules, strict=True):
            np.testing.assert_array_equal(part, other)


def all_walks(statistics):
    return [statistics.walks.of(relation) for relation in range(len(statistics.inverse))]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=SEEDS, n_triples=st.integers(0, 120))
def test_counted_as_defined(seed, n_triples):
    graph = random_graph(np.random.default_rng(seed), 12, 4, n_triples)
    statistics = RelationStatistics.of(graph)
    assert_same(statistics, statistics_reference(graph))
    assert_same_walks(all_walks(statistics), walks_reference(graph))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=SEEDS, heads=st.sampled_from([3, HEADS]))
def test_counted_on_where_facts_come_and_go(seed, heads):
    """Also where walks begin at some heads alone, and facts change which."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walks_module, "HEADS", heads)
        _check_counted_on(seed)


def _check_counted_on(seed):
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
    had = all_walks(statistics)
    later, anew = statistics.after(before, after), RelationStatistics.of(after)
    assert_same(later, anew)
    assert_same_walks(all_walks(later), all_walks(anew))
    assert_same(statistics, RelationStatistics.of(before))  # as they were
    assert_same_walks(all_walks(statistics), had)


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


def test_walks_in_numbers():
    # Children have a mother, who has a husband: the father of all but one. Relations: mother, husband, father.
    family = [(child, 0, 10 + child) for child in range(4)] + [(10 + i, 1, 20 + i) for i in range(4)]
    fathers = [(child, 2, 20 + child) for child in range(3)] + [(3, 2, 20)]
    walks = Walks(KnowledgeGraph.from_ids(np.array(family + fathers), 24, 3))
    mother, husband, father, n = 0, 1, 2, 6
    assert walks.of(father).first[mother] == pytest.approx(3 / (4 + DOUBT))
    assert walks.of(father).reached[mother] == 0.75
    rule = dict(zip(*map(np.ndarray.tolist, walks.of(father).rules), strict=True))
    assert rule[mother * n + husband] == pytest.approx(3 / (4 + DOUBT))
    # A mother is the father's wife: three of the four walks by a child's father come to her child's mother.
    assert walks.of(mother).second[husband + 3] == pytest.approx(3 / (4 + DOUBT))


def test_of_many_heads_some_are_walked_from():
    """A relation that always follows another: the share is the same whichever heads are drawn."""
    n = 3 * HEADS
    people, places = np.arange(n), n + np.arange(n)
    lives, country = (
        np.stack([people, 0 * people, places], 1),
        np.stack([places, 0 * people + 1, people * 0 + 2 * n], 1),
    )
    is_from = np.stack([people, 0 * people + 2, people * 0 + 2 * n], 1)
    graph = KnowledgeGraph.from_ids(np.concatenate([lives, country, is_from]), 2 * n + 1, 3)
    assert Walks(graph).of(2).first[0] == pytest.approx(HEADS / (HEADS + DOUBT))
