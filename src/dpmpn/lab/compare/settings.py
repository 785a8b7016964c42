"""What each embedding model is trained with: one table, made for minutes on a few cores and not for days on a GPU."""

from dataclasses import dataclass, field, replace
from typing import Any

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
