"""Tests the explanations of a sample of answers: each question is asked again on changed graphs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from dpmpn.data.changed_graph import only_edges
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.decisive.variants import Facts, edges_of, facts_of
from dpmpn.engine.engine import Engine
from dpmpn.errors import DataError
from dpmpn.explain.distance import shortest_paths
from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE, ExplanationData, full_edges
from dpmpn.explain.paths import EdgeIds, Walk, fact_of, strongest_walks
from dpmpn.explain_eval.deciding import DecidingTest, deciding_test
from dpmpn.explain_eval.outcome import Outcome, outcome

if TYPE_CHECKING:
    from dpmpn.reasoner.reasoner import Reasoner

KINDS = ("explanation", "random", "shortest")  # of evidence
FEW_PATHS = 5  # of HΔR@5
CURVE = (1, 5, 20)  # strongest paths, beside all that are kept
ANSWERS = ("first", "stated")  # what is explained: what the model answers first, or what the split states


@dataclass(frozen=True)
class Measurement:
    """Which questions are asked, and what explanations of their answers are tested."""

    split: str = "test"
    sample: int | None = 200  # how many questions are drawn; all if None
    seed: int = 0  # what questions and random facts are drawn by
    answers: str = "first"  # one of ANSWERS
    kept_paths: int = KEPT_PATHS
    kept_share: float = KEPT_SHARE


@dataclass(frozen=True)
class EvidenceTest:
    """What became of an answer without some facts, and with nothing but them."""

    n_facts: int
    without: Outcome
    alone: Outcome


@dataclass(frozen=True)
class Measured:
    """One prediction and the tests of its evidence."""

    head: int
    relation: int
    answer: int
    right: bool  # some split states the answer
    known: bool  # the graph states it already: then the fact itself is in reach
    before: Outcome
    isolated: Outcome  # without any fact of the head: what a prior alone gives
    full_facts: int  # of the full subgraph
    paths: int
    kept_share: float  # of the answer's attention, that came along these paths
    evidence: dict[str, EvidenceTest]  # by kind, all with as many facts
    few_paths: dict[str, Outcome]  # by kind, without the facts of five paths
    few_facts: dict[str, int]  # how many these were
    curve: tuple[EvidenceTest, ...]  # the explanation of the strongest paths alone, for each number of CURVE
    deciding: DecidingTest | None  # None of an answer that nothing but its own fact supports


class Nothing(Enum):
    """Why a question had nothing to measure."""

    WITHOUT_FACTS = "head without any fact: attention cannot leave it"
    UNREACHED = "no attention reached the stated answer"
    STAYED = "the head itself was the answer: no fact led there"


@dataclass(frozen=True)
class Sample:
    """What was measured, and how many questions had nothing to measure."""

    measured: tuple[Measured, ...]
    questions: int  # that were drawn
    of_questions: int  # that the split has; the same ones count once
    without_facts: int  # heads without any fact: attention cannot leave them
    unreached: int  # stated answers that no attention reached
    stayed: int  # the head itself was the answer: no fact led there

    @classmethod
    def of(cls, found: Sequence[Measured | Nothing], of_questions: int) -> "Sample":
        """What became of all questions that were drawn, in their order."""
        measured = tuple(one for one in found if isinstance(one, Measured))
        return cls(measured, len(found), of_questions, *(found.count(reason) for reason in Nothing))


class ChangedGraphs:
    """Asks one question on changes of an engine's graph; the network stays as it is.

    The IGNN keeps the edges it drew, but for those of removed facts: so a difference is the facts' and not that of
    another draw.
    """

    def __init__(self, engine: Engine, head: int, relation: int, answer: int, hidden: Facts = ()) -> None:
        self.engine, self.graph, self.hidden = engine, engine.graph, hidden  # these facts are never there
        self.head, self.relation, self.answer = head, relation, answer

    def without(self, sets: Sequence[Iterable[EdgeIds]]) -> list[Outcome]:
        """Ask on the graph without each set of facts."""
        return self._asked(self.engine, [edges_of(self.graph, {*facts, *self.hidden}) for facts in sets])

    def alone(self, facts: Iterable[EdgeIds]) -> Outcome:
        """Ask on the graph of these facts and no others."""
        graph = only_edges(self.graph, edges_of(self.graph, facts))
        return self._asked(self.engine.beside(graph), [np.empty(0, np.int64)])[0]

    def _asked(self, engine: Engine, removed: Sequence[np.ndarray]) -> list[Outcome]:
        batch = engine.without_each(self.head, self.relation, removed)
        answers = engine.answer(batch).of_all(self.graph.n_entities)
        return [outcome(probabilities, self.answer) for probabilities in answers]


class Evidence:
    """The facts that each kind of evidence has for one explained answer; facts are ids in the file's direction."""

    def __init__(
        self, explanation: ExplanationData, most_paths: int, enough: float, random: np.random.Generator
    ) -> None:
        self._graph, self._itself = explanation.graph, hidden_fact(explanation)
        flow = self._flow = explanation.flow
        self._ends = int(flow.query.nodes[flow.query.head]), int(flow.query.nodes[flow.answer])
        self._longest = explanation.n_steps
        self.walks: list[Walk] = strongest_walks(flow, most_paths, enough)
        _, full = full_edges(flow, self._graph, explanation.horizon.max_attending_from_per_step)
        edges = flow.query.nodes[full.head], full.relation, flow.query.nodes[full.tail]
        self.full = self._of_paths([zip(*(column.tolist() for column in edges), strict=True)])
        self._shuffled = [self.full[i] for i in random.permutation(len(self.full))]

    def facts(self, kind: str, paths: int | None = None) -> tuple[EdgeIds, ...]:
        """As many facts of a kind as the explanation has: of all its paths, or of the strongest ones alone."""
        explained = self._of_paths(walk.edges for walk in self.walks[:paths])
        if kind == "explanation":
            return explained
        return self.chosen(kind, len(explained))

    def chosen(self, kind: str, most: int) -> tuple[EdgeIds, ...]:
        """So many random facts of the full subgraph, or of the shortest paths."""
        if kind == "random":
            return tuple(self._shuffled[:most])
        return self._of_paths(self._shortest_paths(), most)

    def few_paths(self, kind: str) -> tuple[EdgeIds, ...]:
        """The facts of the five strongest or the five shortest paths, or as many random facts as the strongest have.

        There are five where attention came along so many, also if fewer brought enough for an explanation.
        """
        if kind == "shortest":
            return self._of_paths(islice(self._shortest_paths(), FEW_PATHS))
        strongest = self._of_paths(walk.edges for walk in strongest_walks(self._flow, FEW_PATHS))
        return strongest if kind == "explanation" else tuple(self._shuffled[: len(strongest)])

    def _shortest_paths(self) -> Iterable[tuple[EdgeIds, ...]]:
        return shortest_paths(self._graph, *self._ends, self._longest)

    def _of_paths(self, paths: Iterable[Iterable[EdgeIds]], most: int | None = None) -> tuple[EdgeIds, ...]:
        """The facts of paths in their order, each once."""
        facts: dict[EdgeIds, None] = {}
        if most == 0:
            return ()
        for path in paths:
            for edge in path:
                if (fact := fact_of(self._graph, edge)) in self._itself:
                    break  # it was asked without that
                facts[fact] = None
                if len(facts) == most:
                    return tuple(facts)
        return tuple(facts)


