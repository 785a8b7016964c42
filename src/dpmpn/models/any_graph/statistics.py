"""How the relations of a graph occur together: counted once, and counted on where facts come or go.

All that a model for any graph is told of a relation. Inverse relations count as relations of their own, so that "heads
of one are tails of the other" is a pair, too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.memory import memory_budget
from dpmpn.errors import ConfigError
from dpmpn.kernels import Bools, Ints, kernel
from dpmpn.models.any_graph.walks import Walks
from dpmpn.ops.layers import SparseRows
from dpmpn.wording import memory

N_FEATURES = 2 + 2 * (12 + 6) + 2 * 4
"""What `features` tells of a relation in the light of another."""
NEIGHBOURS = 32
"""Relations that another learns of in a layer."""
_BYTES_OF_PAIR = 40  # counts, shares, and what they are made of: measured on 4,000 and 20,000 relations
_LOG_FACTS, _LOG_DEGREE = 8.0, 2.0  # bring logarithms to the size of the other features


@dataclass(frozen=True, eq=False)
class RelationStatistics:
    """Counts of relations and of pairs of them."""

    owners: np.ndarray  # int64, relations x relations: entities with edges of both
    joined: np.ndarray  # int64, relations x relations: edges of the first whose ends the second joins, too
    edges: np.ndarray  # int64, relations
    n_entities: int  # with any edge
    inverse: np.ndarray  # relations
    walks: Walks

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> "RelationStatistics":
        """Count them: half a second for a million edges; walks are counted when they are asked for."""
        n = graph.n_relations
        _check_memory(n)
        owners, joined = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
        everyone = np.ones(graph.n_entities, bool)
        _count(graph.offsets, graph.relations, graph.tails, everyone, 1, owners, joined)
        return cls._from(graph, owners, joined, Walks(graph))

    def after(self, before: KnowledgeGraph, graph: KnowledgeGraph) -> "RelationStatistics":
        """The counts on a graph that differs from the one before in some facts: what is near them is counted anew."""
        owners, joined = self.owners.copy(), self.joined.copy()
        changed = _changed(
            before.offsets, before.relations, before.tails, graph.offsets, graph.relations, graph.tails
        )
        old = (before.offsets, before.relations, before.tails, changed[: before.n_entities])
        _count(*old, -1, owners, joined)
        _count(graph.offsets, graph.relations, graph.tails, changed, 1, owners, joined)
        return self._from(graph, owners, joined, self.walks.after(graph, changed))

    @classmethod
    def _from(
        cls, graph: KnowledgeGraph, owners: np.ndarray, joined: np.ndarray, walks: Walks
    ) -> "RelationStatistics":
        edges = np.bincount(graph.relations, minlength=graph.n_relations)
        n_entities = int((np.diff(graph.offsets) > 0).sum())
        return cls(owners, joined, edges, n_entities, graph.inverse, walks)

    @cached_property
    def shared(self) -> Tensor:
        """P[r, s]: of the entities with edges of r, the share that has edges of s; a last row and column of zeros."""
        return _with_none(self.owners / np.maximum(np.diag(self.owners), 1)[:, None])

    @cached_property
    def repeated(self) -> Tensor:
        """O[r, s]: of the edges of r, the share whose entities s joins, too; a last row and column of zeros."""
        return _with_none(self.joined / np.maximum(self.edges, 1)[:, None])

    @cached_property
    def neighbours(self) -> tuple[SparseRows, ...]:
        """Weights of means over other relations: P, its transpose and O, of each row the largest, divided by their sum.

        With all of them, a relation asked on 2,000 relations would cost a hundred times as much as its question.
        """
        tables = (x[:-1, :-1].numpy() for x in (self.shared, self.shared.t(), self.repeated))
        return tuple(_largest(table) for table in tables)

    @cached_property
    def of_inverse(self) -> Tensor:
        """The inverse of each relation; where it has none, the number of relations: the row of zeros."""
        return torch.from_numpy(np.where(self.inverse < 0, len(self.inverse), self.inverse).astype(np.int64))

    @cached_property
    def singles(self) -> Tensor:
        """Of each relation: how many edges, tails a head, heads a tail; and the share of entities that have it."""
        heads = np.diag(self.owners)
        tails = np.append(heads, 0)[self.of_inverse.numpy()]
        numbers = (
            np.log1p(self.edges) / _LOG_FACTS,
            np.log(np.maximum(self.edges / np.maximum(heads, 1), 1)) / _LOG_DEGREE,
            np.log(np.maximum(self.edges / np.maximum(tails, 1), 1)) / _LOG_DEGREE,
            heads / max(self.n_entities, 1),
        )
        return torch.from_numpy(np.stack(numbers, 1)).float()

    def features(self, asked: np.ndarray) -> Tensor:
        """What the graph says of each relation in the light of each one asked: asked x relations x N_FEATURES.

        Whether it is that one or its inverse; P of it and of its inverse with that one and its inverse, either way; O
        of it with both, either way; walks to the tails of that one, and of its inverse backwards; square roots of
        these, which tell small shares apart; the numbers of each.
        """
        q, inverse, n = torch.from_numpy(asked.astype(np.int64)), self.of_inverse, len(self.inverse)
        every = torch.arange(n)
        shares = []
        for one in (q, inverse[q]):
            for table in (self.shared, self.shared.t()):
                shares += [table[one][:, :n], table[one][:, inverse]]
            shares += [self.repeated[one][:, :n], self.repeated.t()[one][:, :n]]
        ahead, back = self._walked(q), self._walked(inverse[q])
        for share in range(3):
            shares += [ahead[share][:, :n], back[share][:, inverse]]
        is_one = [(every == one[:, None]).float() for one in (q, inverse[q])]
        columns = [*is_one, *shares, *(share.sqrt() for share in shares)]
        singles = self.singles.expand(len(q), -1, -1), self.singles[q][:, None].expand(-1, n, -1)
        return torch.cat([torch.stack(columns, 2), *singles], 2)

    def _walked(self, asked: Tensor) -> Tensor:
        """What walks from heads of some relations say of each: 3 x asked x relations + 1; zeros where there is none."""
        n, rows = len(self.inverse), np.zeros((3, len(asked), len(self.inverse) + 1), np.float32)
        for i, relation in enumerate(asked.tolist()):
            if relation < n:
                rows[:, i, :n] = self.walks.of(relation)[:3]
        return torch.from_numpy(rows)


def _largest(table: np.ndarray) -> SparseRows:
    """The largest values of each row, with all that equal the last of them, divided by their sum."""
    n = len(table)
    least = np.partition(table, n - NEIGHBOURS, 1)[:, n - NEIGHBOURS] if n > NEIGHBOURS else np.zeros(n)
    rows, columns = np.nonzero((table >= least[:, None]) & (table > 0))
    values = table[rows, columns].astype(np.float64)
    sums = np.bincount(rows, values, n)
    return SparseRows(np.searchsorted(rows, np.arange(n + 1)), columns, values / sums[rows], n)


def _check_memory(n_relations: int) -> None:
    """Refuse more pairs of relations than this machine holds: where tails are read as relations, there are many."""
    needed, machine = _BYTES_OF_PAIR * n_relations**2, 2 * memory_budget(0)
    if needed > machine:
        raise ConfigError(
            f"the pairs of {n_relations:,} relations, inverses among them, need {memory(needed)}, and this machine has "
            f"{memory(machine)}; see that the columns are head, relation and tail, or leave out rare relations"
        )


def _with_none(table: np.ndarray) -> Tensor:
    return torch.from_numpy(np.pad(table, (0, 1))).float()


@kernel
def _count(
    offsets: Ints, relations: Ints, tails: Ints, which: Bools, sign: int, owners: Ints, joined: Ints
) -> None:
    """Add the pairs of some entities' edges, or take them away.

    Edges of an entity come by relation. Those with one tail are found as a chain back from the last: sorting by tail
    took as long, and three of four seconds to compile.
    """
    last, earlier = np.full(len(offsets) - 1, -1), np.empty(len(tails), np.int64)
    own = np.empty(len(owners), np.int64)
    for entity in range(len(offsets) - 1):
        first, stop = offsets[entity], offsets[entity + 1]
        if not which[entity]:
            continue
        n_own = 0
        for edge in range(first, stop):
            r = relations[edge]
            if edge == first or relations[edge - 1] != r:
                own[n_own] = r
                n_own += 1
            other = last[tails[edge]]
            earlier[edge], last[tails[edge]] = other, edge
            while other >= first:  # those below are of other entities
                s = relations[other]
                joined[r, s] += sign
                joined[s, r] += sign
                other = earlier[other]
        for i in range(n_own):
            for j in range(n_own):
                owners[own[i], own[j]] += sign


@kernel
def _changed(
    old_offsets: Ints, old_relations: Ints, old_tails: Ints, offsets: Ints, relations: Ints, tails: Ints
) -> Bools:
    """Whether each entity has other edges than before."""
    n_old = len(old_offsets) - 1
    changed = np.zeros(max(n_old, len(offsets) - 1), np.bool_)
    for entity in range(len(changed)):
        if entity >= n_old or entity >= len(offsets) - 1:
            changed[entity] = True
            continue
        a, b = old_offsets[entity], offsets[entity]
        length = offsets[entity + 1] - b
        if old_offsets[entity + 1] - a != length:
            changed[entity] = True
            continue
        for i in range(length):
            if old_relations[a + i] != relations[b + i] or old_tails[a + i] != tails[b + i]:
                changed[entity] = True
                break
    return changed
