"""An explanation as data: what was asked and answered, what carried attention to the answer, and its subgraphs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpmpn.data.fact_provenance import Record
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.settings import Horizon
from dpmpn.explain.decisive import Decisive
from dpmpn.explain.flow import AnswerFlow, EdgesInTime, QueryFlow
from dpmpn.explain.paths import (
    EdgeIds,
    Fact,
    Path,
    PathGroup,
    Walk,
    fact_of,
    grouped_walks,
    named_fact,
    named_group,
    named_paths,
    provenance_of,
    strongest_walks,
)
from dpmpn.explain.patterns import HopPattern, patterns_of
from dpmpn.explain.record import PatternRecord, pattern_record
from dpmpn.wording import one_line


class Node(NamedTuple):
    """An entity and the attention it had."""

    name: str
    label: str  # what to show: the name where it has none
    attention: tuple[float, ...]  # a^0 ... a^T
    share: tuple[float, ...]  # the part of the answer's attention that was here, at each of these times
    waited: tuple[float, ...]  # attention that its self-loop kept here, at each step


class Edge(NamedTuple):
    """A fact as attention went along it, in one of its two directions."""

    source: int  # indices of nodes: attention went from source to target
    target: int
    relation: str  # the fact's, as the file names it
    relation_label: str
    inverse: bool  # whether attention went from the fact's tail to its head
    flow: tuple[float, ...]  # attention that went along it, at each step
    share: tuple[float, ...]  # the part of the answer's attention that did


@dataclass(frozen=True)
class Subgraph:
    """Nodes in the order of their entity ids, and the edges between them in a fixed order."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def ends(self, edge: Edge) -> tuple[Node, Node]:
        """The head and the tail of the fact that an edge stands for."""
        source, target = self.nodes[edge.source], self.nodes[edge.target]
        return (target, source) if edge.inverse else (source, target)

    def fact(self, edge: Edge) -> Fact:
        """The names of the fact that an edge stands for."""
        head, tail = self.ends(edge)
        return head.name, edge.relation, tail.name

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of its edges, each once."""
        return tuple(dict.fromkeys(self.fact(edge) for edge in self.edges))


def full_edges(
    flow: AnswerFlow, graph: KnowledgeGraph, max_attending_from: int
) -> tuple[np.ndarray, EdgesInTime]:
    """The nodes attended from at every step, the best after the last, and the edges between consecutive steps.

    Nodes are given by their index in the flow.
    """
    query = flow.query
    last = np.zeros(len(query.nodes), bool)
    best = np.argsort(-query.attention[-1], kind="stable")[:max_attending_from]
    last[best[query.attention[-1, best] > 0]] = True
    last[flow.answer] = True
    receiving = [*query.attended_from[1:], last]
    chosen = [
        np.flatnonzero(kept[step.tail] & (step.relation != graph.self_loop))
        for step, kept in zip(query.steps, receiving, strict=True)
    ]
    return np.flatnonzero(query.attended_from.any(0) | last), flow.edges(chosen)


def pruned_subgraph(flow: AnswerFlow, graph: KnowledgeGraph, edges: Iterable[EdgeIds]) -> Subgraph:
    """The subgraph of some edges: their nodes, and what flowed along them."""
    query = flow.query
    kept = np.array([*edges], np.int64).reshape(-1, 3)
    head, tail = (np.searchsorted(query.nodes, kept[:, column]) for column in (0, 2))
    keys = _keys(query, graph, head, kept[:, 1], tail)
    chosen = [
        np.flatnonzero(np.isin(_keys(query, graph, step.head, step.relation, step.tail), keys))
        for step in query.steps
    ]
    nodes = np.unique(np.concatenate([[query.head, flow.answer], head, tail]))
    return _subgraph(flow, graph, nodes, flow.edges(chosen))


def _keys(
    query: QueryFlow, graph: KnowledgeGraph, head: np.ndarray, relation: np.ndarray, tail: np.ndarray
) -> np.ndarray:
    """Each edge as one number."""
    edges = head * (graph.n_relations + 1) + relation.astype(np.int64)
    return np.asarray(edges * len(query.nodes) + tail)


def _subgraph(flow: AnswerFlow, graph: KnowledgeGraph, nodes: np.ndarray, edges: EdgesInTime) -> Subgraph:
    query, names = flow.query, graph.entities
    entities = query.nodes[nodes].tolist()
    shown = map(
        Node,
        [names.name(entity) for entity in entities],
        [names.label(entity) for entity in entities],
        _rows(query.attention.T[nodes]),
        _rows(flow.at.T[nodes]),
        _rows(_waited(query, graph.self_loop)[nodes]),
    )
    relations = {relation: _relation_of(graph, relation) for relation in np.unique(edges.relation).tolist()}
    ends = [np.searchsorted(nodes, end).tolist() for end in (edges.head, edges.tail)]
    lines = map(
        lambda source, target, relation, flow, share: Edge(source, target, *relations[relation], flow, share),
        *ends,
        edges.relation.tolist(),
        _rows(edges.flow),
        _rows(edges.share),
    )
    return Subgraph(tuple(shown), tuple(lines))


def _rows(table: np.ndarray) -> Iterator[tuple[float, ...]]:
    """The rows as tuples, made from columns: half as many lists and tuples for the collector to look through."""
    return zip(*table.T.tolist(), strict=True)


def _waited(query: QueryFlow, self_loop: int) -> np.ndarray:
    """Attention that the self-loop of each node kept there: nodes x steps."""
    waited = np.zeros((len(query.nodes), len(query.steps)))
    for t, step in enumerate(query.steps):
        loops = np.flatnonzero(step.relation == self_loop)
        waited[step.head[loops], t] = step.flow[loops]
    return waited


def _relation_of(graph: KnowledgeGraph, relation: int) -> tuple[str, str, bool]:
    """Name and label of a fact's relation, and whether the edge goes against the fact."""
    backwards = bool(graph.is_inverse[relation])
    forward = int(graph.inverse[relation]) if backwards else relation
    return graph.relation_names.name(forward), graph.relation_names.label(forward), backwards


