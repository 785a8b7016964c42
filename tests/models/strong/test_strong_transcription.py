"""The stronger model is what docs/stronger.md says: both paths against a dense transcription of that page."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from dense_strong import Edge, Form, Outcome, Question, Weights, dense_strong
from strong_cases import VARIANTS, WIDE, random_graph, random_targets, strong_config, strong_engine

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch, removed_edges
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Gradients, Targets

MANY, N_QUERIES = 1000, 3
EACH_VARIANT = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: "-".join(v.values()))
AS_PRESET = {"relation_vectors": "each_step", "profiles": "on", "gates": "edges"}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """On a busy machine threads that wait for each other would take longer than such small sums."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@dataclass(frozen=True)
class Case:
    """A small graph, weights, and questions with their answers."""

    graph: KnowledgeGraph
    config: Config
    weights: Weights
    batch: QueryBatch
    targets: Targets

    @property
    def edges(self) -> list[Edge]:
        """Those the batch may see."""
        heads = self.graph.edge_heads(np.arange(self.graph.n_edges))
        rows = zip(heads.tolist(), self.graph.relations.tolist(), self.graph.tails.tolist(), strict=True)
        removed = set(self.batch.removed.tolist())
        return [edge for i, edge in enumerate(rows) if i not in removed]

    @property
    def questions(self) -> list[Question]:
        """With the answers that are learnt, and those that are known."""
        answers = np.split(self.targets.entities, self.targets.offsets[1:-1])
        known = np.split(self.targets.known, self.targets.known_offsets[1:-1])
        rows = zip(self.batch.heads, self.batch.relations, answers, known, strict=True)
        return [Question(int(h), int(r), tuple(a.tolist()), tuple(k.tolist())) for h, r, a, k in rows]

    def by_the_page(self, weights: Weights | None = None) -> Outcome:
        """What the transcription makes of it."""
        model, horizon = self.config.model, self.config.horizon
        form = Form(
            model.n_steps_in_agnn, horizon.max_attending_from_per_step, horizon.max_sampling_per_node,
            horizon.max_attending_to_per_step, model.relation_vectors, model.profiles, model.gates,
        )  # fmt: skip
        inverse = self.graph.inverse.tolist()
        return dense_strong(
            weights or self.weights, self.edges, inverse, self.graph.n_entities, self.questions, form
        )

    def engine(self, reference: bool) -> Engine:
        """The program with the weights of the case."""
        engine = strong_engine(self.graph, self.config, reference=reference)
        engine.model.load_state_dict({name: torch.from_numpy(x) for name, x in self.weights.items()})
        return engine


def make_case(seed: int, variant: dict[str, str], n_from: int = 2, n_to: int = 4, n_steps: int = 3) -> Case:
    """Parallel edges, facts of a node with itself and hidden facts; no weight is zero, so that all terms count."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(9, 14)), 3, int(rng.integers(20, 35)))
    config = strong_config(
        n_dims=4, n_steps_in_agnn=n_steps, max_attending_from_per_step=n_from, max_sampling_per_node=MANY,
        max_attending_to_per_step=n_to, **variant,
    )  # fmt: skip
    engine = strong_engine(graph, config)
    weights = {name: 0.4 * rng.normal(size=p.shape) for name, p in engine.model.named_parameters()}
    edges = rng.choice(graph.n_edges, 2, replace=False)
    hidden = np.stack([graph.edge_heads(edges), graph.relations[edges], graph.tails[edges]], 1)
    heads = rng.integers(0, graph.n_entities - 2, N_QUERIES)  # the last two have no edges
    relations = rng.integers(0, graph.n_relations, N_QUERIES)
    batch = engine.asking_batch(heads, relations, removed_edges(graph, hidden, "triples"))
    return Case(graph, config, weights, batch, random_targets(rng, N_QUERIES, graph.n_entities))


def assert_as_the_page(case: Case, reference: bool) -> Outcome:
    expected, engine = case.by_the_page(), case.engine(reference)
    answer = engine.answer(case.batch)
    visited = np.zeros_like(expected.visited)
    visited[np.repeat(np.arange(N_QUERIES), np.diff(answer.offsets)), answer.nodes] = True
    np.testing.assert_array_equal(visited, expected.visited)
    every = answer.of_all(case.graph.n_entities)
    np.testing.assert_allclose(every, expected.probabilities, rtol=1e-9, atol=1e-12)
    assert engine.gradients(case.batch, case.targets).loss == pytest.approx(expected.loss, rel=1e-9)
    return expected


@EACH_VARIANT
@pytest.mark.parametrize("reference", [True, False], ids=["reference", "fast"])
def test_answers_and_loss_are_those_of_the_page(reference: bool, variant: dict[str, str]) -> None:
    for seed in range(4):
        assert_as_the_page(make_case(seed, variant), reference)
    assert_as_the_page(make_case(5, variant, n_from=4, n_to=6, n_steps=2), reference)
    assert_as_the_page(make_case(6, variant, n_from=MANY, n_to=MANY, n_steps=2), reference)


@pytest.mark.parametrize("profiles", ["on", "prior"])
def test_the_cases_are_hard_ones(profiles: str) -> None:
    """N1 and N3 leave nodes out, the prior decides some last choices, and some entities are visited and some not."""
    cases = [make_case(seed, AS_PRESET | {"profiles": profiles}) for seed in range(4)]
    outcomes = [case.by_the_page() for case in cases]
    assert np.min(np.sum([outcome.pruned for outcome in outcomes], 0)) >= 12
    assert sum(outcome.by_prior for outcome in outcomes) >= 3
    assert all(outcome.visited.any() and not outcome.visited.all() for outcome in outcomes)
    assert any(question.known and question.answers for case in cases for question in case.questions)
    assert all(weight.all() for case in cases for weight in case.weights.values())


def directional(found: Gradients, engine: Engine, name: str, direction: np.ndarray) -> float:
    """The slope of the program's loss along a direction of one parameter."""
    shared = engine.model.shared_parameters()
    parts = found.shared.split([parameter.numel() for parameter in shared.values()])
    return float(dict(zip(shared, parts, strict=True))[name].numpy() @ direction.ravel())


