"""Tests the explanations of a sample of answers: each question is asked again on changed graphs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch, SampledEdges
from dpmpn.engine.engine import Engine
from dpmpn.errors import DataError
from dpmpn.explain.distance import shortest_paths
from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE, ExplanationData, full_edges
from dpmpn.explain.paths import EdgeIds, Walk, fact_of, strongest_walks

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
class Outcome:
    """What became of an answer when the question was asked."""

    probability: float
    rank: float  # among all entities, ties at their mean; the last where it has no probability


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


@dataclass(frozen=True)
class Sample:
    """What was measured, and how many questions had nothing to measure."""

    measured: tuple[Measured, ...]
    questions: int  # that were drawn
    of_questions: int  # that the split has; the same ones count once
    without_facts: int  # heads without any fact: attention cannot leave them
    unreached: int  # stated answers that no attention reached
    stayed: int  # the head itself was the answer: no fact led there


class ChangedGraphs:
    """Asks on changes of one engine's graph; the network stays as it is."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.graph = engine, engine.graph
        drawn = engine.asking_batch(np.zeros(0, np.int32), np.zeros(0, np.int64)).ignn_edges
        self._drawn = [
            (edges, self.graph.find_edges(edges.heads, edges.relations, edges.tails)) for edges in drawn
        ]

    def without(self, head: int, relation: int, answer: int, facts: Iterable[EdgeIds]) -> Outcome:
        """Ask on the graph without some facts.

        The IGNN keeps the edges it drew, but for those of the facts: so the difference is the facts' and not that of
        another draw.
        """
        removed = edges_of(self.graph, facts)
        batch = self.engine.asking_batch(np.array([head]), np.array([relation]))
        kept = tuple(_kept(edges, ~np.isin(ids, removed)) for edges, ids in self._drawn)
        return self._asked(self.engine, replace(batch, removed=removed, ignn_edges=kept), answer)

    def alone(self, head: int, relation: int, answer: int, facts: Iterable[EdgeIds]) -> Outcome:
        """Ask on the graph of these facts and no others."""
        graph = only_edges(self.graph, edges_of(self.graph, facts))
        engine = Engine(self.engine.model, graph, self.engine.config)
        return self._asked(engine, engine.asking_batch(np.array([head]), np.array([relation])), answer)

    def _asked(self, engine: Engine, batch: QueryBatch, answer: int) -> Outcome:
        return outcome(engine.answer(batch).of_all(self.graph.n_entities)[0], answer)


class Evidence:
    """The facts that each kind of evidence has for one explained answer; facts are ids in the file's direction."""

    def __init__(
        self, explanation: ExplanationData, most_paths: int, enough: float, random: np.random.Generator
    ) -> None:
        self._graph = explanation.graph
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
        if kind == "random":
            return tuple(self._shuffled[: len(explained)])
        return self._of_paths(self._shortest_paths(), len(explained))

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
                facts[fact_of(self._graph, edge)] = None
                if len(facts) == most:
                    return tuple(facts)
        return tuple(facts)


def measure_predictions(
    reasoner: "Reasoner",
    plan: Measurement = Measurement(),  # noqa: B008 (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> Sample:
    """Test explanations of the answers to a sample of a split's questions."""
    questions = split_questions(reasoner.dataset, plan.split, plan.answers)
    drawn = _drawn(questions, plan.sample, plan.seed)
    graphs = ChangedGraphs(reasoner.engine)
    measured: list[Measured] = []
    without_facts = unreached = stayed = 0
    for done, (head, relation, *answer) in enumerate(drawn.tolist(), 1):
        if not reasoner.graph.degree(head):
            without_facts += 1
        elif (explanation := explained(reasoner, head, relation, *answer)) is None:
            unreached += 1
        else:
            # Draws depend on the question alone, so that a larger sample repeats them.
            random = np.random.default_rng([plan.seed, head, relation])
            evidence = Evidence(explanation, plan.kept_paths, plan.kept_share, random)
            if evidence.facts("explanation"):
                measured.append(_measured(explanation, evidence, graphs, (head, relation)))
            else:
                stayed += 1
        if progress is not None:
            progress(done, len(drawn))
    return Sample(tuple(measured), len(drawn), len(questions), without_facts, unreached, stayed)


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


def _drawn(questions: np.ndarray, sample: int | None, seed: int) -> np.ndarray:
    if sample is None or sample >= len(questions):
        return questions
    if sample < 1:
        raise DataError(f"cannot measure {sample} predictions; take a sample of at least 1")
    return questions[np.sort(np.random.default_rng(seed).choice(len(questions), sample, replace=False))]


def _measured(
    explanation: ExplanationData, evidence: Evidence, graphs: ChangedGraphs, question: tuple[int, int]
) -> Measured:
    flow = explanation.flow
    answer = int(flow.query.nodes[flow.answer])

    @cache  # some facts are those of several kinds of evidence
    def without(facts: frozenset[EdgeIds]) -> Outcome:
        return graphs.without(*question, answer, sorted(facts))

    @cache
    def alone(facts: frozenset[EdgeIds]) -> Outcome:
        return graphs.alone(*question, answer, sorted(facts))

    def tested(facts: tuple[EdgeIds, ...]) -> EvidenceTest:
        return EvidenceTest(len(facts), without(frozenset(facts)), alone(frozenset(facts)))

    few = {kind: evidence.few_paths(kind) for kind in KINDS}
    return Measured(
        *question,
        answer,
        right=explanation.answer.known or explanation.answer.held_out != "",
        known=explanation.answer.known,
        before=without(frozenset()),
        isolated=without(frozenset(edges_at(graphs.graph, question[0]))),
        full_facts=len(evidence.full),
        paths=len(evidence.walks),
        kept_share=sum(walk.share for walk in evidence.walks),
        evidence={kind: tested(evidence.facts(kind)) for kind in KINDS},
        few_paths={kind: without(frozenset(facts)) for kind, facts in few.items()},
        few_facts={kind: len(facts) for kind, facts in few.items()},
        curve=tuple(tested(evidence.facts("explanation", paths)) for paths in CURVE),
    )


def outcome(probabilities: np.ndarray, answer: int) -> Outcome:
    """The outcome for an answer, from the probabilities of all entities."""
    own = probabilities[answer]
    if own == 0:
        return Outcome(0.0, float(len(probabilities)))
    better, tied = np.sum(probabilities > own), np.sum(probabilities == own)
    return Outcome(float(own), float(better + (tied + 1) / 2))


def edges_at(graph: KnowledgeGraph, entity: int) -> list[EdgeIds]:
    """All edges that lead away from an entity or to it."""
    away = np.arange(*graph.offsets[entity : entity + 2])
    edges = np.union1d(away, np.flatnonzero(graph.tails == entity))
    columns = graph.edge_heads(edges), graph.relations[edges], graph.tails[edges]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def edges_of(graph: KnowledgeGraph, facts: Iterable[EdgeIds]) -> np.ndarray:
    """Ids of the edges of facts, those of the inverse relations too, ascending."""
    ids = np.array(list(facts), np.int64).reshape(-1, 3)
    backward = np.stack([ids[:, 2], graph.inverse[ids[:, 1]], ids[:, 0]], 1)
    edges = np.concatenate([ids, backward[backward[:, 1] >= 0]])
    found = graph.find_edges(*edges.T) if len(edges) else np.empty(0, np.int64)
    return np.unique(found[found >= 0])
