"""The fast path of the stronger model equals its definition in values and gradients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strong_cases import (
    VARIANTS,
    WIDE,
    assert_same_gradients,
    random_graph,
    random_targets,
    strong_config,
    strong_engine,
)

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import NO_EDGES, removed_edges
from dpmpn.engine.learning import Targets
from dpmpn.engine.settings import STRATEGIES


def compare(graph, config, heads, relations, targets, removed=NO_EDGES, closed=None):
    """Answers, loss and gradients of both; the answer. `closed` is what all gates of flow and attention add."""
    fast, slow = (strong_engine(graph, config, reference=reference) for reference in (False, True))
    for engine in (fast, slow) if closed is not None else ():
        for step in engine.model.steps:
            step.score_bias.data.fill_(closed)
            step.relation.data[:, -1] = closed
    batch = fast.asking_batch(heads, relations, removed)
    answer, expected = (engine.answer(batch, config.horizon) for engine in (fast, slow))
    assert np.array_equal(answer.offsets, expected.offsets)
    assert np.array_equal(answer.nodes, expected.nodes)
    every = answer.of_all(graph.n_entities)
    np.testing.assert_allclose(every, expected.of_all(graph.n_entities), rtol=1e-8, atol=1e-13)
    found, wanted = (engine.gradients(batch, targets) for engine in (fast, slow))
    assert found.loss == pytest.approx(wanted.loss, rel=1e-9, abs=1e-12)
    assert found.reached == wanted.reached
    assert len(found.entities) == len(found.rows) == 0  # no parameter belongs to an entity
    assert_same_gradients(found, wanted, fast.model)
    return answer


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n_entities=st.integers(8, 30),
    n_relations=st.integers(1, 4),
    n_triples=st.integers(0, 120),
    n_steps=st.integers(1, 4),
    limits=st.tuples(st.integers(1, 6), st.integers(1, 8), st.integers(1, 12)),
    per_relation=st.none() | st.integers(1, 4),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    leak_removal=st.sampled_from(["triples", "pairs"]),
    variant=st.sampled_from(VARIANTS),
)
def test_values_and_gradients(
    seed,
    n_entities,
    n_relations,
    n_triples,
    n_steps,
    limits,
    per_relation,
    strategy,
    leak_removal,
    variant,
):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_entities, n_relations, n_triples)
    config = strong_config(
        n_steps_in_agnn=n_steps, max_attending_from_per_step=limits[0], max_sampling_per_node=limits[1],
        max_attending_to_per_step=limits[2], max_sampling_per_relation=per_relation, strategy=strategy, **variant,
    )  # fmt: skip
    edges = rng.choice(graph.n_edges, min(graph.n_edges, 4), replace=False)
    stated = np.stack([graph.edge_heads(edges), graph.relations[edges], graph.tails[edges]], 1)
    n_queries = int(rng.integers(1, 6))
    compare(
        graph,
        config,
        rng.integers(0, n_entities, n_queries),
        rng.integers(0, graph.n_relations, n_queries),
        random_targets(rng, n_queries, n_entities),
        removed_edges(graph, stated, leak_removal) if len(stated) else NO_EDGES,
    )


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(v.values()) or "as it is")
def test_each_variant_on_a_graph_that_is_visited_as_a_whole(variant):
    triples = np.array([(v, v % 2, (3 * v + k) % 9) for v in range(9) for k in range(3)])
    graph = KnowledgeGraph.from_ids(triples, 9, 2)
    targets = random_targets(np.random.default_rng(2), 4, 9)
    answer = compare(graph, strong_config(**WIDE, **variant), [0, 4, 4, 8], [0, 1, 2, 3], targets)
    assert np.diff(answer.offsets).tolist() == [9] * 4


def test_heads_without_edges_and_answers_that_nothing_reaches():
    graph = random_graph(np.random.default_rng(0), 12, 2, 30)  # 10 and 11 have no edges
    targets = Targets(
        np.array([0, 2, 3, 5]), np.array([3, 11, 10, 0, 10]), np.array([0, 3, 3, 4]), np.array([2, 3, 11, 5])
    )
    answer = compare(graph, strong_config(), [10, 11, 4], [0, 3, 1], targets)
    assert np.diff(answer.offsets)[:2].tolist() == [1, 1]


@pytest.mark.parametrize("closed", [-1e4, -1e20], ids=["nearly", "wholly"])
def test_closed_gates(closed):
    """A question's answer does not depend on what is asked beside it, and nothing becomes infinite."""
    graph = random_graph(np.random.default_rng(1), 30, 2, 90)
    config = strong_config(max_attending_to_per_step=6)
    heads, relations = [0, 3, 28], [1, 0, 2]  # a hub, a node, one without edges
    together = compare(
        graph, config, heads, relations, Targets.single(np.array([4, 5, 6])), closed=closed
    ).of_all(30)
    assert np.isfinite(together).all()
    for i, question in enumerate(zip(heads, relations, strict=True)):
        alone = compare(graph, config, *([x] for x in question), Targets.single(np.array([4])), closed=closed)
        np.testing.assert_allclose(alone.of_all(30)[0], together[i], rtol=1e-9)


def test_a_head_that_loses_all_its_edges():
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 0, 4]]), 6, 1)
    removed = removed_edges(graph, np.array([[0, 0, 1]]), "triples")
    answer = compare(graph, strong_config(), [0, 1], [0, 1], Targets.single(np.array([1, 0])), removed)
    assert answer.nodes[: answer.offsets[1]].tolist() == [0]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_a_hub_above_all_caps(strategy):
    triples = [(0, 0, v) for v in range(1, 60)] + [(v, 1, v % 7) for v in range(60)]
    graph = KnowledgeGraph.from_ids(np.array(triples), 60, 2)
    config = strong_config(
        max_attending_from_per_step=5, max_sampling_per_node=9, max_attending_to_per_step=12,
        max_sampling_per_relation=6, strategy=strategy,
    )  # fmt: skip
    compare(graph, config, [0, 3, 59], [0, 1, 2], random_targets(np.random.default_rng(3), 3, 60, most=8))


@pytest.mark.parametrize(
    ("n_entities", "answers", "known"),
    [(1, [0], []), (2, [0, 1], []), (2, [1], [0, 1])],
    ids=["one entity", "both entities are answers", "the other entity is a known answer"],
)
@pytest.mark.parametrize("edges", [[], [[0, 0, 0]]], ids=["no edges", "an edge"])
def test_no_entity_is_wrong(n_entities, answers, known, edges):
    """Nothing is left to learn where all entities are answers."""
    graph = KnowledgeGraph.from_ids(np.array(edges, np.int64).reshape(-1, 3), n_entities, 1)
    targets = Targets(
        np.array([0, len(answers)]), np.array(answers), np.array([0, len(known)]), np.array(known, np.int64)
    )
    config = strong_config()
    compare(graph, config, [0], [0], targets)
    engine = strong_engine(graph, config)
    found = engine.gradients(engine.asking_batch([0], [0]), targets)
    assert found.loss == pytest.approx(0, abs=1e-9)
    assert found.shared.isfinite().all()


def test_no_entity_is_wrong_and_all_are_visited():
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), 2, 1)
    targets = Targets(np.array([0, 2]), np.array([0, 1]), np.array([0, 0]), np.empty(0, np.int64))
    compare(graph, strong_config(), [0], [0], targets)
