import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.data import graph as graph_module
from dpmpn.data.graph import KnowledgeGraph, first_of_each
from dpmpn.errors import DataError

N_ENTITIES, N_RELATIONS = 6, 3
triple = st.tuples(
    st.integers(0, N_ENTITIES - 1), st.integers(0, N_RELATIONS - 1), st.integers(0, N_ENTITIES - 1)
)
triple_lists = st.lists(triple, max_size=40)


def build(triples, **options):
    array = np.array(triples, np.int64).reshape(-1, 3)
    return KnowledgeGraph.from_ids(array, N_ENTITIES, ["p", "q", "r"], **options)


def edges_of(graph):
    heads = graph.edge_heads(np.arange(graph.n_edges))
    return list(zip(heads.tolist(), graph.relations.tolist(), graph.tails.tolist(), strict=True))


@given(triple_lists)
def test_edges_are_the_facts_and_their_inverses_sorted_and_unique(triples):
    expected = set(triples) | {(t, r + N_RELATIONS, h) for h, r, t in triples}
    graph = build(triples)
    assert edges_of(graph) == sorted(expected)
    assert graph.inverse.tolist() == [3, 4, 5, 0, 1, 2]
    assert graph.n_forward == N_RELATIONS and graph.self_loop == graph.n_relations == 2 * N_RELATIONS


@given(triple_lists)
def test_without_inverses_edges_are_the_facts(triples):
    graph = build(triples, add_inverses=False)
    assert edges_of(graph) == sorted(set(triples))
    assert graph.inverse.tolist() == [-1, -1, -1] and graph.n_forward == graph.n_relations == N_RELATIONS


def test_relations_that_are_inverses():
    assert build([]).is_inverse.tolist() == [False] * 3 + [True] * 3
    assert not build([], add_inverses=False).is_inverse.any()
    none = np.empty((0, 3), np.int64)
    own = KnowledgeGraph.from_ids(none, 2, ["p", "p_inv", "alone_inv", "q_inv", "q"], add_inverses=False)
    assert own.is_inverse.tolist() == [False, True, False, True, False]


@given(triple_lists)
def test_edges_are_counted_by_entity_and_relation(triples):
    graph = build(triples)
    for entity in range(N_ENTITIES):
        relations = np.arange(graph.n_relations)
        counts = [sum(e[:2] == (entity, r) for e in edges_of(graph)) for r in relations.tolist()]
        assert graph.n_edges_of(entity, relations).tolist() == counts
        assert graph.have(entity, relations).tolist() == [count > 0 for count in counts]


@given(triple_lists)
def test_entities_are_joined_by_any_edge(triples):
    graph = build(triples)
    pairs = np.array([(v, w) for v in range(N_ENTITIES) for w in range(N_ENTITIES)])
    expected = [any({h, t} == {v, w} for h, _, t in triples) for v, w in pairs.tolist()]
    assert graph.joined(*pairs.T).tolist() == expected


@given(triple_lists)
def test_runs_are_the_edges_of_each_entity_and_relation(triples):
    graph = build(triples)
    edges = edges_of(graph)
    pairs = sorted({(h, r) for h, r, _ in edges})
    runs = graph.runs
    owners = np.repeat(np.arange(N_ENTITIES), np.diff(runs.offsets))
    assert list(zip(owners.tolist(), runs.relations.tolist(), strict=True)) == pairs
    assert runs.lengths.tolist() == [sum(e[:2] == pair for e in edges) for pair in pairs]
    assert [edges[start][:2] for start in runs.starts[:-1]] == pairs and runs.starts[-1] == graph.n_edges
    assert graph.runs is runs and not any(array.flags.writeable for array in runs)


@given(triple_lists)
def test_offsets_count_the_out_edges(triples):
    graph = build(triples)
    heads = [h for h, _, _ in edges_of(graph)]
    counts = [heads.count(v) for v in range(N_ENTITIES)]
    assert [graph.degree(v) for v in range(N_ENTITIES)] == counts
    assert graph.degree(np.arange(N_ENTITIES)).tolist() == counts


