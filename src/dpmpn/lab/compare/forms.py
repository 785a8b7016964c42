"""The score functions of PyKEEN's models in their quick form: a query's vector meets the vectors of its candidates.

PyKEEN's own scores of all entities go through an array of queries x entities x dimensions. The same values come from
one matrix product or one table of distances, and no model should lose a race for want of that.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Vectors = Callable[[Tensor | None], Tensor]
"""Those of some ids, or of all."""


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
