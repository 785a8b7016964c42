"""Paths are read from traces: shares add up, waiting and detours are no facts, inverse edges are read backwards."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.trace import ReasoningTrace, TraceStep
from dpmpn.explain.flow import AnswerFlow, QueryFlow, StepFlow
from dpmpn.explain.paths import Path, strongest_paths, strongest_walks
from dpmpn.models import build_model

WAITING = 9  # the relation of self-loops in random flows

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
        attended_from=np.ones(len(froms), bool),
        edge_offsets=np.concatenate([[0], np.cumsum(counts)]),
        edge_relation=np.array([graph.self_loop if e[1] == "=" else relations.id(e[1]) for e in edges]),
        edge_tail=np.array([names.id(e[2]) for e in edges]),
        edge_slot=slot,
        flow=carried / sum(senders.values()),
        slot_offsets=np.array([0, len(slots)]),
        slot_node=np.array([names.id(name) for name in slots]),
        slot_attention=np.bincount(slot, carried) / sum(senders.values()),
        slot_score=np.bincount(slot, carried) / sum(senders.values()),
        attended_to=np.ones(len(slots), bool),
    )


def paths_to(trace: ReasoningTrace, answer: str, graph: KnowledgeGraph, top: int = 3) -> list[Path]:
    return strongest_paths(AnswerFlow.to(QueryFlow.of(trace), graph.entities.id(answer)), graph, top)


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
    paths = paths_to(trace, "d", graph)
    assert [path.facts for path in paths] == [
        (("a", "likes", "b"), ("b", "knows", "d")),
        (("a", "likes", "c"), ("d", "helps", "c")),
    ]
    assert [path.share for path in paths] == pytest.approx([0.6, 0.4])
    assert len(paths_to(trace, "d", graph, top=1)) == 1


def test_walks_that_differ_only_in_when_they_wait_are_one_path() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    trace.steps.append(step(graph, {"a": 1.0}, [("a", "likes", "b", 0.5), ("a", "=", "a", 0.5)]))
    trace.steps.append(step(graph, {"a": 0.5, "b": 0.5}, [("a", "likes", "b", 1.0), ("b", "=", "b", 1.0)]))
    (path,) = paths_to(trace, "b", graph)
    assert path.facts == (("a", "likes", "b"),)
    assert path.share == pytest.approx(1.0)


def test_an_answer_that_was_not_reached_has_no_path() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    trace.steps.append(step(graph, {"a": 1.0}, [("a", "=", "a", 1.0)]))
    assert paths_to(trace, "d", graph) == []
    assert [path.facts for path in paths_to(trace, "a", graph)] == [()]


def test_relations_that_the_file_holds_in_both_directions_are_read_forward() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("b", "r_inv", "a")], add_inverses=False)
    trace = ReasoningTrace(np.array([graph.entities.id("b")]), np.array([0]))
    trace.steps.append(step(graph, {"b": 1.0}, [("b", "r_inv", "a", 1.0)]))
    (path,) = paths_to(trace, "a", graph)
    assert path.facts == (("a", "r", "b"),)


def test_a_detour_that_returned_is_no_fact() -> None:
    graph = KnowledgeGraph.from_tuples(FACTS)
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    trace.steps.append(step(graph, {"a": 1.0}, [("a", "likes", "b", 0.5), ("a", "likes", "c", 0.5)]))
    trace.steps.append(
        step(graph, {"b": 0.5, "c": 0.5}, [("b", "=", "b", 1.0), ("c", "likes_inv", "a", 1.0)])
    )
    trace.steps.append(step(graph, {"a": 0.5, "b": 0.5}, [("a", "likes", "b", 1.0), ("b", "=", "b", 1.0)]))
    assert paths_to(trace, "b", graph) == [Path((("a", "likes", "b"),), 1.0)]


@given(seed=st.integers(0, 2**32 - 1), n_steps=st.integers(1, 5))
@settings(max_examples=60)
def test_paths_are_the_walks_without_their_loops(seed: int, n_steps: int) -> None:
    """Against every single walk of a random flow, its loops erased as they close."""
    flow = random_flow(np.random.default_rng(seed), n_nodes=5, n_steps=n_steps)
    expected: dict[tuple, float] = defaultdict(float)
    for edges, share in all_walks(flow):
        expected[without_loops(flow.query.head, flow.answer, edges)] += share
    assert sum(expected.values()) == pytest.approx(1.0)
    walks = strongest_walks(flow, most=10_000)
    found = {walk.edges: walk.share for walk in walks}
    strong = {edges: share for edges, share in expected.items() if share > 1e-4}
    assert {edges: found.get(edges) for edges in strong} == pytest.approx(strong, abs=1e-4)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-3)
    shares = [walk.share for walk in walks]
    assert shares == sorted(shares, reverse=True)
    assert [walk.edges for walk in strongest_walks(flow, most=2)] == [walk.edges for walk in walks[:2]]
    enough = strongest_walks(flow, most=10_000, enough=0.5)
    assert sum(walk.share for walk in enough) >= 0.499
    assert len(enough) == 1 or sum(walk.share for walk in enough[:-1]) < 0.5


def test_attention_that_is_spread_evenly_still_has_paths() -> None:
    """Four layers of nodes, all joined: too many beginnings are alike to look at them all."""
    width, layers = 18, 4
    layer = [np.arange(width) + 1 + width * i for i in range(layers)]
    end = 1 + width * layers
    ways = [(np.zeros(width, int), layer[0])]
    ways += [(np.repeat(a, width), np.tile(b, width)) for a, b in pairwise(layer)]
    ways += [(layer[-1], np.full(width, end))]
    attention = np.zeros((layers + 2, end + 1))
    attention[0, 0] = attention[-1, end] = 1.0
    steps = []
    for t, (heads, tails) in enumerate(ways):
        flows = attention[t, heads] / (np.bincount(heads)[heads])
        attention[t + 1] = np.bincount(tails, flows, end + 1)
        steps.append(StepFlow(heads, np.zeros(len(heads), int), tails, flows))
    nothing = np.zeros((layers + 1, end + 1), bool)
    query = QueryFlow(0, np.arange(end + 1), attention, attention, nothing, nothing, tuple(steps))
    walks = strongest_walks(AnswerFlow(query, end), most=50, enough=0.9)
    assert len(walks) == 50
    assert {len(walk.edges) for walk in walks} == {layers + 1}
    assert [walk.share for walk in walks] == pytest.approx([width**-layers] * 50)


def test_a_fact_from_the_head_to_itself_is_told_from_waiting_there() -> None:
    graph = KnowledgeGraph.from_tuples([*FACTS, ("a", "likes", "a")])
    trace = ReasoningTrace(np.array([graph.entities.id("a")]), np.array([0]))
    edges = [("a", "likes", "a", 0.6), ("a", "likes", "b", 0.1), ("a", "=", "a", 0.3)]
    trace.steps.append(step(graph, {"a": 1.0}, edges))
    assert paths_to(trace, "a", graph) == [
        Path((("a", "likes", "a"),), pytest.approx(2 / 3)),
        Path((), pytest.approx(1 / 3)),
    ]


@given(seed=st.integers(0, 2**32 - 1), n_steps=st.integers(1, 5))
@settings(max_examples=60)
def test_shares_of_edges_and_of_nodes_add_up_at_every_step(seed: int, n_steps: int) -> None:
    flow = random_flow(np.random.default_rng(seed), n_nodes=6, n_steps=n_steps)
    assert [share.sum() for share in flow.shares] == pytest.approx([1.0] * n_steps)
    assert flow.at.sum(1) == pytest.approx(np.ones(n_steps + 1))
    assert flow.at[0, flow.query.head] == pytest.approx(1.0)
    for step_flow, share, arrived in zip(flow.query.steps, flow.shares, flow.at[1:], strict=True):
        assert np.bincount(step_flow.tail, share, len(flow.query.nodes)) == pytest.approx(arrived)
        assert (share <= 1 + 1e-9).all()


def random_flow(rng: np.random.Generator, n_nodes: int, n_steps: int) -> AnswerFlow:
    """Attention that starts at a node and is split at random along random edges, and one of the nodes it reached."""
    attention = np.zeros((n_steps + 1, n_nodes))
    head = int(rng.integers(n_nodes))
    attention[0, head] = 1.0
    steps = []
    for t in range(n_steps):
        rows = []
        for node in np.flatnonzero(attention[t]):
            tails = rng.integers(n_nodes, size=rng.integers(1, 4))
            edges = {(int(node), int(rng.integers(2)), int(tail)) for tail in tails} | {
                (int(node), 9, int(node))
            }
            parts = rng.dirichlet(np.ones(len(edges))) * attention[t, node]
            rows += [(*edge, part) for edge, part in zip(sorted(edges), parts, strict=True)]
        heads, relations, tails, flows = (np.array(column) for column in zip(*rows, strict=True))
        attention[t + 1] = np.bincount(tails, flows, n_nodes)
        steps.append(StepFlow(heads, relations, tails, flows))
    nothing = np.zeros((n_steps, n_nodes), bool)
    query = QueryFlow(head, np.arange(n_nodes), attention, attention, nothing, nothing, tuple(steps))
    return AnswerFlow(query, int(rng.choice(np.flatnonzero(attention[-1]))))


def all_walks(flow: AnswerFlow) -> list[tuple[tuple[tuple[int, int, int], ...], float]]:
    """Every walk from head to answer and the part of the answer's attention that took it."""
    walks: list[tuple[tuple, int, float]] = [((), flow.query.head, 1.0)]
    for t, step_flow in enumerate(flow.query.steps):
        rows = list(
            zip(
                step_flow.head.tolist(),
                step_flow.relation.tolist(),
                step_flow.tail.tolist(),
                step_flow.flow,
                strict=True,
            )
        )
        walks = [
            ((*edges, (head, relation, tail)), tail, amount * part / flow.query.attention[t, head])
            for edges, at, amount in walks
            for head, relation, tail, part in rows
            if head == at
        ]
    arrived = flow.query.attention[-1, flow.answer]
    return [(edges, amount / arrived) for edges, at, amount in walks if at == flow.answer]


