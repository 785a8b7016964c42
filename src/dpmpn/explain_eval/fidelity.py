"""Tests the explanations of a sample of answers: each question is asked again on changed graphs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dpmpn.ask.reasoner import Reasoner
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.data.graph import KnowledgeGraph
from dpmpn.engine.batch import QueryBatch, SampledEdges
from dpmpn.engine.engine import Engine
from dpmpn.errors import DataError
from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE, ExplanationData
from dpmpn.explain.paths import Edge
from dpmpn.explain_eval.evidence import KINDS, Evidence

CURVE = (1, 5, 20)  # strongest paths, beside all that are kept
ANSWERS = ("first", "stated")  # what is explained: what the model answers first, or what the split states


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

    def without(self, head: int, relation: int, answer: int, facts: Iterable[Edge]) -> Outcome:
        """Ask on the graph without some facts.

        The IGNN keeps the edges it drew, but for those of the facts: so the difference is the facts' and not that of
        another draw.
        """
        removed = edges_of(self.graph, facts)
        batch = self.engine.asking_batch(np.array([head]), np.array([relation]))
        kept = tuple(_kept(edges, ~np.isin(ids, removed)) for edges, ids in self._drawn)
        return self._asked(self.engine, replace(batch, removed=removed, ignn_edges=kept), answer)

    def alone(self, head: int, relation: int, answer: int, facts: Iterable[Edge]) -> Outcome:
        """Ask on the graph of these facts and no others."""
        graph = only_edges(self.graph, edges_of(self.graph, facts))
        engine = Engine(self.engine.model, graph, self.engine.config)
        return self._asked(engine, engine.asking_batch(np.array([head]), np.array([relation])), answer)

    def _asked(self, engine: Engine, batch: QueryBatch, answer: int) -> Outcome:
        return outcome(engine.answer(batch).of_all(self.graph.n_entities)[0], answer)


def measure_predictions(
    reasoner: Reasoner,
    split: str = "test",
    sample: int | None = 200,
    seed: int = 0,
    *,
    answers: str = "first",
    kept_paths: int = KEPT_PATHS,
    kept_share: float = KEPT_SHARE,
    progress: Callable[[int, int], None] | None = None,
) -> Sample:
    """Test explanations of the first or the stated answers to a sample of a split's questions, to all if None."""
    questions = split_questions(reasoner.dataset, split, answers)
    drawn = _drawn(questions, sample, seed)
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
            random = np.random.default_rng([seed, head, relation])
            evidence = Evidence(explanation, kept_paths, kept_share, random)
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
    reasoner: Reasoner, head: int, relation: int, answer: int | None = None
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
    def without(facts: frozenset[Edge]) -> Outcome:
        return graphs.without(*question, answer, sorted(facts))

    @cache
    def alone(facts: frozenset[Edge]) -> Outcome:
        return graphs.alone(*question, answer, sorted(facts))

    def tested(facts: tuple[Edge, ...]) -> EvidenceTest:
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


def edges_at(graph: KnowledgeGraph, entity: int) -> list[Edge]:
    """All edges that lead away from an entity or to it."""
    away = np.arange(*graph.offsets[entity : entity + 2])
    edges = np.union1d(away, np.flatnonzero(graph.tails == entity))
    columns = graph.edge_heads(edges), graph.relations[edges], graph.tails[edges]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def edges_of(graph: KnowledgeGraph, facts: Iterable[Edge]) -> np.ndarray:
    """Ids of the edges of facts, those of the inverse relations too, ascending."""
    ids = np.array(list(facts), np.int64).reshape(-1, 3)
    backward = np.stack([ids[:, 2], graph.inverse[ids[:, 1]], ids[:, 0]], 1)
    edges = np.concatenate([ids, backward[backward[:, 1] >= 0]])
    found = graph.find_edges(*edges.T) if len(edges) else np.empty(0, np.int64)
    return np.unique(found[found >= 0])


def only_edges(graph: KnowledgeGraph, edges: np.ndarray) -> KnowledgeGraph:
    """The graph of some of the edges, with all its entities and relations."""
    per_head = np.bincount(graph.edge_heads(edges), minlength=graph.n_entities)
    return replace(
        graph,
        offsets=np.concatenate([[0], np.cumsum(per_head)]).astype(np.int64),
        relations=graph.relations[edges],
        tails=graph.tails[edges],
    )


def _kept(edges: SampledEdges, keep: np.ndarray) -> SampledEdges:
    return SampledEdges(edges.heads[keep], edges.relations[keep], edges.tails[keep])
