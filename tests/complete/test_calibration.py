"""Curves on synthetic scores whose truth is known, and calibration of a whole run."""

import json
from pathlib import Path

import numpy as np
import pytest
from families import STATED, TEST, VALID, N, families
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmpn
from dpmpn.complete.calibration import Calibration, JudgedAnswers, calibrate, expected_error, fit_curve
from dpmpn.complete.measure import FILE, calibration_of, measure
from dpmpn.complete.questions import Asking


def truth(score: np.ndarray) -> np.ndarray:
    return score**3


def synthetic(n: int, seed: int = 0, n_questions: int | None = None) -> JudgedAnswers:
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    zeros = np.zeros(n, np.int64)
    question = np.sort(rng.integers(n_questions or n, size=n))
    return JudgedAnswers(score, rng.random(n) < truth(score), np.ones(n), question, zeros, zeros)


@given(
    st.lists(
        st.tuples(st.sampled_from(np.linspace(0, 1, 30).tolist()), st.booleans(), st.floats(0.5, 20)),
        min_size=1,
        max_size=400,
    )
)
@settings(max_examples=100, deadline=None)
def test_a_curve_rises_within_0_and_1_and_keeps_the_mean(rows: list[tuple[float, bool, float]]) -> None:
    score, right, weight = (np.array(column) for column in zip(*rows, strict=True))
    curve = fit_curve(score, right, weight)
    assert (np.diff(curve.low) > 0).all()
    assert (np.diff(curve.probability) > 0).all()  # equal neighbours are one step
    fitted = np.array(curve.probability)[curve.step(score)]
    assert ((fitted >= 0) & (fitted <= 1)).all()
    assert fitted @ weight == pytest.approx(right @ weight)
    assert sum(curve.of) == pytest.approx(weight.sum())
    assert sum(curve.right) == pytest.approx((right * weight).sum())


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_no_rising_step_function_on_the_same_steps_fits_better(seed: int) -> None:
    p = synthetic(300, seed)
    curve = fit_curve(p.attention, p.right, p.weight)
    best = ((np.array(curve.probability)[curve.step(p.attention)] - p.right) ** 2).sum()
    rng = np.random.default_rng(seed)
    for _ in range(10):
        other = np.sort(rng.random(len(curve.low)))
        assert ((other[curve.step(p.attention)] - p.right) ** 2).sum() >= best - 1e-9


def test_a_known_curve_is_found() -> None:
    p = synthetic(40_000)
    curve = fit_curve(p.attention, p.right, p.weight)
    asked = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(np.array(curve.probability)[curve.step(asked)], truth(asked), atol=0.06)


def test_weights_undo_a_stratified_sample() -> None:
    every = synthetic(60_000, seed=5)
    rng = np.random.default_rng(6)
    kept = every.right | (rng.random(60_000) < 0.1)  # all right ones, and a tenth of the wrong ones
    weight = np.where(every.right, 1.0, 10.0)[kept]
    curve = fit_curve(every.attention[kept], every.right[kept], weight)
    asked = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(np.array(curve.probability)[curve.step(asked)], truth(asked), atol=0.1)


def test_a_step_holds_at_least_twenty_predictions() -> None:
    score = np.arange(100) / 100
    curve = fit_curve(score, score > 0.97, np.ones(100))
    assert min(curve.of) >= 20  # two right ones at the top do not make a certainty
    assert curve.probability[-1] == pytest.approx(2 / 20)


def test_ties_do_not_make_a_step_of_few() -> None:
    score = np.concatenate([np.ones(38), [0.9, 0.89], np.linspace(0.8, 0.1, 60)])
    right = np.arange(100) < 39
    right[:2] = False
    curve = fit_curve(score, right, np.ones(100))
    assert min(curve.of) >= 20


@given(
    st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1)), min_size=1, max_size=12),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
)
@settings(max_examples=150, deadline=None)
def test_each_step_holds_twenty_of_the_heaviest(ties: list[tuple[int, float]], weights: list[int]) -> None:
    counts, shares = (np.array(column) for column in zip(*ties, strict=True))
    score = np.repeat(np.arange(len(ties)) / 12, counts)  # as many of each attention
    right = np.concatenate(
        [np.arange(n) < share * n for n, share in zip(counts, np.sort(shares), strict=True)]
    )
    weight = np.resize(weights, len(score))
    curve = fit_curve(score, right, weight)
    assert len(curve.of) == 1 or min(curve.of) >= 20 * weight.max()
    assert len(curve.of) == 1 or min(curve.sure) >= 20 - 1e-9
    np.testing.assert_allclose(curve.of, np.bincount(curve.step(score), weight, len(curve.low)))


