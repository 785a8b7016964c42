"""Unseen entities get the mean rows of those with the same relations, and answers say what came through them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.config import Config
from dpmpn.data.changed_graph import changed_graph
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import RunConfig
from dpmpn.engine.trace import through_unseen, unseen_entities
from dpmpn.models import build_model
from dpmpn.models.paper.network import PaperNetwork
from dpmpn.models.paper.settings import PaperSettings

FACTS = [("a", "r", "b"), ("c", "r", "b"), ("c", "r", "a"), ("b", "s", "d")]
CONFIG = Config(model=PaperSettings(n_dims=5, n_dims_att=4, n_steps_in_agnn=3), run=RunConfig(threads=1))


def network_of(graph: KnowledgeGraph, seed: int = 0) -> PaperNetwork:
    network = build_model(graph.n_entities, graph.n_relations, CONFIG.model, seed)
    with torch.no_grad():
        network.entities.mul_(20)
        network.relations.mul_(20)
    return network


def test_a_new_entity_gets_the_mean_of_its_relations_means() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    network = network_of(graph)
    grown, _ = changed_graph(graph, [("new", "r", "a"), ("new", "r", "d"), ("b", "s", "new")])
    extended = network.extended(graph, grown)
    a, _, c, d = network.entities.detach()
    has_r, has_s_inv = (a + c) / 2, d
    torch.testing.assert_close(extended.entities[4], (2 * has_r + has_s_inv) / 3)
    assert torch.equal(extended.entities[:4], network.entities)


def test_weights_are_shared_and_the_network_stays_as_it_was() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    network = network_of(graph)
    before = network.entities.detach().clone()
    grown, _ = changed_graph(graph, [("new", "r", "a")])
    extended = network.extended(graph, grown)
    assert torch.equal(network.entities, before)
    assert extended.entities.shape == (5, 5) and network.entities.shape == (4, 5)
    shared = extended.shared_parameters()
    assert list(shared) == list(network.shared_parameters())
    assert all(shared[name] is p for name, p in network.shared_parameters().items())
    fewer, _ = changed_graph(graph, remove=FACTS[:1])
    same = network.extended(graph, fewer)
    assert same.entities.data_ptr() == network.entities.data_ptr()


def test_an_entity_without_a_training_edge_is_unseen_when_it_gets_one() -> None:
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1], [1, 1, 0]]), 4, 2)  # 2 and 3 have no edge
    network = network_of(graph)
    assert unseen_entities(graph, graph).tolist() == [False, False, True, True]
    changed, _ = changed_graph(graph, [("2", "0", "1")])
    extended = network.extended(graph, changed)
    torch.testing.assert_close(extended.entities[2], network.entities[0])
    assert torch.equal(extended.entities[3], network.entities[3])


def test_without_inverses_a_tail_is_seen_and_a_new_tail_gets_the_mean_of_all() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("a", "s", "c")], add_inverses=False)
    network = network_of(graph)
    grown, _ = changed_graph(graph, [("a", "r", "new")])
    assert unseen_entities(graph, grown).tolist() == [False, False, False, True]
    extended = network.extended(graph, grown)
    torch.testing.assert_close(extended.entities[3], network.entities.mean(0))


def test_a_relation_nobody_had_in_training_counts_as_everybody() -> None:
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1]]), 2, 2)
    network = network_of(graph)
    grown, _ = changed_graph(graph, [("new", "1", "0")])
    extended = network.extended(graph, grown)
    torch.testing.assert_close(extended.entities[2], network.entities.mean(0))


def test_means_of_many_entities_are_taken_from_enough_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmpn.models.paper.unseen._ENOUGH", 3)
    graph = KnowledgeGraph.from_ids(np.array([[i, 0, 9] for i in range(9)]), 10, 1)
    network = network_of(graph)
    grown, _ = changed_graph(graph, [("new", "0", "9")])
    extended = network.extended(graph, grown)
    torch.testing.assert_close(extended.entities[10], network.entities[[0, 3, 6]].mean(0))


def enumerated(trace, query: int, node: int, unseen: np.ndarray) -> float:
    """The slow twin: follow every walk to the node and add up those that met an unseen entity."""
    head = int(trace.heads[query])
    walks = {(head, bool(unseen[head])): 1.0}  # (node, met an unseen entity): attention
    for step in trace.steps:
        flow, after = step.flow, {}
        for i in np.flatnonzero(step.from_query == query):
            at = int(step.from_node[i])
            reached = sum(walks.get((at, met), 0.0) for met in (False, True))
            for e in range(step.edge_offsets[i], step.edge_offsets[i + 1]):
                tail = int(step.edge_tail[e])
                for met in (False, True):
                    key = (tail, met or bool(unseen[tail]))
                    after[key] = after.get(key, 0.0) + walks.get((at, met), 0.0) / reached * flow[e]
        walks = after
    return walks.get((node, True), 0.0) / sum(walks.get((node, met), 0.0) for met in (False, True))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), softmax=st.sampled_from(["edge", "pair"]))
def test_what_came_through_unseen_entities(seed: int, softmax: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 15))
    graph = KnowledgeGraph.from_ids(
        np.stack([rng.integers(0, n, 25), rng.integers(0, 2, 25), rng.integers(0, n, 25)], 1), n, 2
    )
    config = CONFIG.replace(softmax=softmax, max_attending_from_per_step=4, max_attending_to_per_step=6)
    engine = Engine(network_of(graph, seed).double(), graph, config)
    unseen = rng.random(n) < 0.3
    answer, trace = engine.trace(engine.asking_batch(rng.integers(0, n, 3), rng.integers(0, 4, 3)))
    parts = through_unseen(answer, trace, unseen)
    assert ((parts >= 0) & (parts <= 1)).all()
    for query in range(3):
        for at in range(answer.offsets[query], answer.offsets[query + 1]):
            node = int(answer.nodes[at])
            if unseen[node] and answer.attention[at] > 0:
                assert parts[at] == 1
            elif answer.attention[at] > 1e-12:
                assert parts[at] == pytest.approx(enumerated(trace, query, node, unseen), abs=1e-9)
    none = through_unseen(answer, trace, np.zeros(n, bool))
    assert not none.any()
