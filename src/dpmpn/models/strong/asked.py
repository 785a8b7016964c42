"""What everything else is to the relations that a batch asks: computed once for each of them, whoever asks it."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dpmpn.models.strong.profiles import n_features
from dpmpn.ops.layers import SparseRows, sparse_product


@dataclass(frozen=True, eq=False)
class Asked:
    """Relations asked, with what the network makes of relations and profiles in their light.

    A table that is the same for all of them stands here once; one that is not stands here once for each, one below the
    other.
    """

    query: Tensor  # asked x n_dims: z_q
    itself: Tensor  # asked x 2: the relation and its inverse, -1 where it has none
    relations: Tensor  # relations + 1, or asked * (relations + 1), x 2 n_dims; the last is the self-loop
    prior: Tensor  # asked x features: what a feature of a profile adds to the logit of an entity
    begin: Tensor | None  # features, or asked * features, x n_dims: what it adds to the first state
    read: Tensor  # features, or asked * features, x 2 n_dims: and to the hidden layer of the read-out
    visited: Tensor  # asked: how much likelier a visited entity is
    is_head: Tensor  # asked: and the head itself

    def __len__(self) -> int:
        return len(self.query)

    @property
    def n_features(self) -> int:
        """Of a profile."""
        return self.prior.shape[1]

    @property
    def n_relations(self) -> int:
        """Of the graph, without the self-loop."""
        return (self.n_features - n_features(0)) // 2

    def prior_of_profiles(self, features: SparseRows) -> Tensor:
        """What an entity of each profile has before any step, as a logit: profiles x asked."""
        return sparse_product(features, self.prior.t())

    def prior_of_entities(self, profile: Tensor) -> Tensor:
        """The same by its definition, from entities x features: asked x entities."""
        return self.prior @ profile.t()

    def relation_rows(self, of_asked: Tensor, relation: Tensor) -> Tensor:
        """Some relations, each as it is to one of those asked: rows x 2 n_dims."""
        n = self.n_relations + 1
        # index_select and not [...]: its gradient is a sum of rows, without sorting them first.
        return self.relations.index_select(
            0, relation if len(self.relations) == n else of_asked * n + relation
        )

    def of_each(self, table: Tensor) -> Tensor:
        """A table of features for each relation asked: asked (one, where it is the same for all) x features x width."""
        return table.view(-1, self.n_features, table.shape[1])


def relations_asked(relations: np.ndarray, inverse: np.ndarray) -> Tensor:
    """The relation of each query and its inverse, -1 where it has none: queries x 2."""
    return torch.from_numpy(np.stack([relations, inverse[relations]], 1).astype(np.int64))
