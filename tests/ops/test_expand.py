"""Expansion, sampling, relabelling and selection against slow, obvious twins."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import NO_EDGES
from dpmpn.ops.expand import NO_LIMIT, expand, find_pairs, relabel
from dpmpn.ops.select import select_top

quick = settings(max_examples=60, deadline=None, derandomize=True)


@quick
@given(
    seed=st.integers(0, 10_000),
    limit=st.integers(1, 12),
    per_relation=st.just(NO_LIMIT) | st.integers(1, 5),
)
def test_expand_gives_remaining_edges_up_to_the_limits(seed, limit, per_relation):
    rng = np.random.default_rng(seed)
    n_entities, n_triples = int(rng.integers(1, 15)), int(rng.integers(0, 60))
    triples = rng.integers(0, [n_entities, 3, n_entities], (n_triples, 3))
    graph = KnowledgeGraph.from_ids(triples, n_entities, 3)
    removed = np.flatnonzero(rng.random(graph.n_edges) < 0.2)
    nodes = rng.integers(0, n_entities, 4).astype(np.int32)
    keys = rng.integers(0, 2**63, 4).astype(np.uint64)
    arguments = (
        graph.offsets,
        graph.relations,
        graph.tails,
        removed,
        NO_EDGES,
        keys,
        2,
        np.arange(4),
        nodes,
        limit,
        graph.self_loop,
        per_relation,
    )
    offsets, relations, tails, ids = expand(*arguments)
    for i, node in enumerate(nodes):
        part = slice(offsets[i], offsets[i + 1])
        found = ids[part]
        remaining = set(range(graph.offsets[node], graph.offsets[node + 1])) - set(removed.tolist())
        assert found[-1] == -1 and relations[part][-1] == graph.self_loop and tails[part][-1] == node
        drawn = found[:-1]
        counts = np.bincount(graph.relations[sorted(remaining)]) if remaining else np.zeros(1, np.int64)
        left = int(np.minimum(counts, per_relation).sum())
        assert set(drawn.tolist()) <= remaining and len(drawn) == min(limit, left)
        assert not len(drawn) or np.bincount(graph.relations[drawn]).max() <= per_relation
        assert (np.diff(drawn) > 0).all()
        assert np.array_equal(tails[part][:-1], graph.tails[drawn])
        assert np.array_equal(relations[part][:-1], graph.relations[drawn])
    assert np.array_equal(expand(*arguments)[3], ids)


def test_every_edge_of_a_capped_relation_is_drawn_as_often():
    triples = [(0, 0, v) for v in range(1, 9)] + [(0, 1, v) for v in range(1, 4)]
    graph = KnowledgeGraph.from_ids(np.array(triples), 9, 2, add_inverses=False)
    n = 4000
    keys = np.random.default_rng(0).integers(0, 2**63, n).astype(np.uint64)
    *_, ids = expand(
        graph.offsets,
        graph.relations,
        graph.tails,
        np.array([2]),  # one of the eight is hidden
        NO_EDGES,
        keys,
        0,
        np.arange(n),
        np.zeros(n, np.int32),
        NO_LIMIT,
        graph.self_loop,
        3,
    )
    drawn = np.bincount(ids[ids >= 0], minlength=11) / n
    assert drawn[2] == 0 and (drawn[8:] == 1).all()
    np.testing.assert_allclose(np.delete(drawn[:8], 2), 3 / 7, atol=0.04)


@quick
@given(data=st.data())
def test_pairs_are_the_runs_of_equal_relations(data):
    groups = data.draw(st.lists(st.lists(st.integers(0, 3), min_size=1).map(sorted), min_size=1, max_size=6))
    relations = np.array([r for group in groups for r in group], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    pair_offsets, pair_from = find_pairs(offsets, relations)
    expected = [(i, r) for i, group in enumerate(groups) for r in sorted(set(group))]
    assert list(zip(pair_from.tolist(), relations[pair_offsets[:-1]].tolist(), strict=True)) == expected
    assert pair_offsets[-1] == len(relations)


@quick
@given(seed=st.integers(0, 10_000))
def test_relabel_numbers_the_distinct_tails_of_each_query(seed):
    rng = np.random.default_rng(seed)
    n_queries = int(rng.integers(1, 4))
    n_from = rng.integers(0, 4, n_queries)
    from_offsets = np.concatenate([[0], np.cumsum(n_from)])
    edge_offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 6, int(n_from.sum())))])
    tails = rng.integers(0, 12, int(edge_offsets[-1])).astype(np.int32)
    visited = [rng.permutation(12)[: rng.integers(0, 12)] for _ in range(n_queries)]
    visited_offsets = np.concatenate([[0], np.cumsum([len(v) for v in visited])])
    visited_node = np.concatenate(visited).astype(np.int32)
    slot_offsets, slot_node, slot_visited, edge_slot = relabel(
        from_offsets, edge_offsets, tails, visited_offsets, visited_node
    )
    assert np.array_equal(slot_node[edge_slot], tails)
    for q in range(n_queries):
        slots = slice(slot_offsets[q], slot_offsets[q + 1])
        edges = slice(edge_offsets[from_offsets[q]], edge_offsets[from_offsets[q + 1]])
        assert sorted(slot_node[slots].tolist()) == sorted(set(tails[edges].tolist()))
        for node, at in zip(slot_node[slots], slot_visited[slots], strict=True):
            if at < 0:
                assert node not in visited[q]
            else:
                assert visited_offsets[q] <= at < visited_offsets[q + 1] and visited_node[at] == node


@quick
@given(data=st.data())
def test_select_top_takes_the_best_and_breaks_ties_by_node(data):
    groups = data.draw(
        st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7]), max_size=9), min_size=1, max_size=5)
    )
    limit = data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    scores = np.array([s for group in groups for s in group])
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    nodes = np.concatenate([rng.permutation(20)[: len(group)] for group in groups]).astype(np.int32)
    found_offsets, found = select_top(scores, offsets, nodes, limit, 0.0)
    for q in range(len(groups)):
        here = range(offsets[q], offsets[q + 1])
        best = sorted((i for i in here if scores[i] > 0), key=lambda i: (-scores[i], nodes[i]))[:limit]
        assert found[found_offsets[q] : found_offsets[q + 1]].tolist() == sorted(best)
