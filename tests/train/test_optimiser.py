"""Adam against its definition, dense and by rows."""

import numpy as np
import pytest
import torch

from dpmpn.config import TrainingConfig
from dpmpn.engine.learning import Gradients
from dpmpn.models import build_model
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.train.optimiser import Adam

N_ENTITIES = 7


def make(adam, **training):
    network = build_model(N_ENTITIES, 3, PaperSettings(n_dims=4, n_dims_att=2), 1).double()
    return network, Adam(network, TrainingConfig(adam=adam, **training))


def random_gradients(network, rng, entities, scale=1.0):
    """Gradients of very different sizes: some variables are clipped, and some are near epsilon."""
    sizes = 10.0 ** rng.integers(-6, 1, len(network.shared_parameters()))
    parts = zip(sizes, network.shared_parameters().values(), strict=True)
    shared = np.concatenate([size * rng.normal(size=p.numel()) for size, p in parts])
    rows = torch.from_numpy(rng.normal(size=(len(entities), 4))) * scale
    return Gradients(0.0, 0, torch.from_numpy(shared) * scale, np.asarray(entities, np.int64), rows)


class Plain:
    """One variable, by the formulas: Adam as Keras has it, with the norm of the variable's own gradient clipped."""

    def __init__(self, value):
        self.value, self.m, self.v, self.t = np.array(value), np.zeros(value.shape), np.zeros(value.shape), 0

    def step(self, gradient, limit, rate):
        norm = np.sqrt((gradient**2).sum())
        if limit is not None and norm > limit:
            gradient = gradient * limit / norm
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        corrected = rate * np.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        self.value = self.value - corrected * self.m / (np.sqrt(self.v) + 1e-7)  # beside the uncorrected root


def equals_the_definition(step, network, limit, factor):
    """Six steps of random gradients, each given to `step` and to the formulas."""
    plain = {name: Plain(p.detach().numpy()) for name, p in network.named_parameters()}
    rng = np.random.default_rng(0)
    for _ in range(6):
        gradients = random_gradients(network, rng, rng.choice(N_ENTITIES, 3, replace=False))
        step(gradients, factor)
        sizes = [p.numel() for p in network.shared_parameters().values()]
        for name, part in zip(network.shared_parameters(), gradients.shared.split(sizes), strict=True):
            plain[name].step(part.numpy().reshape(plain[name].value.shape), limit, 0.001 * factor)
        table = np.zeros((N_ENTITIES, 4))
        table[gradients.entities] = gradients.rows.numpy()
        plain["entities"].step(table, limit, 0.001 * factor)
    for name, parameter in network.named_parameters():
        np.testing.assert_allclose(parameter.detach().numpy(), plain[name].value, rtol=0, atol=1e-13)


@pytest.mark.parametrize("factor", [1.0, 0.3])
@pytest.mark.parametrize("limit", [None, 1.0])
def test_dense_is_the_definition(limit, factor):
    network, adam = make("dense", grad_clipnorm=limit)
    equals_the_definition(adam.step, network, limit, factor)


@pytest.mark.parametrize("limit", [None, 1.0])
def test_the_form_for_other_devices_is_the_definition(monkeypatch, limit):
    """Run on the CPU: its variables are updated by what otherwise only those of a device are."""
    network, adam = make("dense", grad_clipnorm=limit)

    def update_shared(name, parameter, gradient, rate):
        variable = parameter.view(-1), adam.first[name].view(-1), adam.second[name].view(-1)
        adam._update_on_device(*variable, gradient, None, rate)

    def update_entities(rows, entities, rate):
        table = network.entities.detach(), adam.first["entities"], adam.second["entities"]
        adam._update_on_device(*table, rows, entities, rate)

    monkeypatch.setattr(adam, "_update_shared", update_shared)
    monkeypatch.setattr(adam, "_update_entities", update_entities)
    equals_the_definition(adam.step, network, limit, 1.0)


def test_a_first_step_in_numbers():
    """A gradient of 1e-6 everywhere, too small to be clipped."""
    network, adam = make("dense")
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    shared = torch.full((sum(p.numel() for p in network.shared_parameters().values()),), 1e-6)
    adam.step(Gradients(0.0, 0, shared.double(), np.array([2]), torch.full((1, 4), 1e-6).double()))
    # 0.001 sqrt(0.001) / 0.1 * 1e-7 / (sqrt(0.001) 1e-6 + 1e-7)
    expected = 0.00024025307335204215
    for name in network.shared_parameters():
        moved = before[name] - network.get_parameter(name).detach()
        torch.testing.assert_close(moved, torch.full_like(moved, expected), rtol=1e-6, atol=0)
    moved = (before["entities"] - network.entities.detach()).abs().sum(1)
    assert moved.nonzero().tolist() == [[2]]


def test_rows_equal_dense_while_every_row_has_a_gradient():
    (dense, a), (rows, b) = make("dense"), make("rows")
    for step in range(5):
        gradients = random_gradients(dense, np.random.default_rng(step), range(N_ENTITIES))
        a.step(gradients)
        b.step(gradients)
    torch.testing.assert_close(rows.entities, dense.entities, rtol=1e-12, atol=1e-14)


def test_rows_without_gradient_rest_and_their_moments_decay():
    """A row that missed steps has the moments of the dense form when it is next touched."""
    (dense, a), (rows, b) = make("dense", grad_clipnorm=None), make("rows", grad_clipnorm=None)
    first = random_gradients(dense, np.random.default_rng(1), [0, 1])
    for adam in (a, b):
        adam.step(first)
    resting = rows.entities[0].clone()
    for step in range(4):
        gradients = random_gradients(dense, np.random.default_rng(10 + step), [1])
        a.step(gradients)
        b.step(gradients)
    assert torch.equal(rows.entities[0], resting)
    last = random_gradients(dense, np.random.default_rng(99), [0, 1])
    a.step(last)
    b.step(last)
    for moment in ("first", "second"):
        torch.testing.assert_close(
            getattr(b, moment)["entities"][:2], getattr(a, moment)["entities"][:2], rtol=1e-12, atol=1e-15
        )


def test_state_round_trip_goes_on_the_same():
    (one, a), (two, b) = make("rows"), make("rows")
    rng = np.random.default_rng(3)
    a.step(random_gradients(one, rng, [0, 2]))
    two.load_state_dict(one.state_dict())
    b.load_state({name: x.clone() for name, x in a.state().items()})
    gradients = random_gradients(one, rng, [2, 5])
    a.step(gradients)
    b.step(gradients)
    for (name, x), (_, y) in zip(one.named_parameters(), two.named_parameters(), strict=True):
        assert torch.equal(x, y), name
