"""The parameters of the model for any graph: maps from what a relation is to what the stronger model has in tables.

Its tables are those of a network of no relations: what all graphs share. Tuned to a graph, it has tables of the graph's
relations as well, which begin at zero, and everything is the sum of both.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.models.any_graph.relation_network import RelationNetwork
from dpmpn.models.any_graph.settings import PRIOR_UNITS, AnyGraphSettings
from dpmpn.models.any_graph.statistics import N_FEATURES
from dpmpn.models.strong.asked import Asked, relations_asked
from dpmpn.models.strong.network import Step, StrongNetwork, with_rows
from dpmpn.ops.gate import MessageColumns
from dpmpn.ops.layers import SparseRows, sparse_product

RULE_LEVELS = np.array([0.0, 0.005, 0.01, 0.02, 0.04, 0.07, *np.linspace(0.1, 0.9, 9)])
"""Confidences that part the levels of rules: what each level means to a message is learnt."""
_VISITED = 3.0  # how much likelier a visited entity is at first: as in the stronger model


class DirectStep(Step):
    """A step whose messages are told of a relation straight away, too: in place of the table that each step has.

    Without it, that a relation repeats the one asked is learnt late, all at once, or not at all.
    """

    def __init__(self, n_relations: int, n_dims: int, turned: bool) -> None:
        super().__init__(n_relations, n_dims, turned)
        told, message = 2 * n_dims + N_FEATURES, MessageColumns(n_dims)
        self.direct = nn.Parameter(torch.randn(told, message.of_relation) * 0.1 / math.sqrt(told))
        with torch.no_grad():
            self.direct[:, message.factor] *= 0.3  # as the factors of other maps


@dataclass(frozen=True, eq=False)
class AskedOfGraph(Asked):
    """What is asked, with what the graph says of each relation in its light.

    The prior of an entity is that of the stronger model, a sum over its relations, and what a hidden layer makes of
    them together: of a kind of entity that should have a relation, and has not.
    """

    hidden: Tensor  # asked x features x PRIOR_UNITS
    hidden_weight: Tensor  # asked x PRIOR_UNITS
    told: Tensor  # asked * (relations + 1) x (2 n_dims + N_FEATURES): x and the statistics; nothing of the self-loop

    def prior_of_profiles(self, features: SparseRows) -> Tensor:
        """What an entity of each profile has before any step, as a logit: profiles x asked."""
        # One after another: of all at once, the units would take more memory than anything else.
        more = [
            torch.relu(sparse_product(features, rows)) @ weight
            for rows, weight in zip(self.hidden, self.hidden_weight, strict=True)
        ]
        return super().prior_of_profiles(features) + torch.stack(more, 1)

    def prior_of_entities(self, profile: Tensor) -> Tensor:
        """The same by its definition, from entities x features: asked x entities."""
        units = torch.relu(profile @ self.hidden)  # asked x entities x units
        return super().prior_of_entities(profile) + (units * self.hidden_weight[:, None]).sum(2)


class AnyGraphNetwork(StrongNetwork):
    """The stronger model's maps and tables, the relation network, and maps from there."""

    settings: AnyGraphSettings
    step_type = DirectStep

    def __init__(self, n_entities: int, n_relations: int, settings: AnyGraphSettings) -> None:
        super().__init__(n_entities, n_relations, settings)
        dims, hidden = settings.n_dims, 2 * settings.n_dims
        with torch.no_grad():
            self.visited.zero_()
        self.relation_network = RelationNetwork(hidden, settings.n_relation_layers)
        self.to_query = nn.Linear(hidden, dims)
        # Of a relation that an entity has, and of how often: what it adds to prior, first state and read-out.
        self.to_prior = nn.Sequential(nn.Linear(hidden, dims), nn.ReLU(), _small(dims, 2, 0.1))
        self.to_profile = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())
        self.to_hidden = _small(hidden, 2 * PRIOR_UNITS, 0.5)
        self.to_hidden_weight = _small(dims, PRIOR_UNITS, 0.3)
        self.to_begin = _small(hidden, 2 * dims, 0.15)
        self.to_read = _small(hidden, 2 * hidden, 0.15)
        # Of what every entity has, a constant and the degree, by the relation asked.
        self.to_common = nn.ModuleDict(
            {
                "prior": _small(dims, 2, 0.1),
                "hidden": _small(dims, 2 * PRIOR_UNITS, 0.5),
                "begin": _small(dims, 2 * dims, 0.15),
                "read": _small(dims, 2 * hidden, 0.15),
            }
        )
        # What it adds to a second step's message that rules of the graph lead on to the answer: by their level.
        self.rule_levels = nn.Parameter(torch.zeros(len(RULE_LEVELS) + 1, MessageColumns(dims).of_relation))
        self.to_more = _small(dims, 2, 0.1)  # of visited entities, and of the head
        with torch.no_grad():
            self.to_more.bias.copy_(torch.tensor([_VISITED, 0.0]))

    def tuned_to(self, graph: KnowledgeGraph, settings: AnyGraphSettings) -> Self:
        """The same model with tables of a graph's relations, which are nothing yet."""
        tuned = type(self)(graph.n_entities, graph.n_relations, settings).to(self.to_query.weight)
        own = self.state_dict()
        with torch.no_grad():
            for name, table in tuned.state_dict().items():
                table.copy_(with_rows(own[name], len(table)) if name in own else torch.zeros_like(table))
        return tuned

    def asked_of_graph(self, relations: np.ndarray, inverse: np.ndarray, told: Tensor) -> AskedOfGraph:
        """What is asked, given what is known of each relation: asked x relations x (2 n_dims + N_FEATURES)."""
        n, of = told.shape[1], torch.from_numpy(relations.astype(np.int64)).to(told.device)
        itself = relations_asked(relations, inverse).to(told.device)
        told_with_loop = functional.pad(told, (0, 0, 0, 1))
        x, x_with_loop = (part[..., : 2 * self.settings.n_dims] for part in (told, told_with_loop))
        query = self.to_query(x[torch.arange(len(of)), of]) + with_rows(self.queries, n)[of]
        tables = with_rows(self.relations, n + 1)
        if self.turned is not None:
            tables = tables + (query @ self.turned).view(-1, *tables.shape)
        profile, more = self.to_profile(x), self.to_more(query)
        begin = None
        if self.profile_state is not None:
            begin = self._of_features("begin", self.to_begin(profile), query, self.profile_state)
        read = self._of_features("read", self.to_read(profile), query, self.read_profile)
        hidden = self._of_features(
            "hidden", self.to_hidden(profile), query, self.queries.new_zeros(0, PRIOR_UNITS)
        )
        has, often = self.to_prior(x).unbind(2)  # asked x relations
        prior = torch.cat([has, often, self.to_common["prior"](query)], 1)
        return AskedOfGraph(
            query=query,
            itself=itself,
            relations=(tables + x_with_loop).flatten(0, 1),
            prior=prior + self.prior_rows(query, itself, n),
            begin=begin,
            read=read,
            visited=more[:, 0] + with_rows(self.visited, n)[of],
            is_head=more[:, 1] + with_rows(self.is_head, n)[of],
            told=told_with_loop.flatten(0, 1),
            hidden=hidden.view(len(query), -1, PRIOR_UNITS),
            hidden_weight=self.to_hidden_weight(query),
        )

    def relation_vectors(self, step: Step, asked: Asked, of_asked: Tensor, relation: Tensor) -> Tensor:
        """What relations add to a message: by maps and tables, and what they are told straight away."""
        assert isinstance(step, DirectStep) and isinstance(asked, AskedOfGraph)
        told = asked.told.index_select(0, of_asked * (asked.n_relations + 1) + relation)
        return super().relation_vectors(step, asked, of_asked, relation) + told @ step.direct

    def _of_features(self, what: str, of_relations: Tensor, query: Tensor, table: Tensor) -> Tensor:
        """What maps and a table say of each feature of a profile: asked * features x width.

        Of each relation, that an entity has it and how often; and of the two features that all entities have.
        """
        has, often = of_relations.chunk(2, 2)  # asked x relations x width
        common = self.to_common[what](query).view(len(query), 2, -1)
        rows = torch.cat([has, often, common], 1)
        return (rows + with_rows(table, rows.shape[1])).flatten(0, 1)


def _small(n_in: int, n_out: int, scale: float) -> nn.Linear:
    """A map whose results are small at first."""
    linear = nn.Linear(n_in, n_out)
    with torch.no_grad():
        linear.weight.mul_(scale)
        linear.bias.zero_()
    return linear
