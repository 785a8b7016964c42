"""Runs of another exhibit are opened where they are the models that are wanted, and refused elsewhere."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dpmpn.config import Config
from dpmpn.errors import RunError
from dpmpn.lab.reproduce.workshop import Request, Workshop, config_for, dataset_named, training_seconds

QUICK = Request(quick=True, threads=1)


def config(**settings: object) -> Config:
    return config_for(QUICK, dataset_named("countries"), 0, n_epochs=0.02, **settings)


@pytest.fixture(scope="module")
def lender(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an exhibit with one trained run."""
    folder = tmp_path_factory.mktemp("lender")
    Workshop(folder, QUICK).trained("a", dataset_named("countries"), config())
    return folder


def borrower(lender: Path, tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "borrower", Request(quick=True, threads=1, runs=lender))


def test_a_run_is_used_as_it_is_however_long_it_was_trained(lender, tmp_path):
    before = {path: path.read_bytes() for path in lender.rglob("*") if path.is_file()}
    wanted = config(validation_queries=7, patience=2).replace(n_epochs=2, threads=2)
    run = borrower(lender, tmp_path).trained("a", dataset_named("countries"), wanted)
    assert run.path == lender / "runs" / "a"
    assert run.config.training.n_epochs == 0.02
    assert {path: path.read_bytes() for path in lender.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "borrower").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seed": 1}, "seed = 0 instead of 1"),
        ({"n_dims": 8}, "n_dims = 16 instead of 8"),
        ({"max_sampling_per_node": 3}, "max_sampling_per_node = 20 instead of 3"),
        ({"learning_rate": 0.5}, "learning_rate = 0.005 instead of 0.5"),
    ],
)
def test_another_model_is_refused(lender, tmp_path, settings, said):
    with pytest.raises(RunError, match=said):
        borrower(lender, tmp_path).trained("a", dataset_named("countries"), config().replace(**settings))


def test_other_data_is_refused(lender, tmp_path):
    dataset = dataset_named("countries")
    for other, said in (
        (replace(dataset, name="regions"), "the dataset countries instead of regions"),
        (replace(dataset, train=dataset.train[1:]), "other facts of countries"),
    ):
        with pytest.raises(RunError, match=said):
            borrower(lender, tmp_path).trained("a", other, config())


def test_a_run_that_is_not_there_or_has_no_weights_is_not_trained(lender, tmp_path):
    with pytest.raises(RunError, match=r"b is not there; .* leave that out to train"):
        borrower(lender, tmp_path).trained("b", dataset_named("countries"), config())
    shutil.copytree(lender, tmp_path / "begun")
    (tmp_path / "begun/runs/a/checkpoint.json").unlink()
    with pytest.raises(RunError, match="has no weights yet"):
        borrower(tmp_path / "begun", tmp_path).trained("a", dataset_named("countries"), config())
    assert not (lender / "runs/b").exists()


def test_what_is_trained_already_takes_no_time():
    there = Request(runs=Path("lender"))
    assert training_seconds(there, "WN18RR", 1e6, 0) == 0
    assert training_seconds(there, "WN18RR", 1e6, 100) == training_seconds(Request(), "WN18RR", 0, 100) > 0
