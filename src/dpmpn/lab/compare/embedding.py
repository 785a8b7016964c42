"""The embedding models of a comparison: what each is trained with, and PyKEEN's score functions in their quick form.

PyKEEN's own scores of all entities go through an array of queries x entities x dimensions. The same values come from
one matrix product or one table of distances, where a query's vector meets those of its candidates, and no model should
lose a race for want of that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

Vectors = Callable[[Tensor | None], Tensor]
"""Those of some ids, or of all."""
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


class Form:
    """A PyKEEN model whose score is a product (or a distance) of two vectors; this one is DistMult's."""

    p: int | None = None  # norm of the distance; None: the product

    def __init__(self, model: Any) -> None:
        self.model = model
        self.entities: Vectors = model.entity_representations[0]
        self.relations: Vectors = model.relation_representations[0]

    def scores_of_all(self, heads: Tensor, relations: Tensor, backward: Tensor | None) -> Tensor:
        """Scores of all entities as tails, or as heads where asked backward."""  # queries x entities
        return self._meet_all(self._query(heads, relations, backward), self._real(self.entities(None)))

    def scores_of_some(
        self, heads: Tensor, relations: Tensor, backward: Tensor | None, candidates: Tensor
    ) -> Tensor:
        """Scores of each query's own candidates."""  # queries x candidates
        vectors, answers = self._query(heads, relations, backward), self._real(self.entities(candidates))
        return self._meet(vectors, answers)

    def factors(self, heads: Tensor, relations: Tensor, tails: Tensor) -> list[Tensor]:
        """The vectors that a regulariser keeps small."""
        return [self.entities(heads), self.relations(relations), self.entities(tails)]

    def _meet_all(self, vectors: Tensor, answers: Tensor) -> Tensor:
        return vectors @ answers.T if self.p is None else -torch.cdist(vectors, answers, self.p)

    def _meet(self, vectors: Tensor, answers: Tensor) -> Tensor:
        if self.p is None:
            return torch.einsum("qd,qcd->qc", vectors, answers)
        distances: Tensor = torch.linalg.vector_norm(vectors.unsqueeze(1) - answers, self.p, dim=-1)
        return -distances

    def _query(self, heads: Tensor, relations: Tensor, backward: Tensor | None) -> Tensor:
        relation = self.relations(relations)
        if backward is not None:
            relation = torch.where(backward.unsqueeze(1), self._turned(relation), relation)
        return self._real(self._moved(self.entities(heads), relation))

    def _moved(self, entity: Tensor, relation: Tensor) -> Tensor:
        """Where the answer should be."""
        return entity * relation

    def _turned(self, relation: Tensor) -> Tensor:
        """The relation vector that leads from tail to head."""
        return relation

    def _real(self, vectors: Tensor) -> Tensor:
        return vectors


class TransE(Form):
    """|h + r - t|."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.p = model.interaction.p

    def _moved(self, entity: Tensor, relation: Tensor) -> Tensor:
        return entity + relation

    def _turned(self, relation: Tensor) -> Tensor:
        return -relation


class ComplEx(Form):
    """Re <h, r, conj t>: a real product of the parts of h r and t."""

    def _turned(self, relation: Tensor) -> Tensor:
        return relation.conj().resolve_conj()

    def _real(self, vectors: Tensor) -> Tensor:
        return torch.view_as_real(vectors).flatten(-2)


class RotatE(ComplEx):
    """|h r - t| with |r| = 1 in every dimension."""

    p = 2


class HolE(Form):
    """r . (h correlated with t) = t . (r convolved with h), by Fourier transforms."""

    def _moved(self, entity: Tensor, relation: Tensor) -> Tensor:
        product = torch.fft.rfft(entity) * torch.fft.rfft(relation)
        convolved: Tensor = torch.fft.irfft(product, entity.shape[-1])
        return convolved

    def _turned(self, relation: Tensor) -> Tensor:
        return relation.flip(-1).roll(1, -1)  # whose transform is the conjugate


class ConvE(Form):
    """A convolution over h and r gives a vector; its product with t, and a bias of t."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.biases: Vectors = model.entity_representations[1]

    def scores_of_all(self, heads: Tensor, relations: Tensor, backward: Tensor | None) -> Tensor:
        """Scores of all entities as tails."""
        return super().scores_of_all(heads, relations, backward) + self.biases(None)

    def scores_of_some(
        self, heads: Tensor, relations: Tensor, backward: Tensor | None, candidates: Tensor
    ) -> Tensor:
        """Scores of each query's own candidates as tails."""
        return super().scores_of_some(heads, relations, backward, candidates) + self.biases(candidates)

    def _moved(self, entity: Tensor, relation: Tensor) -> Tensor:
        interaction = self.model.interaction
        shape = interaction.shape_info
        image = (-1, shape.input_channels, shape.image_height, shape.image_width)
        picture = torch.cat([entity.view(image), relation.view(image)], dim=-2)
        features = interaction.hr2d(picture).view(-1, shape.num_in_features)
        vector: Tensor = interaction.hr1d(features)
        return vector


class TransR(TransE):
    """|c(h M) + r - c(t M)|, where M belongs to the relation and c cuts vectors to length 1."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.matrices: Vectors = model.relation_representations[1]  # entity dims x relation dims each

    def scores_of_all(self, heads: Tensor, relations: Tensor, backward: Tensor | None) -> Tensor:
        """Scores of all entities; they are projected once for each relation that is asked."""
        vectors = self._query(heads, relations, backward)
        scores = vectors.new_empty(len(heads), self.model.num_entities)
        for relation in torch.unique(relations):
            rows = relations == relation
            answers = self._cut(self.entities(None) @ self.matrices(relation))
            scores[rows] = self._meet_all(vectors[rows], answers)
        return scores

    def scores_of_some(
        self, heads: Tensor, relations: Tensor, backward: Tensor | None, candidates: Tensor
    ) -> Tensor:
        """Scores of each query's own candidates."""
        vectors = self._query(heads, relations, backward)
        return self._meet(vectors, self._cut(torch.bmm(self.entities(candidates), self.matrices(relations))))

    def _query(self, heads: Tensor, relations: Tensor, backward: Tensor | None) -> Tensor:
        relation = self.relations(relations)
        if backward is not None:
            relation = torch.where(backward.unsqueeze(1), -relation, relation)
        projected = torch.bmm(self.entities(heads).unsqueeze(1), self.matrices(relations)).squeeze(1)
        return self._cut(projected) + relation

    def _cut(self, vectors: Tensor) -> Tensor:
        longest = self.model.interaction.max_projection_norm
        lengths = torch.linalg.vector_norm(vectors, self.p, dim=-1, keepdim=True)
        scales: Tensor = longest / lengths.clamp_min(longest)
        return vectors * scales


FORMS: dict[str, type[Form]] = {
    "TransE": TransE,
    "TransR": TransR,
    "DistMult": Form,
    "ConvE": ConvE,
    "ComplEx": ComplEx,
    "HolE": HolE,
    "RotatE": RotatE,
}
