"""The steps of a batch of queries: the one loop that every model runs through, on the fast path and in its definition.

A step attends from some nodes, draws their edges, and attends to some of the nodes that the edges lead to (Section 2).
What is computed on the way is the model's.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch
from dpmpn.engine.frontier import Frontier, Scan, Visited, expand_frontier
from dpmpn.engine.settings import STRATEGIES, Horizon

_From = TypeVar("_From")
_Scan = TypeVar("_Scan")


class Steps(ABC, Generic[_From, _Scan]):
    """The steps of one batch."""

    n_steps: int

    def __init__(self, graph: KnowledgeGraph, batch: QueryBatch, horizon: Horizon) -> None:
        self.graph, self.batch, self.horizon = graph, batch, horizon
        self.pruning = STRATEGIES[horizon.strategy]

    def run(self) -> None:
        """All steps, t = 0 ... T - 1."""
        for t in range(self.n_steps):
            frontier = self.attending_from(t)
            self.step(t, frontier, self.scan(t, frontier))

    @abstractmethod
    def attending_from(self, t: int) -> _From:
        """The attending-from horizon: the nodes whose edges are drawn, at most N1 a query."""

    @abstractmethod
    def scan(self, t: int, frontier: _From) -> _Scan:
        """The sampling horizon: edges of these nodes, at most N2 each, and the nodes they lead to."""

    @abstractmethod
    def step(self, t: int, frontier: _From, scan: _Scan) -> None:
        """Attention and messages along the edges, to at most N3 nodes; and their new states."""


class FastSteps(Steps[Frontier, Scan]):
    """Steps on ragged arrays, by compiled kernels."""

    visited: Visited

    def scan(self, t: int, frontier: Frontier) -> Scan:
        """Edges are drawn by keys, whatever else is in the batch."""
        return expand_frontier(self.graph, self.batch, self.horizon, frontier, self.visited, t)
