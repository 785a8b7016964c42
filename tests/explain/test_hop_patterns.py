"""Paths along the same relations are one pattern: their shares add up, and what varies in them is known."""

import numpy as np
import pytest

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.paths import Walk
from dpmpn.explain.patterns import Hop, as_rows, hops_of, patterns_of

GRAPH = KnowledgeGraph.from_tuples(
    [
        ("a", "near", "b"),
        ("b", "near", "a"),
        ("a", "near", "c"),
        ("c", "near", "a"),
        ("b", "in", "x"),
        ("c", "in", "x"),
        ("a", "of", "x"),
    ]
)


def walk(share: float, *path: str) -> Walk:
    """A walk along entities and relations in turn; ^ goes against a relation."""
    names, relations = GRAPH.entities, GRAPH.relation_names
    edges = []
    for at in range(0, len(path) - 2, 2):
        forward = relations.id(path[at + 1].lstrip("^"), "relation")
        relation = int(GRAPH.inverse[forward]) if path[at + 1].startswith("^") else forward
        edges.append((names.id(path[at]), relation, names.id(path[at + 2])))
    return Walk(tuple(edges), share)


def test_paths_with_the_same_relations_are_one_pattern() -> None:
    walks = [
        walk(0.4, "a", "near", "b", "in", "x"),
        walk(0.3, "a", "of", "x"),
        walk(0.2, "a", "^near", "b", "in", "x"),  # near goes both ways, so this is the first one once more
        walk(0.05, "a", "near", "c", "in", "x"),
    ]
    first, second = patterns_of(GRAPH, GRAPH.entities.id("a"), walks)
    near, in_, of = (GRAPH.relation_names.id(name, "relation") for name in ("near", "in", "of"))
    assert first.hops == (Hop(near, either_way=True), Hop(in_)) and second.hops == (Hop(of),)
    assert (first.share, second.share) == (pytest.approx(0.65), 0.3)
    assert [each.share for each in first.instances] == [pytest.approx(0.6), 0.05]
    assert first.varying() == [(1, [GRAPH.entities.id("b"), GRAPH.entities.id("c")])]
    assert second.varying() == []
    assert as_rows(GRAPH, first.hops).tolist() == [[near, int(GRAPH.inverse[near])], [in_, -1]]


def test_direction_tells_patterns_apart_where_a_relation_has_one() -> None:
    in_ = GRAPH.relation_names.id("in", "relation")
    assert hops_of(GRAPH, [in_, in_]) == (Hop(in_), Hop(in_))
    assert hops_of(GRAPH, [in_, int(GRAPH.inverse[in_])]) == (Hop(in_), Hop(int(GRAPH.inverse[in_])))


def test_a_single_fact_keeps_its_direction() -> None:
    near = GRAPH.relation_names.id("near", "relation")
    back = int(GRAPH.inverse[near])
    assert hops_of(GRAPH, [near]) == (Hop(near),) and hops_of(GRAPH, [back]) == (Hop(back),)


def test_attention_that_stayed_is_a_pattern_without_relations() -> None:
    (pattern,) = patterns_of(GRAPH, 0, [Walk((), 1.0)])
    assert pattern.hops == () and pattern.instances[0].entities == (0,)


def test_how_often_a_relation_goes_both_ways() -> None:
    parts = dict(zip(GRAPH.relation_names, GRAPH.both_ways.tolist(), strict=True))
    assert parts == {"in": 0, "near": 1, "of": 0, "in_inv": 0, "near_inv": 1, "of_inv": 0}
    triples = np.array([(0, 0, 1), (1, 0, 0), (1, 0, 2), (2, 0, 2)])
    assert KnowledgeGraph.from_ids(triples, 3, 1).both_ways.tolist() == [0.75, 0.75]


def test_heads_of_relations() -> None:
    names = GRAPH.entities
    near, of = (GRAPH.relation_names.id(name, "relation") for name in ("near", "of"))
    found = GRAPH.heads_of(np.array([near, int(GRAPH.inverse[of])]))
    assert [names.name(head) for head in found.tolist()] == ["a", "b", "c", "x"]
