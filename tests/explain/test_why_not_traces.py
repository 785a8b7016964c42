"""Why not another answer: reasons agree with what is found by looking at everything that a network's trace holds."""

import json
import re
from functools import cache
from itertools import pairwise
from typing import get_args

import networkx as nx
import numpy as np
import pytest
from all_fit import AllFit

from dpmpn.ask.core import Answers
from dpmpn.ask.results import QueryResult
from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import Horizon
from dpmpn.engine.trace import TraceStep
from dpmpn.explain.why_not import Reason
from dpmpn.models import build_model
from dpmpn.render.formats import WhyNot


@cache
def random_question(seed: int, horizon: Horizon | None = None) -> tuple[KnowledgeGraph, QueryResult, Horizon]:
    """A question to a network that was not trained, with limits that leave much out where none are given."""
    generator = np.random.default_rng(seed)
    n_entities, n_facts = int(generator.integers(6, 25)), int(generator.integers(4, 45))
    triples = np.stack([generator.integers(0, n, n_facts) for n in (n_entities, 2, n_entities)], 1)
    graph = KnowledgeGraph.from_ids(triples, n_entities, 2, add_inverses=seed % 4 != 0)
    strategies = ("attention", "attention", "boundary", "nodes", "nodes_and_boundary", "three_times")
    n1, n2, n3 = generator.integers(1, 4, 3).tolist()
    horizon = horizon or Horizon(n1, n2, n3 + 1 if seed % 3 else n3, strategies[seed % len(strategies)])
    config = Config().replace(
        n_dims=4, n_dims_att=3, n_steps_in_agnn=1 + seed % 5, n_steps_in_ignn=1, threads=1,
        max_attending_from_per_step=horizon.max_attending_from_per_step,
        max_sampling_per_node=horizon.max_sampling_per_node,
        max_attending_to_per_step=horizon.max_attending_to_per_step,
        strategy=horizon.strategy,
    )  # fmt: skip
    engine = Engine(build_model(n_entities, graph.n_relations, config.model, seed), graph, config)
    head, relation = int(generator.integers(n_entities)), int(generator.integers(graph.n_relations))
    answer, trace = engine.trace(engine.asking_batch(np.array([head]), np.array([relation])))
    probabilities = answer.attention.numpy()
    order = np.argsort(-probabilities, kind="stable")
    columns = np.zeros(len(order), np.int64), answer.nodes[order], probabilities[order], np.zeros(len(order))
    reached = Answers(trace.heads, trace.relations, *columns, prior=None, trace=trace)
    return graph, AllFit(graph, horizon, None, reached, query=0, inverse=False), horizon


def recomputed(
    graph: KnowledgeGraph, question: QueryResult, candidate: int
) -> tuple[str, set[tuple[int, int]]]:
    """The reason, and for what was never scanned the nodes nearest to it early enough, with their times."""
    steps, n_steps = question.reached.trace.steps, len(question.reached.trace.steps)
    edges = nx.DiGraph()
    edges.add_nodes_from(range(graph.n_entities))
    heads = graph.edge_heads(np.arange(graph.n_edges)).tolist()
    edges.add_edges_from(zip(heads, graph.tails.tolist(), strict=True))
    distance = nx.single_target_shortest_path_length(edges, candidate)
    distance = dict(distance)
    if question.head not in set(heads) or distance.get(question.head, n_steps + 1) > n_steps:
        return "unreachable", set()
    scanned = [{question.head}, *(set(step.edge_tail.tolist()) for step in steps)]
    attended_from = [set(step.from_node.tolist()) for step in steps]
    if candidate in scanned[-1]:
        return ("first_answer" if question.reached.entities[0] == candidate else "out_competed"), set()
    times = [time for time in range(n_steps) if candidate in scanned[time]]
    if times:
        visited = {question.head}.union(
            *(step.slot_node[step.attended_to].tolist() for step in steps[: times[-1]])
        )
        assert candidate not in attended_from[times[-1]]
        return ("not_attended_from" if candidate in visited else "not_attended_to"), set()
    early = [
        (distance[node], node, time)
        for time in range(n_steps)
        for node in scanned[time]
        if distance.get(node, n_steps + 1) <= n_steps - time
    ]
    nearest = {(node, time) for far, node, time in early if far == min(early)[0]}
    drawn = {(node, time) for node, time in nearest if node in attended_from[time]}
    return ("not_sampled", drawn) if drawn else ("not_attended_from", nearest)


