"""Who takes part in a comparison: what is asked of every model, this project's own ones, and those of PyKEEN."""

import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.bulk.work import Tick
from dpmpn.config import Config, to_dict
from dpmpn.data.dataset import Dataset
from dpmpn.engine.engine import Engine
from dpmpn.engine.machine import process_usage
from dpmpn.engine.model import Model
from dpmpn.errors import ConfigError, DataError, Diverged, RunError
from dpmpn.evaluate.evaluator import rank_queries
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks, rank_dense
from dpmpn.lab.compare.embedding import EMBEDDING_MODELS, FORMS, EmbeddingSettings
from dpmpn.models import initial_model
from dpmpn.suitable_config import suitable_config
from dpmpn.train.batches import TrainingQueries
from dpmpn.train.failed_batch import is_finite
from dpmpn.train.optimiser import Adam, learning_rate_factor

_SCORES_AT_ONCE = 1 << 24  # 64 MB of them
_DRAW = 104_729  # keeps the order of batches apart from other draws of the seed


class Contestant(ABC):
    """A model that can be trained batch by batch and asked for ranks at any time."""

    network: torch.nn.Module
    queries: Sized  # of an epoch of training

    @abstractmethod
    def train_batch(self) -> int:
        """Learn from the next queries of a random order; how many there were."""

    @abstractmethod
    def rank(self, queries: np.ndarray, known: KnownAnswers, progress: Tick) -> Ranks:
        """Filtered ranks of the targets of queries (head, relation, target), in their order."""

    @property
    def n_parameters(self) -> int:
        """Trainable numbers; a complex one counts as two."""
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self.network.parameters())

    def weights(self) -> dict[str, Tensor]:
        """A copy of everything that was learnt."""
        return {name: value.clone() for name, value in self.network.state_dict().items()}

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Go back to a copy of the weights."""
        self.network.load_state_dict(weights)

    def cpu_seconds(self) -> float:
        """Processor time used so far, that of helping processes included."""
        return process_usage([os.getpid()]).cpu_seconds

    def close(self) -> None:  # noqa: B027
        """Let go of what the machine lent: processes, threads."""


class OwnModel(Contestant):
    """A network on the training graph; asked with the horizon for asking.

    A learning rate that falls must know the end of the run: it is foreseen from the seconds of the budget and the speed
    so far. Without a budget the learning rate stays as it is.
    """

    network: Model
    queries: TrainingQueries

    def __init__(self, dataset: Dataset, config: Config, budget_seconds: float | None = None) -> None:
        self.config, self.position, self.budget_seconds = config, 0, budget_seconds
        self.seconds = 0.0  # of training
        self.queries = TrainingQueries(dataset.graph, dataset.queries("train"), config)
        self.network = initial_model(dataset.graph, config)
        self.optimiser = Adam(self.network, config.training)
        self.engine = Engine(self.network, dataset.graph, config)

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
            return super().weights()

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Go back to a copy of the weights."""
        super().restore(weights)
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
        """Weights far too large make no answer."""
        try:
            yield
        except Diverged as error:
            raise self._failure("attention cannot be computed") from error

    def _failure(self, what: str) -> RunError:
        return RunError(
            f"{what} after {self.position:,} queries: the weights have run away; try another --seed"
        )


