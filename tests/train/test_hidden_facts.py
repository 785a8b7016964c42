"""A batch of training sees nothing of its own facts: neither the IGNN's edges nor the expansion holds any."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch, removed_edges
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Targets
from dpmpn.engine.settings import Horizon
from dpmpn.models import build_model
from dpmpn.models.paper.reference import PaperReference
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.train.batches import TrainingQueries

Edge = tuple[int, int, int]
N_FORWARD = 3


def make_graph(seed: int, add_inverses: bool) -> KnowledgeGraph:
    """Few entities, so that many pairs are joined by several relations, both ways, and some with themselves."""
    rng = np.random.default_rng(seed)
    triples = np.stack([rng.integers(0, n, 40) for n in (8, N_FORWARD, 8)], 1)
    return KnowledgeGraph.from_ids(triples, 8, N_FORWARD, add_inverses)


def every_edge(graph: KnowledgeGraph) -> set[Edge]:
    rows = graph.edge_heads(np.arange(graph.n_edges)), graph.relations, graph.tails
    return set(zip(*(row.tolist() for row in rows), strict=True))


def facts_of(batch: QueryBatch, targets: Targets) -> set[Edge]:
    query = targets.query
    rows = batch.heads[query], batch.relations[query], targets.entities
    return set(zip(*(row.tolist() for row in rows), strict=True))


def hidden_edges(edges: set[Edge], facts: set[Edge], leak_removal: str, has_inverses: bool) -> set[Edge]:
    """The paper: for one kind, the batch's triples and their inverses; for the other, all that joins their pairs."""
    if leak_removal == "pairs":
        pairs = {(head, tail) for head, _, tail in facts} | {(tail, head) for head, _, tail in facts}
        return {edge for edge in edges if (edge[0], edge[2]) in pairs}
    back = set()
    if has_inverses:  # those of relations 0, 1, 2 are 3, 4, 5
        back = {(tail, (relation + N_FORWARD) % (2 * N_FORWARD), head) for head, relation, tail in facts}
    return edges & (facts | back)


def ignn_edges(batch: QueryBatch) -> list[list[Edge]]:
    steps = [(step.heads, step.relations, step.tails) for step in batch.ignn_edges]
    return [list(zip(*(row.tolist() for row in rows), strict=True)) for rows in steps]


def traced_edges(engine: Engine, batch: QueryBatch) -> set[Edge]:
    """Every edge that any query of the batch expanded, self-loops left out."""
    _, trace = engine.trace(batch)
    found = set()
    for step in trace.steps:
        heads = np.repeat(step.from_node, np.diff(step.edge_offsets))
        rows = heads, step.edge_relation, step.edge_tail
        found |= set(zip(*(row.tolist() for row in rows), strict=True))
    return {edge for edge in found if edge[1] != engine.graph.self_loop}


def reference_edges(graph: KnowledgeGraph, batch: QueryBatch) -> set[Edge]:
    """Every edge that the reference would expand from any node."""
    network = build_model(graph.n_entities, graph.n_relations, PaperSettings(n_dims=2), 0)
    nodes = torch.arange(graph.n_entities)  # of the first query
    every = Horizon(strategy="nodes")  # all edges of a node
    edges = PaperReference(network, graph, batch, every).scan(0, nodes)
    rows = nodes[edges.sender], edges.relation, edges.tail
    found = set(zip(*(row.tolist() for row in rows), strict=True))
    return {edge for edge in found if edge[1] != graph.self_loop}


def make_config(graph: KnowledgeGraph, **changes) -> Config:
    """The paper's model with horizons that leave nothing out."""
    return small_config(n_dims_att=2, n_steps_in_ignn=2, max_sampling_per_step=graph.n_edges, **changes)


def small_config(**changes) -> Config:
    """Either model, with horizons that leave nothing out."""
    return Config().replace(
        **{"n_dims": 2, "n_steps_in_agnn": 3, "max_attending_from_per_step": 100, "threads": 1, **changes}
    )


@pytest.mark.parametrize("leak_removal", ["triples", "pairs"])
@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000),
    position=st.integers(0, 500),
    count=st.integers(1, 6),
    joint_targets=st.sampled_from([1, 3]),
    add_inverses=st.booleans(),
)
def test_nothing_hidden_is_seen_and_all_else_is(
    leak_removal: str, seed: int, position: int, count: int, joint_targets: int, add_inverses: bool
) -> None:
    graph = make_graph(seed, add_inverses)
    changes = {"leak_removal": leak_removal, "seed": seed, "joint_targets": joint_targets}
    config, edges = make_config(graph, **changes), every_edge(graph)
    batch, targets = TrainingQueries(graph, np.array(sorted(edges)), config).at(position, count)
    facts = facts_of(batch, targets)
    hidden = hidden_edges(edges, facts, leak_removal, add_inverses)
    assert facts <= hidden
    for step in ignn_edges(batch):
        assert len(step) == len(set(step))
        assert set(step) == edges - hidden
    assert reference_edges(graph, batch) == edges - hidden
    engine = Engine(build_model(8, graph.n_relations, config.model, seed), graph, config)
    traced = traced_edges(engine, batch)
    assert {edge for edge in edges - hidden if edge[0] in batch.heads} <= traced <= edges - hidden


