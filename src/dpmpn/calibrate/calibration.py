"""One probability: what the score of a new answer is worth, from facts that were held out of training.

A question lacks an answer if a fact that the graph does not state answers it. Many lack none: who has a capital has no
second one. So there are two figures for an answer: how probable it is that it is right, learnt from all questions that
missing facts are looked for with; and how probable if its question lacks an answer, learnt from those that are known
to. Both are regressions on the score and on what the graph says about question and answer (`Evidence`). Constant and
slope differ by relation and by whether the graph states an answer already, shrunk towards all relations where a
relation has few cases (`shrunken_logistic`). The most probable of many answers is one whose probability is easily too
high. So a last curve is fitted to what regressions of three quarters of the questions say of the other quarter
(`rising_curve`).
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmpn.calibrate.reliability import Reliability, reliability
from dpmpn.calibrate.rising_curve import RisingCurve
from dpmpn.calibrate.shrunken_logistic import ShrunkenLogistic, fit, sigmoid

_FOLDS = 4  # parts of the questions, each judged by what the others teach
_FEATURES = 13
LEAST = 20  # questions that lack an answer: of fewer nothing is known
_UNLIKE = 0.01  # likeness is kept so far from 0 and 1
_SURE = 1e-6  # scores are kept so far from 0 and 1
_Z = 1.959964  # the normal distribution has 95 % within so many standard deviations
_DIFFERING = (0, 1, 7, 8)  # features that differ by relation: constant, log score, log n_stated, log likeness
_RISING = (1, 2, 7, 8, 11)  # features that speak for an answer: its score, more stated answers, likeness


@dataclass(frozen=True, eq=False)
class Evidence:
    """The new answers of some questions, grouped by question, the best first; what their probability follows from."""

    relation: np.ndarray  # questions: what is asked; an inverse one asks for heads
    n_stated: np.ndarray  # questions: how many answers the graph states
    likeness: (
        np.ndarray
    )  # questions: how often entities like the one asked about have the relation; 1 if it has itself
    unstated: np.ndarray  # questions: the part of the score that is not on stated answers
    question: np.ndarray  # answers: index of the question, ascending
    score: np.ndarray  # answers
    is_first: np.ndarray  # answers, bool: whether it is the best new one
    is_joined: np.ndarray  # answers, bool: whether another fact joins it to the entity asked about

    @cached_property
    def cell_of_question(self) -> np.ndarray:
        """The cell of each question: its relation, and whether it has an answer."""
        return np.asarray(2 * self.relation.astype(np.int64) + (self.n_stated > 0))

    @cached_property
    def cell(self) -> np.ndarray:
        """The cell of each answer's question."""
        return np.asarray(self.cell_of_question[self.question])

    @cached_property
    def features(self) -> np.ndarray:
        """What tells whether an answer is right: answers x 13.

        Of many answers more are missing than of one, so how many are stated says most about questions that have any;
        about others, how many entities like the one asked about have one. Where nearly all of those have one, the
        score decides more.
        """
        unstated, n_stated = self.unstated[self.question], self.n_stated[self.question]
        has = (n_stated > 0).astype(np.float64)
        share = np.clip(self.score / unstated, _SURE, 1 - _SURE)
        sure = (np.log(share), -np.log1p(-share))
        with_answer = (has, *(has * x for x in sure), has * np.log(unstated), np.log(np.maximum(n_stated, 1)))
        like = np.clip(self.likeness, _UNLIKE, 1 - _UNLIKE)[self.question]
        alike, unlike = (1 - has) * np.log(like), (1 - has) * -np.log1p(-like)
        marks = (self.is_first.astype(np.float64), self.is_joined.astype(np.float64))
        columns = (np.ones_like(share), *sure, *with_answer, alike, *marks, unlike, alike * sure[0])
        return np.stack(columns, 1)