def measure_question(reasoner: "Reasoner", plan: Measurement, question: Sequence[int]) -> Measured | Nothing:
    """Test the explanation of the answer to one question: head, relation and, if stated, answer."""
    head, relation, *answer = question
    if not reasoner.graph.degree(head):
        return Nothing.WITHOUT_FACTS
    explanation = explained(reasoner, head, relation, *answer)
    if explanation is None:
        return Nothing.UNREACHED
    # Draws depend on the question alone, so that a larger sample repeats them.
    random = np.random.default_rng([plan.seed, head, relation])
    evidence = Evidence(explanation, plan.kept_paths, plan.kept_share, random)
    if not evidence.facts("explanation"):
        return Nothing.STAYED
    return _measured(reasoner, explanation, evidence, (head, relation))


def split_questions(dataset: Dataset, split: str, answers: str = "first") -> np.ndarray:
    """The questions of a split in all directions that are asked: head, relation and, if stated, answer; each once."""
    queries = dataset.queries(split)
    if not len(queries):
        others = [name for name in SPLITS[1:] if len(dataset.split(name))]
        instead = f"use --split {others[0]}" if others else "use --split train"
        raise DataError(f"dataset '{dataset.name}' has no {split} triples to ask about; {instead}")
    return np.unique(queries[:, :2] if answers == "first" else queries[:, :3], axis=0)


