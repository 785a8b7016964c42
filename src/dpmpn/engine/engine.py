"""Runs batches of queries through a model: split between cores and within memory, with the same result."""

import math
import os
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.answer import Answer, join_answers
from dpmpn.engine.batch import NO_EDGES, QueryBatch, SampledEdges, asking_edges, query_keys
from dpmpn.engine.learning import Gradients, Targets, sum_gradients
from dpmpn.engine.machine import Usage, keep_freed_memory, process_usage
from dpmpn.engine.memory import memory_budget, queries_within
from dpmpn.engine.model import Model
from dpmpn.engine.settings import EngineConfig, Horizon
from dpmpn.engine.trace import ReasoningTrace
from dpmpn.engine.workers import Workers
from dpmpn.errors import Diverged

_Result = TypeVar("_Result")
_WORTH_SPLITTING = 8  # queries: a smaller batch is answered sooner by one core than by two
# Of a worker's part: this process also prepares batches, adds up gradients and updates parameters.
_OWN_SHARE = 0.92
_MOST = 1.01  # what the probabilities of a query's nodes may come to, rounded as they are


class Engine:
    """A model on a graph, ready to answer batches of queries and to be trained on them."""

    def __init__(
        self, model: Model, graph: KnowledgeGraph, config: EngineConfig, reference: bool = False
    ) -> None:
        self.model, self.graph, self.config = model, graph, config
        reference = reference or model.entities.device.type != "cpu"
        if not reference:
            keep_freed_memory()
        can_share = hasattr(os, "memfd_create")  # Linux; elsewhere this process works alone
        self.threads = config.run.threads or os.cpu_count() or 1 if can_share and not reference else 1
        self._on_graph = model.on(graph, reference)
        self._workers: Workers | None = None
        self._fitting: dict[tuple[Horizon, bool], int] = {}  # queries of a part
        self._asking_edges = self._ignn_edges(NO_EDGES)

    def beside(self, graph: KnowledgeGraph | None = None) -> "Engine":
        """One that asks the same in this process alone, whatever other threads ask; or on a part of the graph.

        On a part, what relations mean stays what the whole graph says.
        """
        other = copy(self)
        other.graph, other.threads = graph or self.graph, 1
        other._on_graph = self._on_graph.on_part(other.graph)
        other._workers, other._fitting = None, {}
        other._asking_edges = other._ignn_edges(NO_EDGES)
        return other

    def without_each(self, head: int, relation: int, removed: Sequence[np.ndarray]) -> QueryBatch:
        """One question asked once for each set of edges, whose ids ascend, without these.

        Of the IGNN's edges the others stay drawn: an answer differs by the edges, and not by another draw.
        """
        batch = self.asking_batch(np.repeat(head, len(removed)), np.repeat(relation, len(removed)))
        offsets = np.concatenate([[0], np.cumsum([len(edges) for edges in removed])]).astype(np.int64)
        return replace(batch, removed=np.concatenate([NO_EDGES, *removed]), removed_offsets=offsets)

    def asking_batch(
        self, heads: np.ndarray, relations: np.ndarray, removed: np.ndarray = NO_EDGES
    ) -> QueryBatch:
        """Queries on the graph without the removed edges, sampled the same way whenever they are asked."""
        heads = np.ascontiguousarray(heads, np.int32)
        relations = np.ascontiguousarray(relations, np.int64)
        keys = query_keys(self.config.run.seed, heads, relations)
        edges = self._asking_edges if not len(removed) else self._ignn_edges(removed)
        return QueryBatch(heads, relations, keys, removed, edges)

    def answer(self, batch: QueryBatch, horizon: Horizon | None = None) -> Answer:
        """The final attention of every query, nodes ascending within a query."""
        if not len(batch):
            return Answer(np.zeros(1, np.int64), np.empty(0, np.int32), self.model.entities.new_empty(0))
        if (
            self._on_graph.reference and batch.removed_offsets is not None
        ):  # by definition each is asked alone
            alone = [self.answer(batch.alone(self.graph, query), horizon) for query in range(len(batch))]
            return join_answers(alone)
        return self._checked(join_answers(self._run(batch, horizon or self.config.asking_horizon(), None)))

    def trace(self, batch: QueryBatch, horizon: Horizon | None = None) -> tuple[Answer, ReasoningTrace]:
        """The answer together with what each step attended from, sampled and attended to."""
        on_graph = self._on_graph
        if self.model.entities.device.type != "cpu":  # traces are the fast path's, which is the CPU's
            on_graph = deepcopy(self.model).cpu().on(self.graph)
        horizon = horizon or self.config.asking_horizon()
        answer, trace = self._on_one_core(on_graph.trace, batch, horizon)
        return self._checked(join_answers([answer])), trace

    def gradients(self, batch: QueryBatch, targets: Targets) -> Gradients:
        """The mean loss over all targets of the batch, as its model defines it, and its gradients: finite or not."""
        gradients: Gradients
        (gradients,) = self._run(batch, self.config.horizon, targets)
        return gradients

    def usage(self) -> Usage:
        """CPU seconds and peak memory of this process and its workers so far."""
        return process_usage([os.getpid(), *(self._workers.pids() if self._workers else [])])

    def close(self) -> None:
        """End the worker processes; they start again when needed."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def _ignn_edges(self, removed: np.ndarray) -> tuple[SampledEdges, ...]:
        return asking_edges(self.graph, removed, self.config.run.seed, *self.model.settings.ignn_draws)

    def _run(self, batch: QueryBatch, horizon: Horizon, targets: Targets | None) -> list[Any]:
        parts = self._parts(batch, horizon, targets is not None)
        if len(parts) > 1 and self.threads > 1 and self._workers is None:
            self._workers = Workers(self.model, self.graph, self.threads - 1)
        try:
            return self._on_one_core(self._run_parts, batch, parts, horizon, targets)
        except BaseException:
            self.close()  # a reply left unread would be taken for the next batch's
            raise

    def _on_one_core(self, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """Run with one thread inside operations: other cores have parts of their own, and small products gain nothing.

        The reference is left as PyTorch would run it.
        """
        intra_op = torch.get_num_threads()
        if not self._on_graph.reference:
            torch.set_num_threads(1)
        try:
            return work(*arguments)
        except ZeroDivisionError as error:  # a kernel's softmax of what are no numbers
            raise self._diverged() from error
        finally:
            torch.set_num_threads(intra_op)

    def _checked(self, answer: Answer) -> Answer:
        """An answer in numbers; of weights that are too large, sums overflow or are rounded away on the way to it."""
        unlisted = None if answer.unlisted is None else answer.unlisted.probability
        # A sum is finite where all of its terms are, and takes half the time of looking at each.
        totals = [float(x.detach().sum()) for x in (answer.attention, unlisted) if x is not None]
        if not all(map(math.isfinite, totals)) or totals[0] > _MOST * (len(answer.offsets) - 1):
            raise self._diverged()
        return answer

    def _diverged(self) -> Diverged:
        largest = {
            name: float(p.detach().abs().max()) for name, p in self.model.named_parameters() if p.numel()
        }
        name = max(largest, key=lambda name: (math.isnan(largest[name]), largest[name]))
        return Diverged(
            f"the model cannot compute an answer: its weights are too large (up to {largest[name]:.3g}, in {name}), "
            "its training diverged; train again with a lower --learning-rate"
        )

    def _run_parts(
        self, batch: QueryBatch, parts: list[slice], horizon: Horizon, targets: Targets | None
    ) -> list[Any]:
        """Results of the parts in order, or the sum of their gradients.

        Each round has one part for this process and one for each worker.
        """
        results: list[Any] = []
        workers = self._workers
        n_workers = 0 if workers is None else len(workers)
        n_targets = 0 if targets is None else len(targets.entities)
        while parts:
            mine, theirs, parts = parts[0], parts[1 : 1 + n_workers], parts[1 + n_workers :]
            if workers is not None:
                for worker, rows in enumerate(theirs):
                    part_targets = None if targets is None else targets.part(rows)
                    workers.start(worker, batch.part(rows), horizon, part_targets, n_targets)
            if targets is None:
                results.append(self._on_graph.answer(batch.part(mine), horizon))
            else:
                own = batch.part(mine), targets.part(mine)
                results.append(self._on_graph.gradients(*own, horizon, n_targets))
            if workers is not None:
                reply = workers.answer if targets is None else workers.gradients
                results += [reply(worker) for worker in range(len(theirs))]
            if targets is not None:
                results = [sum_gradients(results)]  # the next round overwrites those of the workers
        return results

    def _parts(self, batch: QueryBatch, horizon: Horizon, training: bool) -> list[slice]:
        """Parts of a batch: one for each core, or more where the memory budget asks for it."""
        if (horizon, training) not in self._fitting:  # looks at every node's degree, so only once
            budget = memory_budget(self.config.run.memory_budget_mb) // self.threads
            self._fitting[horizon, training] = queries_within(
                budget, self.graph, self.model.settings, horizon, training
            )
        fitting = self._fitting[horizon, training]
        threads = (
            self.threads if batch.removed_offsets is None else 1
        )  # workers take what is removed from all
        n_parts = threads if len(batch) >= _WORTH_SPLITTING else 1
        if len(batch) > fitting * n_parts:
            n_parts = -(-len(batch) // fitting)
            n_parts = -(-n_parts // threads) * threads  # so that no core waits in the last round
        shares = np.ones(n_parts)
        if n_parts == threads and 1.1 * len(batch) < fitting * n_parts:
            shares[0] = _OWN_SHARE
        edges = np.concatenate([[0], shares.cumsum() / shares.sum() * len(batch)]).round().astype(int)
        return [slice(a, b) for a, b in pairwise(edges) if b > a]
