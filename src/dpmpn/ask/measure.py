"""Measures what scores are worth: asks for facts that are held out, and elsewhere, and learns from what comes.

Questions of validation facts are known to lack an answer. The others are drawn from those that missing facts are
looked for with. What was measured is kept in the run folder. The pre-trained model has seen no fact of its graph:
where there are no validation facts, some of the graph's own are hidden from it and asked for.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmpn.ask.core import HELD_OUT
from dpmpn.ask.new_answers import NewAnswers
from dpmpn.ask.questions import Asking, Questions
from dpmpn.calibrate.calibration import (
    LEAST,
    OF_ANSWERS,
    OF_QUESTIONS,
    Calibration,
    Cases,
    Evidence,
    calibrate,
)
from dpmpn.calibrate.shrunken_share import shrunken_share
from dpmpn.data.changed_graph import with_hidden
from dpmpn.data.dataset import Dataset
from dpmpn.errors import RunError
from dpmpn.files import read_json, write_json

if TYPE_CHECKING:
    from dpmpn.reasoner.asked_model import AskedModel

FILE = "calibration.json"
FORMAT, VERSION = "dpmpn-calibration", 6
SAMPLE = 3000  # questions asked that lack an answer, and about twice as many others
HIDDEN_SAMPLE = 300  # the same of hidden facts, which are measured anew for each graph: in seconds
ONE_RELATION = 100  # the same of a single relation
HIDDEN_SHARE = 0.1  # of the graph's facts
_OTHERS = 2  # questions without a validation fact, for each one with
_FEW, _FEWER, _MANY = 5, 2, 30  # and more of each sort: as many as there is time for; one alone says little
ANSWERS = 10  # new answers looked at for each question
_TEST, _VALID = HELD_OUT.index("test"), HELD_OUT.index("valid")

Tick = Callable[[int, int], None]
"""Told how many of how many questions were asked."""


def measured(
    asked: "AskedModel",
    sample: int | None = None,
    relation: int | None = None,
    progress: Tick | None = None,
) -> Calibration | None:
    """What scores of a model on its graph are worth; None where too few facts are held out to know.

    With a relation it is measured for that one alone, which is quicker, if enough of its facts are held out.
    """
    hides = hides_facts(asked)
    if hides:
        if len(asked.dataset.train) * HIDDEN_SHARE < LEAST / 2:
            return None
        asked = asked.on(with_hidden(asked.dataset, HIDDEN_SHARE))
    sample, few = sample or (HIDDEN_SAMPLE if hides else SAMPLE), _FEWER if hides else _FEW
    drawn = None if relation is None else Drawn.of(asked.dataset, ONE_RELATION, _MANY, relation)
    if drawn is None or drawn.lacks.sum() < LEAST:
        drawn = Drawn.of(asked.dataset, sample, few)
    if drawn.lacks.sum() < LEAST:
        return None
    try:
        cases = drawn.asked_of(asked, progress)
    finally:
        asked.engine.close()
    share = share_asked_for(asked.dataset)
    found = calibrate(cases, asked.graph.n_relations, drawn.population, 1 / share)
    # As it would be read from a file, so that the same answer has the same probability then.
    return found and Calibration.from_dict(json.loads(json.dumps(found.to_dict())))


def share_asked_for(dataset: Dataset) -> np.ndarray:
    """By relation: of the facts that are held out, the share that validation facts are."""
    n_relations = dataset.graph.n_relations
    valid, test = (
        np.bincount(dataset.queries(split)[:, 1], minlength=n_relations) for split in ("valid", "test")
    )
    return shrunken_share(valid, valid + test)


def hides_facts(asked: "AskedModel") -> bool:
    """Whether probabilities are measured with facts that are hidden from the graph, for want of validation facts."""
    return asked.is_pretrained and not len(asked.dataset.valid)


class Drawn:
    """Questions drawn from a dataset to measure with."""

    def __init__(self, questions: np.ndarray, lacks: np.ndarray, weight: np.ndarray, population: int) -> None:
        self.questions = questions  # n x 2: head, relation
        self.lacks = lacks  # bool: whether a validation fact answers it
        # How many questions for missing facts it stands for; 0 for one that is not asked then.
        self.weight = weight
        self.population = population  # of questions for missing facts

    @classmethod
    def of(cls, dataset: Dataset, sample: int, few: int, relation: int | None = None) -> "Drawn":
        """Draw up to so many questions with validation facts, and for each two without, and a few, of the same sort.

        A sort is a relation with or without a stated answer.
        """
        rng = np.random.default_rng(0)
        lacking = _unstated_pairs(dataset, "valid")
        both_ways = dataset.both_directions
        only = None
        if relation is not None:
            lacking = lacking[lacking[:, 1] == relation]
            only, both_ways = [relation], False
            if dataset.graph.is_inverse[relation]:
                only, both_ways = [int(dataset.graph.inverse[relation])], True
        drawn = lacking[np.sort(rng.choice(len(lacking), min(len(lacking), sample), replace=False))]
        has_answer = dataset.graph.have(*drawn.T)
        is_listed, n_lacking = np.zeros(len(drawn), bool), 0
        pieces, weights, population = [(drawn, np.ones(len(drawn), bool))], [np.zeros(len(drawn))], 0
        every = Questions(dataset, Asking(both_directions=both_ways), only, known=("train",))
        for asked, heads, stated in every.each_relation():
            if relation not in (None, asked):
                continue
            population += len(heads)
            of_relation, all_lacking = drawn[:, 1] == asked, lacking[lacking[:, 1] == asked, 0]
            lacks_one = np.isin(heads, all_lacking)
            is_listed |= of_relation & np.isin(drawn[:, 0], heads)
            n_lacking += int(lacks_one.sum())
            for has in (False, True):
                own = is_listed & of_relation & (has_answer == has)
                others = heads[(stated == has) & ~lacks_one]
                taken = rng.choice(others, min(len(others), _OTHERS * int(own.sum()) + few), replace=False)
                pieces.append((np.stack([taken, np.full(len(taken), asked)], 1), np.zeros(len(taken), bool)))
                weights.append(np.full(len(taken), len(others) / max(len(taken), 1)))
        # All that lack an answer were as likely to be drawn, so each stands for as many: of a sort with few, often none
        # was drawn, and others stand for them.
        weights[0][is_listed] = n_lacking / max(int(is_listed.sum()), 1)
        questions, lacks = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return cls(questions.astype(np.int64), lacks, np.concatenate(weights), population)

    def asked_of(self, asked: "AskedModel", progress: Tick | None = None) -> Cases:
        """What a model answers to the questions, and which answers are right."""
        heads, relations = self.questions.T
        order = np.lexsort((heads, relations))  # those of one relation come together, which is quicker
        pieces, right = [], []
        for start, answers in asked.asker.batches(heads[order], relations[order]):
            new = NewAnswers.among(answers, asked.graph, asked.known)
            kept = (new.ranks <= ANSWERS) & (new.stated != _TEST)
            pieces.append((start, new.evidence, kept))
            right.append(new.stated[kept] == _VALID)
            if progress is not None:
                progress(start + len(answers.heads), len(order))
        return Cases(
            _joined(pieces),
            self.lacks[order],
            np.concatenate(right),
            self.weight[order] > 0,
            self.weight[order],
        )


def _joined(pieces: list[tuple[int, Evidence, np.ndarray]]) -> Evidence:
    """The evidence of all batches, each with the number of its first question and a mask of its answers."""
    columns = {name: np.concatenate([getattr(e, name) for _, e, _ in pieces]) for name in OF_QUESTIONS}
    columns |= {
        name: np.concatenate([getattr(e, name)[kept] for _, e, kept in pieces]) for name in OF_ANSWERS
    }
    return Evidence(
        question=np.concatenate([start + e.question[kept] for start, e, kept in pieces]), **columns
    )


def _unstated_pairs(dataset: Dataset, split: str) -> np.ndarray:
    """The questions that facts of a split answer, and the graph does not: n x 2, each once.

    A head without edges cannot be asked.
    """
    triples = dataset.queries(split).astype(np.int64)
    graph = dataset.graph
    unstated = (graph.find_edges(*triples.T) < 0) & (graph.degree(triples[:, 0]) > 0)
    return np.unique(triples[unstated, :2], axis=0)


def keep(calibration: Calibration, folder: Path, key: str) -> None:
    """Write what was measured into a folder; one that cannot be written to costs measuring again, and nothing else."""
    values = calibration.to_dict()
    with suppress(RunError):
        write_json(folder / FILE, {**_heading(key, values), "calibration": values})


def kept(folder: Path, key: str) -> Calibration | None:
    """What is kept in a folder; None if it is not there, of another model, or broken."""
    try:
        values = read_json(folder / FILE, "measure it again: dpmpn calibrate")
        found = values.pop("calibration")
        return Calibration.from_dict(found) if values == _heading(key, found) else None
    except (RunError, KeyError, ValueError, TypeError, AttributeError, IndexError):
        return None


def digest_of(values: Any) -> str:
    """The SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _heading(key: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "of": key, "sha256": digest_of(values)}