KEPT_SHARE = 0.9  # of the answer's attention: the paths of the pruned subgraph bring at least that much,
KEPT_PATHS = 50  # if so many are enough
# The same of what patterns are made of: many weak paths are one pattern.
PATTERN_SHARE, PATTERN_PATHS = 0.97, 300
_KEPT_PATTERNS = 20


@dataclass(frozen=True)
class Question:
    """What was asked: <head, relation, ?> or, with `inverse`, <?, relation, head>; names and what to show for them."""

    head: str
    relation: str
    inverse: bool
    head_label: str
    relation_label: str

    @classmethod
    def of(cls, graph: KnowledgeGraph, head: int, relation: int, inverse: bool) -> "Question":
        """The question with these ids; the relation is that of the facts, also where it is asked backwards."""
        entities, relations = graph.entities, graph.relation_names
        labels = entities.label(head), relations.label(relation)
        return cls(entities.name(head), relations.name(relation), inverse, *labels)

    def __str__(self) -> str:
        return self.rendered(one_line(self.head_label), one_line(self.relation_label))

    def rendered(self, head: str, relation: str) -> str:
        """The question with other words for its head and its relation."""
        return f"<?, {relation}, {head}>" if self.inverse else f"<{head}, {relation}, ?>"


@dataclass(frozen=True)
class Prediction:
    """One answer to a question."""

    answer: str
    score: float  # what the model gives it: its part of the attention in the end
    rank: int  # place in the list of answers, counted from 1
    known: bool  # whether the graph or the training facts state it already
    label: str  # what to show: the answer's label, or its name where it has none
    through_unseen: float  # part of its attention that came through entities the model was not trained on
    held_out: str = ""  # "valid" or "test" where that split states it, and the graph does not
    # How probable it is that it is right, with a 95 % interval; None where it is known, or nothing was measured.
    probability: float | None = None
    probability_low: float | None = None
    probability_high: float | None = None
    # The same if the question has an answer that the graph does not state.
    probability_if_missing: float | None = None
    cases: int | None = None  # questions of the relation that lacked an answer when this was measured


@dataclass(frozen=True)
class KeyFact:
    """A fact of the pruned subgraph and the part of the answer's attention that its paths with this fact brought."""

    fact: Fact
    share: float
    # What the table of the facts says of it, a record for each row.
    provenance: tuple[Record, ...] = field(default=(), compare=False)


@dataclass(frozen=True, eq=False)
class ExplanationData:
    """Why an answer was given, read from the trace of one forward pass."""

    question: Question
    answer: Prediction
    horizon: Horizon
    graph: KnowledgeGraph
    flow: AnswerFlow
    prior: float | None = None  # what the model gave the answer before any step; None where it has no prior
    fits: bool = True  # whether lists show the answer; if not, its rank is among all that attention reached
    # Heads and tails of the validation facts of the relation that is asked; None where there are none to be known.
    validation: np.ndarray | None = None
    # Where the graph states the answer, all this is of asking as if it did not; then what it is otherwise.
    with_fact: Prediction | None = None
    needs_itself: bool = False  # whether nothing but the fact asked for leads there, so that it was left in
    decisive: Decisive | None = None  # the facts that decide, if they were asked for

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
    def hop_patterns(self) -> tuple[HopPattern, ...]:
        """The strongest patterns of the paths, by ids; more paths than are listed count."""
        query = self.flow.query
        walks = strongest_walks(self.flow, PATTERN_PATHS, PATTERN_SHARE)
        return tuple(patterns_of(self.graph, int(query.nodes[query.head]), walks)[:_KEPT_PATTERNS])

    @cached_property
    def pattern_records(self) -> tuple[PatternRecord | None, ...]:
        """The record of each pattern, without the fact that is asked for."""
        query = self.flow.query
        hidden = int(query.nodes[query.head]), int(query.nodes[self.flow.answer])
        if hidden[0] == hidden[1]:
            return (None,) * len(self.hop_patterns)  # no pattern leads back to where it began
        return tuple(
            pattern_record(self.graph, self.asked, pattern.hops, hidden, self.validation)
            for pattern in self.hop_patterns
        )

    @property
    def asked(self) -> int:
        """The id of the relation that is asked, an inverse one where it is asked backwards."""
        relation = self.graph.relation_names.id(self.question.relation, "relation")
        return int(self.graph.inverse[relation]) if self.question.inverse else relation

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
        most = self.horizon.max_attending_from_per_step
        return _subgraph(self.flow, self.graph, *full_edges(self.flow, self.graph, most))

    @cached_property
    def pruned(self) -> Subgraph:
        """What carried attention to this answer: the edges of the strongest paths."""
        return pruned_subgraph(self.flow, self.graph, (edge for walk in self.walks for edge in walk.edges))

    @cached_property
    def fact_shares(self) -> dict[EdgeIds, float]:
        """The facts of the pruned subgraph by ids and their shares, the largest first."""
        shares: dict[EdgeIds, float] = {}
        for walk in self.walks:
            for fact in {fact_of(self.graph, edge): None for edge in walk.edges}:
                shares[fact] = shares.get(fact, 0.0) + walk.share
        return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def key_facts(self) -> tuple[KeyFact, ...]:
        """The facts of the pruned subgraph, those with the largest share first."""
        return tuple(
            KeyFact(named_fact(self.graph, fact), share, tuple(provenance_of(self.graph, fact)))
            for fact, share in self.fact_shares.items()
        )
