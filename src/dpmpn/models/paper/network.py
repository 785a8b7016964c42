"""The parameters of the paper's model, and the functions of Section 3 that they are the weights of."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmpn.engine.model import Model
from dpmpn.models.paper.settings import PaperSettings
from dpmpn.ops.messages import SLOPE


def dense(n_in: int, n_out: int, bias: bool = True) -> nn.Linear:
    """A dense layer: Glorot-uniform weights, zero bias."""
    layer = nn.Linear(n_in, n_out, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class TwoLayers(nn.Module):
    """tanh(W2 leakyReLU(W1 [inputs])): the form of every message and update function."""

    def __init__(self, n_inputs: int, n_dims: int) -> None:
        super().__init__()
        self.first = dense(n_inputs * n_dims, n_dims)
        self.second = dense(n_dims, n_dims)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Apply both layers to the concatenated inputs."""
        x = functional.leaky_relu(self.first(torch.cat(inputs, -1)), SLOPE)
        return torch.tanh(self.second(x))


class InattentiveGNN(nn.Module):
    """IGNN: M = psi(H_v', e_r, H_v);  H_v <- H_v + delta(H_v, M_v, e_v)."""

    def __init__(self, n_dims: int) -> None:
        super().__init__()
        self.message = TwoLayers(3, n_dims)  # sender state, relation, receiver state
        self.update = TwoLayers(3, n_dims)  # state, aggregated message, entity embedding


class AttentiveGNN(nn.Module):
    """AGNN: M = psi(H_v', e_r, H_v, q_head, q_rel);  H_v <- H_v + delta(H_v, M_v, W (a_v IGNN_v), q_head, q_rel)."""

    def __init__(self, n_dims: int) -> None:
        super().__init__()
        self.message = TwoLayers(5, n_dims)  # sender state, relation, receiver state, q_head, q_rel
        self.update = TwoLayers(5, n_dims)  # state, aggregated message, attended IGNN state, q_head, q_rel
        self.attend = dense(n_dims, n_dims, bias=False)  # W of the node state attending function


class Bilinear(nn.Module):
    """alpha(left, right) = MLP(left)^T (W MLP(right) + b) with one leakyReLU layer on each side."""

    def __init__(self, n_dims_att: int) -> None:
        super().__init__()
        self.left = dense(4 * n_dims_att, n_dims_att)
        self.right = dense(4 * n_dims_att, n_dims_att)
        self.center = dense(n_dims_att, n_dims_att)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """One logit per row."""
        left = functional.leaky_relu(self.left(left), SLOPE)
        right = functional.leaky_relu(self.right(right), SLOPE)
        logits: Tensor = (left * self.center(right)).sum(-1)
        return logits


class AttentionFlow(nn.Module):
    """Transition logits alpha1(H_v', c_r, H_v) + alpha2(H_v', c_r, IGNN_v) on vectors of the small dimension."""

    def __init__(self, n_dims: int, n_dims_att: int) -> None:
        super().__init__()
        self.project = dense(n_dims, n_dims_att)
        self.alpha1 = Bilinear(n_dims_att)
        self.alpha2 = Bilinear(n_dims_att)

    def small(self, x: Tensor) -> Tensor:
        """The shared projection to the small dimension."""
        return torch.tanh(self.project(x))


class PaperNetwork(Model):
    """All trainable parameters of the paper's model."""

    settings: PaperSettings

    def __init__(self, n_entities: int, n_relations: int, settings: PaperSettings) -> None:
        super().__init__()
        self.settings = settings
        n_dims = settings.n_dims
        self.entities = nn.Parameter(torch.empty(n_entities, n_dims).uniform_(-0.05, 0.05))  # e_v
        # One more relation than the graph has: the self-loop.
        self.relations = nn.Parameter(torch.empty(n_relations + 1, n_dims).uniform_(-0.05, 0.05))  # e_r
        self.ignn = InattentiveGNN(n_dims)
        self.agnn = AttentiveGNN(n_dims)
        self.attention = AttentionFlow(n_dims, settings.n_dims_att)
