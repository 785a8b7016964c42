"""An embedding model of PyKEEN as a contestant: trained and ranked on the same queries as every other model."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.data.dataset import Dataset
from dpmpn.engine.usage import process_usage
from dpmpn.errors import DataError
from dpmpn.evaluate.dense import rank_dense
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks
from dpmpn.lab.compare.contestant import Tick
from dpmpn.lab.compare.forms import FORMS
from dpmpn.lab.compare.settings import EmbeddingSettings

_SCORES_AT_ONCE = 1 << 24  # 64 MB of them
_DRAW = 104_729  # keeps the order of batches apart from other draws of the seed


def check_pykeen() -> None:
    """Refuse to begin without the library of the models."""
    try:
        import pykeen.models  # noqa: F401
    except ImportError as error:
        raise DataError("comparing needs the extra 'baselines': pip install 'dpmpn[baselines]'") from error


class EmbeddingModel:
    """A PyKEEN model, its quick form, its loss and its optimiser."""

    def __init__(self, dataset: Dataset, settings: EmbeddingSettings, seed: int, threads: int) -> None:
        self.settings = settings
        self.n_forward, self.n_entities = dataset.graph.n_forward, dataset.graph.n_entities
        self.queries = torch.from_numpy(dataset.queries("train").astype(np.int64))  # 2n x 3
        self.model = _built(dataset, settings, seed)
        self.form = FORMS[settings.pykeen_model](self.model)
        self.loss, self.regulariser = _loss(settings), _regulariser(settings)
        self.optimiser = _optimiser(self.model, settings)
        self.generator = torch.Generator().manual_seed(seed + _DRAW)
        self.order, self.position = torch.empty(0, dtype=torch.int64), 0
        self.batch_size = settings.batch_size
        if settings.negatives is None:
            self.batch_size = max(1, min(self.batch_size, 2 * _SCORES_AT_ONCE // self.n_entities))
        self.threads = threads

    @property
    def n_parameters(self) -> int:
        """Trainable numbers; a complex one counts as two."""
        return sum(p.numel() * (2 if p.is_complex() else 1) for p in self.model.parameters())

    @property
    def epoch_queries(self) -> int:
        """Training queries of an epoch."""
        return len(self.queries)

    def train_batch(self) -> int:
        """Learn from the next queries of a random order; how many there were."""
        heads, relations, tails = self._next_batch().T
        self.model.train()
        with _computing_with(self.threads):
            self.optimiser.zero_grad(set_to_none=True)
            self._penalty(heads, relations, tails).backward()
            self.optimiser.step()
            self.model.post_parameter_update()  # constraints of the model, such as rotations of length 1
        return len(heads)

    @torch.no_grad()
    def rank(self, queries: np.ndarray, known: KnownAnswers, progress: Tick) -> Ranks:
        """Filtered ranks among all entities of the dataset, those without a training fact included."""
        self.model.eval()
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

    def weights(self) -> dict[str, Tensor]:
        """A copy of everything that was learnt."""
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Go back to a copy of the weights."""
        self.model.load_state_dict(weights)

    def cpu_seconds(self) -> float:
        """Processor time of this process."""
        return process_usage([os.getpid()]).cpu_seconds

    def close(self) -> None:
        """Nothing is held."""

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
    with _quiet(), torch.random.fork_rng(devices=[]):
        model = getattr(pykeen.models, settings.pykeen_model)(
            triples_factory=factory,
            embedding_dim=settings.dimension,
            random_seed=seed,
            **settings.options,
            **_initialisers(settings.initial_scale),
        )
        model.reset_parameters_()
    return model


def _initialisers(scale: float | None) -> dict[str, Any]:
    """What draws the first vectors from a normal distribution of some scale."""
    if scale is None:
        return {}
    draw = partial(torch.nn.init.normal_, std=scale)
    return {"entity_initializer": draw, "relation_initializer": draw}


def _loss(settings: EmbeddingSettings) -> Any:
    """PyKEEN's loss of models with a margin; the others have a cross-entropy."""
    from pykeen.losses import NSSALoss

    return None if settings.margin is None else NSSALoss(settings.margin, adversarial_temperature=1.0)


def _regulariser(settings: EmbeddingSettings) -> Any:
    """The sum of |x|^3 over a vector, its mean over the batch: N3 of Lacroix et al."""
    from pykeen.regularizers import PowerSumRegularizer

    return PowerSumRegularizer(p=3.0) if settings.n3 else None


def _optimiser(model: Any, settings: EmbeddingSettings) -> torch.optim.Optimizer:
    optimisers = {"Adam": torch.optim.Adam, "Adagrad": torch.optim.Adagrad}
    return optimisers[settings.optimiser](model.parameters(), settings.learning_rate)


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
