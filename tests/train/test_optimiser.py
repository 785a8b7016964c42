"""Adam against its definition, dense and by rows."""

import numpy as np
import pytest
import torch

from dpmpn.config import ModelConfig, TrainingConfig
from dpmpn.engine.gradients import Gradients
from dpmpn.models.paper.network import build_network
from dpmpn.train.optimiser import Adam

N_ENTITIES = 7
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-7


def make(adam, **training):
    network = build_network(N_ENTITIES, 3, ModelConfig(n_dims=4, n_dims_att=2), 1).double()
    return network, Adam(network, TrainingConfig(adam=adam, **training))


def random_gradients(network, rng, entities, scale=1.0):
    n_shared = sum(p.numel() for p in network.shared_parameters().values())
    shared = torch.from_numpy(rng.normal(size=n_shared)) * scale
    rows = torch.from_numpy(rng.normal(size=(len(entities), 4))) * scale
    return Gradients(0.0, 0, shared, np.asarray(entities, np.int64), rows)


class Plain:
    """One variable, by the formulas."""

    def __init__(self, value):
        self.value, self.m, self.v, self.t = (
            value.clone(),
            torch.zeros_like(value),
            torch.zeros_like(value),
            0,
        )

    def step(self, gradient, limit, rate=0.001):
        norm = gradient.norm()
        if limit is not None and norm > limit:
            gradient = gradient * limit / norm
        self.t += 1
        self.m = BETA1 * self.m + (1 - BETA1) * gradient
        self.v = BETA2 * self.v + (1 - BETA2) * gradient**2
        rate = rate * (1 - BETA2**self.t) ** 0.5 / (1 - BETA1**self.t)
        self.value = self.value - rate * self.m / (self.v.sqrt() + EPSILON)


@pytest.mark.parametrize("factor", [1.0, 0.3])
@pytest.mark.parametrize("limit", [None, 1.0])
def test_dense_is_the_definition(limit, factor):
    network, adam = make("dense", grad_clipnorm=limit)
    plain = {name: Plain(p.detach()) for name, p in network.named_parameters()}
    rng = np.random.default_rng(0)
    for _ in range(6):
        gradients = random_gradients(network, rng, rng.choice(N_ENTITIES, 3, replace=False))
        adam.step(gradients, factor)
        sizes = [p.numel() for p in network.shared_parameters().values()]
        for name, part in zip(network.shared_parameters(), gradients.shared.split(sizes), strict=True):
            plain[name].step(part.view_as(plain[name].value), limit, 0.001 * factor)
        table = torch.zeros(N_ENTITIES, 4, dtype=torch.float64)
        table[torch.from_numpy(gradients.entities)] = gradients.rows
        plain["entities"].step(table, limit, 0.001 * factor)
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.detach(), plain[name].value, rtol=1e-9, atol=1e-12)


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
