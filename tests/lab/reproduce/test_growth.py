"""Subgraphs grow as the model grows them, and bounds are the paper's: checked on graphs whose sizes are known."""

import networkx
import numpy as np
import pytest
from made_analysis import Made, files_of, made

import dpmpn
from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import Horizon, RunConfig
from dpmpn.lab.reproduce.expansion import (
    SAMPLING,
    Neighbours,
    expansion_bound,
    expansion_probability,
    horizons,
    increment_bound,
    sampled_steps,
    subgraph_sizes,
    traced_steps,
)
from dpmpn.lab.reproduce.growth import GROWTH, broken
from dpmpn.lab.reproduce.workshop import Request, Workshop
from dpmpn.models import build_model
from dpmpn.models.paper.settings import PaperSettings

N_ENTITIES, N_STEPS = 40, 4


def random_graph(seed: int) -> KnowledgeGraph:
    """With self-loops and parallel edges among its facts."""
    rng = np.random.default_rng(seed)
    triples = rng.integers(0, [N_ENTITIES, 3, N_ENTITIES], (60, 3))
    return KnowledgeGraph.from_ids(triples, N_ENTITIES, 3)


@pytest.mark.parametrize("d", [1, 3, 4, 10])
@pytest.mark.parametrize("step", [1, 2, 5])
def test_the_bound_is_the_proposition_s(d, step):
    assert expansion_bound(d, step) * (d - 2) == d * (d - 1) ** step - 2
    exponent = (d * (d - 1) ** (step - 1) - 2) / (d - 2)
    assert expansion_probability(0.9, d, step) == pytest.approx(0.9**exponent)


def test_two_neighbours_make_a_line():
    assert [expansion_bound(2, step) for step in range(4)] == [1, 3, 5, 7]


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_bound_is_the_size_of_a_tree_whose_nodes_have_d_neighbours(d):
    tree = networkx.Graph()
    level = [0]
    for depth in range(3):
        grown = []
        for node in level:
            for _ in range(d if depth == 0 else d - 1):
                grown.append(len(tree) or 1)
                tree.add_edge(node, grown[-1])
        level = grown
    triples = np.array([(head, 0, tail) for head, tail in tree.edges])
    sizes = Neighbours.of(KnowledgeGraph.from_ids(triples, len(tree), 1)).sizes_around(np.array([0]), 3)
    assert sizes[0].tolist() == [expansion_bound(d, step) for step in range(4)]


def test_full_expansion_counts_every_neighbour_once():
    graph = random_graph(0)
    neighbours = Neighbours.of(graph)
    known = networkx.Graph()
    known.add_nodes_from(range(N_ENTITIES))
    heads = graph.edge_heads(np.arange(graph.n_edges))
    known.add_edges_from((h, t) for h, t in zip(heads.tolist(), graph.tails.tolist(), strict=True) if h != t)
    assert neighbours.degrees.tolist() == [known.degree(node) for node in range(N_ENTITIES)]
    sizes = neighbours.sizes_around(np.arange(N_ENTITIES), N_STEPS)
    for node in range(N_ENTITIES):
        distances = networkx.single_source_shortest_path_length(known, node, N_STEPS).values()
        assert sizes[node].tolist() == [sum(far <= step for far in distances) for step in range(N_STEPS + 1)]


@pytest.mark.parametrize("strategy", SAMPLING)
def test_subgraphs_without_the_model_are_those_of_the_model(strategy):
    graph, horizon = random_graph(1), Horizon(3, 2, 4, strategy=strategy)
    model = PaperSettings(n_dims=6, n_dims_att=4, n_steps_in_agnn=N_STEPS)
    config = Config(model=model, run=RunConfig(threads=1, seed=5))
    engine = Engine(build_model(N_ENTITIES, graph.n_relations, model, 5), graph, config)
    heads = np.arange(N_ENTITIES, dtype=np.int32)
    batch = engine.asking_batch(heads, np.zeros(N_ENTITIES, np.int64))
    _, trace = engine.trace(batch, horizon)
    targets = np.roll(heads, 1)
    visited = [trace.visited(query) for query in range(N_ENTITIES)]
    for steps in (sampled_steps(graph, batch, horizon, N_STEPS), traced_steps(trace)):
        sizes, hit = subgraph_sizes(heads, targets, steps, N_ENTITIES)
        assert sizes.shape == (N_STEPS + 1, N_ENTITIES)
        assert sizes[-1].tolist() == [len(nodes) for nodes in visited]
        assert hit.tolist() == [target in nodes for target, nodes in zip(targets, visited, strict=True)]
        assert (np.diff(sizes, axis=0) >= 0).all()
        bound = increment_bound(horizon)
        assert bound is None or (np.diff(sizes, axis=0) <= bound).all()


