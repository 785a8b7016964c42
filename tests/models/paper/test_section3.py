"""The paper's model is what Section 3 says: both paths against a dense transcription of its equations."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from section3 import Edge, Outcome, Query, Settings, Weights, section3

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch, query_keys, sample_ignn_edges
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Targets
from dpmpn.engine.settings import Horizon, RunConfig
from dpmpn.models import build_model
from dpmpn.models.paper.settings import PaperSettings

DIMS, SMALL_DIMS, MANY = 5, 3, 1000


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine threads that wait for each other would take longer than such small sums."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@dataclass(frozen=True)
class Case:
    """A small graph, weights, and queries with their answers."""

    weights: Weights
    graph: KnowledgeGraph
    batch: QueryBatch
    queries: list[Query]
    settings: Settings
    n_steps_in_ignn: int

    @property
    def edges(self) -> list[Edge]:
        """Those the batch may see."""
        every = np.arange(self.graph.n_edges)
        heads = self.graph.edge_heads(every)
        rows = zip(heads.tolist(), self.graph.relations.tolist(), self.graph.tails.tolist(), strict=True)
        removed = set(self.batch.removed.tolist())
        return [edge for i, edge in enumerate(rows) if i not in removed]

    @property
    def ignn_edges(self) -> list[list[Edge]]:
        """The sampled edges of each IGNN step."""
        return [
            list(zip(x.heads.tolist(), x.relations.tolist(), x.tails.tolist(), strict=True))
            for x in self.batch.ignn_edges
        ]

    def by_the_paper(self, weights: Weights | None = None) -> Outcome:
        """What the transcription makes of it."""
        return section3(weights or self.weights, self.edges, self.ignn_edges, self.queries, self.settings)


def make_case(seed: int, how: Settings, n_steps_in_ignn: int) -> Case:
    """A graph with parallel edges, facts of a node with itself and removed edges; large weights, so all terms count."""
    rng = np.random.default_rng(seed)
    n_entities, n_relations, n_triples = int(rng.integers(5, 13)), 3, int(rng.integers(8, 30))
    triples = np.stack([rng.integers(0, n, n_triples) for n in (n_entities, n_relations, n_entities)], 1)
    graph = KnowledgeGraph.from_ids(triples, n_entities, n_relations)
    removed = np.sort(rng.choice(graph.n_edges, 3, replace=False))
    sampled = sample_ignn_edges(graph, removed, n_steps_in_ignn, graph.n_edges // 2, seed)
    heads = rng.integers(0, n_entities, 3).astype(np.int32)
    relations = rng.integers(0, graph.n_relations, 3)
    tails = rng.integers(0, n_entities, 3)
    tails[0] = heads[0]  # one answer at least is reached
    batch = QueryBatch(heads, relations, query_keys(seed, heads, relations), removed, sampled)
    queries = list(zip(heads.tolist(), relations.tolist(), tails.tolist(), strict=True))
    named = build_model(n_entities, graph.n_relations, PaperSettings(n_dims=DIMS, n_dims_att=SMALL_DIMS), 0)
    weights = {
        name: rng.normal(size=p.shape) * (1.0 if name in ("entities", "relations") else 0.6)
        for name, p in named.named_parameters()
    }
    return Case(weights, graph, batch, queries, how, n_steps_in_ignn)


@dataclass(frozen=True)
class Ours:
    """What the program makes of a case."""

    attention: np.ndarray  # queries x entities
    loss: float
    reached: int
    gradients: Weights


def by_the_program(case: Case, reference: bool) -> Ours:
    """The only place that knows how the program is called: its answer, training loss and gradients."""
    how = case.settings
    horizon = Horizon(how.attending_from, how.sampling_per_node, how.attending_to)
    model = PaperSettings(
        n_dims=DIMS, n_dims_att=SMALL_DIMS, n_steps_in_ignn=case.n_steps_in_ignn, n_steps_in_agnn=how.steps,
        softmax=how.softmax, ignn_output=how.ignn_output,
    )  # fmt: skip
    network = build_model(case.graph.n_entities, case.graph.n_relations, model, 0).double()
    network.load_state_dict({name: torch.from_numpy(x) for name, x in case.weights.items()})
    engine = Engine(network, case.graph, Config(model, horizon, run=RunConfig(threads=1)), reference)
    answer = engine.answer(case.batch)
    attention = np.zeros((len(case.queries), case.graph.n_entities))
    attention[np.repeat(np.arange(len(case.queries)), np.diff(answer.offsets)), answer.nodes] = (
        answer.attention
    )
    found = engine.gradients(case.batch, Targets.single(np.array([tail for _, _, tail in case.queries])))
    shared = network.shared_parameters()
    parts = found.shared.split([p.numel() for p in shared.values()])
    gradients = {name: g.view_as(p).numpy() for (name, p), g in zip(shared.items(), parts, strict=True)}
    gradients["entities"] = np.zeros_like(case.weights["entities"])
    gradients["entities"][found.entities] = found.rows.numpy()
    return Ours(attention, found.loss, found.reached, gradients)


def assert_equal(case: Case, reference: bool) -> Outcome:
    expected, found = case.by_the_paper(), by_the_program(case, reference)
    np.testing.assert_allclose(found.attention, expected.attention, rtol=1e-9, atol=1e-12)
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)
    return expected


limits = st.tuples(st.integers(1, 5), st.just(MANY), st.integers(1, 10))
hows = st.builds(
    lambda steps, limits, softmax, output: Settings(steps, *limits, softmax, output),
    st.integers(1, 4),
    limits,
    st.sampled_from(["edge", "pair"]),
    st.sampled_from(["last", "pool"]),
)


@pytest.mark.parametrize("reference", [True, False])
@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), how=hows, n_steps_in_ignn=st.integers(0, 2))
def test_answers_and_loss_are_the_papers(
    reference: bool, seed: int, how: Settings, n_steps_in_ignn: int
) -> None:
    case = make_case(seed, how, n_steps_in_ignn)
    assume(case.by_the_paper().margin > 1e-6)  # nodes with equal attention may be chosen in any order
    assert_equal(case, reference)


@pytest.mark.parametrize("softmax", ["edge", "pair"])
@pytest.mark.parametrize("ignn_output", ["last", "pool"])
def test_the_cases_are_hard_ones(softmax: str, ignn_output: str) -> None:
    """N1 and N3 leave nodes out, some answers are reached and some are not, and pairs have parallel edges."""
    how = Settings(4, 2, MANY, 3, softmax, ignn_output)
    pruned, reached, parallel = np.zeros(2, int), [], 0
    for seed in range(5):
        case = make_case(seed, how, 2)
        pruned += assert_equal(case, reference=True).pruned
        reached.append(by_the_program(case, reference=True).reached)
        parallel += len(case.edges) - len({(head, tail) for head, _, tail in case.edges})
        assert all(case.ignn_edges)
    assert pruned.min() >= 15
    assert min(reached) < len(case.queries) and max(reached) > 0
    assert parallel > 10


@pytest.mark.parametrize("softmax, ignn_output, seed", [("edge", "last", 1), ("pair", "pool", 2)])
def test_gradients_are_those_of_the_papers_loss(softmax: str, ignn_output: str, seed: int) -> None:
    """Along a random direction of each parameter, by central differences of the transcription."""
    case = make_case(seed, Settings(3, 3, MANY, 4, softmax, ignn_output), 2)
    assert case.by_the_paper().margin > 1e-3  # no step below leads to another choice of nodes
    ours = [by_the_program(case, reference) for reference in (True, False)]
    rng, step = np.random.default_rng(0), 1e-5
    for name, weight in case.weights.items():
        direction = rng.normal(size=weight.shape)
        ahead, behind = (
            case.by_the_paper({**case.weights, name: weight + sign * step * direction}).loss
            for sign in (1, -1)
        )
        expected = (ahead - behind) / (2 * step)
        assert abs(expected) > 1e-6, f"{name} does not matter"
        for found in ours:
            slope = float((found.gradients[name] * direction).sum())
            assert slope == pytest.approx(expected, rel=1e-5, abs=1e-9), name


@pytest.mark.parametrize("reference", [True, False])
def test_nodes_visited_before_are_attended_from_beside_those_of_the_last_step(reference: bool) -> None:
    """The attending-from horizon is part of all of G^t, so N1 can be above N3 and matter."""
    matters = 0
    for seed in range(5):
        case = make_case(seed, Settings(4, 2, MANY, 2, "edge", "last"), 1)
        expected = assert_equal(case, reference)
        wider = replace(case, settings=replace(case.settings, attending_from=5))
        matters += not np.allclose(assert_equal(wider, reference).attention, expected.attention)
    assert matters >= 2
