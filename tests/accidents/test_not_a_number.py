"""Losses and weights that are not numbers: training stops, keeps the batch for inspection, and can go on."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accident_data import FACTS, outcome, weights

from dpmpn.config import Config
from dpmpn.data.importer import dataset_from_tuples
from dpmpn.engine.engine import Engine
from dpmpn.errors import Diverged, RunError
from dpmpn.reasoner.reasoner import Reasoner
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.checkpoint import load_network
from dpmpn.train.optimiser import Adam
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train

TRIED = 4  # queries that are tried again before weights are saved or gone on with


def broken_at(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Put a value that is not finite into the loss or the gradients of the next batch."""
    compute = Engine.gradients

    def broken(self, batch, targets):
        found = compute(self, batch, targets)
        if len(batch) <= TRIED:
            return found
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


def throwing(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Make each step of the optimiser so many times too long, as no setting can."""
    step = Adam.step
    monkeypatch.setattr(Adam, "step", lambda self, gradients, usual: step(self, gradients, factor * usual))


@pytest.mark.parametrize(("factor", "threads"), [(1e13, 1), (1e13, 2), (1e35, 1)])
def test_steps_that_are_far_too_long(
    trained: Path, monkeypatch: pytest.MonkeyPatch, factor: float, threads: int
) -> None:
    """Weights explode: whatever shows it first, it is said, and the checkpoint holds what can be trained on."""
    run = RunFolder.open(trained)
    config = run.config.replace(grad_clipnorm=None, n_epochs=3, threads=threads)
    before = outcome(trained)
    with monkeypatch.context() as patched:
        throwing(patched, factor)
        with pytest.raises(Diverged, match=r"training diverged: .*the last checkpoint is intact") as caught:
            train(run, run.dataset(), config, resume=True)
    assert "--learning-rate" in str(caught.value) and "--out" in str(caught.value)
    assert outcome(trained) == before
    assert train(run, run.dataset(), config, resume=True).stopped_because == "complete"


@pytest.mark.parametrize("settings", [{"model": "paper"}, {"model": "strong", "weight_average": 0.9}])
def test_a_run_without_validation_does_not_end_with_such_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    """The only batch has a loss; what its step makes of the weights is looked at before they are called the best."""
    dataset = dataset_from_tuples(FACTS, name="family")
    config = Config().replace(**settings, n_dims=6, threads=1, batch_size=10)
    run = RunFolder.create(tmp_path / "run", dataset, config)
    with monkeypatch.context() as patched:
        throwing(patched, 1e20)
        with pytest.raises(Diverged, match=r"after 10 queries.*no checkpoint was written yet.*--resume"):
            train(run, dataset, config, max_queries=10)
    assert not list(run.path.glob("*.safetensors"))
    assert train(run, dataset, config, resume=True).stopped_because == "complete"
    assert Reasoner.load(run.path).predict("child0", "mother")


def test_gradients_whose_norm_overflows(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clipped by an infinite norm they would be zeros, and nothing would be learnt any more in silence."""
    compute = Engine.gradients

    def huge(self, batch, targets):
        found = compute(self, batch, targets)
        if len(batch) <= TRIED:
            return found
        return dataclasses.replace(found, shared=torch.full_like(found.shared, 1e30))

    monkeypatch.setattr(Engine, "gradients", huge)
    run = RunFolder.open(trained)
    with pytest.raises(Diverged, match="gradient is not finite"):
        train(run, run.dataset(), run.config, resume=True)


@pytest.mark.parametrize("moment", ["first", "second", "average"])
def test_moments_and_averages_that_are_not_finite_are_not_saved(
    trained: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    step = Adam.step

    def spoiling(self, gradients, factor):
        step(self, gradients, factor)
        tensors = getattr(self, moment)
        tensors["entities"] = torch.full_like(self.first["entities"], math.inf)

    before = weights(trained, "checkpoint")
    monkeypatch.setattr(Adam, "step", spoiling)
    run = RunFolder.open(trained)
    with pytest.raises(Diverged, match=rf"not finite after 30 queries \({moment}.entities\)"):
        train(run, run.dataset(), run.config, resume=True)
    assert weights(trained, "checkpoint") == before


def test_a_validation_that_cannot_be_computed(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Engine.answer

    def fails(self, batch, horizon=None):
        found = answer(self, batch, horizon)
        return self._checked(dataclasses.replace(found, attention=found.attention * math.nan))

    run = RunFolder.open(trained)
    before = outcome(trained)
    config = run.config.replace(validate_every_queries=5, checkpoint_every_seconds=1000)
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "answer", fails)
        with pytest.raises(Diverged, match=r"validation after 30 queries failed.*--resume"):
            train(run, run.dataset(), config, resume=True)
    assert outcome(trained)[:2] == before[:2]


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
    config = run.config.replace(n_dims=100_000)
    fresh = RunFolder.create(trained.with_name("large"), run.dataset(), config)
    with pytest.raises(ConfigError, match="lower n_dims"):
        train(fresh, run.dataset(), config)
    assert np.isfinite(run.model().entities.detach().numpy()).all()