OF_QUESTIONS = ("relation", "n_stated", "likeness", "unstated")
OF_ANSWERS = ("score", "is_first", "is_joined")
"""What evidence consists of, beside the question of each answer."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """What answers are worth, each with a 95 % interval and the number of cases behind it."""

    probability: np.ndarray  # that it is right
    low: np.ndarray
    high: np.ndarray
    if_missing: np.ndarray  # that it is right if its question lacks an answer
    cases: np.ndarray  # int64: questions of its relation that lacked an answer when this was measured


@dataclass(frozen=True, eq=False)
class Cases:
    """What is learnt from: questions whose answers are known to be right or wrong."""

    evidence: Evidence
    lacks: np.ndarray  # questions, bool: whether a held-out fact answers it
    right: np.ndarray  # answers, bool: whether a held-out fact states it
    listed: np.ndarray  # questions, bool: whether it is among those that missing facts are looked for with
    weight: np.ndarray  # questions: how many of these it stands for


@dataclass(frozen=True, eq=False)
class Scale:
    """What makes a probability of a score: a regression, and a curve after it."""

    regression: ShrunkenLogistic
    curve: RisingCurve  # of what the regression says

    def __call__(self, evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The logit of the probability of each answer, and of the ends of its 95 % interval."""
        mean, variance = self.regression.logit(evidence.features, evidence.cell)
        reach = _Z * np.sqrt(variance)
        # The mean of σ(z) for a normal z, as MacKay approximates it; the ends are quantiles, which need no mean.
        middle = mean / np.sqrt(1 + np.pi / 8 * variance)
        logits = (self.curve(sigmoid(z)) for z in (middle, mean - reach, mean + reach))
        return tuple(logits)  # type: ignore[return-value]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"regression": self.regression.to_dict(), "curve": self.curve.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any], n_cells: int) -> "Scale":
        """Read plain values; ValueError, KeyError, TypeError or IndexError if they are something else."""
        regression = ShrunkenLogistic.from_dict(values["regression"])
        if len(regression.offsets) != n_cells or len(regression.coefficients) != _FEATURES:
            raise ValueError("a regression of other cells or features than it is asked for")
        return cls(regression, RisingCurve.from_dict(values["curve"]))


@dataclass(frozen=True)
class BeforeAfter:
    """How reliable the score is, taken for a probability, and how reliable the probability."""

    before: Reliability
    after: Reliability

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "BeforeAfter":
        """Read plain values; ValueError, KeyError or TypeError if they are something else."""
        return cls(*(Reliability.from_dict(values[name]) for name in ("before", "after")))


@dataclass(frozen=True, eq=False)
class Calibration:
    """What scores are worth, how many cases that is learnt from, and how good it is.

    Reliabilities are of answers that the regressions had no part in.
    """

    right: Scale  # of answers to the questions that missing facts are looked for with
    if_missing: Scale  # of answers to questions that lack one
    cases: tuple[int, ...]  # by relation: questions that lacked an answer
    more: tuple[float, ...]  # by relation: how many facts are missing for each one that was asked for
    questions: int  # that missing facts are looked for with
    asked: int  # questions, to measure this
    of_first: BeforeAfter  # first answers of questions that lack one, given that they do
    of_all: BeforeAfter  # first answers of all questions

    def estimates(self, evidence: Evidence) -> Estimates:
        """The probability of each new answer."""
        # So many more are right for each one that is wrong.
        more = np.log(self.more)[evidence.relation][evidence.question]
        p, low, high = (sigmoid(logit + more) for logit in self.right(evidence))
        given = np.maximum(sigmoid(self.if_missing(evidence)[0]), p)
        cases = np.array(self.cases)[evidence.relation][evidence.question]
        return Estimates(p, np.minimum(low, p), np.maximum(high, p), given, cases)

    def fits(self, n_relations: int) -> bool:
        """Whether it was measured with relations of the same number."""
        return len(self.cases) == n_relations

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "more": list(self.more),
            "questions": self.questions,
            "asked": self.asked,
            "right": self.right.to_dict(),
            "if_missing": self.if_missing.to_dict(),
            "cases": list(self.cases),
            "of_first": asdict(self.of_first),
            "of_all": asdict(self.of_all),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Calibration":
        """Read plain values; ValueError, KeyError, TypeError or IndexError if they are something else."""
        cases = tuple(int(n) for n in values["cases"])
        right, if_missing = (
            Scale.from_dict(values[name], 2 * len(cases)) for name in ("right", "if_missing")
        )
        more, questions, asked = values["more"], int(values["questions"]), int(values["asked"])
        more = tuple(float(n) for n in more)
        if not all(0 < n < np.inf for n in more) or any(n < 0 for n in (*cases, questions, asked)):
            raise ValueError("a calibration with counts that are none")
        if len(more) != len(cases):
            raise ValueError("a calibration with counts of other relations")
        of_first, of_all = (BeforeAfter.from_dict(values[name]) for name in ("of_first", "of_all"))
        return cls(right, if_missing, cases, more, questions, asked, of_first, of_all)


