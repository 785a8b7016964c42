"""The time of an epoch: what is measured, and what is computed from it."""

import pytest
from made_analysis import Made, files_of, made

from dpmpn.config import load_preset
from dpmpn.errors import ConfigError, Stopped
from dpmpn.lab.bench import Stretch, training_stretch
from dpmpn.lab.reproduce.variations import TIME_COST, VARIED, described, epoch_seconds, variations
from dpmpn.lab.reproduce.workshop import Request, Watch, Workshop, config_for, dataset_named

KEYS = (*(varied.key for varied in VARIED), "batch_size")


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(TIME_COST, tmp_path_factory.mktemp("exhibit") / "time-cost")


def test_an_epoch_takes_its_queries_at_the_measured_rate():
    stretch = {"queries": 500, "seconds": 10.0, "cpu_seconds": 15.0}
    result = {"queries_of_an_epoch": 3000, "stretch": stretch}
    assert epoch_seconds(result) == 60
    assert epoch_seconds(result, "cpu_seconds") == 90


def test_a_stretch_has_its_rate_and_busy_cores():
    stretch = Stretch(queries=500, seconds=10.0, cpu_seconds=15.0)
    assert (stretch.queries_per_s, stretch.busy_cores) == (50, 1.5)


def test_a_stretch_of_training_counts_whole_batches():
    dataset = dataset_named("countries")
    config = config_for(Request(quick=True), dataset, 0, threads=1)
    stretch = training_stretch(dataset, config, 0.05)
    assert stretch.seconds >= 0.05
    assert stretch.queries >= 2 * config.training.batch_size
    assert stretch.queries % config.training.batch_size == 0
    assert stretch.cpu_seconds >= 0


def test_all_files_are_written_and_the_table_shows_the_results(exhibit):
    wanted = {f"time-cost.{kind}" for kind in ("json", "csv", "md", "svg", "png")}
    assert wanted <= set(files_of(exhibit.folder))
    assert not (exhibit.folder / "runs").exists()
    results = list(exhibit.data()["results"].values())
    for cells in exhibit.cells():
        key, value = cells[0].strip("`"), int(cells[1].split()[0])
        varied = None if "standard" in cells[1] else key
        [result] = [r for r in results if r["varied"] == varied and r["settings"][key] == value]
        assert cells[4] == f"{epoch_seconds(result) / 60:.1f}"
        assert cells[5] == f"{epoch_seconds(result, 'cpu_seconds') / 60:.1f}"
    assert len(exhibit.csv_rows()) == len(results) == 7


def test_batch_sizes_are_measured_with_the_small_horizon(exhibit):
    measured = [r["settings"] for r in exhibit.data()["results"].values() if r["varied"] == "batch_size"]
    horizon = ["max_attending_from_per_step", "max_sampling_per_node", "max_attending_to_per_step"]
    assert [settings["batch_size"] for settings in measured] == [16, 64]
    assert all(settings[key] == 20 for settings in measured for key in horizon)


def test_made_again_nothing_is_done_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(TIME_COST, exhibit.folder).said == ["7 of 7 pieces of work are done already"]
    assert files_of(exhibit.folder) == before


def test_the_papers_hours_stand_beside_ours():
    standard = load_preset("wn18rr")
    stretch = {"queries": 100, "seconds": 1.0, "cpu_seconds": 2.0}
    results = {
        variation.name: described(variation, standard, KEYS)
        | {"dataset": "WN18RR", "seed": 0, "queries_of_an_epoch": 180_000, "stretch": stretch}
        for variation in variations(Request(), standard)
    }
    shown = TIME_COST.show(Request(), results)
    assert "the paper's epoch took 4.3 h on a TITAN X; here it would take 0.50 h" in shown.text
    assert "| `n_steps_in_agnn` | 8 (standard) | 100 | 2.00 | 30.0 | 60.0 |" in shown.text


def test_a_request_to_stop_ends_it_before_the_next_stretch(tmp_path):
    piece = TIME_COST.pieces(Request(quick=True))[0]
    with pytest.raises(Stopped):
        piece.work(Workshop(tmp_path, Request(quick=True), Watch(stop=lambda: True)))


def test_epochs_and_minutes_mean_nothing_here():
    with pytest.raises(ConfigError, match="leave out --epochs"):
        TIME_COST.check(Request(epochs=1))
