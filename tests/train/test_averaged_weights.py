"""Which weights a run validates and keeps, and by how much each step moves them."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from dpmpn.config import TrainingConfig
from dpmpn.engine.learning import Gradients
from dpmpn.models import build_model
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.train.optimiser import Adam
from dpmpn.train.run_folder import RunFolder
from dpmpn.train.trainer import train
from dpmpn.train.validation import Validator


@pytest.mark.parametrize("weight_average", [0.5, 0.9])
def test_the_average_by_its_formula(weight_average):
    """Every tenth step, and of a short run not of the initial values: kept is min(w, (1 + t) / (10 + t)) a step."""
    network = build_model(3, 2, PaperSettings(n_dims=2, n_dims_att=2), 0).double()
    adam = Adam(network, TrainingConfig(weight_average=weight_average, learning_rate=0.1))
    n_shared = sum(p.numel() for p in network.shared_parameters().values())
    expected, draw = network.relations.detach().numpy().copy(), torch.Generator().manual_seed(0)
    for step in range(1, 36):
        shared = torch.randn(n_shared, generator=draw, dtype=torch.float64)
        adam.step(Gradients(0.0, 0, shared, np.arange(3), torch.zeros(3, 2, dtype=torch.float64)))
        if step % 10 == 0:
            kept = min(weight_average, (1 + step) / (10 + step)) ** 10
            expected = kept * expected + (1 - kept) * network.relations.detach().numpy()
    last = network.relations.detach().clone()
    with adam.averaged():
        np.testing.assert_allclose(network.relations.detach().numpy(), expected, rtol=1e-12)
    assert torch.equal(network.relations, last)
    assert not np.allclose(last.numpy(), expected)


def test_without_an_average_the_last_weights_are_meant():
    network = build_model(3, 2, PaperSettings(n_dims=2, n_dims_att=2), 0)
    adam, before = Adam(network, TrainingConfig()), network.relations.detach().clone()
    with adam.averaged():
        assert torch.equal(network.relations, before)


@pytest.mark.parametrize("weight_average", [0.0, 0.9])
def test_what_is_validated_is_the_average_and_is_what_is_kept(
    tmp_path, monkeypatch, dataset, config, weight_average
):
    config = config.replace(weight_average=weight_average, n_epochs=1, validate_every_queries=0)
    run, seen = RunFolder.create(tmp_path / "run", dataset, config), []
    validate = Validator.validate

    def look(self, position):
        seen.append(self.engine.model.relations.detach().clone())
        return validate(self, position)

    monkeypatch.setattr(Validator, "validate", look)
    train(run, dataset, config)
    last, best = (
        load_file(run.path / json.loads((run.path / f"{kind}.json").read_text())["file"])
        for kind in ("checkpoint", "best")
    )
    (validated,) = seen
    assert torch.equal(best["network.relations"], validated)
    if weight_average:
        assert torch.equal(last["optimiser.average.relations"], validated)
        assert not torch.equal(last["network.relations"], validated)
    else:
        assert torch.equal(last["network.relations"], validated)


@pytest.mark.parametrize("schedule", ["constant", "linear"])
def test_each_step_moves_by_what_the_schedule_says(tmp_path, monkeypatch, dataset, config, schedule):
    config = config.replace(schedule=schedule, batch_size=10)
    run, factors, step = RunFolder.create(tmp_path / "run", dataset, config), [], Adam.step

    def noted(self, gradients, factor=1.0):
        factors.append(factor)
        step(self, gradients, factor)

    monkeypatch.setattr(Adam, "step", noted)
    train(run, dataset, config, max_queries=60)
    # Half of a run of six batches rises; the rest falls from 1, to 0.01 where a seventh batch would begin.
    linear = [1 / 3, 2 / 3, 1.0, 1.0, 0.01 + 0.99 * 2 / 3, 0.01 + 0.99 / 3]
    assert factors == pytest.approx(linear if schedule == "linear" else [1.0] * 6)