@pytest.mark.parametrize(
    "variant",
    [AS_PRESET, AS_PRESET | {"relation_vectors": "turned", "gates": "nodes"}],
    ids=lambda v: "-".join(v.values()),
)
def test_gradients_are_those_of_the_pages_loss(variant: dict[str, str]) -> None:
    """Along a random direction of each parameter, by central differences of the transcription."""
    case = make_case(3, variant)
    engines = [case.engine(reference) for reference in (True, False)]
    ours = [engine.gradients(case.batch, case.targets) for engine in engines]
    rng, step = np.random.default_rng(0), 1e-6
    for name, weight in case.weights.items():
        if not weight.size:
            continue
        direction = rng.normal(size=weight.shape)
        ahead, behind = (
            case.by_the_page({**case.weights, name: weight + sign * step * direction}).loss
            for sign in (1, -1)
        )
        expected = (ahead - behind) / (2 * step)
        is_used = not name.startswith("steps.2.score")  # attention of the last step flows nowhere
        assert (abs(expected) > 1e-7) == is_used, name
        for engine, found in zip(engines, ours, strict=True):
            slope = directional(found, engine, name, direction)
            assert slope == pytest.approx(expected, rel=1e-4, abs=1e-8), name


def visited_from_zero(engine: Engine) -> set[int]:
    """What the question (0, 0, ?) visits."""
    return set(engine.answer(engine.asking_batch([0], [0])).nodes.tolist())


@pytest.mark.parametrize("reference", [True, False], ids=["reference", "fast"])
@pytest.mark.parametrize("nudge", [1e-9, -1e-9])
def test_nodes_with_nearly_equal_attention_are_expanded_by_id(reference: bool, nudge: float) -> None:
    """As much as a sum differs by the order of its terms does not decide: four nodes, of which two are nudged."""
    children = [(1, 1, 5), (2, 1, 6), (3, 2, 7), (4, 2, 8)]
    graph = KnowledgeGraph.from_ids(np.array([(0, 0, v) for v in range(1, 5)] + children), 9, 3)
    config = strong_config(n_steps_in_agnn=2, **WIDE | {"max_attending_from_per_step": 2})
    engine = strong_engine(graph, config, reference=reference)
    profile_state = engine.model.profile_state.data
    profile_state[2] = profile_state[1] + nudge  # all that 3 and 4 differ in from 1 and 2
    visited = visited_from_zero(engine)
    assert 5 in visited and not visited & {7, 8}  # 6 is, unless the head is expanded again


@pytest.mark.parametrize("reference", [True, False], ids=["reference", "fast"])
@pytest.mark.parametrize("nudge", [1e-9, -1e-9])
def test_nodes_with_nearly_equal_flow_are_kept_by_id(reference: bool, nudge: float) -> None:
    graph = KnowledgeGraph.from_ids(np.array([(0, 0, 1), (0, 0, 2), (0, 1, 3), (0, 1, 4)]), 5, 2)
    config = strong_config(
        n_steps_in_agnn=1, relation_vectors="plain", profiles="off", **WIDE | {"max_attending_to_per_step": 2}
    )
    engine = strong_engine(graph, config, reference=reference)
    relation = engine.model.steps[0].relation.data
    relation[1] = relation[0] + nudge
    visited = visited_from_zero(engine)
    assert 1 in visited and not visited & {3, 4}
