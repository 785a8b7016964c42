"""Measures speed and memory of training, evaluating and asking, in one run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.engine.engine import Engine
from dpmpn.models import build_model
from dpmpn.provenance import processor
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.optimiser import Adam

_WARM_UP_BATCHES = 5
_WARM_UP_QUERIES, _SINGLE_QUERIES = 10, 200
_MIN_BATCHES = 2


@dataclass(frozen=True)
class Stretch:
    """A measured stretch of work: wall time, and CPU time beside it, since a busy neighbour halves a rate."""

    queries: int
    seconds: float
    cpu_seconds: float  # of the workers, too

    @property
    def queries_per_s(self) -> float:
        """The rate in wall time."""
        return self.queries / self.seconds

    @property
    def busy_cores(self) -> float:
        """CPU seconds per wall second."""
        return self.cpu_seconds / self.seconds


def bench(dataset: Dataset, config: Config, seconds: float = 20.0, reference: bool = False) -> dict[str, Any]:
    """Queries per second of training and evaluating at the training horizon, latency of one query, peak memory.

    Training really trains, from the initial network. Wall time counts; CPU seconds per wall second stand beside it,
    since a busy neighbour halves a rate without a trace.
    """
    with _untrained(dataset, config) as engine:
        report: dict[str, Any] = {
            "dataset": dataset.name,
            "model": config.model.name,
            "entities": dataset.graph.n_entities,
            "edges": dataset.graph.n_edges,
            "horizon": asdict(config.horizon),
            "threads": engine.threads,
            "machine": processor(),
            **_rates("train", _training(engine, dataset, config), seconds, engine),
            **_rates("evaluate", _asking(engine, dataset, config), seconds, engine),
            **_single_query(engine, dataset),
            "peak_rss_bytes": engine.usage().peak_rss_bytes,
        }
    report["reference_train_queries_per_s"] = report["speed_up_over_reference"] = None
    if reference:
        with _untrained(dataset, config, reference=True) as plain:
            rate = _stretch(_training(plain, dataset, config), seconds, plain, warm_up=1).queries_per_s
        report["reference_train_queries_per_s"] = rate
        report["speed_up_over_reference"] = report["train_queries_per_s"] / rate
    return report


def training_stretch(dataset: Dataset, config: Config, seconds: float) -> Stretch:
    """Train from the initial network for so many seconds after a warm-up, and keep nothing of it."""
    with _untrained(dataset, config) as engine:
        return _stretch(_training(engine, dataset, config), seconds, engine)


@contextmanager
def _untrained(dataset: Dataset, config: Config, reference: bool = False) -> Iterator[Engine]:
    """An engine with the initial network."""
    graph = dataset.graph
    network = build_model(graph.n_entities, graph.n_relations, config.model, config.run.seed)
    engine = Engine(network, graph, config, reference=reference)
    try:
        yield engine
    finally:
        engine.close()


def _training(engine: Engine, dataset: Dataset, config: Config) -> Iterator[int]:
    queries = TrainingQueries(dataset.graph, dataset.queries("train"), config)
    optimiser = Adam(engine.model, config.training)
    position = 0
    while True:
        batch, targets = queries.at(position % len(queries), config.training.batch_size)
        optimiser.step(engine.gradients(batch, targets))
        position += len(batch)
        yield len(batch)


def _asking(engine: Engine, dataset: Dataset, config: Config) -> Iterator[int]:
    queries = dataset.queries("test" if len(dataset.test) else "train")
    size = config.training.batch_size
    position = 0
    while True:
        part = queries[np.arange(position, position + size) % len(queries)]
        engine.answer(engine.asking_batch(part[:, 0], part[:, 1]), config.horizon)
        position += size
        yield size


def _rates(name: str, work: Iterator[int], seconds: float, engine: Engine) -> dict[str, float]:
    measured = _stretch(work, seconds, engine)
    return {f"{name}_queries_per_s": measured.queries_per_s, f"{name}_busy_cores": measured.busy_cores}


def _stretch(work: Iterator[int], seconds: float, engine: Engine, warm_up: int = _WARM_UP_BATCHES) -> Stretch:
    for _ in range(warm_up):
        next(work)
    cpu, start, done, batches = engine.usage().cpu_seconds, time.perf_counter(), 0, 0
    while time.perf_counter() - start < seconds or batches < _MIN_BATCHES:
        done += next(work)
        batches += 1
    return Stretch(done, time.perf_counter() - start, engine.usage().cpu_seconds - cpu)


def _single_query(engine: Engine, dataset: Dataset) -> dict[str, float]:
    """Latency of one query with its trace from a warm model, at the training horizon, on one core."""
    queries = dataset.queries("test" if len(dataset.test) else "train")
    queries = queries[np.random.default_rng(0).permutation(len(queries))[:_SINGLE_QUERIES]]

    times = []
    for query in (*queries[:_WARM_UP_QUERIES], *queries):
        start = time.perf_counter()
        engine.trace(engine.asking_batch(query[:1], query[1:2]), engine.config.horizon)
        times.append(time.perf_counter() - start)
    times = sorted(times[-len(queries) :])
    return {
        "single_query_p50_ms": 1e3 * times[len(times) // 2],
        "single_query_p95_ms": 1e3 * times[int(len(times) * 0.95)],
    }
