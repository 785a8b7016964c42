"""What a model is told of a graph to choose settings for it, and how it gives its choices."""

from dataclasses import dataclass
from typing import Any

Choice = tuple[str, Any, str]
"""A setting's key, its value, and why."""


@dataclass(frozen=True)
class GraphFacts:
    """Statistics of a graph that settings follow from."""

    n_entities: int
    n_edges: int
    """Inverse edges count, self-loops do not."""
    n_train: int
    """Training triples."""
    max_degree: int
    pme_valid: float | None
    """Of the validation triples, the part whose head and tail a training triple joins, too; None without any."""
    tails_per_question: float = 1.0
    """Answers that training states to one of its questions, on average."""
    n_relations: int = 1
    """Inverses count."""

    @property
    def is_small(self) -> bool:
        """Whether there is little to learn from."""
        return self.n_train < 5_000

    @property
    def degree(self) -> float:
        """Edges of an entity, on average."""
        return self.n_edges / max(self.n_entities, 1)

    @property
    def is_sparse(self) -> bool:
        """Whether entities have few edges: WN18RR 4, WN18 7; YAGO3-10 18, FB15K-237 37."""
        return self.degree < 10

    @property
    def distance(self) -> str:
        """How far answers are, in words."""
        far = "far" if self.is_sparse else "near"
        return f"an entity has {self.degree:.1f} edges on average, so answers are {far}"

    @property
    def busiest(self) -> str:
        """How many edges an entity has at most, in words."""
        return f"the busiest entity has {self.max_degree:,} edges"

    @property
    def are_apart(self) -> bool:
        """Whether no fact joins a head to the answer that is asked for."""
        return self.pme_valid is not None and self.pme_valid < 0.01
