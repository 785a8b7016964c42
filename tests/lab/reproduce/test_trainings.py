"""Trainings that fill the minutes of a request."""

from pathlib import Path

import pytest

from dpmpn.config import Config
from dpmpn.lab.bench import Stretch
from dpmpn.lab.reproduce.exhibit import length_note
from dpmpn.lab.reproduce.workshop import (
    Request,
    Workshop,
    config_for,
    dataset_named,
    filled,
    planned_seconds,
    queries_of_an_epoch,
)


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Trials run at 100 queries a second; how long they were."""
    lengths: list[float] = []

    def stretch(dataset, config, seconds) -> Stretch:
        lengths.append(seconds)
        return Stretch(100, 1.0, 1.0)

    monkeypatch.setattr("dpmpn.lab.bench.training_stretch", stretch)
    return lengths


def test_epochs_are_as_many_as_fit_beside_ten_validations():
    config = Config().replace(validation_queries=1500, patience=3)
    plan = filled(config, seconds=1000, rate=100.0, n_epoch=10_000, n_valid=6000).training
    assert plan.n_epochs == pytest.approx((980 - 10 * 10) * 100 / 10_000)  # a validation takes 10 seconds
    assert plan.validate_every_queries == 88_000 / 10
    assert plan.patience is None


@pytest.mark.parametrize(("seconds", "validations"), [(1000, 10), (300, 3), (20, 1), (1, 1)])
def test_validations_take_a_tenth_of_the_time_at_most_but_there_is_one(seconds, validations):
    config = Config().replace(validation_queries=0)
    plan = filled(config, seconds, rate=100.0, n_epoch=1000, n_valid=1500).training
    queries = round(plan.n_epochs * 1000)
    assert queries >= 100 * seconds / 2
    assert -(-queries // plan.validate_every_queries) == validations


def test_a_run_that_was_begun_keeps_its_plan(trial, tmp_path: Path):
    dataset = dataset_named("countries")
    workshop = Workshop(tmp_path, Request(quick=True, threads=1, max_minutes=0.01))
    config = config_for(workshop.request, dataset, 0, model="strong")
    first = workshop.planned("a", dataset, config)
    assert trial == [pytest.approx(0.03)]
    workshop.trained("a", dataset, first)
    assert workshop.planned("a", dataset, config) == first
    assert len(trial) == 1


@pytest.mark.parametrize(
    "request_", [Request(), Request(epochs=2.0, max_minutes=1), Request(runs=Path("lender"))]
)
def test_without_minutes_or_with_epochs_settings_stay_as_they_are(trial, request_, tmp_path: Path):
    dataset = dataset_named("countries")
    config = config_for(request_, dataset, 0, model="strong")
    assert Workshop(tmp_path, request_).planned("a", dataset, config) == config
    assert not trial


def test_answers_that_are_learnt_together_make_one_query():
    dataset = dataset_named("countries")
    config = config_for(Request(), dataset, 0, model="strong")
    alone = queries_of_an_epoch(dataset, config.replace(joint_targets=1))
    assert alone == len(dataset.queries("train"))
    assert queries_of_an_epoch(dataset, config.replace(joint_targets=8)) < alone


def test_what_takes_minutes_is_said_to_take_them():
    dataset, config = dataset_named("countries"), Config()
    assert planned_seconds(Request(max_minutes=30), dataset, config, 0) == 1800
    shortened = planned_seconds(
        Request(epochs=1e-3, max_minutes=30), dataset, config.replace(n_epochs=1e-3), 0
    )
    assert shortened < 1


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (Request(max_minutes=30), "Each training had 30 minutes, validations included"),
        (Request(epochs=2), "Each training had 2 epochs."),
        (Request(epochs=2, max_minutes=5), "2 epochs, or 5 minutes if these came first"),
        (Request(runs=Path("x")), "trained before"),
        (Request(quick=True), "nothing here compares with anything"),
        (Request(), "as long as the settings of its model say"),
    ],
)
def test_what_ended_the_trainings_is_told(request_, told):
    assert told in length_note(request_)
    assert request_.fills_minutes == ("validations included" in told)


@pytest.mark.parametrize(("queries", "told"), [(600, "saw only 60 % of its queries"), (990, "")])
def test_a_training_that_was_cut_off_is_told(queries, told):
    results = [{"training": {"queries": seen}, "planned_queries": 1000} for seen in (1000, queries)]
    text = length_note(Request(max_minutes=30), results)
    assert told in text and ("Time was over" in text) == bool(told)
