"""Numbers of the paper's model that the paper or the authors' program fixes, each checked as a literal."""

import math

import numpy as np
import pytest
import torch

from dpmpn.config import Config
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.engine import Engine
from dpmpn.engine.learning import Targets
from dpmpn.engine.settings import Horizon, RunConfig
from dpmpn.models import build_model
from dpmpn.models.paper.model import PaperModel
from dpmpn.models.paper.network import AttentionFlow, Bilinear, TwoLayers
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.ops.messages import combine_leaky

UNREACHED = 46.051701859880914  # -log(1e-20)


def with_weights(module: torch.nn.Module, **values: float) -> torch.nn.Module:
    """The module with these values in all places of its parameters, and zero elsewhere."""
    module.double()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.fill_(values.get(name.replace(".", "_"), 0.0))
    return module


def test_messages_and_updates_are_tanh_after_a_leaky_layer() -> None:
    layers = with_weights(TwoLayers(2, 1), first_weight=1.0, second_weight=1.0)
    one = torch.ones(1, 1, dtype=torch.float64)
    assert layers(one, one).item() == pytest.approx(0.9640275800758169)  # tanh(2)
    assert layers(-one, -one).item() == pytest.approx(-0.3799489622552249)  # tanh(0.2 * -2)


def test_the_fused_layer_has_the_same_slope() -> None:
    table, at, none = torch.tensor([[-1.0, 3.0]], dtype=torch.float64), np.zeros(1, int), -np.ones(1, int)
    assert combine_leaky(table, at, table, at, table, none).tolist() == [[-0.4, 6.0]]


def test_attention_has_a_leaky_layer_on_both_sides_and_none_between() -> None:
    alpha = with_weights(Bilinear(1), left_weight=1.0, right_weight=1.0, center_weight=1.0)
    rows = torch.tensor([[-1.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    assert alpha(rows, rows.flip(0)).tolist() == [pytest.approx(-0.4), pytest.approx(-0.4)]  # -0.2 * 2
    assert alpha(rows, rows).tolist() == [pytest.approx(0.04), pytest.approx(4.0)]


def test_the_projection_is_a_tanh() -> None:
    flow = with_weights(AttentionFlow(2, 1), project_weight=1.0, project_bias=-1.0)
    assert flow.small(torch.ones(1, 2, dtype=torch.float64)).item() == pytest.approx(
        0.7615941559557649
    )  # tanh(1)


def test_initial_values() -> None:
    network = build_model(3000, 499, PaperSettings(n_dims=40, n_dims_att=30), 0)
    for table in (network.entities, network.relations):
        assert table.abs().max() <= 0.05
        assert table.abs().max() > 0.0499
        assert table.std().item() == pytest.approx(0.05 / math.sqrt(3), rel=0.02)  # uniform
    names = set()
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif name.endswith("weight"):
            bound = math.sqrt(6 / sum(parameter.shape))  # Glorot, uniform
            assert 0.98 * bound < parameter.abs().max() <= bound, name
            assert parameter.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.08), name
            names.add(name)
    assert (
        len(names) == 2 * 4 + 1 + 1 + 3 * 2
    )  # layers of messages and updates, W, the projection, two alphas
    assert "agnn.attend.bias" not in dict(network.named_parameters())  # W (a_v H_v) has none


def engine_that_stays(steepness: float, n_steps: int, reference: bool) -> Engine:
    """On the path 0 -> 1 -> 2, where 0 keeps all but 1 / (1 + exp(1.2 steepness)) of its attention.

    The embeddings of 0 and 1 are projected to 1 and -1; the logit of an edge to v is leakyReLU(steepness * small(v)).
    """
    graph = KnowledgeGraph.from_ids(np.array([[0, 0, 1], [1, 0, 2]]), 3, 1, add_inverses=False)
    model = PaperSettings(n_dims=1, n_dims_att=1, n_steps_in_ignn=0, n_steps_in_agnn=n_steps)
    network = with_weights(
        PaperModel(3, 1, model), attention_project_weight=1.0, attention_alpha2_left_bias=1.0,
        attention_alpha2_center_weight=1.0,
    )  # fmt: skip
    with torch.no_grad():
        network.entities[:] = torch.tensor([[100.0], [-100.0], [100.0]])
        network.attention.alpha2.right.weight[0, 0] = (
            steepness  # the other three columns see relation and query
        )
    config = Config(model, Horizon(), run=RunConfig(threads=1))
    return Engine(network, graph, config, reference)


@pytest.mark.parametrize("reference", [True, False])
def test_the_loss_has_a_floor_beside_the_probability(reference: bool) -> None:
    for steepness in (5.0, 38.0, 42.0):
        engine = engine_that_stays(steepness, 1, reference)
        batch = engine.asking_batch(np.array([0]), np.array([0]))
        attention = 1 / (1 + math.exp(1.2 * steepness))  # 0.0025, 1.6e-20 and 1.3e-22
        assert engine.gradients(batch, Targets.single(np.array([1]))).loss == pytest.approx(
            -math.log(attention + 1e-20), rel=1e-9
        )


@pytest.mark.parametrize("reference", [True, False])
def test_answers_that_are_not_reached_cost_a_constant(reference: bool) -> None:
    engine = engine_that_stays(5.0, 1, reference)
    batch = engine.asking_batch(np.array([0, 0]), np.array([0, 0]))
    found = engine.gradients(batch, Targets.single(np.array([2, 0])))
    assert found.reached == 1
    near = -math.log(1 - 1 / (1 + math.exp(6)))
    assert found.loss == pytest.approx((UNREACHED + near) / 2, rel=1e-9)


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize("steepness, expands", [(38.0, True), (38.7, False)])  # 1.6e-20 and 6.8e-21
def test_attention_of_1e_minus_20_and_less_is_not_followed(
    reference: bool, steepness: float, expands: bool
) -> None:
    engine = engine_that_stays(steepness, 2, reference)
    answer = engine.answer(engine.asking_batch(np.array([0]), np.array([0])))
    assert answer.nodes.tolist() == ([0, 1, 2] if expands else [0, 1])
