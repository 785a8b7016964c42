"""Tests the explanations of a sample of answers: each question is asked again on changed graphs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from dpmpn.ask.reasoner import Reasoner
from dpmpn.data.dataset import SPLITS, Dataset
from dpmpn.errors import DataError
from dpmpn.evaluate.evaluator import known_answers
from dpmpn.explain.explanation import KEPT_PATHS, KEPT_SHARE, ExplanationData
from dpmpn.explain.paths import Edge
from dpmpn.explain_eval.asking import ChangedGraphs, Outcome, edges_at
from dpmpn.explain_eval.evidence import KINDS, Evidence
from dpmpn.explain_eval.shortest import ShortestPaths

CURVE = (1, 5, 20)  # strongest paths, beside all that are kept
ANSWERS = ("first", "stated")  # what is explained: what the model answers first, or what the split states


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


class _OneQuestion:
    """Asks one question on changed graphs, about the same facts only once."""

    def __init__(self, graphs: ChangedGraphs, head: int, relation: int, answer: int) -> None:
        self._graphs, self._question = graphs, (head, relation, answer)
        self._asked: dict[tuple[str, frozenset[Edge]], Outcome] = {}

    def without(self, facts: Iterable[Edge]) -> Outcome:
        return self._ask("without", self._graphs.without, frozenset(facts))

    def alone(self, facts: Iterable[Edge]) -> Outcome:
        return self._ask("alone", self._graphs.alone, frozenset(facts))

    def tested(self, facts: tuple[Edge, ...]) -> EvidenceTest:
        return EvidenceTest(len(facts), self.without(facts), self.alone(facts))

    def _ask(self, how: str, ask: Callable[..., Outcome], facts: frozenset[Edge]) -> Outcome:
        if (how, facts) not in self._asked:
            self._asked[how, facts] = ask(*self._question, sorted(facts))
        return self._asked[how, facts]


def measure_predictions(
    reasoner: Reasoner,
    split: str = "test",
    sample: int | None = 200,
    seed: int = 0,
    *,
    answers: str = "first",
    most_paths: int = KEPT_PATHS,
    enough: float = KEPT_SHARE,
    progress: Callable[[int, int], None] | None = None,
) -> Sample:
    """Test explanations of the first or the stated answers to a sample of a split's questions, to all if None."""
    questions = split_questions(reasoner.dataset, split, answers)
    drawn = _drawn(questions, sample, seed)
    graphs, shortest = ChangedGraphs(reasoner.engine), ShortestPaths(reasoner.graph)
    known = known_answers(reasoner.dataset)
    measured: list[Measured] = []
    without_facts = unreached = stayed = 0
    for at, (head, relation, *answer) in enumerate(drawn.tolist()):
        if not reasoner.graph.degree(head):
            without_facts += 1
        elif (explanation := explained(reasoner, head, relation, *answer)) is None:
            unreached += 1
        else:
            # Draws depend on the question alone, so that a larger sample repeats them.
            random = np.random.default_rng([seed, head, relation])
            evidence = Evidence(explanation, shortest, most_paths, enough, random)
            if evidence.facts("explanation"):
                stated = known.lookup(np.array([head]), np.array([relation]))[1]
                measured.append(_measured(explanation, evidence, graphs, (head, relation), stated))
            else:
                stayed += 1
        if progress is not None:
            progress(at + 1, len(drawn))
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
    graph = reasoner.graph
    inverse = bool(graph.is_inverse[relation])
    asked = int(graph.inverse[relation]) if inverse else relation
    names = graph.entities.name(head), graph.relation_names.name(asked)
    answers = reasoner.predict(*names, inverse=inverse)
    if answer is not None and not answers.is_reached(graph.entities.name(answer)):
        return None
    return answers.explain(None if answer is None else graph.entities.name(answer))


def _drawn(questions: np.ndarray, sample: int | None, seed: int) -> np.ndarray:
    if sample is None or sample >= len(questions):
        return questions
    if sample < 1:
        raise DataError(f"cannot measure {sample} predictions; take a sample of at least 1")
    return questions[np.sort(np.random.default_rng(seed).choice(len(questions), sample, replace=False))]


def _measured(
    explanation: ExplanationData,
    evidence: Evidence,
    graphs: ChangedGraphs,
    question: tuple[int, int],
    stated: np.ndarray,
) -> Measured:
    flow = explanation.flow
    answer = int(flow.query.nodes[flow.answer])
    asking = _OneQuestion(graphs, *question, answer)
    few = {kind: evidence.few_paths(kind) for kind in KINDS}
    return Measured(
        *question,
        answer,
        right=bool(explanation.answer.known or answer in stated),
        known=explanation.answer.known,
        before=asking.without(()),
        isolated=asking.without(edges_at(graphs.graph, question[0])),
        full_facts=len(evidence.full),
        paths=len(evidence.walks),
        kept_share=sum(walk.share for walk in evidence.walks),
        evidence={kind: asking.tested(evidence.facts(kind)) for kind in KINDS},
        few_paths={kind: asking.without(facts) for kind, facts in few.items()},
        few_facts={kind: len(facts) for kind, facts in few.items()},
        curve=tuple(asking.tested(evidence.facts("explanation", paths)) for paths in CURVE),
    )
