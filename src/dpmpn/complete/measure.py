"""New answers to questions; on validation facts they measure a calibration, which is kept in the run folder.

The pre-trained model has seen no fact of its graph. Where there are no validation facts, some of the graph's own are
hidden from it and asked for.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpn.ask.core import HELD_OUT, Asker, fingerprint
from dpmpn.ask.reasoner import Reasoner
from dpmpn.complete.calibration import Calibration, JudgedAnswers, calibrate
from dpmpn.complete.questions import FIRST_HEAD_GROUP, Asking, QuestionList, Questions
from dpmpn.data.changed_graph import with_hidden
from dpmpn.data.dataset import Dataset
from dpmpn.errors import RunError
from dpmpn.files import read_json, write_json

FILE = "calibration.json"
FORMAT, VERSION = "dpmpn-calibration", 2
SAMPLE = 3000  # questions asked of each group with a validation fact, and as many without
HIDDEN_SAMPLE = 500  # the same of hidden facts, which are measured anew for each graph: in seconds
HIDDEN_SHARE = 0.1  # of the graph's facts
_KNOWN = ("train", "test")  # what is not pretended to be missing


@dataclass(frozen=True, eq=False)
class NewAnswers:
    """Answers grouped by question, the most attended first."""

    rows: np.ndarray  # int64: which of the questions
    entities: np.ndarray  # int32
    attention: np.ndarray  # float64
    stated: np.ndarray  # int8: which split that does not count holds it, as `KnownFacts` says it


class Finder:
    """Asks for answers that are stated neither in the graph nor in some splits."""

    def __init__(self, reasoner: Reasoner, splits: Sequence[str], answers: int) -> None:
        self._asker, self._known, self._answers = Asker(reasoner.engine), reasoner.known, answers
        self._is_new = np.array([True, False, *(split not in splits for split in HELD_OUT[2:])])
        self._reflexive = _reflexive(reasoner.dataset)

    def find(
        self,
        questions: QuestionList,
        may_be_head: np.ndarray | None = None,  # entities: whether one may answer a question for heads
        tick: Callable[[int], None] | None = None,  # told how many of the questions were asked
    ) -> NewAnswers:
        """The best new answers of each question, at most `answers` of each."""
        empty = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0), np.empty(0, np.int8))
        found = [empty]
        for start, answers in self._asker.batches(questions.heads, questions.relations):
            stated = self._known.stated_of(answers)
            rows, entities = answers.query + start, answers.entities
            new = self._is_new[stated]
            # Where no stated fact joins an entity to itself, attention that stayed at the head is no answer.
            new &= (entities != questions.heads[rows]) | self._reflexive[questions.relations[rows]]
            if may_be_head is not None:
                new &= may_be_head[entities] | (questions.groups[rows] < FIRST_HEAD_GROUP)
            new[new] = answers[new].ranks <= self._answers
            attention = answers.probabilities[new].astype(np.float64)
            found.append((rows[new], entities[new], attention, stated[new]))
            if tick is not None:
                tick(start + len(answers.heads))
        return NewAnswers(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _reflexive(dataset: Dataset) -> np.ndarray:
    """For each relation, whether a stated fact joins an entity to itself."""
    graph, train = dataset.graph, dataset.train
    heads = np.repeat(np.arange(graph.n_entities, dtype=np.int32), np.diff(graph.offsets))
    found = np.zeros(graph.n_relations, bool)
    found[graph.relations[heads == graph.tails]] = True
    found[train[train[:, 0] == train[:, 2], 1]] = True
    return found


def calibration_of(
    reasoner: Reasoner,
    asking: Asking = Asking(),  # noqa: B008 (frozen)
    *,
    sample: int | None = None,
    again: bool = False,
    folder: Path | None = None,  # where it is kept
    progress: Callable[[int, int], None] | None = None,
) -> Calibration | None:
    """The calibration of a model for a way of asking, as kept or measured now; None without facts to measure with."""
    sample = sample or (HIDDEN_SAMPLE if hides_facts(reasoner) else SAMPLE)
    if hides_facts(reasoner):
        reasoner = reasoner.on(with_hidden(reasoner.dataset, HIDDEN_SHARE))
    if not len(reasoner.dataset.valid):
        return None
    model = fingerprint(reasoner.engine, reasoner.dataset)
    key = digest_of({**model, **asdict(asking), "sample": sample})
    kept = None if again or folder is None else _kept(folder / FILE, key)
    if kept is not None:
        return kept
    measured = measure(reasoner, asking, sample, progress)
    if folder is not None:
        values = measured.to_dict()
        with suppress(RunError):  # a folder that cannot be written to costs measuring again, and nothing else
            write_json(folder / FILE, {**_heading(key, values), "calibration": values})
    return measured


def hides_facts(reasoner: Reasoner) -> bool:
    """Whether probabilities are measured with facts that are hidden from the graph, for want of validation facts."""
    return reasoner.is_pretrained and not len(reasoner.dataset.valid)


def measure(
    reasoner: Reasoner,
    asking: Asking,
    sample: int = SAMPLE,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Ask the graph as it would be asked for missing facts, and see which answers are validation facts.

    Facts of the graph and of training are no answers, and test facts neither right nor wrong. Questions with a
    validation fact are few, so they are drawn apart from the others; weights make up for it.
    """
    dataset = reasoner.dataset
    every = Questions(dataset, asking, known=_KNOWN)
    questions, weight = _drawn(every, dataset.queries("valid"), sample)
    tick = None if progress is None else (lambda done: progress(done, len(questions)))
    found = Finder(reasoner, _KNOWN, asking.answers).find(questions, tick=tick)
    right = found.stated == HELD_OUT.index("valid")
    relations, groups = questions.relations[found.rows], questions.groups[found.rows]
    answers = JudgedAnswers(found.attention, right, weight[found.rows], found.rows, relations, groups)
    return calibrate(answers, every.of_relation, asked=len(questions))


def digest_of(values: Any) -> str:
    """The SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _drawn(questions: Questions, valid: np.ndarray, sample: int) -> tuple[QuestionList, np.ndarray]:
    """Questions with and without validation facts, and how many questions each stands for."""
    with_fact = questions.those_of(valid[:, 0], valid[:, 1])
    others = questions.sample(sample + len(with_fact), seed=0)
    others = others[~others.is_in(with_fact)]
    pieces, weights = [], []
    rng = np.random.default_rng(0)
    for group, n_all in enumerate(questions.of_group.tolist()):
        n_with = int(np.sum(with_fact.groups == group))
        for stratum, population in ((with_fact, n_with), (others, n_all - n_with)):
            rows = np.flatnonzero(stratum.groups == group)
            rows = np.sort(rng.choice(rows, min(len(rows), sample), replace=False))
            pieces.append(stratum[rows])
            weights.append(np.full(len(rows), population / max(len(rows), 1)))
    drawn = QuestionList.joined(pieces)
    order = np.lexsort((drawn.heads, drawn.relations))
    return drawn[order], np.concatenate(weights)[order]


def _heading(key: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "of": key, "sha256": digest_of(values)}


def _kept(path: Path, key: str) -> Calibration | None:
    """The calibration kept in a file; None if it is not there, of another model, or broken."""
    try:
        values = read_json(path, "measure it again with --recalibrate")
        found = values.pop("calibration")
        return Calibration.from_dict(found) if values == _heading(key, found) else None
    except (RunError, KeyError, ValueError, TypeError, AttributeError):
        return None