def calibrate(
    cases: Cases, n_relations: int, questions: int, more: np.ndarray | None = None, seed: int = 0
) -> Calibration | None:
    """Learn what scores are worth, and measure how good that is; None where too few questions lack answers.

    `more` is how many facts of each relation are missing for each one that is asked for; one, if it is left out.
    """
    if cases.lacks.sum() < LEAST:
        return None
    fold = _folds(cases.evidence, seed)
    of_all, of_first = _listed(cases), _lacking(cases)
    all_scale, all_pair = _learnt(of_all, fold, n_relations)
    first_scale, first_pair = _learnt(of_first, fold, n_relations)
    counts = np.bincount(cases.evidence.relation[cases.lacks], minlength=n_relations)
    more = np.ones(n_relations) if more is None else more
    columns = (tuple(counts.tolist()), tuple(more.tolist()), questions, len(cases.lacks))
    return Calibration(all_scale, first_scale, *columns, first_pair, all_pair)


def _folds(evidence: Evidence, seed: int) -> np.ndarray:
    """A fold for each question: those of a cell are dealt out in turn, so that each is judged by others like it.

    A question that is alone in its cell has none, -1. It may stand for many, and others could only be wrong about it.
    """
    cell = evidence.cell_of_question
    order = np.lexsort((np.random.default_rng(seed).permutation(len(cell)), cell))
    fold = np.empty(len(cell), np.int64)
    fold[order] = np.arange(len(cell)) % _FOLDS
    fold[np.bincount(cell)[cell] == 1] = -1
    return fold


@dataclass(frozen=True, eq=False)
class _Rows:
    """Answers to learn from."""

    evidence: Evidence
    answers: np.ndarray  # which of the evidence's
    right: np.ndarray
    weight: np.ndarray

    def fitted(self, rows: np.ndarray, n_relations: int) -> ShrunkenLogistic:
        """The regression of some of them."""
        of = self.answers[rows]
        features, cell = self.evidence.features[of], self.evidence.cell[of]
        return fit(features, cell, self.right[rows], self.weight[rows], 2 * n_relations, _DIFFERING, _RISING)


def _listed(cases: Cases) -> _Rows:
    """Answers to the questions that missing facts are looked for with.

    Right answers are few and say most: where only some of their questions were drawn, these stand for themselves.
    """
    question = cases.evidence.question
    answers = np.flatnonzero(cases.listed[question])
    lacking = cases.listed & cases.lacks
    drawn = cases.weight[lacking].mean() if lacking.any() else 1.0
    return _Rows(cases.evidence, answers, cases.right[answers], cases.weight[question[answers]] / drawn)


def _lacking(cases: Cases) -> _Rows:
    """Answers to questions that lack one."""
    answers = np.flatnonzero(cases.lacks[cases.evidence.question])
    return _Rows(cases.evidence, answers, cases.right[answers], np.ones(len(answers)))


def _learnt(rows: _Rows, fold: np.ndarray, n_relations: int) -> tuple[Scale, BeforeAfter]:
    """A scale, and how reliable first answers are by it: those of a fold are judged by what the others teach."""
    evidence, of_fold = rows.evidence, fold[rows.evidence.question[rows.answers]]
    said = np.full(len(rows.answers), np.nan)
    for number in range(_FOLDS):
        judged = of_fold == number
        regression = rows.fitted(~judged, n_relations)
        of = rows.answers[judged]
        mean, variance = regression.logit(evidence.features[of], evidence.cell[of])
        said[judged] = sigmoid(mean / np.sqrt(1 + np.pi / 8 * variance))
    is_judged = of_fold >= 0
    curve = RisingCurve.of(said[is_judged], rows.right[is_judged], rows.weight[is_judged])
    scale = Scale(rows.fitted(np.ones(len(said), bool), n_relations), curve)
    first = evidence.is_first[rows.answers] & is_judged
    right, weight = rows.right[first].astype(np.float64), rows.weight[first]
    score, probability = evidence.score[rows.answers][first], sigmoid(curve(said[first]))
    return scale, BeforeAfter(*(reliability(x, right, weight) for x in (score, probability)))
