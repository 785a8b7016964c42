"""Sums up what tests of explanations showed, as plain values with their uncertainty."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from dpmpn.evaluate.metrics import wilson
from dpmpn.explain_eval.deciding import CHOICES, ChosenFacts
from dpmpn.explain_eval.fidelity import (
    CURVE,
    KINDS,
    EvidenceTest,
    Measured,
    Measurement,
    Sample,
)
from dpmpn.explain_eval.outcome import Outcome

_RESAMPLES = 1000
_FEWEST = 10  # values that an interval is given for
_ALIKE = 1e-9  # apart, or less: rounding makes as much of a difference

GROUPS: dict[str, Callable[[Measured], bool]] = {
    "all": lambda one: True,
    "right": lambda one: one.right,
    "right_and_new": lambda one: one.right and not one.known,
    "sure": lambda one: one.before.probability > 0.5,
}


def report_of(dataset: str, plan: Measurement, sample: Sample, seconds: float) -> dict[str, Any]:
    """The measures of a sample, with what was asked to be measured."""
    settings = asdict(plan)
    del settings["sample"]  # how many were drawn is in the summary
    return {"dataset": dataset, **settings, **summarise(sample), "seconds": seconds}


def summarise(sample: Sample) -> dict[str, Any]:
    """The measures of all predictions, of right ones, of right ones the graph did not state, and of sure ones."""
    groups = {name: [one for one in sample.measured if belongs(one)] for name, belongs in GROUPS.items()}
    return {
        "questions": sample.of_questions,
        "asked": sample.questions,
        "head_without_facts": sample.without_facts,
        "not_reached": sample.unreached,
        "head_was_the_answer": sample.stayed,
        "groups": {name: _group(chosen) for name, chosen in groups.items()},
    }


def estimate(
    values: Sequence[float] | np.ndarray, of: Sequence[float] | np.ndarray | None = None
) -> dict[str, float | None] | None:
    """The mean, or its part of another mean, with the ends of a 95 % interval; None where there are no values.

    A part of means, unlike a mean of parts, is not ruled by the few answers that had next to nothing to lose. The
    interval is Wilson's where values are true or false, else of a bootstrap. Few values have none, and neither have
    numbers that are all alike: a bootstrap would take them for certain.
    """
    values = np.asarray(values)
    if not len(values):
        return None
    is_share = values.dtype == bool
    values = values.astype(np.float64)
    whole = np.ones_like(values) if of is None else np.asarray(of, np.float64)
    low, high = None, None
    if len(values) >= _FEWEST:
        low, high = map(float, wilson(values.mean(), len(values))) if is_share else _bootstrap(values, whole)
    return {"mean": float(values.mean() / whole.mean()), "low": low, "high": high}


def _bootstrap(values: np.ndarray, whole: np.ndarray) -> tuple[float, float] | tuple[None, None]:
    """Between what ends are 95 % of the means of samples with replacement; none where these are all alike."""
    rows = np.random.default_rng(0).integers(len(values), size=(_RESAMPLES, len(values)))
    means = values[rows].mean(1) / whole[rows].mean(1)
    if np.ptp(means) < _ALIKE:
        return None, None
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _group(chosen: list[Measured]) -> dict[str, Any]:
    return {
        "predictions": len(chosen),
        "probability": estimate([one.before.probability for one in chosen]),
        "full_facts": estimate([one.full_facts for one in chosen]),
        "paths": estimate([one.paths for one in chosen]),
        "kept_share": estimate([one.kept_share for one in chosen]),
        "isolated": _lost(chosen, [one.isolated for one in chosen]),
        "evidence": {
            kind: {
                **_tests(chosen, [one.evidence[kind] for one in chosen]),
                "hdr_at_5": estimate([one.few_paths[kind].rank > one.before.rank for one in chosen]),
                "hdr_at_5_facts": estimate([one.few_facts[kind] for one in chosen]),
            }
            for kind in KINDS
        },
        "curve": [
            *(
                {"paths": paths, **_tests(chosen, [one.curve[i] for one in chosen])}
                for i, paths in enumerate(CURVE)
            ),
            {"paths": "all", **_tests(chosen, [one.evidence["explanation"] for one in chosen])},
        ],
        "decisive": _decisive([one for one in chosen if one.deciding]),
        "decisive_without_prior": _decisive(
            [one for one in chosen if one.deciding and not one.deciding.is_prior]
        ),
    }


def _decisive(chosen: list[Measured]) -> dict[str, Any]:
    """The measures of the facts that decide, beside as many facts chosen in other ways."""
    tests = [(one, one.deciding) for one in chosen if one.deciding is not None]
    necessary = [(one, test.necessary) for one, test in tests if test.necessary]
    sufficient = [(one, test.sufficient) for one, test in tests if test.sufficient]
    return {
        "predictions": len(tests),
        "prior_decides": estimate([test.is_prior for _, test in tests]),
        "questions": estimate([test.questions for _, test in tests]),
        "necessary_found": estimate([test.necessary is not None for _, test in tests]),
        "sufficient_found": estimate([test.sufficient is not None for _, test in tests]),
        "necessary": _lost_by_choice(necessary),
        "sufficient": _kept_by_choice(sufficient),
        "most_lost": _lost_by_choice([(one, test.most_lost) for one, test in tests]),
        "most_lost_few": _lost_by_choice([(one, test.most_lost_few) for one, test in tests]),
    }


def _lost_by_choice(tests: list[tuple[Measured, ChosenFacts]]) -> dict[str, Any]:
    """What answers lost without facts of each choice."""
    measured = [one for one, _ in tests]
    by_choice = {
        choice: _lost(measured, [facts.outcomes[choice] for _, facts in tests]) for choice in CHOICES
    }
    return {"facts": estimate([facts.n_facts for _, facts in tests]), "by_choice": by_choice}


def _kept_by_choice(tests: list[tuple[Measured, ChosenFacts]]) -> dict[str, Any]:
    """What answers kept with facts of each choice alone."""
    before = np.array([one.before.probability for one, _ in tests])
    ranks = np.array([one.before.rank for one, _ in tests])
    by_choice = {}
    for choice in CHOICES:
        alone = [facts.outcomes[choice] for _, facts in tests]
        by_choice[choice] = {
            "fidelity_minus": estimate(before - np.array([one.probability for one in alone])),
            "rank_kept": estimate(np.array([one.rank for one in alone]) <= ranks),
        }
    return {"facts": estimate([facts.n_facts for _, facts in tests]), "by_choice": by_choice}


def _tests(chosen: list[Measured], tests: list[EvidenceTest]) -> dict[str, Any]:
    """The measures of one kind of evidence, one test for each prediction."""
    before = np.array([one.before.probability for one in chosen])
    alone = np.array([test.alone.probability for test in tests])
    facts = np.array([test.n_facts for test in tests])
    ranks = np.array([one.before.rank for one in chosen])
    return {
        "facts": estimate(facts),
        "sparsity": estimate(1 - facts / np.array([one.full_facts for one in chosen])),
        "necessity": {
            **_lost(chosen, [test.without for test in tests]),
            **_ranks([test.without.rank for test in tests]),
        },
        "sufficiency": {
            "fidelity_minus": estimate(before - alone),
            "fidelity_minus_cut_at_0": estimate(np.maximum(before - alone, 0)),
            "rank_kept": estimate(np.array([test.alone.rank for test in tests]) <= ranks),
            **_ranks([test.alone.rank for test in tests]),
        },
    }


def _lost(chosen: list[Measured], without: list[Outcome]) -> dict[str, Any]:
    """What the answers lost when the questions were asked without some facts."""
    before = np.array([one.before.probability for one in chosen])
    lost = before - np.array([one.probability for one in without])
    ranks = np.array([one.before.rank for one in chosen])
    return {
        "fidelity_plus": estimate(lost),
        "probability_lost": estimate(lost, of=before),
        "rank_worse": estimate(np.array([one.rank for one in without]) > ranks),
    }


def _ranks(ranks: list[float]) -> dict[str, Any]:
    """The ranks of the answers."""
    return {
        "median_rank": float(np.median(ranks)) if ranks else None,
        "mean_reciprocal_rank": estimate([1 / rank for rank in ranks]),
    }
