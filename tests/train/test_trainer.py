"""The loop: how far it goes, when it validates, what it keeps, and how it ends."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from dpmpn.engine.engine import Engine
from dpmpn.errors import ConfigError, RunError
from dpmpn.train import trainer
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.run_folder import RunFolder, append_line, read_lines
from dpmpn.train.trainer import train
from dpmpn.train.validation import Validator, sampled_queries, training_queries


@pytest.fixture
def made(tmp_path, dataset):
    def make(config, name="run", data=dataset):
        return RunFolder.create(tmp_path / name, data, config)

    return make


def lines(run, kind):
    return [line for line in read_lines(run.metrics) if line["kind"] == kind]


def positions(run, kind):
    return [line["position"] for line in lines(run, kind)]


def canned_validations(monkeypatch, values):
    """Replace the scores of validation, not when it is made."""
    remaining = iter(values)

    def validate(self, position):
        return trainer.Validation(position, next(remaining), {})

    monkeypatch.setattr(Validator, "validate", validate)


def test_a_run_learns_and_its_end_is_saved(made, dataset, config):
    run = made(config)
    told = []
    result = train(run, dataset, config, progress=told.append)
    n_queries = 2 * len(dataset.train)
    assert result.position == result.total == round(1.5 * n_queries)
    assert result.stopped_because == "complete"
    assert result.cpu_seconds > 0
    assert result.seconds > 0
    losses = [line["loss"] for line in lines(run, "train")]
    assert losses[-1] < losses[0]
    assert result.best.mrr == max(line["mrr"] for line in lines(run, "validation"))
    assert positions(run, "train")[:2] == [70, 140]
    assert positions(run, "train")[-1] == result.total
    assert told[-1].position == told[-1].total == result.total
    assert told[-1].eta_seconds == 0
    assert told[-1].epoch == result.total / n_queries
    assert told[-1].best_mrr == result.best.mrr
    assert any(p.message and "(best)" in p.message for p in told)
    json.dumps(dataclasses.asdict(result))


def test_validations_come_where_a_multiple_is_passed_and_at_the_end(made, dataset, config):
    run = made(config)
    result = train(run, dataset, config)
    n_queries, position, expected = 2 * len(dataset.train), 0, []
    while position < result.total:
        before, left_of_epoch = position, n_queries - position % n_queries
        position += min(7, left_of_epoch, result.total - position)
        if position // 100 > before // 100 or position == result.total:
            expected.append(position)
    assert positions(run, "validation") == expected


def test_without_a_setting_validation_closes_each_epoch_and_the_run(made, dataset, config):
    config = config.replace(validate_every_queries=0)
    run = made(config)
    result = train(run, dataset, config)
    assert positions(run, "validation") == [2 * len(dataset.train), result.total]


def test_limits_of_queries_and_of_time(made, dataset, config):
    run = made(config)
    assert train(run, dataset, config, max_queries=10).position == 10
    assert positions(run, "validation") == [10]
    result = train(run, dataset, config, resume=True, max_minutes=0)
    assert (result.position, result.stopped_because) == (10, "max_minutes")
    assert positions(run, "validation") == [10]
    assert train(run, dataset, config, resume=True, max_queries=24).position == 24
    assert result.seconds < train(run, dataset, config, resume=True, max_queries=24).seconds


def test_the_best_model_is_kept_and_patience_ends_the_run(made, dataset, config, monkeypatch):
    config = config.replace(validate_every_queries=7, patience=2)
    canned_validations(monkeypatch, [0.1, 0.5, 0.2, 0.5])
    run = made(config)
    result = train(run, dataset, config)
    assert (result.stopped_because, result.position, result.best.position) == ("patience", 28, 14)
    assert json.loads((run.path / "best.json").read_text())["position"] == 14
    assert [line["best"] for line in lines(run, "validation")] == [True, True, False, False]
    assert train(run, dataset, config, resume=True).position == 28
    canned_validations(monkeypatch, [0.1, 0.6])
    result = train(run, dataset, config.replace(patience=4), resume=True, max_queries=42)
    assert (result.stopped_because, result.best.position) == ("complete", 42)
    assert run.config.training.patience == 4


def test_a_better_model_renews_the_patience(made, dataset, config, monkeypatch):
    config = config.replace(validate_every_queries=7, patience=2)
    canned_validations(monkeypatch, [0.1, 0.05, 0.2, 0.1, 0.3, 0.2, 0.1])
    result = train(made(config), dataset, config)
    assert (result.stopped_because, result.position, result.best.position) == ("patience", 49, 35)


def test_lines_after_the_checkpoint_are_taken_back(made, dataset, config):
    run = made(config)
    train(run, dataset, config, max_queries=70)
    written = run.metrics.read_bytes()
    append_line(
        run.metrics, {"kind": "train", "position": 77, "loss": 1.0}
    )  # of a run that was killed before it saved
    train(run, dataset, config, resume=True, max_queries=70)
    assert run.metrics.read_bytes() == written


def test_without_validation_triples_the_last_is_the_best(made, dataset, config):
    data = dataclasses.replace(dataset, valid=np.empty((0, 3), np.int32))
    run = made(config, data=data)
    result = train(run, data, config, max_queries=30)
    assert result.best is None and not lines(run, "validation")
    last, best = run.model("last").state_dict(), run.model("best").state_dict()
    assert all(torch.equal(last[name], best[name]) for name in last)
    assert (run.path / "best.json").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"joint_targets": 3, "schedule": "linear", "n_epochs": 3},
        {"model": "strong", "fact_dropout": 0.5, "weight_average": 0.9},
    ],
)
def test_stopping_saves_and_going_on_gives_an_unbroken_run(made, dataset, config, changes):
    config = config.replace(**changes)
    whole, broken = made(config, "whole"), made(config.replace(checkpoint_every_seconds=1e6), "broken")
    train(whole, dataset, config, max_queries=150)
    ends = []
    for calls in (5, 1, 17, 30):  # the last one stops within a validation
        countdown = iter(range(calls))
        stop = lambda countdown=countdown: next(countdown, None) is None  # noqa: E731
        ends.append(train(broken, dataset, config, resume=True, max_queries=150, stop=stop))
        assert json.loads((broken.path / "checkpoint.json").read_text())["position"] == ends[-1].position
    assert {end.stopped_because for end in ends[:2]} == {"interrupted"}
    train(broken, dataset, config, resume=True, max_queries=150)
    for kind, value in (("train", "loss"), ("validation", "mrr")):
        assert positions(broken, kind) == positions(whole, kind)
        assert [x[value] for x in lines(broken, kind)] == [x[value] for x in lines(whole, kind)]


def test_loss_and_reached_are_means_over_targets(made, dataset, config):
    config = config.replace(joint_targets=4, learning_rate=1e-9)
    run = made(config)
    train(run, dataset, config, max_queries=70)
    (line,) = lines(run, "train")
    queries = TrainingQueries(dataset.graph, training_queries(dataset, config), config)
    engine = Engine(run.model("last"), dataset.graph, config)
    loss = reached = count = 0
    for position in range(0, 70, 7):
        batch, targets = queries.at(position, 7)
        found = engine.gradients(batch, targets)
        count += len(targets.entities)
        loss += found.loss * len(targets.entities)
        reached += found.reached
    assert count > 70
    assert line["loss"] == pytest.approx(loss / count, rel=1e-4)
    assert line["reached"] == pytest.approx(reached / count)


def test_an_interrupted_validation_is_made_when_the_run_goes_on(made, dataset, config):
    run = made(config)
    config = config.replace(batch_size=4, validate_every_queries=4)
    asked = iter([False, True])  # before the batch, then between two batches of the validation
    result = train(run, dataset, config, resume=True, max_queries=8, stop=lambda: next(asked))
    assert (result.stopped_because, result.position) == ("interrupted", 4)
    assert not positions(run, "validation")
    train(run, dataset, config, resume=True, max_queries=8)
    assert positions(run, "validation") == [4, 8]


@pytest.mark.parametrize("what", ["loss", "shared", "rows"])
def test_what_is_not_finite_never_reaches_a_checkpoint(made, dataset, config, monkeypatch, what):
    run = made(config)
    train(run, dataset, config, max_queries=14)
    saved = (run.path / "checkpoint.json").read_bytes()
    gradients = Engine.gradients

    def broken(self, batch, targets):
        found = gradients(self, batch, targets)
        if len(batch) <= 4:  # what is tried before training goes on
            return found
        if what == "loss":
            return dataclasses.replace(found, loss=float("nan"))
        getattr(found, what).view(-1)[0] = float("inf")
        return found

    monkeypatch.setattr(Engine, "gradients", broken)
    with pytest.raises(RunError, match="queries 14 to 20"):
        train(run, dataset, config, resume=True)
    assert (run.path / "checkpoint.json").read_bytes() == saved


def test_a_trained_run_needs_resume_and_a_fitting_configuration(made, dataset, config):
    run = made(config)
    train(run, dataset, config, max_queries=7)
    with pytest.raises(RunError, match="--resume"):
        train(run, dataset, config)
    with pytest.raises(RunError, match="n_dims = 8"):
        train(run, dataset, config.replace(n_dims=4), resume=True)
    with pytest.raises(RunError, match="seed = 0"):
        train(run, dataset, config.replace(seed=1), resume=True)
    with pytest.raises(RunError, match="joint_targets = 1"):
        train(run, dataset, config.replace(joint_targets=2), resume=True)
    with pytest.raises(
        RunError, match="validation_queries = 12"
    ):  # the best of few cannot be told from that of many
        train(run, dataset, config.replace(validation_queries=3), resume=True)
    narrow = config.replace(max_attending_from_per_step=3)
    for changed in (narrow, config.replace(ask_sampling_per_node=3)):
        with pytest.raises(RunError, match="with another horizon"):
            train(run, dataset, changed, resume=True)
    assert run.config == config
    kept = {"ask_attending_from_per_step": config.horizon.max_attending_from_per_step}
    later = narrow.replace(schedule="linear", n_epochs=2, **kept)
    assert train(run, dataset, later, resume=True, max_queries=14).position == 14


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device here")
def test_a_device_that_is_not_there(made, dataset, config):
    config = config.replace(device="cuda")
    with pytest.raises(ConfigError, match="device 'cuda' cannot be used here"):
        train(made(config), dataset, config)


def test_the_validation_sample_depends_on_the_seed_alone(dataset, config):
    first = sampled_queries(dataset, config)
    assert len(first) == 12
    assert len(np.unique(first, axis=0)) == 12
    np.testing.assert_array_equal(first, sampled_queries(dataset, config.replace(batch_size=3)))
    assert not np.array_equal(first, sampled_queries(dataset, config.replace(seed=1)))
    assert len(sampled_queries(dataset, config.replace(validation_queries=0))) == 2 * len(dataset.valid)


def test_validation_facts_that_are_training_facts_are_held_out(made, dataset, config):
    doubled = dataclasses.replace(dataset, valid=dataset.train[:40])
    config = config.replace(validation_queries=0)
    everything = {tuple(query) for query in doubled.queries("train").tolist()}
    asked = {tuple(query) for query in sampled_queries(doubled, config).tolist()}
    trained = {tuple(query) for query in training_queries(doubled, config).tolist()}
    assert len(asked) == len(everything) // 5
    assert trained == everything - asked

    np.testing.assert_array_equal(training_queries(dataset, config), dataset.queries("train"))