class EmbeddingModel(Contestant):
    """A PyKEEN model, its quick form, its loss and its optimiser."""

    network: Any
    queries: Tensor  # 2n x 3

    def __init__(self, dataset: Dataset, settings: EmbeddingSettings, seed: int, threads: int) -> None:
        from pykeen.losses import NSSALoss
        from pykeen.regularizers import PowerSumRegularizer

        self.settings = settings
        self.n_forward, self.n_entities = dataset.graph.n_forward, dataset.graph.n_entities
        self.queries = torch.from_numpy(dataset.queries("train").astype(np.int64))
        self.network = _built(dataset, settings, seed)
        self.form = FORMS[settings.pykeen_model](self.network)
        # Without a margin the loss is a cross-entropy. N3 of Lacroix et al.: the sum of |x|^3 over a vector, its mean
        # over the batch.
        self.loss = (
            None if settings.margin is None else NSSALoss(settings.margin, adversarial_temperature=1.0)
        )
        self.regulariser = PowerSumRegularizer(p=3.0) if settings.n3 else None
        make = {"Adam": torch.optim.Adam, "Adagrad": torch.optim.Adagrad}[settings.optimiser]
        self.optimiser: torch.optim.Optimizer = make(self.network.parameters(), settings.learning_rate)
        self.generator = torch.Generator().manual_seed(seed + _DRAW)
        self.order, self.position = torch.empty(0, dtype=torch.int64), 0
        self.batch_size = settings.batch_size
        if settings.negatives is None:
            self.batch_size = max(1, min(self.batch_size, 2 * _SCORES_AT_ONCE // self.n_entities))
        self.threads = threads

    def train_batch(self) -> int:
        """Learn from the next queries of a random order; how many there were."""
        heads, relations, tails = self._next_batch().T
        self.network.train()
        with _computing_with(self.threads):
            self.optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(self._penalty(heads, relations, tails))
            self.optimiser.step()
            self.network.post_parameter_update()  # constraints of the model, such as rotations of length 1
        return len(heads)

    @torch.no_grad()
    def rank(self, queries: np.ndarray, known: KnownAnswers, progress: Tick) -> Ranks:
        """Filtered ranks among all entities of the dataset, those without a training fact included."""
        self.network.eval()
        size = max(1, _SCORES_AT_ONCE // self.n_entities)
        order = np.lexsort((queries[:, 0], queries[:, 1]))  # equal relations are scored together
        ranks = []
        with _computing_with(self.threads):
            for start in range(0, len(queries), size):
                heads, relations, targets = queries[order[start : start + size]].T
                scores = self.scores(heads, relations)
                ranks.append(rank_dense(scores, targets, *known.lookup(heads, relations)))
                progress(min(start + size, len(queries)), len(queries))
        return Ranks.concatenate(ranks)[np.argsort(order)]

    @torch.no_grad()
    def scores(self, heads: np.ndarray, relations: np.ndarray) -> np.ndarray:
        """Scores of all entities as answers."""  # queries x entities
        asked = (torch.from_numpy(np.ascontiguousarray(ids, np.int64)) for ids in (heads, relations))
        return self.form.scores_of_all(*self._directed(*asked)).numpy()

    def _next_batch(self) -> Tensor:
        if len(self.order) - self.position < 2:  # batch norms cannot do with one query
            self.order, self.position = torch.randperm(len(self.queries), generator=self.generator), 0
        rows = self.order[self.position : self.position + self.batch_size]
        self.position += len(rows)
        return self.queries[rows]

    def _penalty(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """The loss of a batch and what its vectors cost."""
        asked, settings = self._directed(heads, relations), self.settings
        if settings.negatives is None:
            scores, targets = self.form.scores_of_all(*asked), tails
        else:
            shape = (len(tails), settings.negatives)
            drawn = torch.randint(self.n_entities, shape, generator=self.generator)
            scores = self.form.scores_of_some(*asked, torch.cat([tails.unsqueeze(1), drawn], 1))
            targets = torch.zeros_like(tails)
        penalty: Tensor
        if self.loss is not None:
            penalty = self.loss.process_slcwa_scores(scores[:, :1], scores[:, 1:])
        else:
            penalty = functional.cross_entropy(scores, targets)
        if self.regulariser is not None:
            for factor in self.form.factors(heads, relations, tails):
                penalty = penalty + settings.n3 * self.regulariser(factor)
        return penalty

    def _directed(self, heads: Tensor, relations: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Queries as the model knows them: without inverse relations it is asked backward instead."""
        if self.settings.inverse_relations:
            return heads, relations, None
        backward = relations >= self.n_forward
        return heads, relations - self.n_forward * backward, backward


def _built(dataset: Dataset, settings: EmbeddingSettings, seed: int) -> Any:
    """The PyKEEN model over all entities of the dataset, by our ids."""
    import pykeen.models
    from pykeen.triples import CoreTriplesFactory

    triples = dataset.queries("train") if settings.inverse_relations else dataset.train
    factory = CoreTriplesFactory(
        torch.from_numpy(triples.astype(np.int64)),
        num_entities=dataset.graph.n_entities,
        num_relations=dataset.graph.n_relations if settings.inverse_relations else dataset.graph.n_forward,
    )
    first: dict[str, Any] = {}
    if settings.initial_scale is not None:
        draw = partial(torch.nn.init.normal_, std=settings.initial_scale)
        first = {"entity_initializer": draw, "relation_initializer": draw}
    options = {"embedding_dim": settings.dimension, "random_seed": seed, **settings.options, **first}
    with _quiet(), torch.random.fork_rng(devices=[]):
        model = getattr(pykeen.models, settings.pykeen_model)(triples_factory=factory, **options)
        model.reset_parameters_()
    return model


@contextmanager
def _computing_with(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyKEEN's advice off the screen: it knows nothing of inverse relations that are rows of the data."""
    logger = logging.getLogger("pykeen")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


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
    settings = to_dict(config)
    for key in ("n_epochs", "validate_every_queries", "validation_queries", "patience"):
        del settings["training"][key]  # the budget and its validations stand in their place
    return Entrant(name, label, True, settings, partial(OwnModel, dataset, config, 60 * budget_minutes))


def _embedding(name: str, dataset: Dataset, seed: int, threads: int) -> Entrant:
    settings = EMBEDDING_MODELS[name].suited_to(dataset.name, dataset.graph.n_entities)
    shown = {key: value for key, value in asdict(settings).items() if key not in ("on_small", "published_n3")}
    make = partial(EmbeddingModel, dataset, settings, seed, threads)
    return Entrant(name, embedding_label(name), False, shown, make)


def check_pykeen() -> None:
    """Refuse to begin without the library of the models."""
    try:
        import pykeen.models  # noqa: F401
    except ImportError as error:
        raise DataError("comparing needs the extra 'baselines': pip install 'dpmpn[baselines]'") from error
