"""An explanation as data: what was asked and answered, and what carried the attention to the answer."""

from dataclasses import dataclass
from functools import cached_property

from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.settings import Horizon
from dpmpn.explain.flow import AnswerFlow
from dpmpn.explain.paths import (
    Edge,
    Fact,
    Path,
    PathGroup,
    Walk,
    fact_of,
    grouped_walks,
    named_fact,
    named_group,
    named_paths,
    strongest_walks,
)
from dpmpn.explain.subgraph import Subgraph, full_subgraph, pruned_subgraph
from dpmpn.wording import one_line

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
        return self.rendered(one_line(self.head_label), one_line(self.relation_label))

    def rendered(self, head: str, relation: str) -> str:
        """The question with other words for its head and its relation."""
        return f"<?, {relation}, {head}>" if self.inverse else f"<{head}, {relation}, ?>"


@dataclass(frozen=True)
class Prediction:
    """One answer to a question."""

    answer: str
    probability: float
    rank: int  # place in the list of answers, counted from 1
    known: bool  # whether the graph or the training facts state it already
    label: str  # what to show: the answer's label, or its name where it has none
    through_unseen: float  # part of its attention that came through entities the model was not trained on
    held_out: str = ""  # "valid" or "test" where that split states it, and the graph does not


@dataclass(frozen=True)
class KeyFact:
    """A fact of the pruned subgraph and the part of the answer's attention that its paths with this fact brought."""

    fact: Fact
    share: float


@dataclass(frozen=True, eq=False)
class ExplanationData:
    """Why an answer was given, read from the trace of one forward pass."""

    question: Question
    answer: Prediction
    horizon: Horizon
    graph: KnowledgeGraph
    flow: AnswerFlow
    prior: float | None = None  # what the model gave the answer before any step; None where it has no prior

    @property
    def n_steps(self) -> int:
        """T: how often attention moved on."""
        return len(self.flow.query.steps)

    @cached_property
    def walks(self) -> list[Walk]:
        """The strongest paths from head to answer by ids, in the direction in which attention went."""
        return strongest_walks(self.flow, KEPT_PATHS, KEPT_SHARE)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """The strongest paths from head to answer; the pruned subgraph is made of them."""
        return tuple(named_paths(self.graph, self.walks))

    @cached_property
    def path_groups(self) -> tuple[PathGroup, ...]:
        """The paths, those along the same entities together, strongest first."""
        query = self.flow.query
        groups = grouped_walks(int(query.nodes[query.head]), self.walks)
        return tuple(named_group(self.graph, *group) for group in groups)

    @property
    def kept_share(self) -> float:
        """The part of the answer's attention that came along these paths; the rest came along weaker ones."""
        return sum(walk.share for walk in self.walks)

    @cached_property
    def full(self) -> Subgraph:
        """All that was attended from, and the edges between consecutive steps."""
        return full_subgraph(self.flow, self.graph, self.horizon.max_attending_from_per_step)

    @cached_property
    def pruned(self) -> Subgraph:
        """What carried attention to this answer: the edges of the strongest paths."""
        return pruned_subgraph(self.flow, self.graph, (edge for walk in self.walks for edge in walk.edges))

    @cached_property
    def fact_shares(self) -> dict[Edge, float]:
        """The facts of the pruned subgraph by ids and their shares, the largest first."""
        shares: dict[Edge, float] = {}
        for walk in self.walks:
            for fact in {fact_of(self.graph, edge): None for edge in walk.edges}:
                shares[fact] = shares.get(fact, 0.0) + walk.share
        return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def key_facts(self) -> tuple[KeyFact, ...]:
        """The facts of the pruned subgraph, those with the largest share first."""
        return tuple(KeyFact(named_fact(self.graph, fact), share) for fact, share in self.fact_shares.items())
