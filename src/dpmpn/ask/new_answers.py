"""Answers that are new and fit what the relation asks for, and how probable each is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmpn.ask.core import HELD_OUT, KNOWN, Answers, KnownFacts
from dpmpn.calibrate.calibration import Calibration, Evidence
from dpmpn.data.dataset import SPLITS

if TYPE_CHECKING:
    from dpmpn.data.graph import KnowledgeGraph

MEASURED = ("probability", "probability_low", "probability_high", "probability_if_missing", "cases")
"""What is measured of an answer, as predictions and tables call it."""
_LEAST_UNSTATED = 1e-6  # of a score: what is on stated answers may round to all of it


@dataclass(frozen=True, eq=False)
class NewAnswers:
    """New answers to some questions, grouped by question, the best first, and what their probability follows from."""

    rows: np.ndarray  # int64: which of the answers to the questions they are
    entities: np.ndarray  # int32
    stated: np.ndarray  # int8: which split that does not count states it, as `KnownFacts` says it
    evidence: Evidence

    @classmethod
    def among(
        cls,
        answers: Answers,
        graph: "KnowledgeGraph",
        known: KnownFacts,
        splits: Sequence[str] = SPLITS[:1],  # whose facts are not new
        stated: np.ndarray | None = None,  # where each answer is stated, if that is known already
    ) -> "NewAnswers":
        """Those of some answers that are new and fit."""
        stated = known.stated_of(answers) if stated is None else stated
        n_questions, question, score = len(answers.heads), answers.query, answers.scores.astype(np.float64)
        on_stated = np.bincount(question, score * (stated == KNOWN), n_questions)
        is_new = np.array([True, False, *(split not in splits for split in HELD_OUT[2:])])
        rows = np.flatnonzero(is_new[stated] & fitting(answers, graph, known))
        question, score = question[rows], score[rows]
        is_first = np.diff(question, prepend=-1) > 0
        evidence = Evidence(
            answers.relations,
            graph.n_edges_of(answers.heads, answers.relations),
            known.roles.likeness(answers.heads, answers.relations),
            np.clip(1 - on_stated, _LEAST_UNSTATED, 1),
            question,
            score,
            is_first,
            graph.joined(answers.entities[rows], answers.heads[question]),
        )
        return cls(rows, answers.entities[rows], stated[rows], evidence)

    @property
    def ranks(self) -> np.ndarray:
        """The rank of each among the new answers to its question, from 1."""
        question = self.evidence.question
        return np.arange(len(question)) - np.searchsorted(question, question) + 1


def fitting(answers: Answers, graph: "KnowledgeGraph", known: KnownFacts) -> np.ndarray:
    """Which answers fit what the relation asks for: entities that some fact has there, and those like them (`roles`).

    Where no stated fact joins an entity to itself, the head of a question is no answer either.
    """
    asked = answers.relations[answers.query]
    fits = (answers.entities != answers.heads[answers.query]) | known.reflexive[asked]
    for relation in np.unique(answers.relations).tolist():
        backwards = int(graph.inverse[relation])
        if backwards >= 0:
            of_relation = np.flatnonzero(fits & (asked == relation))
            fits[of_relation] = known.roles.fit(answers.entities[of_relation], backwards)
    return np.asarray(fits)


def measured_columns(calibration: Calibration | None, evidence: Evidence) -> dict[str, np.ndarray]:
    """What was measured of answers like these, by name: NaN where nothing was."""
    if calibration is None:
        return {name: np.full(len(evidence.score), np.nan) for name in MEASURED}
    found = calibration.estimates(evidence)
    columns = (found.probability, found.low, found.high, found.if_missing, found.cases.astype(np.float64))
    return dict(zip(MEASURED, columns, strict=True))


@dataclass(frozen=True, eq=False)
class Judged:
    """What is known of answers, one by one."""

    stated: np.ndarray  # int8: where each is stated, as `KnownFacts` says it
    fits: np.ndarray  # bool: whether it is stated by the graph, or fits what the relation asks for
    measured: dict[
        str, np.ndarray
    ]  # by `MEASURED`; NaN where the graph states it, or nothing like it was measured

    @classmethod
    def of(
        cls, answers: Answers, graph: "KnowledgeGraph", known: KnownFacts, calibration: Calibration | None
    ) -> "Judged":
        """Look up and estimate all answers to some questions; some of them alone would be told other probabilities."""
        stated = known.stated_of(answers)
        new = NewAnswers.among(answers, graph, known, stated=stated)
        fits = stated == KNOWN
        fits[new.rows] = True
        sensible = known.roles.sensible(answers.heads, answers.relations)[new.evidence.question]
        measured = {}
        for name, values in measured_columns(calibration, new.evidence).items():
            measured[name] = np.full(len(stated), np.nan)
            measured[name][new.rows[sensible]] = values[sensible]
        return cls(stated, fits, measured)