def explained(
    reasoner: "Reasoner", head: int, relation: int, answer: int | None = None
) -> ExplanationData | None:
    """Why a question has an answer, the first if none is given; None where no attention reached it."""
    inverse = bool(reasoner.graph.is_inverse[relation])
    (result,) = reasoner.ask([(head, relation, inverse)])
    return result.explain(answer) if answer is None or result.is_reached(answer) else None


def draw(questions: np.ndarray, sample: int | None, seed: int) -> np.ndarray:
    """Some of the questions in their order, or all."""
    if sample is None or sample >= len(questions):
        return questions
    if sample < 1:
        raise DataError(f"cannot measure {sample} predictions; take a sample of at least 1")
    return questions[np.sort(np.random.default_rng(seed).choice(len(questions), sample, replace=False))]


def hidden_fact(explanation: ExplanationData) -> Facts:
    """The fact asked for, where the graph states it and the explanation is of asking without it."""
    if explanation.with_fact is None:
        return ()
    graph, names = explanation.graph, explanation.question
    entity, relation = graph.entities.id, graph.relation_names.id
    head, answer = entity(names.head), entity(explanation.answer.answer)
    ends = (answer, head) if names.inverse else (head, answer)
    return ((ends[0], relation(names.relation), ends[1]),)


def _measured(
    reasoner: "Reasoner", explanation: ExplanationData, evidence: Evidence, question: tuple[int, int]
) -> Measured:
    flow = explanation.flow
    answer = int(flow.query.nodes[flow.answer])
    hidden = hidden_fact(explanation)
    graphs = ChangedGraphs(reasoner.engine_beside, *question, answer, hidden)
    kinds = {kind: evidence.facts(kind) for kind in KINDS}
    few = {kind: evidence.few_paths(kind) for kind in KINDS}
    points = [evidence.facts("explanation", paths) for paths in CURVE]
    isolated = facts_of(graphs.graph, question[0])
    sets = list(dict.fromkeys(map(frozenset, [(), isolated, *kinds.values(), *few.values(), *points])))
    without = dict(zip(sets, graphs.without(sets), strict=True))

    @cache  # some facts are those of several kinds of evidence
    def alone(facts: frozenset[EdgeIds]) -> Outcome:
        return graphs.alone(sorted(facts))

    def tested(facts: tuple[EdgeIds, ...]) -> EvidenceTest:
        return EvidenceTest(len(facts), without[frozenset(facts)], alone(frozenset(facts)))

    return Measured(
        *question,
        answer,
        right=explanation.answer.known or explanation.answer.held_out != "",
        known=explanation.answer.known,
        before=without[frozenset()],
        isolated=without[frozenset(isolated)],
        full_facts=len(evidence.full),
        paths=len(evidence.walks),
        kept_share=sum(walk.share for walk in evidence.walks),
        evidence={kind: tested(facts) for kind, facts in kinds.items()},
        few_paths={kind: without[frozenset(facts)] for kind, facts in few.items()},
        few_facts={kind: len(facts) for kind, facts in few.items()},
        curve=tuple(map(tested, points)),
        deciding=deciding_test(reasoner, explanation, evidence, graphs)
        if not explanation.needs_itself
        else None,
    )
