"""Who takes part in a comparison: what is asked of every model, this project's own ones, and all of them by name."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from dpmpn.config import Config, to_dict
from dpmpn.data.dataset import Dataset
from dpmpn.engine.engine import Engine
from dpmpn.errors import ConfigError, RunError
from dpmpn.evaluate.evaluator import Tick, rank_queries
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS, EmbeddingModel
from dpmpn.models import initial_model
from dpmpn.suitable_config import suitable_config
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.failed_batch import is_division_by_zero, is_finite
from dpmpn.train.optimiser import Adam, learning_rate_factor


class Contestant(Protocol):
    """A model that can be trained batch by batch and asked for ranks at any time."""

    @property
    def n_parameters(self) -> int:
        """Trainable numbers."""

    @property
    def epoch_queries(self) -> int:
        """Training queries of an epoch."""

    def train_batch(self) -> int:
        """Learn from the next batch; how many queries it had."""

    def rank(self, queries: np.ndarray, known: KnownAnswers, progress: Tick) -> Ranks:
        """Filtered ranks of the targets of queries (head, relation, target), in their order."""

    def weights(self) -> dict[str, Tensor]:
        """A copy of everything that was learnt."""

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Go back to a copy of the weights."""

    def cpu_seconds(self) -> float:
        """Processor time used so far, that of helping processes included."""

    def close(self) -> None:
        """Let go of what the machine lent: processes, threads."""


class OwnModel:
    """A network on the training graph; asked with the horizon for asking.

    A learning rate that falls must know the end of the run: it is foreseen from the seconds of the budget and the speed
    so far. Without a budget the learning rate stays as it is.
    """

    def __init__(self, dataset: Dataset, config: Config, budget_seconds: float | None = None) -> None:
        self.config, self.position, self.budget_seconds = config, 0, budget_seconds
        self.seconds = 0.0  # of training
        self.queries = TrainingQueries(dataset.graph, dataset.queries("train"), config)
        self.network = initial_model(dataset.graph, config)
        self.optimiser = Adam(self.network, config.training)
        self.engine = Engine(self.network, dataset.graph, config)

    @property
    def n_parameters(self) -> int:
        """Trainable numbers."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    @property
    def epoch_queries(self) -> int:
        """Training queries of an epoch."""
        return len(self.queries)

    def train_batch(self) -> int:
        """Learn from the next queries of a random order; how many there were."""
        started, training = time.perf_counter(), self.config.training
        batch, targets = self.queries.at(self.position, training.batch_size)
        with self._failing_in_words():
            gradients = self.engine.gradients(batch, targets)
        if not is_finite(gradients):
            raise self._failure("the loss or its gradient is not finite")
        factor = learning_rate_factor(
            training.schedule, self.position, self._foreseen_queries(), training.batch_size
        )
        self.optimiser.step(gradients, factor)
        self.position += len(batch)
        self.seconds += time.perf_counter() - started
        return len(batch)

    def _foreseen_queries(self) -> int | None:
        """How many queries the whole budget will have had, at the speed so far."""
        if self.budget_seconds is None or not self.position:
            return None
        left = max(0.0, self.budget_seconds - self.seconds)
        return self.position + round(left * self.position / self.seconds)

    def rank(self, queries: np.ndarray, known: KnownAnswers, progress: Tick) -> Ranks:
        """Filtered ranks among all entities; those that no attention reached tie behind the others."""
        with self._failing_in_words(), self.optimiser.averaged():
            return rank_queries(self.engine, known, queries, progress=progress)

    def weights(self) -> dict[str, Tensor]:
        """A copy of everything that was learnt, as it is asked: averages, where weights are averaged."""
        with self.optimiser.averaged():
            return {name: value.clone() for name, value in self.network.state_dict().items()}

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Go back to a copy of the weights."""
        self.network.load_state_dict(weights)
        for name, average in self.optimiser.average.items():
            average.copy_(weights[name])

    def cpu_seconds(self) -> float:
        """Processor time of this process and the engine's workers."""
        return self.engine.usage().cpu_seconds

    def close(self) -> None:
        """End the engine's workers."""
        self.engine.close()

    @contextmanager
    def _failing_in_words(self) -> Iterator[None]:
        """With weights far too large a softmax of attention divides by zero."""
        try:
            yield
        except (ZeroDivisionError, RuntimeError) as error:
            if not is_division_by_zero(error):
                raise
            raise self._failure("attention cannot be computed") from error

    def _failure(self, what: str) -> RunError:
        return RunError(
            f"{what} after {self.position:,} queries: the weights have run away; try another --seed"
        )


@dataclass(frozen=True)
class Entrant:
    """A model by name: how it is shown, what it is trained with and how it is made."""

    name: str
    label: str
    is_own: bool
    settings: dict[str, Any]
    make: Callable[[], Contestant]


OWN_MODELS = {"dpmpn": ("DPMPN", "paper"), "strong": ("dpmpn strong", "strong")}
"""This project's models, which always take part: how each is shown, and the model it is."""


def embedding_label(name: str) -> str:
    """How an embedding model is called in tables."""
    return EMBEDDING_MODELS[name].pykeen_model + ("-N3" if name.endswith("-n3") else "")


def chosen_models(names: Sequence[str]) -> list[str]:
    """The embedding models of a list, each once; refuse unknown names."""
    chosen = list(dict.fromkeys(name.strip().lower() for name in names if name.strip()))
    for name in chosen:
        if name not in EMBEDDING_MODELS and name not in OWN_MODELS:
            known = ", ".join(EMBEDDING_MODELS)
            raise ConfigError(f"unknown model '{name}' in --models; there are {known}")
    return [name for name in chosen if name in EMBEDDING_MODELS]


def entrants(
    dataset: Dataset, names: Sequence[str], seed: int, threads: int, budget_minutes: float
) -> list[Entrant]:
    """All that take part."""
    own = []
    for name, (label, kind) in OWN_MODELS.items():
        config = suitable_config(dataset, kind)[0].replace(seed=seed, threads=threads)
        own.append(_own(name, label, dataset, config, budget_minutes))
    return [*own, *(_embedding(name, dataset, seed, threads) for name in chosen_models(names))]


def _own(name: str, label: str, dataset: Dataset, config: Config, budget_minutes: float) -> Entrant:
    def make() -> Contestant:

        return OwnModel(dataset, config, 60 * budget_minutes)

    settings = to_dict(config)
    for key in ("n_epochs", "validate_every_queries", "validation_queries", "patience"):
        del settings["training"][key]  # the budget and its validations stand in their place
    return Entrant(name, label, True, settings, make)


def _embedding(name: str, dataset: Dataset, seed: int, threads: int) -> Entrant:
    settings = EMBEDDING_MODELS[name].suited_to(dataset.name, dataset.graph.n_entities)

    def make() -> Contestant:
        return EmbeddingModel(dataset, settings, seed, threads)

    told = {key: value for key, value in asdict(settings).items() if key not in ("on_small", "published_n3")}
    return Entrant(name, embedding_label(name), False, told, make)
