"""Entropy and shares of attention are those of hand-made distributions, and the exhibit shows what was measured."""

import math

import numpy as np
import pytest
from made_analysis import Made, files_of, made

from dpmpn.engine.trace import ReasoningTrace, TraceStep
from dpmpn.lab.reproduce.attention_flow import (
    ATTENTION_FLOW,
    attention_measures,
    entropies,
    pattern,
    top_shares,
)
from dpmpn.lab.reproduce.nell995 import QUICK_TASKS

# Three queries: uniform over four nodes, all on one of two, and unequal over six.
OFFSETS = np.array([0, 4, 6, 12])
ATTENTION = np.array([0.25] * 4 + [0.0, 1.0] + [0.05, 0.4, 0.1, 0.2, 0.05, 0.2], np.float32)


def test_entropy_is_that_of_the_distribution():
    unequal = -sum(share * math.log(share) for share in (0.05, 0.4, 0.1, 0.2, 0.05, 0.2))
    np.testing.assert_allclose(entropies(ATTENTION, OFFSETS), [math.log(4), 0, unequal], rtol=1e-6)


@pytest.mark.parametrize(("count", "shares"), [(1, [0.25, 1, 0.4]), (3, [0.75, 1, 0.8]), (5, [1, 1, 0.95])])
def test_top_nodes_have_the_largest_attention(count, shares):
    np.testing.assert_allclose(top_shares(ATTENTION, OFFSETS, count), shares, rtol=1e-6)


def test_measures_start_with_all_attention_at_the_head():
    none = np.empty(0, np.int64)
    step = TraceStep(
        *[none] * 9, OFFSETS, np.arange(12), ATTENTION, ATTENTION, np.ones(12, bool)
    )  # only the scanned nodes are looked at
    measures = attention_measures(ReasoningTrace(np.array([7, 8, 9]), np.zeros(3, int), [step]))
    assert measures.shape == (4, 2, 3)  # measures, steps, queries
    assert measures[:, 0].tolist() == [[0] * 3, [1] * 3, [1] * 3, [1] * 3]
    np.testing.assert_allclose(measures[0, 1], entropies(ATTENTION, OFFSETS))
    np.testing.assert_allclose(measures[2, 1], top_shares(ATTENTION, OFFSETS, 3))


@pytest.mark.parametrize(
    ("entropy", "told"),
    [
        ([0, 1, 2, 1.5, 0.5], "rises until step 2, then falls"),
        ([0, 1, 2, 3], "only rises"),
        ([0, 2, 1, 1.5, 0.5], "rises and falls more than once, highest at step 1"),
        ([0, 0, 0], "never rises"),
    ],
)
def test_the_course_of_entropy_is_told(entropy, told):
    assert pattern(entropy) == told


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(ATTENTION_FLOW, tmp_path_factory.mktemp("exhibit") / "attention-flow")


def test_quick_form_writes_every_step_of_every_task(exhibit):
    results, rows = exhibit.data()["results"], exhibit.csv_rows()
    assert {row["task"] for row in rows} == set(QUICK_TASKS)
    for task in QUICK_TASKS:
        result = results[f"{task}-seed0"]
        of_task = [row for row in rows if row["task"] == task]
        assert [int(row["step"]) for row in of_task] == list(range(len(result["entropy"])))
        assert [float(row["entropy"]) for row in of_task] == result["entropy"]
        assert result["entropy"][0] == 0
        assert result["entropy"][1] > 0
        for shares in zip(*(result[f"top_{count}"] for count in (1, 3, 5)), strict=True):
            assert list(shares) == sorted(shares)
            assert shares[-1] <= 1 + 1e-6


def test_tables_agree_with_the_data_and_the_figure_is_drawn(exhibit):
    text, results = exhibit.text(), exhibit.data()["results"]
    for task in QUICK_TASKS:
        result = results[f"{task}-seed0"]
        values = " | ".join(f"{value:.2f}" for value in result["entropy"])
        assert f"| {task} | {result['queries']} | {values} | {pattern(result['entropy'])} |" in text
        assert f"| {task} | " + " | ".join(f"{100 * value:.1f}" for value in result["top_3"]) in text
    assert (exhibit.folder / "attention-flow.svg").read_bytes().startswith(b"<?xml")
    assert (exhibit.folder / "attention-flow.png").read_bytes().startswith(b"\x89PNG")


def test_made_again_nothing_is_measured_anew(exhibit):
    before = files_of(exhibit.folder)
    assert made(ATTENTION_FLOW, exhibit.folder).said == ["2 of 2 pieces of work are done already"]
    assert files_of(exhibit.folder) == before