@given(triple_lists)
def test_find_edges_agrees_with_a_set(triples):
    graph = build(triples)
    edges = edges_of(graph)
    asked = [(h, r, t) for h in range(N_ENTITIES) for r in range(6) for t in range(N_ENTITIES)]
    expected = [edges.index(a) if a in edges else -1 for a in asked]
    assert graph.find_edges(*np.array(asked).T).tolist() == expected


@given(triple_lists)
def test_a_key_too_wide_for_int64_sorts_the_same(triples):
    array = np.array(triples, np.int64).reshape(-1, 3)
    narrow = graph_module.sorted_unique(array, N_ENTITIES, N_RELATIONS)
    wide = graph_module.sorted_unique(array, 2**31 - 1, 2**15)
    assert all(np.array_equal(a, b) for a, b in zip(narrow, wide, strict=True))


def test_from_tuples_orders_ids_by_name():
    graph = KnowledgeGraph.from_tuples([("b", "likes", "a"), ("a", "knows", "c"), ("b", "likes", "a")])
    assert graph.entities.names == ("a", "b", "c")
    assert graph.relation_names.names == ("knows", "likes", "knows_inv", "likes_inv")
    assert edges_of(graph) == [(0, 0, 2), (0, 3, 1), (1, 1, 0), (2, 2, 0)]
    assert graph.has_edge(1, 1, 0) and not graph.has_edge(1, 1, 2)


def test_a_fact_about_itself_is_kept():
    graph = KnowledgeGraph.from_tuples([("a", "knows", "a")])
    assert edges_of(graph) == [(0, 0, 0), (0, 1, 0)]


def test_inverses_of_the_file_are_found_by_name():
    facts = [("a", "r", "b"), ("b", "r_inv", "a"), ("a", "asked", "b")]
    graph = KnowledgeGraph.from_tuples(facts, add_inverses=False)
    assert graph.relation_names.names == ("asked", "r", "r_inv")
    assert graph.inverse.tolist() == [-1, 2, 1]


def test_a_relation_named_like_an_added_inverse_keeps_its_name():
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("b", "r_inv", "a"), ("a", "r_inv (inverse)", "a")])
    assert graph.relation_names.names[:3] == ("r", "r_inv", "r_inv (inverse)")
    assert len(set(graph.relation_names.names)) == graph.n_relations == 6
    assert graph.n_edges == 6


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((0, 0, 6), r"triple 1: tail id 6 is outside 0\.\.5"),
        ((-1, 0, 0), r"triple 1: head id -1 is outside 0\.\.5"),
        ((0, 3, 0), r"triple 1: relation id 3 is outside 0\.\.2"),
    ],
)
def test_ids_outside_are_refused(row, message):
    with pytest.raises(DataError, match=message):
        build([(0, 0, 0), row])


def test_wrong_shape_is_refused():
    with pytest.raises(DataError, match="n x 3"):
        KnowledgeGraph.from_ids(np.zeros((4, 2), int), 1, 1)


def test_types_are_small_and_arrays_cannot_be_changed():
    graph = build([(0, 0, 1)])
    assert [a.dtype for a in (graph.offsets, graph.relations, graph.tails, graph.inverse)] == [
        np.int64,
        np.int16,
        np.int32,
        np.int32,
    ]
    many = KnowledgeGraph.from_ids(np.array([[0, 39_999, 0]]), 1, 40_000)
    assert many.relations.dtype == np.int32 and 79_999 in many.relations
    with pytest.raises(ValueError, match="read-only"):
        graph.tails[0] = 3


@given(triple_lists, st.sampled_from([N_ENTITIES, 2**31 - 1]))
def test_each_triple_stands_once_where_it_stood_first(triples, n_entities):
    array = np.array(triples, np.int32).reshape(-1, 3)
    found = first_of_each(array, n_entities, N_RELATIONS)
    assert [tuple(row) for row in found.tolist()] == list(dict.fromkeys(triples))
    assert found.dtype == np.int32 and found.shape[1] == 3