@pytest.mark.parametrize("seed", range(60))
def test_reasons_agree_with_the_trace(seed: int) -> None:
    graph, question, horizon = random_question(seed)
    for candidate in range(graph.n_entities):
        why = question.why_not(candidate)
        expected, nodes = recomputed(graph, question, candidate)
        assert why.reason == expected
        assert json.loads(json.dumps(why.to_dict(), allow_nan=False))["text"]
        if why.reason == "not_sampled":
            names = {graph.entities.id(near.name) for near in why.near}
            assert names == {node for node, _ in nodes}
            assert all(near.facts > horizon.max_sampling_per_node and near.leading for near in why.near)
        elif nodes:
            assert {(graph.entities.id(near.name), near.step) for near in why.near} <= nodes
        if why.reason.startswith("not_attended"):
            _assert_left_out(why, horizon)
        if why.rank is not None:
            assert question.reached.entities[why.rank - 1] == candidate
            assert why.score == question.reached.scores[why.rank - 1]
            assert [rival.attention for rival in why.by] == question.reached.scores[
                : min(why.rank - 1, 3)
            ].tolist()

        for fork in (why.parted, why.narrowest):
            if fork is not None:
                step = question.reached.trace.steps[fork.step - 1]
                for rival in (fork.towards, fork.other):
                    assert rival.attention == pytest.approx(
                        _sent(graph, step, fork.name, rival.name), abs=1e-5
                    )
        if why.peak is not None:
            assert (
                why.peak.attention
                == max(why.attention[1:])
                == why.attention[why.peak.step]
                > why.attention[-1]
            )


def _sent(graph: KnowledgeGraph, step: TraceStep, source: str, target: str) -> float:
    """The transition from one node to another, along all edges between them."""
    (at,) = np.flatnonzero(step.from_node == graph.entities.id(source))
    edges = slice(step.edge_offsets[at], step.edge_offsets[at + 1])
    flow = step.flow[edges]  # of all that a node sends, each edge's part is its transition
    return float(flow[step.edge_tail[edges] == graph.entities.id(target)].sum() / flow.sum())


def _assert_left_out(why: WhyNot, horizon: Horizon) -> None:
    """By attention, what was left out has a rank behind the limit, less attention than what was kept, and a remedy."""
    (node,) = why.near
    if horizon.strategy == "boundary":
        assert node.attention <= 1e-20
    if horizon.strategy != "attention" or node.attention <= 1e-20:
        return
    assert why.limit is not None and node.rank > why.limit
    assert why.weakest_kept and why.weakest_kept.attention >= node.attention
    settings = dict(why.settings)
    assert node.rank <= settings.get("ask_attending_from_per_step", horizon.max_attending_from_per_step)
    assert node.rank <= settings.get("ask_attending_to_per_step", horizon.max_attending_to_per_step)


@pytest.mark.parametrize("seed", range(40))
def test_told_steps_follow_each_other_and_leave_enough_for_the_rest_of_the_path(seed: int) -> None:
    graph, question, _ = random_question(seed, Horizon())
    for candidate in range(graph.n_entities):
        why = question.why_not(candidate)
        if why.parted is None or why.way is None:
            continue
        steps = [int(step) for step in re.findall(r"(?:which|,) in step (\d+)", why.text())]
        forks = [fork for fork in (why.parted, why.narrowest) if fork is not None]
        assert steps[0] == why.parted.step
        assert all(earlier < later for earlier, later in pairwise(steps))
        for fork in forks:
            hops, place = len(why.way.hops), why.way.entities.index(fork.name)
            assert place < fork.step <= why.n_steps
            if place < hops:
                assert fork.towards.attention > 0
                assert hops - place <= why.n_steps - fork.step + 1


def test_every_reason_is_met_among_these_questions() -> None:
    found = set()
    for seed in range(60):
        graph, question, _ = random_question(seed)
        found |= {question.why_not(entity).reason for entity in range(graph.n_entities)}
    assert found == set(get_args(Reason)) - {"does_not_fit"}  # everything fits here