@pytest.mark.parametrize("leak_removal", ["triples", "pairs"])
@settings(max_examples=40)
@given(seed=st.integers(0, 1000), position=st.integers(0, 500), limit=st.integers(1, 30))
def test_drawn_edges_are_as_many_as_asked_for_and_not_hidden(
    leak_removal: str, seed: int, position: int, limit: int
) -> None:
    graph = make_graph(seed, add_inverses=True)
    config = make_config(graph, leak_removal=leak_removal, seed=seed).replace(max_sampling_per_step=limit)
    edges = every_edge(graph)
    batch, targets = TrainingQueries(graph, np.array(sorted(edges)), config).at(position, 4)
    seen = edges - hidden_edges(edges, facts_of(batch, targets), leak_removal, True)
    first, second = ignn_edges(batch)
    for step in (first, second):
        assert len(step) == len(set(step)) == min(limit, len(seen))
        assert set(step) <= seen


def test_steps_and_positions_draw_afresh() -> None:
    graph = make_graph(0, add_inverses=True)
    config = make_config(graph).replace(max_sampling_per_step=20)
    queries = TrainingQueries(graph, np.array(sorted(every_edge(graph))), config)
    draws = [set(step) for position in (0, 5) for step in ignn_edges(queries.at(position, 1)[0])]
    assert len(set(map(frozenset, draws))) == 4
    often = [
        edge for position in range(200) for step in ignn_edges(queries.at(position, 1)[0]) for edge in step
    ]
    times = np.array([often.count(edge) for edge in every_edge(graph)])
    mean = 400 * 20 / graph.n_edges
    assert abs(times - mean).max() < 6 * np.sqrt(mean)  # each edge as likely as any other


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), data=st.data())
def test_edges_removed_for_asking_are_not_seen_either(seed: int, data: st.DataObject) -> None:
    graph = make_graph(seed, add_inverses=True)
    config = make_config(graph)
    removed = np.array(sorted(data.draw(st.sets(st.integers(0, graph.n_edges - 1), min_size=1, max_size=30))))
    engine = Engine(build_model(8, graph.n_relations, config.model, seed), graph, config)
    batch = engine.asking_batch(np.arange(8), np.zeros(8), removed)
    rows = graph.edge_heads(removed), graph.relations[removed], graph.tails[removed]
    seen = every_edge(graph) - set(zip(*(row.tolist() for row in rows), strict=True))
    assert all(set(step) == seen for step in ignn_edges(batch))
    assert reference_edges(graph, batch) == seen
    assert traced_edges(engine, batch) <= seen


def answers(
    graph: KnowledgeGraph, removed: np.ndarray, config: Config, seed: int, reference: bool
) -> np.ndarray:
    """The probability of every entity for every question, by a network whose weights depend on the seed alone."""
    network = build_model(graph.n_entities, graph.n_relations, config.model, seed).double()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(0, 0.5, generator=draw)
    engine = Engine(network, graph, config, reference)
    heads, relations = (x.ravel() for x in np.mgrid[: graph.n_entities, : graph.n_relations])
    return engine.answer(engine.asking_batch(heads, relations, removed)).of_all(graph.n_entities)


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize("model", ["paper", "strong"])
@pytest.mark.parametrize("seed", range(3))
def test_hidden_facts_are_as_if_they_had_never_been(model: str, seed: int, reference: bool) -> None:
    graph = make_graph(seed, add_inverses=True)
    edges = np.array(sorted(every_edge(graph)))
    facts = edges[edges[:, 1] < N_FORWARD]
    is_hidden = np.random.default_rng(seed).random(len(facts)) < 0.3
    without = KnowledgeGraph.from_ids(facts[~is_hidden], 8, N_FORWARD)
    config = make_config(graph) if model == "paper" else small_config(model=model)
    found = answers(graph, removed_edges(graph, facts[is_hidden], "triples"), config, seed, reference)
    nothing = np.empty(0, np.int64)
    np.testing.assert_allclose(
        found, answers(without, nothing, config, seed, reference), rtol=1e-5, atol=1e-9
    )
    assert abs(found - answers(graph, nothing, config, seed, reference)).max() > 1e-3
