"""This project's own model as a contestant: the same engine and optimiser as `dpmpn train`, batch by batch."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from torch import Tensor

from dpmpn.compare.contestant import Tick
from dpmpn.config import Config
from dpmpn.data.dataset import Dataset
from dpmpn.errors import RunError
from dpmpn.evaluate.evaluator import rank_queries
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks
from dpmpn.model.engine import Engine
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.failed_batch import is_division_by_zero, is_finite
from dpmpn.train.optimiser import Adam
from dpmpn.train.placing import placed_network


class OwnModel:
    """A network on the training graph; asked with the horizon for asking."""

    def __init__(self, dataset: Dataset, config: Config) -> None:
        self.config, self.position = config, 0
        self.queries = TrainingQueries(dataset.graph, dataset.queries("train"), config)
        self.network = placed_network(dataset.graph, config)
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
        batch, targets = self.queries.at(self.position, self.config.training.batch_size)
        with self._failing_in_words():
            gradients = self.engine.gradients(batch, targets)
        if not is_finite(gradients):
            raise self._failure("the loss or its gradient is not finite")
        self.optimiser.step(gradients)
        self.position += len(batch)
        return len(batch)

    def rank(self, queries: np.ndarray, known: KnownAnswers, progress: Tick) -> Ranks:
        """Filtered ranks among all entities; those that no attention reached tie behind the others."""
        with self._failing_in_words():
            return rank_queries(self.engine, known, queries, progress=progress)

    def weights(self) -> dict[str, Tensor]:
        """A copy of everything that was learnt."""
        return {name: value.clone() for name, value in self.network.state_dict().items()}

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Go back to a copy of the weights."""
        self.network.load_state_dict(weights)

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
