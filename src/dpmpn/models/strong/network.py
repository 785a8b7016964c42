"""The parameters of the stronger model. None belongs to an entity: its size does not depend on the graph."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmpn.engine.model import Model
from dpmpn.models.strong.asked import Asked, relations_asked
from dpmpn.models.strong.profiles import n_features
from dpmpn.models.strong.settings import StrongSettings
from dpmpn.ops.gate import MessageColumns, ReceivedColumns

DIGITS = 6  # of scores that horizons choose by: equal nodes must tie, in whatever order their messages were added up


def _random(*shape: int, scale: float) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape) * scale)


def with_rows(table: Tensor, n_rows: int) -> Tensor:
    """A table with rows of zeros above, for relations that have none of their own in it.

    In the tables of a network of no relations stand those of the self-loop, of the constant and of the degree alone.
    """
    if len(table) == n_rows:
        return table
    return functional.pad(table, (0,) * (2 * table.dim() - 2) + (n_rows - len(table), 0))


class Step(nn.Module):
    """One step: messages from (sender, relation, query relation), the update of a state, and its score."""

    def __init__(self, n_relations: int, n_dims: int, turned: bool) -> None:
        super().__init__()
        unit = 1 / math.sqrt(n_dims)
        message, received = MessageColumns(n_dims), ReceivedColumns(n_dims)
        width = message.of_relation
        # What a relation adds to value (v) and gate (u) of a message, multiplies the value by (k), and adds to the flow
        # (f): of its own, and what the query turns on.
        self.relation = _random(n_relations + 1, width, scale=0.3)
        self.relation_in = _random(2 * n_dims, 2 * n_dims, scale=unit / math.sqrt(2))
        self.query_in = _random(n_dims, 2 * n_dims, scale=unit)
        self.relation_out = _random(2 * n_dims, width, scale=unit / math.sqrt(2))
        self.turned = nn.Parameter(torch.zeros(n_dims, (n_relations + 1) * width)) if turned else None
        # What the relation asked and its inverse add, whichever they are.
        self.asked = _random(2, width, scale=0.3)
        for vectors in (self.relation, self.relation_out, self.asked):
            vectors.data[:, message.factor] *= 0.3  # factors begin near one
        self.send = _random(n_dims, message.of_sender, scale=unit)
        self.change = _random(received.width, n_dims, scale=unit / math.sqrt(2))
        # Mean, number and flow of messages only repeat the sum where they are few: their use is to be learnt.
        self.change.data[received.mean.start :] = 0.0
        self.change_query = _random(n_dims, n_dims, scale=0.3 * unit)
        self.norm_weight = nn.Parameter(torch.ones(n_dims))
        self.norm_bias = nn.Parameter(torch.zeros(n_dims))
        self.score_state = _random(n_dims, n_dims, scale=unit)
        self.score_query = _random(n_dims, n_dims, scale=unit)
        self.score_weight = _random(n_dims, scale=unit)
        self.score_bias = nn.Parameter(torch.zeros(1))


class StrongNetwork(Model):
    """All trainable parameters, and what they make of a relation."""

    settings: StrongSettings
    step_type: type[Step] = Step

    def __init__(self, n_entities: int, n_relations: int, settings: StrongSettings) -> None:
        super().__init__()
        self.settings, self.n_relations = settings, n_relations
        dims, hidden, features = settings.n_dims, 2 * settings.n_dims, n_features(n_relations)
        self.entities = nn.Parameter(torch.empty(0, dims))  # no row for any entity
        self.queries = _random(n_relations, dims, scale=0.5)
        self.relations = _random(n_relations + 1, hidden, scale=0.5)  # the last is the self-loop
        # Maps of the query that each relation has for itself: most parameters, where relations are many.
        each_step = settings.relation_vectors == "each_step"
        turned = each_step or settings.relation_vectors == "turned"
        self.turned = nn.Parameter(torch.zeros(dims, (n_relations + 1) * hidden)) if turned else None
        steps = [self.step_type(n_relations, dims, each_step) for _ in range(settings.n_steps_in_agnn)]
        self.steps: Sequence[Step] = nn.ModuleList(steps)  # type: ignore[assignment]  # it knows modules alone
        self.profile_state = _random(features, dims, scale=0.05) if settings.profiles == "on" else None
        self.read_state = _random(dims, hidden, scale=1 / math.sqrt(dims))
        self.read_query = _random(dims, hidden, scale=1 / math.sqrt(dims))
        self.read_profile = _random(features, hidden, scale=0.1)
        self.read_bias = nn.Parameter(torch.zeros(hidden))
        self.read_weight = _random(hidden, scale=1 / math.sqrt(hidden))
        self.read_weight_query = _random(dims, hidden, scale=1 / math.sqrt(dims * hidden))
        self.prior = nn.Parameter(torch.zeros(features, dims))
        # Of the relation asked and its inverse, whichever they are: whether an entity has it, and how often.
        self.prior_asked = nn.Parameter(torch.zeros(4))
        self.visited = nn.Parameter(torch.full((n_relations,), 3.0))  # how much likelier a visited entity is
        self.is_head = nn.Parameter(torch.zeros(n_relations))

    def asked(self, relations: np.ndarray, inverse: np.ndarray) -> Asked:
        """What the tables say of some relations asked."""
        rows = torch.from_numpy(relations.astype(np.int64)).to(self.queries.device)
        itself = relations_asked(relations, inverse).to(rows.device)
        query = self.queries[rows]
        return Asked(
            query=query,
            itself=itself,
            relations=self.turned_relations(query),
            prior=self.prior_rows(query, itself, self.n_relations),
            begin=self.profile_state,
            read=self.read_profile,
            visited=self.visited[rows],
            is_head=self.is_head[rows],
        )

    def turned_relations(self, query: Tensor) -> Tensor:
        """What each relation is: to each query, one query after another, or once, if it is the same to all of them."""
        if self.turned is None:
            return self.relations
        return (self.relations + (query @ self.turned).view(-1, *self.relations.shape)).flatten(0, 1)

    def relation_vectors(self, step: Step, asked: Asked, of_asked: Tensor, relation: Tensor) -> Tensor:
        """What some relations add to a message, each for one of those asked: rows x MessageColumns.of_relation."""
        vectors = with_rows(step.relation, asked.n_relations + 1).index_select(0, relation)
        if self.settings.relation_vectors == "plain":
            return vectors
        own = asked.relation_rows(of_asked, relation)
        from_query = (asked.query @ step.query_in).index_select(0, of_asked)
        hidden = torch.relu(own @ step.relation_in + from_query)
        is_asked = (asked.itself[of_asked] == relation[:, None]).to(vectors.dtype)  # rows x 2
        vectors = vectors + hidden @ step.relation_out + is_asked @ step.asked
        if step.turned is None:
            return vectors
        pair = of_asked * (asked.n_relations + 1) + relation
        return vectors + (asked.query @ step.turned).view(-1, vectors.shape[1]).index_select(0, pair)

    def prior_rows(self, query: Tensor, itself: Tensor, n_relations: int) -> Tensor:
        """What each feature of a profile adds to the logit of an entity, for each query: queries x features."""
        rows = query @ with_rows(self.prior, n_features(n_relations)).t()
        row, which = (itself >= 0).nonzero(as_tuple=True)
        for part in range(2):  # whether it has it, and how often
            place = row * rows.shape[1] + part * n_relations + itself[row, which]
            rows = rows.flatten().index_add(0, place, self.prior_asked[2 * which + part]).view_as(rows)
        return rows
