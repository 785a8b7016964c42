"""Paths are read from traces: shares add up, waiting is no fact, and inverse edges are read backwards."""

import numpy as np
import pytest

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain_path import strongest_paths
from dpmpn.model.engine import Engine
from dpmpn.model.network import build_network
from dpmpn.model.trace import ReasoningTrace, TraceStep

# Two ways from a to d, and the self-loop that every node has.
FACTS = [("a", "likes", "b"), ("a", "likes", "c"), ("b", "knows", "d"), ("d", "helps", "c")]


def step(
    graph: KnowledgeGraph, senders: dict[str, float], edges: list[tuple[str, str, str, float]]
) -> TraceStep:
    """A step of one query: its senders' attention and its edges with their transitions."""
    names, relations = graph.entities, graph.relation_names
    froms = list(senders)
    edges = sorted(edges, key=lambda e: froms.index(e[0]))
    slots = sorted({tail for *_, tail, _ in edges})
    counts = [sum(e[0] == name for e in edges) for name in froms]
    slot = np.array([slots.index(e[2]) for e in edges])
    transition = np.array([e[3] for e in edges])
    carried = transition * np.repeat([senders[name] for name in froms], counts)
    return TraceStep(
        from_query=np.zeros(len(froms), np.int64),
        from_node=np.array([names.id(name) for name in froms]),
        from_attention=np.array(list(senders.values())),
        edge_offsets=np.concatenate([[0], np.cumsum(counts)]),
        edge_relation=np.array([graph.self_loop if e[1] == "=" else relations.id(e[1]) for e in edges]),
        edge_tail=np.array([names.id(e[2]) for e in edges]),
        edge_slot=slot,
        transition=transition,
        slot_offsets=np.array([0, len(slots)]),
        slot_node=np.array([names.id(name) for name in slots]),
        slot_attention=np.bincount(slot, carried) / sum(senders.values()),
        attended_to=np.ones(len(slots), bool),
    )


def test_the_stronger_way_comes_first_and_shares_are_parts_of_the_answers_attention() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    trace.steps.append(step(graph, {"a": 1.0}, [("a", "likes", "b", 0.75), ("a", "likes", "c", 0.25)]))
    trace.steps.append(
        step(
            graph,
            {"b": 0.75, "c": 0.25},
            [
                ("b", "knows", "d", 0.4),
                ("b", "=", "b", 0.6),
                ("c", "helps_inv", "d", 0.8),
                ("c", "=", "c", 0.2),
            ],
        )
    )
    paths = strongest_paths(trace, 0, graph.entities.id("d"), graph)
    assert [path.facts for path in paths] == [
        (("a", "likes", "b"), ("b", "knows", "d")),
        (("a", "likes", "c"), ("d", "helps", "c")),
    ]
    assert [path.share for path in paths] == pytest.approx([0.6, 0.4])
    assert len(strongest_paths(trace, 0, graph.entities.id("d"), graph, top=1)) == 1


def test_walks_that_differ_only_in_when_they_wait_are_one_path() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    trace.steps.append(step(graph, {"a": 1.0}, [("a", "likes", "b", 0.5), ("a", "=", "a", 0.5)]))
    trace.steps.append(step(graph, {"a": 0.5, "b": 0.5}, [("a", "likes", "b", 1.0), ("b", "=", "b", 1.0)]))
    (path,) = strongest_paths(trace, 0, graph.entities.id("b"), graph)
    assert path.facts == (("a", "likes", "b"),)
    assert path.share == pytest.approx(1.0)


def test_an_answer_that_was_not_reached_has_no_path() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    trace.steps.append(step(graph, {"a": 1.0}, [("a", "=", "a", 1.0)]))
    assert strongest_paths(trace, 0, graph.entities.id("d"), graph) == []
    assert [path.facts for path in strongest_paths(trace, 0, graph.entities.id("a"), graph)] == [()]


def test_relations_that_the_file_holds_in_both_directions_are_read_forward() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("b", "r_inv", "a")], add_inverses=False)
    trace = ReasoningTrace(np.array([graph.entities.id("b")]), np.array([0]))
    trace.steps.append(step(graph, {"b": 1.0}, [("b", "r_inv", "a", 1.0)]))
    (path,) = strongest_paths(trace, 0, graph.entities.id("a"), graph)
    assert path.facts == (("a", "r", "b"),)


def test_shares_of_all_paths_of_a_real_trace_add_up_to_one() -> None:
    graph = KnowledgeGraph.from_tuples([*FACTS, ("d", "knows", "a"), ("c", "knows", "c")])
    config = Config().replace(n_dims=4, n_dims_att=3, n_steps_in_agnn=3, n_steps_in_ignn=1, threads=1)
    network = build_network(graph.n_entities, graph.n_relations, config.model, seed=0)
    engine = Engine(network, graph, config)
    batch = engine.asking_batch(np.array([0, 3]), np.array([0, 1]))
    answer, trace = engine.trace(batch)
    for query in range(2):
        nodes = answer.nodes[answer.offsets[query] : answer.offsets[query + 1]]
        for node in nodes:
            paths = strongest_paths(trace, query, int(node), graph, top=1000)
            assert sum(path.share for path in paths) == pytest.approx(1.0, abs=1e-4)
            for path in paths:
                _assert_chain(
                    path.facts, graph.entities.name(int(batch.heads[query])), graph.entities.name(int(node))
                )


def _assert_chain(facts: tuple[tuple[str, str, str], ...], head: str, answer: str) -> None:
    """The facts lead from head to answer, each read in either direction."""
    at = head
    for start, _, end in facts:
        assert at in (start, end)
        at = end if at == start else start
    assert at == answer


def test_a_relation_of_the_users_own_that_is_named_like_an_inverse_is_read_forward() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "knows_inv", "b"), ("b", "knows_inv", "c"), ("a", "r", "c")])
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    trace.steps.append(step(graph, {"a": 1.0}, [("a", "knows_inv", "b", 1.0)]))
    backward = graph.relation_names.name(int(graph.inverse[graph.relation_names.id("r", "relation")]))
    trace.steps.append(step(graph, {"b": 1.0}, [("b", "knows_inv", "c", 1.0)]))
    trace.steps.append(step(graph, {"c": 1.0}, [("c", backward, "a", 1.0)]))
    (path,) = strongest_paths(trace, 0, graph.entities.id("a"), graph)
    assert path.facts == (("a", "knows_inv", "b"), ("b", "knows_inv", "c"), ("a", "r", "c"))


def test_a_relation_and_its_own_namesake_of_an_inverse() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("b", "r_inv", "a")])
    assert graph.n_forward == 2
    trace = ReasoningTrace(np.array([graph.entities.id("b")]), np.array([0]))
    trace.steps.append(step(graph, {"b": 1.0}, [("b", "r_inv", "a", 1.0)]))
    (path,) = strongest_paths(trace, 0, graph.entities.id("a"), graph)
    assert path.facts == (("b", "r_inv", "a"),)
