"""What each relation is to a relation asked: layers over the graph of relations, whose edges are statistics."""

import torch
from torch import Tensor, nn

from dpmpn.models.any_graph.statistics import N_FEATURES, RelationStatistics
from dpmpn.ops.layers import SparseRows, sparse_product


class RelationNetwork(nn.Module):
    """x[q, r] for each relation asked q and each relation r.

    First what the statistics say of r in the light of q. Then each layer adds what those say that occur with r, or with
    its inverse: x <- x + ReLU(norm(W [x, A1 x, A2 x, A3 x, and these of the inverse])).
    """

    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__()
        self.first = nn.Linear(N_FEATURES, width)
        self.layers = nn.ModuleList(nn.Linear(8 * width, width) for _ in range(n_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(n_layers))

    def forward(self, statistics: RelationStatistics, features: Tensor, plain: bool = False) -> Tensor:
        """From asked x relations x N_FEATURES to asked x relations x width; `plain` multiplies by definition."""
        x = torch.relu(self.first(features)).transpose(0, 1)  # relations x asked x width
        n, asked, width = x.shape
        product = _dense_product if plain else sparse_product
        for layer, norm in zip(self.layers, self.norms, strict=True):
            # One product for all that are asked.
            means = [
                product(table, x.reshape(n, -1)).view(n, asked, width) for table in statistics.neighbours
            ]
            own = torch.cat([x, *means], 2)
            of_inverse = torch.cat([own, torch.zeros_like(own[:1])])[statistics.of_inverse]
            x = x + torch.relu(norm(layer(torch.cat([own, of_inverse], 2))))
        return x.transpose(0, 1)


def _dense_product(matrix: SparseRows, x: Tensor) -> Tensor:
    return matrix.dense(x) @ x