def without_loops(
    head: int, answer: int, edges: tuple[tuple[int, int, int], ...]
) -> tuple[tuple[int, int, int], ...]:
    """The path of a walk; where it ends at its head, its last way out and back."""
    if head == answer:
        while edges and edges[-1] == (head, WAITING, head):
            edges = edges[:-1]
        if not edges:
            return ()
        return (
            (*without_loops(head, edges[-1][0], edges[:-1]), edges[-1])
            if edges[-1][0] != head
            else edges[-1:]
        )
    kept: list[tuple[int, int, int]] = []
    for edge in edges:
        nodes = [head, *(tail for *_, tail in kept)]
        if edge[2] in nodes:
            del kept[nodes.index(edge[2]) :]
        else:
            kept.append(edge)
    return tuple(kept)


def test_shares_of_all_paths_of_a_real_trace_add_up_to_one() -> None:
    graph = KnowledgeGraph.from_tuples([*FACTS, ("d", "knows", "a"), ("c", "knows", "c")])
    config = Config().replace(n_dims=4, n_dims_att=3, n_steps_in_agnn=3, n_steps_in_ignn=1, threads=1)
    network = build_model(graph.n_entities, graph.n_relations, config.model, seed=0)
    engine = Engine(network, graph, config)
    batch = engine.asking_batch(np.array([0, 3]), np.array([0, 1]))
    answer, trace = engine.trace(batch)
    for query in range(2):
        nodes = answer.nodes[answer.offsets[query] : answer.offsets[query + 1]]
        for node in nodes:
            paths = strongest_paths(AnswerFlow.to(QueryFlow.of(trace, query), int(node)), graph, top=1000)
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
    trace = ReasoningTrace(np.array([graph.entities.id("b")]), np.array([0]))
    backward = graph.relation_names.name(int(graph.inverse[graph.relation_names.id("r", "relation")]))
    trace.steps.append(step(graph, {"b": 1.0}, [("b", "knows_inv", "c", 1.0)]))
    trace.steps.append(step(graph, {"c": 1.0}, [("c", backward, "a", 1.0)]))
    (path,) = paths_to(trace, "a", graph)
    assert path.facts == (("b", "knows_inv", "c"), ("a", "r", "c"))


def test_a_relation_and_its_own_namesake_of_an_inverse() -> None:
    graph = KnowledgeGraph.from_tuples([("a", "r", "b"), ("b", "r_inv", "a")])
    assert graph.n_forward == 2
    trace = ReasoningTrace(np.array([graph.entities.id("b")]), np.array([0]))
    trace.steps.append(step(graph, {"b": 1.0}, [("b", "r_inv", "a", 1.0)]))
    (path,) = paths_to(trace, "a", graph)
    assert path.facts == (("b", "r_inv", "a"),)