def test_bounds_of_a_step_are_the_paper_s():
    def bound(strategy, d=None):
        return increment_bound(Horizon(5, 4, 12, strategy=strategy), d)

    assert bound("boundary") is None
    assert (bound("nodes"), bound("nodes", 10)) == (None, 45)
    assert (bound("nodes_and_boundary"), bound("nodes_and_boundary", 10)) == (20, 20)
    assert bound("nodes_and_boundary", 3) == 10
    assert bound("three_times") == bound("attention") == 12


def test_horizons_are_the_preset_s_and_a_quarter_of_it():
    found = horizons(Config(horizon=Horizon(20, 200, 3)))
    assert found["preset"] == Horizon(20, 200, 3)
    assert found["quarter"] == Horizon(5, 50, 1)


def test_only_less_than_promised_is_broken():
    cases = [{"within": 0.5, "probability": promised} for promised in (0.4, 0.5, 0.6)]
    assert broken(cases) == cases[2:]


def test_a_star_breaks_the_promise(tmp_path, monkeypatch):
    # All but the middle have one neighbour, which has all of them: nobody's neighbour is like an arbitrary node.
    star = dpmpn.dataset_from_tuples(
        [("middle", "to", f"leaf{i}") for i in range(9)], test=[("middle", "to", "leaf1")], name="star"
    )
    monkeypatch.setattr("dpmpn.lab.reproduce.exhibit.dataset_named", lambda _: star)
    request = Request(quick=True, threads=1)
    expansion = GROWTH.pieces(request)[0].work(Workshop(tmp_path, request))
    one = expansion["bounds"][0]
    assert (one["d"], one["p"], one["p_along_edges"]) == (1, 0.9, 0.5)
    assert [step["within"] for step in one["steps"]] == [0.9, 0, 0, 0]
    assert one["steps"][1]["probability"] == pytest.approx(0.81)
    assert expansion["bounds"][-1]["d"] == expansion["max_degree"] == 9
    assert not broken(expansion["bounds"][-1]["steps"])


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(GROWTH, tmp_path_factory.mktemp("exhibit") / "growth")


def test_quick_form_shows_every_strategy(exhibit):
    results = exhibit.data()["results"]
    grown = [*results["sampling-seed0"]["grown"], *results["attention-seed0"]["grown"]]
    shown = {(cells[0], cells[1]): cells for cells in exhibit.cells() if cells[0] in (*SAMPLING, "attention")}
    assert len(shown) == len(grown) == 2 * (len(SAMPLING) + 1)
    for each in grown:
        horizon = each["horizon"]
        cells = shown[horizon["strategy"], str(horizon["max_attending_from_per_step"])]
        assert cells[4] == f"{each['sizes']['mean'][-1]:,.0f}"
        assert cells[6] == f"{each['sizes']['max'][-1]:,}"
        assert cells[10] == f"{100 * each['coverage']:.1f}"
        assert each["bound"] is None or each["sizes"]["max"][-1] <= each["bound"]
        assert each["bound_added"] is None or each["most_added"] <= each["bound_added"]
    assert "it fails for d = 1 at step 2, 3 and 4" in exhibit.text()
    assert "Bounds that hold for every question are kept by all subgraphs." in exhibit.text()
    assert (exhibit.folder / "growth.svg").stat().st_size > 0


def test_rows_hold_sizes_bounds_and_coverage(exhibit):
    results, rows = exhibit.data()["results"], exhibit.csv_rows()
    last = [row for row in rows if row["part"] == "subgraphs" and row["coverage"]]
    assert len(last) == 2 * (len(SAMPLING) + 1)
    proposition = [row for row in rows if row["part"] == "proposition"]
    assert len(proposition) == sum(len(bound["steps"]) for bound in results["expansion"]["bounds"])
    assert all(float(row["within"]) >= float(row["probability"]) for row in proposition if row["step"] == "1")


def test_attention_finds_more_answers_than_sampling_within_the_same_bound(exhibit):
    found = {
        (row["setting"], row["strategy"]): float(row["coverage"])
        for row in exhibit.csv_rows()
        if row["part"] == "subgraphs" and row["coverage"]
    }
    for setting in ("preset", "quarter"):
        assert found[setting, "attention"] > found[setting, "three_times"] + 0.05


def test_made_again_nothing_is_measured_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(GROWTH, exhibit.folder).said == ["3 of 3 pieces of work are done already"]
    assert files_of(exhibit.folder) == before
