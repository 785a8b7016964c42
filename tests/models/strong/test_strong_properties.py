"""What must hold for every question: the same answer whatever is asked beside it, and one distribution over all."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strong_cases import (
    WIDE,
    assert_same_gradients,
    by_query,
    random_engine,
    random_targets,
    strong_config,
    strong_engine,
    strong_network,
)

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import STRATEGIES
from dpmpn.evaluate.evaluator import rank_queries
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.models.strong.fast import StrongSteps, row_pools
from dpmpn.models.strong.network import DIGITS
from dpmpn.models.strong.profiles import GraphProfiles
from dpmpn.models.strong.reference import profile_features

SEEDS, STRATEGY = st.integers(0, 10_000), st.sampled_from(sorted(STRATEGIES))
NARROW = {"max_attending_from_per_step": 3, "max_sampling_per_node": 5, "max_attending_to_per_step": 7}


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=SEEDS, strategy=STRATEGY)
def test_same_answer_alone_and_in_any_batch(seed, strategy):
    engine, heads, relations = random_engine(seed, 5, strategy=strategy, **NARROW)
    n_entities = engine.graph.n_entities

    def answers(rows):
        answer = engine.answer(engine.asking_batch(heads[rows], relations[rows]))
        return by_query(answer), answer.of_all(n_entities)

    together, every = answers(np.arange(5))
    order = np.random.default_rng(seed).permutation(5)
    shuffled, every_shuffled = answers(order)
    np.testing.assert_allclose(every_shuffled, every[order], rtol=1e-9)
    for place, q in enumerate(order):
        alone, every_alone = answers(np.array([q]))
        np.testing.assert_allclose(every_alone[0], every[q], rtol=1e-9)
        for nodes, attention in (alone[0], shuffled[place]):
            assert np.array_equal(nodes, together[q][0])
            np.testing.assert_allclose(attention, together[q][1], rtol=1e-9)


def renumbered(graph, new_id):
    """The same facts with other ids of entities."""
    every = np.arange(graph.n_edges)
    triples = np.stack([new_id[graph.edge_heads(every)], graph.relations, new_id[graph.tails]], 1)
    forward = triples[graph.relations < graph.n_forward]
    return KnowledgeGraph.from_ids(forward, graph.n_entities, graph.n_forward)


def one_edge_per_relation(rng, n_entities, n_relations):
    """A graph in which no node has two edges of one relation, so that hardly any two nodes tie."""
    chosen = [np.flatnonzero(rng.random(n_entities) < 0.6) for _ in range(n_relations)]
    triples = [
        np.stack([heads, np.full(len(heads), r), rng.permutation(n_entities)[: len(heads)]], 1)
        for r, heads in enumerate(chosen)
    ]
    return KnowledgeGraph.from_ids(np.concatenate(triples), n_entities, n_relations)


def has_ties(engine, batch, horizon):
    """Whether two states of a query scored alike at any time."""
    network, graph = engine.model, engine.graph
    with torch.no_grad():
        profiles = GraphProfiles(graph).without(batch.removed)
        asked = network.on(graph).asked
        steps = StrongSteps(network, graph, batch, horizon, profiles, row_pools(network), asked)
        steps.run()
    scores = steps.scores[steps.scores > 0].round(DIGITS)  # states that entities begin with have none
    return len(np.unique(scores)) < len(scores)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_ids_of_entities_do_not_matter(seed):
    engine, heads, relations = random_engine(seed, 4, **WIDE)
    rng = np.random.default_rng(seed)
    new_id = rng.permutation(engine.graph.n_entities)
    other = Engine(engine.model, renumbered(engine.graph, new_id), engine.config)
    every = engine.answer(engine.asking_batch(heads, relations)).of_all(len(new_id))
    found = other.answer(other.asking_batch(new_id[heads], relations)).of_all(len(new_id))
    np.testing.assert_allclose(found[:, new_id], every, rtol=1e-8, atol=1e-14)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=SEEDS, n_from=st.integers(1, 4))
def test_ids_of_entities_do_not_choose_between_nodes_that_differ(seed, n_from):
    rng = np.random.default_rng(seed)
    graph = one_edge_per_relation(rng, 20, 4)
    config = strong_config(**WIDE | {"max_attending_from_per_step": n_from})
    engine = strong_engine(graph, config, seed)
    head, relation = rng.integers(0, 20, 1), rng.integers(0, graph.n_relations, 1)
    batch = engine.asking_batch(head, relation)
    assume(not has_ties(engine, batch, config.horizon))
    new_id = rng.permutation(20)
    other = Engine(engine.model, renumbered(graph, new_id), config)
    found = other.answer(other.asking_batch(new_id[head], relation)).of_all(20)
    np.testing.assert_allclose(found[:, new_id], engine.answer(batch).of_all(20), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize(
    ("run", "n_parts"),
    [({"threads": 2}, 2), ({"memory_budget_mb": 1}, 2), ({"threads": 2, "memory_budget_mb": 1}, 3)],
    ids=["two processes", "low memory", "several rounds"],
)
def test_splitting_a_batch_changes_nothing(run, n_parts):
    one, heads, relations = random_engine(4, 40)
    heads, relations = np.tile(heads, 3), np.tile(relations, 3)
    removed = np.arange(0, one.graph.n_edges, 7)
    targets = random_targets(np.random.default_rng(0), len(heads), one.graph.n_entities)
    split = Engine(one.model, one.graph, one.config.replace(**run))
    batch = one.asking_batch(heads, relations, removed)
    expected, expected_answer = one.gradients(batch, targets), one.answer(batch)
    try:
        assert len(split._parts(batch, split.config.horizon, training=True)) >= n_parts
        found, answer = split.gradients(batch, targets), split.answer(batch)
    finally:
        split.close()
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)
    assert found.reached == expected.reached
    assert_same_gradients(found, expected, one.model)
    n_entities = one.graph.n_entities
    assert np.array_equal(answer.nodes, expected_answer.nodes)
    np.testing.assert_allclose(answer.of_all(n_entities), expected_answer.of_all(n_entities), rtol=1e-9)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=SEEDS,
    strategy=STRATEGY,
    limits=st.tuples(st.integers(1, 5), st.integers(1, 7), st.integers(1, 9)),
    per_relation=st.none() | st.integers(1, 3),
    hides=st.booleans(),
)
def test_probabilities_add_up_to_1_and_visits_stay_within_their_bound(
    seed, strategy, limits, per_relation, hides
):
    keys = ("max_attending_from_per_step", "max_sampling_per_node", "max_attending_to_per_step")
    engine, heads, relations = random_engine(
        seed,
        strategy=strategy,
        max_sampling_per_relation=per_relation,
        **dict(zip(keys, limits, strict=True)),
    )
    removed = np.arange(0, engine.graph.n_edges, 3) if hides else np.empty(0, np.int64)
    answer = engine.answer(engine.asking_batch(heads, relations, removed))
    every = answer.of_all(engine.graph.n_entities)
    np.testing.assert_allclose(every.sum(1), 1, rtol=1e-9)
    assert (every > 0).all()
    bound = engine.config.horizon.bound(engine.config.model.n_steps_in_agnn)
    for nodes, _ in by_query(answer):
        assert len(np.unique(nodes)) == len(nodes) <= engine.graph.n_entities
        assert bound is None or len(nodes) <= bound


def test_single_precision_agrees_with_double():
    exact, heads, relations = random_engine(11, **WIDE)
    rounded = Engine(strong_network(exact.graph, exact.config, 11, torch.float32), exact.graph, exact.config)
    n_entities = exact.graph.n_entities
    every, found = (e.answer(e.asking_batch(heads, relations)).of_all(n_entities) for e in (exact, rounded))
    np.testing.assert_allclose(found, every, rtol=2e-3, atol=1e-6)


def test_a_head_without_edges_is_answered_by_profiles():
    """From 6 nothing can be reached: entities with equal profiles tie, others do not, and ranks say so."""
    triples = np.array([[0, 0, 1], [2, 0, 3], [4, 1, 5]])
    graph = KnowledgeGraph.from_ids(triples, 8, 2)
    engine = strong_engine(graph, strong_config())
    answer = engine.answer(engine.asking_batch([6], [0]))
    assert answer.nodes.tolist() == [6]
    every = answer.of_all(8)[0]
    assert every[0] == every[2] and every[1] == every[3]
    assert len(np.unique(every[[0, 1, 4, 5, 7]])) == 5
    queries = np.array([[6, 0, target] for target in range(8)])
    ranks = rank_queries(engine, KnownAnswers.from_triples(np.empty((0, 3), np.int64)), queries)
    for target in range(8):
        assert ranks.optimistic[target] == 1 + (every > every[target]).sum()
        assert ranks.pessimistic[target] == (every >= every[target]).sum()
    assert ranks.reached.tolist() == [target == 6 for target in range(8)]


def test_the_loss_leaves_other_known_answers_out():
    """-log of the probability of each answer among itself and all that are not known."""
    engine, heads, relations = random_engine(4)
    n_entities = engine.graph.n_entities
    targets = random_targets(np.random.default_rng(1), len(heads), n_entities)
    batch = engine.asking_batch(heads, relations)
    every = engine.answer(batch).of_all(n_entities)
    losses, reached = [], 0
    visited = [set(nodes.tolist()) for nodes, _ in by_query(engine.answer(batch))]
    for query, entity in zip(targets.query, targets.entities, strict=True):
        own = targets.entities[targets.offsets[query] : targets.offsets[query + 1]]
        known = targets.known[targets.known_offsets[query] : targets.known_offsets[query + 1]]
        rivals = np.delete(every[query], np.union1d(own, known)).sum()
        losses.append(-np.log(every[query, entity] / (every[query, entity] + rivals)))
        reached += int(entity) in visited[query]
    found = engine.gradients(batch, targets)
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-9)
    assert 0 < found.reached == reached < len(losses)


def test_no_questions_give_no_answers():
    engine, *_ = random_engine(4)
    answer = engine.answer(engine.asking_batch(np.empty(0), np.empty(0)))
    assert len(answer.nodes) == 0 and answer.offsets.tolist() == [0]


def test_answers_do_not_change_what_is_asked_later():
    """Memory that is used again keeps nothing of the batch before."""
    engine, heads, relations = random_engine(6)
    batch = engine.asking_batch(heads, relations)
    first = engine.answer(batch)
    targets = random_targets(np.random.default_rng(0), len(heads), engine.graph.n_entities)
    before = engine.gradients(batch, targets)
    engine.answer(engine.asking_batch(heads[4:], relations[4:], np.arange(engine.graph.n_edges)))
    engine.trace(dataclasses.replace(batch, heads=batch.heads[::-1].copy()))
    again = engine.answer(batch)
    assert torch.equal(again.attention, first.attention)
    assert torch.equal(engine.gradients(batch, targets).shared, before.shared)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=SEEDS, profiles=st.sampled_from(["on", "prior", "off"]))
def test_before_any_step_an_answer_has_its_prior(seed, profiles):
    engine, heads, relations = random_engine(seed, 5, profiles=profiles, **NARROW)
    graph, network, rng = engine.graph, engine.model, np.random.default_rng(seed)
    removed = np.flatnonzero(rng.random(graph.n_edges) < 0.2)
    answer, _ = engine.trace(engine.asking_batch(heads, relations, removed))
    profile = profile_features(graph, removed, are_on=profiles != "off")
    rows = network.asked(relations, graph.inverse).prior
    prior = (rows @ profile.t()).softmax(1).detach().numpy()
    query = np.repeat(np.arange(5), np.diff(answer.offsets))
    np.testing.assert_allclose(answer.prior, prior[query, answer.nodes], rtol=1e-7)
