"""What probabilities are learnt from: validation facts are right, test facts say nothing, and every question counts."""

import numpy as np
import pytest

from dpmpn.ask.measure import Drawn
from dpmpn.ask.new_answers import NewAnswers
from dpmpn.ask.questions import Asking, Questions
from dpmpn.reasoner.reasoner import Reasoner


@pytest.fixture(scope="module")
def demo() -> Reasoner:
    return Reasoner.load("demo", threads=1)


def test_those_that_are_drawn_stand_for_all_questions(demo: Reasoner) -> None:
    drawn = Drawn.of(demo.dataset, sample=60, few=5)
    every = Questions(demo.dataset, Asking(both_directions=True), known=("train",))
    assert drawn.population == every.total
    assert drawn.weight.sum() == pytest.approx(every.total)
    listed = {(head, r) for r, heads, _ in every.each_relation() for head in heads.tolist()}
    lacking = {tuple(fact[:2]) for fact in demo.dataset.queries("valid").tolist()} & listed
    assert drawn.weight[drawn.lacks].sum() == pytest.approx(len(lacking))
    of_test = {tuple(fact[:2]) for fact in demo.dataset.queries("test").tolist()}
    others = {tuple(question) for question in drawn.questions[~drawn.lacks].tolist()}
    assert of_test & others  # a question that only test facts answer is one of the others


def test_test_facts_are_neither_right_nor_wrong(demo: Reasoner) -> None:
    drawn = Drawn.of(demo.dataset, sample=100, few=5)
    cases = drawn.asked_of(demo)
    heads, relations = drawn.questions.T
    order = np.lexsort((heads, relations))
    answers = demo.asker.ask(heads[order], relations[order])
    new = NewAnswers.among(answers, demo.graph, demo.known)
    facts = {split: set(map(tuple, demo.dataset.queries(split).tolist())) for split in ("valid", "test")}
    stated = {
        split: np.array(
            [
                (heads[order][q], relations[order][q], e) in of_split
                for q, e in zip(new.evidence.question, new.entities, strict=True)
            ]
        )
        for split, of_split in facts.items()
    }
    counted = (new.ranks <= 10) & ~stated["test"]
    assert len(cases.right) == counted.sum() and (stated["test"] & (new.ranks == 1)).any()
    assert (cases.right == stated["valid"][counted]).all() and cases.right.any()
    # Where a test fact comes first, no other answer is the first one.
    assert cases.evidence.is_first.sum() == (counted & (new.ranks == 1)).sum()
    without = np.setdiff1d(new.evidence.question, cases.evidence.question[cases.evidence.is_first])
    assert len(without)