def test_calibration_error_falls_and_is_measured_on_the_other_half() -> None:
    p = synthetic(8_000, n_questions=2_000)
    found = calibrate(p, np.full((1, 1), 2_000), asked=2_000)
    assert found.before.error == pytest.approx(0.25, abs=0.02)  # mean of s - s^3
    assert found.after.error < 0.03
    # Pure noise: an honest measure must not find what only the fitted half shows.
    rng = np.random.default_rng(1)
    noise = JudgedAnswers(p.attention, rng.random(8_000) < 0.5, p.weight, p.question, p.relation, p.group)
    overfitted = calibrate(noise, np.full((1, 1), 2_000), asked=2_000).after
    assert all(abs(bin.right - 0.5) < 0.1 for bin in overfitted.bins if bin.predictions > 300)


def test_relations_that_are_right_more_often_get_a_curve_of_their_own() -> None:
    rng = np.random.default_rng(2)
    n = 8_000
    relation = rng.integers(2, size=n)
    score = rng.random(n)
    right = rng.random(n) < np.where(relation == 0, 0.1, 0.8) * score
    rows = np.arange(n)
    p = JudgedAnswers(score, right, np.ones(n), rows, relation, np.zeros(n, np.int64))
    found = calibrate(p, np.bincount(relation)[:, None], asked=n)
    assert found.often == ((1,),)
    ones, zeros = np.ones(2), np.zeros(2, np.int64)
    estimates = found.estimates(ones, np.array([0, 1]), zeros)
    np.testing.assert_allclose(estimates.probability, [0.1, 0.8], atol=0.1)
    np.testing.assert_allclose(estimates.right / estimates.of, estimates.probability)
    low, high = estimates.interval
    assert (low < estimates.probability).all()
    assert (estimates.probability < high).all()


def test_expected_error_by_hand() -> None:
    probability, right = np.array([0.05, 0.05, 0.95, 0.95]), np.array([0, 1, 1, 1])
    assert expected_error(probability, right, np.array([1, 1, 1, 1])) == pytest.approx(
        (0.9 + 0.1) / 4  # bins: |0.1 - 1| and |1.9 - 2|
    )


def test_what_is_measured_on_a_run(reasoner: dpmpn.Reasoner) -> None:
    found = measure(reasoner, Asking())
    assert found.asked == found.questions
    assert found.facts == VALID - STATED  # all held-out fathers are among the answers
    father = reasoner.graph.relation_names.id("father", "relation")
    probability = found.estimates(np.array([1.0, 1.0]), np.array([father] * 2), np.array([0, 1])).probability
    assert probability[0] >= (VALID - STATED) / 39  # without a father; a step holds 20 or more, but not 40
    assert probability[1] == 0  # nobody has two
    open_questions = N - STATED - (TEST - VALID)  # test facts are known here
    often = found.curves[0][1]
    assert often is not None
    assert sum(often.of) <= open_questions * 10


def test_a_sample_measures_about_the_same(reasoner: dpmpn.Reasoner) -> None:
    whole, part = measure(reasoner, Asking("all")), measure(reasoner, Asking("all"), sample=12)
    assert part.asked < whole.asked
    assert part.questions == whole.questions
    for curves, sampled in zip(whole.curves[:2], part.curves[:2], strict=True):
        total = sum(sum(curve.of) for curve in set(curves) if curve)
        assert sum(sum(curve.of) for curve in set(sampled) if curve) == pytest.approx(total, rel=0.4)


def test_a_calibration_is_kept_until_the_asking_changes(
    reasoner: dpmpn.Reasoner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = calibration_of(reasoner, folder=tmp_path)
    assert first is not None
    from dpmpn.complete import measure as module

    calls = []
    monkeypatch.setattr(module, "measure", lambda *_: calls.append(1) or first)
    assert calibration_of(reasoner, folder=tmp_path) == first
    assert not calls
    calibration_of(reasoner, Asking("all"), folder=tmp_path)
    calibration_of(reasoner, folder=tmp_path)  # the file holds the other one now
    calibration_of(reasoner, folder=tmp_path, again=True)
    assert len(calls) == 3


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"calibration": 3}', "\x00\xff", None])
def test_a_broken_file_is_measured_again(
    reasoner: dpmpn.Reasoner, tmp_path: Path, damage: str | None
) -> None:
    first = calibration_of(reasoner, folder=tmp_path)
    path = tmp_path / FILE
    text = path.read_text()
    path.write_text(text.replace('"facts": 8', '"facts": 9') if damage is None else damage)
    assert path.read_text() != text
    assert calibration_of(reasoner, folder=tmp_path) == first
    assert path.read_text() == text


def test_plain_values_and_back(reasoner: dpmpn.Reasoner) -> None:
    found = measure(reasoner, Asking())
    assert Calibration.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_a_folder_that_cannot_be_written_costs_nothing(reasoner: dpmpn.Reasoner, tmp_path: Path) -> None:
    assert calibration_of(reasoner, folder=tmp_path / "missing") == calibration_of(reasoner)


def test_without_validation_facts_nothing_is_measured() -> None:
    untrained = dpmpn.Reasoner()
    untrained.__dict__["dataset"] = families(with_valid=False)
    assert calibration_of(untrained) is None
