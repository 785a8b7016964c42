"""Embedding models of PyKEEN as contestants: what each is trained with, and how it learns and is ranked."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dpmpn.data.dataset import Dataset
from dpmpn.engine.machine import process_usage
from dpmpn.errors import DataError
from dpmpn.evaluate.evaluator import Tick
from dpmpn.evaluate.known import KnownAnswers
from dpmpn.evaluate.ranking import Ranks, rank_dense
from dpmpn.lab.compare.forms import FORMS

SMALL = 20_000
"""Entities up to which a product over all of them costs little more than drawing some."""


@dataclass(frozen=True)
class EmbeddingSettings:
    """One row of the table. A query asks for the tail or for the head of a training triple."""

    pykeen_model: str  # class of pykeen.models
    dimension: int  # of an entity's vector; complex numbers where the model has them
    negatives: int | None  # entities drawn for each query; None: the loss takes all of them
    batch_size: int  # queries
    optimiser: str  # Adam or Adagrad
    learning_rate: float
    inverse_relations: bool  # heads are asked as tails of an inverse relation with a vector of its own
    initial_scale: float | None = None  # standard deviation of the first vectors; None: as PyKEEN draws them
    margin: float | None = None  # of the self-adversarial loss; None: the loss is a cross-entropy
    n3: float = 0.0  # weight of the N3 regulariser
    options: dict[str, Any] = field(default_factory=dict)  # of the PyKEEN class
    on_small: dict[str, Any] = field(default_factory=dict)  # what is different on small graphs
    published_n3: dict[str, float] = field(default_factory=dict)  # weights of N3 by dataset, in place of `n3`

    def suited_to(self, dataset: str, n_entities: int) -> "EmbeddingSettings":
        """The settings for a dataset of this name and size."""
        changes: dict[str, Any] = dict(self.on_small) if n_entities <= SMALL else {}
        if dataset in self.published_n3:
            changes["n3"] = self.published_n3[dataset]
        return replace(self, **changes, on_small={}, published_n3={})

    @property
    def loss(self) -> str:
        """The loss in words."""
        if self.negatives is None:
            return "cross-entropy over all entities"
        if self.margin is None:
            return f"cross-entropy over the answer and {self.negatives} drawn entities"
        return f"self-adversarial, {self.negatives} drawn entities, margin {self.margin:g}"

    @property
    def regulariser(self) -> str:
        """What keeps the vectors small, in words."""
        if not self.n3:
            return "none"
        return f"N3, weight {self.n3:g}" + " or as published" * bool(self.published_n3)


# PyKEEN's defaults are for the margin losses of the first papers, which need vectors of length 1.
_FREE: dict[str, Any] = {"entity_constrainer": None}
# PyKEEN's would count every vector that is looked up, all entities included.
_NO_REGULARISER: dict[str, Any] = {"regularizer": None}

# After 10 seconds on FB15K-237, one core, DistMult had a validation MRR of 16.9 so, and 12.0 as on large graphs.
_ALL_ENTITIES: dict[str, Any] = {
    "negatives": None,
    "batch_size": 128,
    "optimiser": "Adagrad",
    "learning_rate": 0.1,
}

# Of rank 50, in the tables of https://github.com/facebookresearch/kbc.
_PUBLISHED_N3 = {"WN18RR": 0.1, "FB15K-237": 0.05, "FB15K": 0.00001, "WN18": 0.005, "YAGO3-10": 0.005}

# In a row: the model, its dimension, drawn entities, batch size, optimiser, learning rate, inverse relations.
EMBEDDING_MODELS: dict[str, EmbeddingSettings] = {
    "transe": EmbeddingSettings(
        "TransE", 100, 32, 512, "Adam", 0.02, False, margin=6.0, options={"scoring_fct_norm": 2} | _FREE
    ),
    "transr": EmbeddingSettings(
        "TransR", 32, 16, 512, "Adam", 0.02, False, margin=1.0, options={"relation_dim": 32} | _FREE
    ),
    "distmult": EmbeddingSettings(
        *("DistMult", 100, 128, 512, "Adam", 0.01, True),
        options=_FREE | _NO_REGULARISER,
        on_small=_ALL_ENTITIES | {"n3": 0.01},
    ),
    "conve": EmbeddingSettings(
        *("ConvE", 100, 128, 512, "Adam", 0.003, True),
        options={"input_dropout": 0.1, "feature_map_dropout": 0.1, "output_dropout": 0.2},
        on_small={"negatives": None, "batch_size": 128},
    ),
    "complex": EmbeddingSettings(
        *("ComplEx", 50, 128, 512, "Adam", 0.01, False),
        initial_scale=0.01,
        options=_NO_REGULARISER,
        on_small=_ALL_ENTITIES,
    ),
    "hole": EmbeddingSettings(
        *("HolE", 100, 128, 512, "Adam", 0.01, False), options=_FREE, on_small=_ALL_ENTITIES
    ),
    "rotate": EmbeddingSettings("RotatE", 50, 32, 512, "Adam", 0.02, False, margin=6.0),
    # Trained as Lacroix et al. published it but for size and batch: theirs is 100 on WN18RR and FB15K-237, else 1000.
    "complex-n3": EmbeddingSettings(
        *("ComplEx", 50, None, 128, "Adagrad", 0.1, True),
        initial_scale=0.001,
        n3=0.05,
        options=_NO_REGULARISER,
        published_n3=_PUBLISHED_N3,
    ),
}


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
            torch.autograd.backward(self._penalty(heads, relations, tails))
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
    optimisers: dict[str, Any] = {"Adam": torch.optim.Adam, "Adagrad": torch.optim.Adagrad}
    made: torch.optim.Optimizer = optimisers[settings.optimiser](model.parameters(), settings.learning_rate)
    return made


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
