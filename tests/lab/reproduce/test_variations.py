"""One horizon varied at a time: which runs there are, and which of them stand in which panel."""

from pathlib import Path

import pytest
from made_analysis import Made, files_of, made, scored

from dpmpn.config import load_preset
from dpmpn.engine.engine import Engine
from dpmpn.engine.settings import Horizon
from dpmpn.errors import Stopped
from dpmpn.lab.reproduce.variations import (
    HORIZONS,
    VARIED,
    by_value,
    described,
    setting,
    standard_config,
    variations,
    visited_nodes,
)
from dpmpn.lab.reproduce.workshop import Request, Watch, Workshop, config_for, dataset_named
from dpmpn.train.run_folder import RunFolder

FULL = Request()
WORKSHOP = Workshop(Path("unused"), Request(quick=True, threads=1))


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(HORIZONS, tmp_path_factory.mktemp("exhibit") / "horizons")


@pytest.mark.parametrize("preset", ["wn18rr", "fb15k-237"])
def test_each_value_is_trained_once_and_the_standard_is_shared(preset):
    standard = load_preset(preset)
    made_variations = variations(FULL, standard)
    assert [variation.name for variation in made_variations].count("standard") == 1
    assert len({variation.name for variation in made_variations}) == len(made_variations)
    assert len(made_variations) == 1 + sum(len(varied.values) - 1 for varied in VARIED)
    for variation in made_variations[1:]:
        [(key, value)] = variation.changes.items()
        assert key == variation.varied
        assert value != setting(standard, key)


def test_questions_are_asked_with_the_horizon_of_the_training(monkeypatch):
    dataset = dataset_named("countries")
    monkeypatch.setattr(
        "dpmpn.lab.reproduce.workshop.suitable_config", lambda *_: (load_preset("wn18rr"), [])
    )
    assert config_for(FULL, dataset, 0).asking_horizon() == Horizon(40, 200, 400)
    assert standard_config(FULL, dataset, 0).asking_horizon() == Horizon(20, 200, 200)


def test_the_standard_result_is_a_point_of_every_panel():
    standard = load_preset("wn18rr")
    keys = [varied.key for varied in VARIED]
    results = [
        described(variation, standard, keys) | {"name": variation.name}
        for variation in variations(FULL, standard)
    ]
    for varied in VARIED:
        points = by_value(results, varied.key)
        assert tuple(points) == varied.values
        assert [found["name"] for found in points[setting(standard, varied.key)]] == ["standard"]
        assert all(len(found) == 1 for found in points.values())


def test_all_files_are_written_and_the_table_shows_the_results(exhibit):
    wanted = {f"horizons.{kind}" for kind in ("json", "csv", "md", "svg", "png")}
    assert wanted <= set(files_of(exhibit.folder))
    results = exhibit.data()["results"]
    assert set(results) == {path.name for path in (exhibit.folder / "runs").iterdir()}
    for cells in exhibit.cells():
        key, value = cells[0].strip("`"), int(cells[1].split()[0])
        [result] = by_value(list(results.values()), key)[value]
        assert ("standard" in cells[1]) == (result["varied"] is None)
        assert cells[5] == f"{100 * result['scores']['both']['realistic']['mrr']:.1f}"
        assert cells[7] == f"{result['visited_nodes']:.0f}"
    assert len(exhibit.csv_rows()) == len(results) == 5


def test_runs_are_trained_and_asked_with_the_varied_value(exhibit):
    for label, result in exhibit.data()["results"].items():
        config = RunFolder.open(exhibit.folder / "runs" / label).config
        assert {key: setting(config, key) for key in result["settings"]} == result["settings"]
        asked = result["scores"]["horizon"]
        assert asked["max_attending_to_per_step"] == result["settings"]["max_attending_to_per_step"]


def test_subgraphs_are_measured_within_their_bound(exhibit):
    run = RunFolder.open(exhibit.folder / "runs" / "countries-seed0-attending-to-10")
    nodes = visited_nodes(WORKSHOP, run, dataset_named("countries"))
    bound = run.config.horizon.bound(run.config.model.n_steps_in_agnn)
    assert bound is not None
    assert 1 < nodes <= bound
    assert nodes == exhibit.data()["results"][run.path.name]["visited_nodes"]


def test_measuring_subgraphs_takes_the_threads_asked_for_and_can_be_ended(exhibit, monkeypatch):
    run = RunFolder.open(exhibit.folder / "runs" / "countries-seed0-standard")
    made_with, closed = [], []

    class Noted(Engine):
        def __init__(self, network, graph, config):
            made_with.append(config.run.threads)
            super().__init__(network, graph, config)

        def close(self):
            closed.append(self)
            super().close()

    monkeypatch.setattr("dpmpn.engine.engine.Engine", Noted)
    ended = Workshop(exhibit.folder, Request(quick=True, threads=3), Watch(stop=lambda: True))
    with pytest.raises(Stopped):
        visited_nodes(ended, run, dataset_named("countries"))
    assert made_with == [3]
    assert len(closed) == 1


def test_made_again_nothing_is_done_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(HORIZONS, exhibit.folder).said == ["5 of 5 pieces of work are done already"]
    assert files_of(exhibit.folder) == before


def test_the_rate_of_training_and_what_was_shortened_are_shown():
    standard = load_preset("wn18rr")
    keys = [varied.key for varied in VARIED]
    results = {
        variation.name: scored(0.4, 150, visited_nodes=7.0) | described(variation, standard, keys)
        for variation in variations(FULL, standard)
    }
    shown = HORIZONS.show(Request(epochs=0.15), results)
    assert all(row["queries_per_s"] == 15.0 for row in shown.rows)
    line = "| `n_steps_in_agnn` | 8 (standard) | 40.0 | 40.0 | 40.0 | 40.0 | 50.0 | 7 | 15 |"
    assert line in shown.text
    assert "0.15 epochs; the paper's saw one epoch" in shown.text
    assert "so these are ours" in shown.text
