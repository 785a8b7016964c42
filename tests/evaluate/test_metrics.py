"""The table of metrics: what each is, and that summaries follow it."""

import numpy as np
import pytest

from dpmpn.evaluate.metrics import METRICS, TIES, TITLES
from dpmpn.evaluate.ranking import Ranks, summarise


def test_metrics_of_some_ranks() -> None:
    ranks = np.array([1.0, 2.0, 3.5, 10.0])
    values = {metric.key: metric.of(ranks) for metric in METRICS}
    assert values == {
        "mrr": pytest.approx((1 + 1 / 2 + 1 / 3.5 + 1 / 10) / 4),
        "hits_at_1": 0.25,
        "hits_at_3": 0.5,
        "hits_at_10": 1.0,
    }


def test_a_summary_has_every_metric_in_order_for_every_way_to_place_ties() -> None:
    summary = summarise(Ranks(np.array([1]), np.array([2]), np.array([True])))
    assert list(TITLES.values()) == ["MRR", "H@1", "H@3", "H@10"]
    assert list(summary)[:3] == list(TIES)
    assert all(list(summary[ties]) == list(TITLES) for ties in TIES)  # type: ignore[literal-required]
