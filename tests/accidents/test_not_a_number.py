"""Losses and weights that are not numbers: training stops, keeps the batch for inspection, and can go on."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from accident_data import outcome, weights

from dpmpn.engine.engine import Engine
from dpmpn.errors import RunError
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.checkpoint import load_network
from dpmpn.train.optimiser import Adam
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train


def broken_at(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Put a value that is not finite into the loss or the gradients of the next batch."""
    compute = Engine.gradients

    def broken(self, batch, targets):
        found = compute(self, batch, targets)
        if where == "loss":
            return dataclasses.replace(found, loss=math.nan)
        getattr(found, where).view(-1)[-1] = math.inf
        return found

    monkeypatch.setattr(Engine, "gradients", broken)


@pytest.mark.parametrize("where", ["loss", "shared", "rows"])
def test_the_batch_is_kept_with_the_weights_it_met(
    trained: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    run = RunFolder.open(trained)
    dataset, config = run.dataset(), run.config
    before = weights(trained, "checkpoint")
    with monkeypatch.context() as patched:
        broken_at(patched, where)
        with pytest.raises(RunError, match="queries 20 to 29") as caught:
            train(run, dataset, config, resume=True)
    path = trained / "failed-batch-000000000020.json"
    assert str(path) in str(caught.value) and "--resume" in str(caught.value)
    assert weights(trained, "checkpoint") == before

    kept = json.loads(path.read_text())
    assert kept["position"] == 20
    assert kept["loss"] == "nan" if where == "loss" else isinstance(kept["loss"], float)
    assert kept["parameters_not_finite"] == {}
    expected = {"loss": {}, "shared": {"attention.alpha2.center.bias": 1}, "rows": {"entities": 1}}
    assert kept["gradients_not_finite"] == expected[where]
    assert len(kept["entities_not_finite"]) == (where == "rows")
    assert kept["learning_rate"] == config.training.learning_rate

    queries = TrainingQueries(dataset.graph, dataset.queries("train"), config)
    batch, targets = queries.at(kept["position"], len(kept["queries"]))
    names = dataset.graph.entities
    assert [query["head"] for query in kept["queries"]] == [names.name(int(head)) for head in batch.heads]
    assert [query["tail"] for query in kept["queries"]] == [
        names.name(int(tail)) for tail in targets.entities
    ]
    assert all(query["relation"] for query in kept["queries"])
    assert (trained / kept["weights"]).is_file()

    lower = config.replace(learning_rate=1e-4)
    assert train(run, dataset, lower, resume=True).stopped_because == "complete"
    outcome(trained)


def test_the_kept_weights_are_the_network_of_that_moment(
    trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    broken_at(monkeypatch, "loss")
    run = RunFolder.open(trained)
    with pytest.raises(RunError):
        train(run, run.dataset(), run.config, resume=True)
    network = run.model("last")
    load_network(trained, network, "last")
    kept = load_file(trained / "failed-batch-000000000020.safetensors")
    assert all(torch.equal(kept[f"network.{name}"], x) for name, x in network.state_dict().items())


@pytest.mark.parametrize(("learning_rate", "threads"), [(1e10, 1), (1e10, 2), (3e38, 1)])
def test_a_learning_rate_that_is_far_too_high(trained: Path, learning_rate: float, threads: int) -> None:
    """Weights explode: whatever shows it first, it is said, and nothing but numbers is in the checkpoint."""
    run = RunFolder.open(trained)
    config = run.config.replace(learning_rate=learning_rate, grad_clipnorm=None, n_epochs=3, threads=threads)
    with pytest.raises(RunError, match=r"finite|not a number") as caught:
        train(run, run.dataset(), config, resume=True)
    assert "--resume" in str(caught.value) and "--out" in str(caught.value)
    outcome(trained)
    for which in ("best", "last"):
        assert all(torch.isfinite(x).all() for x in run.model(which).parameters())


def test_a_validation_that_cannot_be_computed(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_, **__):
        raise ZeroDivisionError("division by zero")

    run = RunFolder.open(trained)
    before = weights(trained, "checkpoint")
    config = run.config.replace(validate_every_queries=5, checkpoint_every_seconds=1000)
    with monkeypatch.context() as patched:
        patched.setattr("dpmpn.train.validation.rank_queries", fails)
        with pytest.raises(RunError, match=r"validation after 30 queries failed.*--resume"):
            train(run, run.dataset(), config, resume=True)
    assert weights(trained, "checkpoint") == before


def test_weights_that_a_step_spoilt_are_not_saved(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Adam.step

    def spoiling(self, gradients, factor):
        step(self, gradients, factor)
        self.model.entities.data[0, 0] = math.nan

    before = weights(trained, "checkpoint")
    run = RunFolder.open(trained)
    with monkeypatch.context() as patched:
        patched.setattr(Adam, "step", spoiling)
        with pytest.raises(RunError, match="weights are not finite after 30 queries"):
            train(run, run.dataset(), run.config, resume=True)
    assert weights(trained, "checkpoint") == before
    assert train(run, run.dataset(), run.config, resume=True).position == 44


def test_a_full_disk_does_not_hide_what_the_batch_did(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_):
        raise RunError("cannot write x: No space left on device")

    broken_at(monkeypatch, "loss")
    monkeypatch.setattr("dpmpn.train.trainer.save_failed_batch", full)
    run = RunFolder.open(trained)
    with pytest.raises(RunError, match=r"loss \(nan\).*No space left on device"):
        train(run, run.dataset(), run.config, resume=True)


def test_sizes_that_no_machine_holds(trained: Path) -> None:
    from dpmpn.errors import ConfigError

    run = RunFolder.open(trained)
    for n_dims in (10**7, 10**12, 10**18, 10**25):
        config = run.config.replace(n_dims=n_dims)
        fresh = RunFolder.create(trained.with_name(f"run{n_dims}"), run.dataset(), config)
        with pytest.raises(ConfigError, match="lower n_dims"):
            train(fresh, run.dataset(), config)
    assert np.isfinite(run.model().entities.detach().numpy()).all()
