"""Probabilities of answers whose truth is known: as often right as they say, and read back."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dpmpn.calibrate.calibration import OF_ANSWERS, OF_QUESTIONS, Calibration, Cases, Evidence, calibrate
from dpmpn.calibrate.shrunken_logistic import sigmoid

N_RELATIONS = 4
EASY = np.array([2.0, 0.0, -1.0, -3.0])  # relations: how often their answers are right


def made(n: int, seed: int = 0, lacking: float = 0.3) -> Cases:
    """Questions of two answers, some of which lack one; which answer is right then follows from score and relation."""
    rng = np.random.default_rng(seed)
    relation, lacks = rng.integers(N_RELATIONS, size=n), rng.random(n) < lacking
    score = np.sort(rng.random((n, 2)) * 0.5, axis=1)[:, ::-1]
    chance = sigmoid(2 * np.log(score / (1 - score)) + 2 + EASY[relation][:, None])
    first = rng.random(n) < chance[:, 0]
    second = ~first & (rng.random(n) < chance[:, 1])
    right = np.stack((first, second), 1) & lacks[:, None]
    question = np.repeat(np.arange(n), 2)
    evidence = Evidence(
        relation,
        np.zeros(n, np.int64),
        *np.ones((2, n)),
        question,
        score.reshape(-1),
        np.tile([True, False], n),
        np.zeros(2 * n, bool),
    )
    return Cases(evidence, lacks, right.reshape(-1), np.ones(n, bool), np.ones(n))


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    found = calibrate(made(16_000), N_RELATIONS, questions=16_000)
    assert found is not None
    return found


def test_probabilities_are_as_often_right_as_they_say(calibration: Calibration) -> None:
    judged = made(6_000, seed=1)
    found, lacks = calibration.estimates(judged.evidence), judged.lacks[judged.evidence.question]
    for relation in range(N_RELATIONS):
        own = judged.evidence.relation[judged.evidence.question] == relation
        assert found.probability[own].mean() == pytest.approx(judged.right[own].mean(), abs=0.02)
        assert found.if_missing[own & lacks].mean() == pytest.approx(
            judged.right[own & lacks].mean(), abs=0.03
        )
    assert calibration.of_first.after.error < 0.04 < calibration.of_first.before.error
    assert calibration.of_all.after.error < 0.03 < calibration.of_all.before.error


def test_an_interval_holds_its_probability_and_is_wider_for_fewer_cases() -> None:
    few, many = (calibrate(made(n), N_RELATIONS, n) for n in (150, 8_000))
    assert few is not None and many is not None
    evidence = made(100, seed=2).evidence
    for found in (few.estimates(evidence), many.estimates(evidence)):
        assert (found.low <= found.probability).all() and (found.probability <= found.high).all()
        assert (found.probability <= found.if_missing).all()
    wide, narrow = ((e.high - e.low).mean() for e in (few.estimates(evidence), many.estimates(evidence)))
    assert wide > 1.5 * narrow
    assert many.cases == tuple(np.bincount(made(8_000).evidence.relation[made(8_000).lacks]).tolist())


def test_a_higher_score_is_never_less_probable(calibration: Calibration) -> None:
    n = 50
    score = np.linspace(0.99, 0.001, n)
    alone = Evidence(
        np.full(1, 2),
        np.zeros(1, np.int64),
        *np.ones((2, 1)),
        np.zeros(n, np.int64),
        score,
        *np.zeros((2, n), bool),
    )
    found = calibration.estimates(alone)
    for values in (found.probability, found.if_missing):
        assert (np.diff(values) <= 1e-12).all()


def test_where_more_is_missing_more_is_right(calibration: Calibration) -> None:
    evidence = made(50, seed=3).evidence
    twice = replace(calibration, more=(2.0,) * N_RELATIONS).estimates(evidence).probability
    once = calibration.estimates(evidence).probability
    np.testing.assert_allclose(twice / (1 - twice), 2 * once / (1 - once), rtol=1e-6)


def test_weights_undo_a_sample_of_the_questions_that_lack_nothing() -> None:
    every = made(20_000, seed=4, lacking=0.05)
    kept = every.lacks | (np.random.default_rng(5).random(20_000) < 0.1)
    number, answers = np.cumsum(kept) - 1, kept[every.evidence.question]
    e = every.evidence
    evidence = Evidence(
        *(getattr(e, name)[kept] for name in OF_QUESTIONS),
        number[e.question[answers]],
        *(getattr(e, name)[answers] for name in OF_ANSWERS),
    )
    weight = np.where(every.lacks, 1.0, 10.0)[kept]
    sampled = Cases(evidence, every.lacks[kept], every.right[answers], np.ones(kept.sum(), bool), weight)
    found = calibrate(sampled, N_RELATIONS, 20_000)
    assert found is not None
    said = found.estimates(e).probability
    assert said.mean() == pytest.approx(every.right.mean(), rel=0.1)


def test_too_few_cases_are_no_calibration() -> None:
    assert calibrate(made(40, lacking=0.2), N_RELATIONS, 40) is None


def test_plain_values_and_back(calibration: Calibration) -> None:
    plain = json.loads(json.dumps(calibration.to_dict()))
    assert json.loads(json.dumps(Calibration.from_dict(plain).to_dict())) == plain


def one_answer_each(n: int, **columns: np.ndarray) -> Evidence:
    """Questions of one relation, none of which has an answer, with one answer each."""
    ones = np.ones(n)
    usual = {
        "relation": np.zeros(n, np.int64),
        "n_stated": np.zeros(n, np.int64),
        "likeness": ones,
        "unstated": ones,
    }
    usual |= {
        "question": np.arange(n),
        "score": np.full(n, 0.3),
        "is_first": ones > 0,
        "is_joined": ones == 0,
    }
    return Evidence(**(usual | columns))


def learnt(evidence: Evidence, chance: np.ndarray) -> np.ndarray:
    """What is said of answers that are right with these chances."""
    n, rng = len(chance), np.random.default_rng(7)
    lacks = rng.random(n) < chance
    found = calibrate(Cases(evidence, lacks, lacks, np.ones(n, bool), np.ones(n)), 1, n)
    assert found is not None
    return found.estimates(evidence).probability


def test_of_more_stated_answers_more_are_missing() -> None:
    n_stated = np.random.default_rng(6).integers(1, 30, size=6_000)
    said = learnt(one_answer_each(6_000, n_stated=n_stated), 0.01 * n_stated)
    for least, most in ((1, 5), (10, 15), (25, 30)):
        own = (n_stated >= least) & (n_stated <= most)
        assert said[own].mean() == pytest.approx(0.01 * n_stated[own].mean(), abs=0.03)


def test_what_hardly_anything_alike_has_is_hardly_missing() -> None:
    likeness = np.random.default_rng(8).random(6_000)
    said = learnt(one_answer_each(6_000, likeness=likeness), 0.3 * likeness)
    for least in (0.1, 0.5, 0.9):
        own = (likeness >= least) & (likeness <= least + 0.1)
        assert said[own].mean() == pytest.approx(0.3 * likeness[own].mean(), abs=0.04)


def test_whether_another_fact_joins_answer_and_question_counts() -> None:
    is_joined = np.random.default_rng(9).random(3_000) < 0.5
    said = learnt(one_answer_each(3_000, is_joined=is_joined), np.where(is_joined, 0.05, 0.4))
    assert said[is_joined].mean() == pytest.approx(0.05, abs=0.03)
    assert said[~is_joined].mean() == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("n_complete", [1, 2, 5])
def test_a_few_questions_that_stand_for_many_do_not_speak_for_others(n_complete: int) -> None:
    """As in a table: 400 rows, of which some cells are empty, and nothing is missing where one is filled."""
    rng, n_empty = np.random.default_rng(10), 84
    n = n_empty + n_complete
    empty = np.arange(n) < n_empty
    lacks = empty & (rng.random(n) < 0.5)
    evidence = one_answer_each(n, n_stated=(~empty).astype(np.int64))
    weight = np.where(empty, 1.0, 316 / n_complete)
    found = calibrate(Cases(evidence, lacks, lacks & (rng.random(n) < 0.6), np.ones(n, bool), weight), 1, 400)
    assert found is not None
    said = found.estimates(evidence).probability
    assert said[empty].mean() == pytest.approx(0.3, abs=0.1)
    assert said[~empty].mean() < 0.05
