"""Snapshots of a training: where they are taken, that they leave it as it is, and what is shown of them."""

import pytest
from made_analysis import Made, files_of, made, scored

from dpmpn.errors import ConfigError
from dpmpn.lab.reproduce.convergence import CONVERGENCE, queries_until, snapshots
from dpmpn.lab.reproduce.making import make
from dpmpn.lab.reproduce.workshop import Request, Watch, Workshop, config_for, dataset_named


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(CONVERGENCE, tmp_path_factory.mktemp("exhibit") / "convergence")


def test_the_snapshots_are_the_papers_unless_the_training_is_shorter():
    assert snapshots(Request()) == [0.3, 0.5, 0.7, 1, 2, 3]
    assert snapshots(Request(epochs=0.6)) == [0.3, 0.5, 0.6]
    assert snapshots(Request(epochs=1)) == [0.3, 0.5, 0.7, 1]
    assert snapshots(Request(epochs=0.1)) == [0.1]


@pytest.mark.parametrize(
    ("epochs", "queries"),
    [
        (0.3, 300),  # of 1,050: 315 would cut a batch
        (1, 1050),  # the last batch of an epoch is a smaller one
        (1.3, 1350),  # 300 into the second epoch
        (2, 2100),
        (0.01, 100),  # never nothing
    ],
)
def test_a_snapshot_does_not_cut_a_batch(epochs, queries):
    assert queries_until(epochs, 1050, 100) == queries


def test_all_files_are_written_and_the_table_shows_the_results(exhibit):
    names = set(files_of(exhibit.folder))
    wanted = {f"convergence.{kind}" for kind in ("json", "csv", "md", "svg", "png")}
    assert wanted <= names
    data = exhibit.data()
    assert [row["epochs"] for row in data["rows"]] == [0.1, 0.2, 0.3]
    for row, cells, result, line in zip(
        data["rows"], exhibit.cells(), data["results"].values(), exhibit.csv_rows(), strict=True
    ):
        scores = result["scores"]["both"]["realistic"]
        assert row["queries"] == result["training"]["queries"] == int(cells[1].replace(",", ""))
        shown = [f"{100 * scores[metric]:.1f}" for metric in ("hits_at_1", "hits_at_3", "hits_at_10", "mrr")]
        assert cells[2:] == shown
        assert float(line["mrr"]) == row["mrr"] == scores["mrr"]


def test_all_snapshots_are_of_one_run_and_stopping_leaves_it_as_it_is(exhibit, tmp_path):
    assert [path.name for path in (exhibit.folder / "runs").iterdir()] == ["countries-seed0"]
    request = Request(quick=True, threads=1)
    dataset = dataset_named("countries")
    config = config_for(request, dataset, 0, n_epochs=0.3, validate_every_queries=0)
    workshop = Workshop(tmp_path, request)
    last = exhibit.data()["rows"][-1]
    unbroken = workshop.trained("unbroken", dataset, config, max_queries=last["queries"])
    scores = workshop.evaluated(unbroken, dataset, which="last")["scores"]["both"]["realistic"]
    assert scores["mrr"] == pytest.approx(last["mrr"], abs=1e-9)


def test_made_again_nothing_is_done_anew(exhibit):
    before = files_of(exhibit.folder)
    again = made(CONVERGENCE, exhibit.folder)
    assert again.said == ["3 of 3 pieces of work are done already"]
    assert files_of(exhibit.folder) == before


def test_a_limit_of_minutes_is_refused_before_anything_is_written(tmp_path):
    request = Request(quick=True, max_minutes=1)
    with pytest.raises(ConfigError, match="--epochs"):
        make(CONVERGENCE, request, tmp_path / "out", Watch(), "command")
    assert not (tmp_path / "out").exists()


def test_seeds_are_averaged_and_what_was_shortened_is_told():
    results = {f"{seed}": scored(value, 500, seed=seed, epochs=0.5) for seed, value in ((0, 0.40), (1, 0.42))}
    shown = CONVERGENCE.show(Request(seeds=(0, 1), epochs=0.5), results)
    assert "| 0.5 | 500 | 41.0 (1.4) | 41.0 (1.4) | 41.0 (1.4) | 41.0 (1.4) |" in shown.text
    assert "0.3, 0.5, 0.7, 1, 2 and 3 epochs; here the training ended after 0.5" in shown.text
    assert "`max_attending_from_per_step` = 40" in shown.text


def test_snapshots_at_the_papers_points_are_called_so():
    results = {f"{epochs}": scored(0.4, epochs=epochs) for epochs in (0.3, 0.5, 0.7, 1, 2, 3)}
    assert "The snapshots are the paper's." in CONVERGENCE.show(Request(), results).text
