"""An explanation: what was asked and answered, and what carried the attention to the answer."""

from dataclasses import dataclass
from functools import cached_property

from dpmpn.config import Horizon
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.explain.flow import AnswerFlow
from dpmpn.explain.paths import Fact, Path, fact_of, named_fact, path_of, strongest_walks
from dpmpn.explain.subgraph import Subgraph, full_subgraph, pruned_subgraph
from dpmpn.predictions import Prediction

KEPT_SHARE = 0.9  # of the answer's attention: the paths of the pruned subgraph bring at least that much,
KEPT_PATHS = 50  # if so many are enough


@dataclass(frozen=True)
class Question:
    """What was asked: <head, relation, ?> or, with `inverse`, <?, relation, head>; names and what to show for them."""

    head: str
    relation: str
    inverse: bool
    head_label: str
    relation_label: str

    def __str__(self) -> str:
        if self.inverse:
            return f"<?, {self.relation_label}, {self.head_label}>"
        return f"<{self.head_label}, {self.relation_label}, ?>"


@dataclass(frozen=True)
class KeyFact:
    """A fact of the pruned subgraph and the part of the answer's attention that came along paths with it."""

    fact: Fact
    share: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an answer was given, read from the trace of one forward pass."""

    question: Question
    answer: Prediction
    horizon: Horizon
    graph: KnowledgeGraph
    flow: AnswerFlow

    @property
    def n_steps(self) -> int:
        """T: how often attention moved on."""
        return len(self.flow.query.steps)

    @cached_property
    def _walks(self) -> list:
        return strongest_walks(self.flow, self.graph.self_loop, KEPT_PATHS, KEPT_SHARE)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The strongest paths from head to answer; the pruned subgraph is made of them."""
        return tuple(path_of(self.graph, walk) for walk in self._walks)

    @property
    def kept_share(self) -> float:
        """The part of the answer's attention that came along these paths; the rest came along weaker ones."""
        return sum(path.share for path in self.paths)

    @cached_property
    def full(self) -> Subgraph:
        """All that was attended from, and the edges between consecutive steps."""
        return full_subgraph(self.flow, self.graph, self.horizon.max_attending_from_per_step)

    @cached_property
    def pruned(self) -> Subgraph:
        """What carried attention to this answer: the edges of the strongest paths."""
        return pruned_subgraph(
            self.flow, self.graph, (edge for walk in self._walks for edge in walk.edges)
        )

    @cached_property
    def key_facts(self) -> tuple[KeyFact, ...]:
        """The facts of the pruned subgraph, those with the largest share first."""
        shares: dict[tuple[int, int, int], float] = {}
        for walk in self._walks:
            for fact in {fact_of(self.graph, edge): None for edge in walk.edges}:
                shares[fact] = shares.get(fact, 0.0) + walk.share
        order = sorted(shares, key=lambda fact: (-shares[fact], fact))
        return tuple(KeyFact(named_fact(self.graph, fact), shares[fact]) for fact in order)
