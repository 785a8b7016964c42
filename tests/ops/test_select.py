"""Random horizons draw anew at each step, and alike whenever the same is asked."""

import numpy as np

from dpmpn.engine.frontier import select
from dpmpn.ops.select import hash_scores, select_top

KEYS = np.array([3, 2**63 + 5], np.uint64)
NODES = np.tile(np.arange(200, dtype=np.int32), 2)
OFFSETS = np.array([0, 200, 400])


def drawn(step: int) -> np.ndarray:
    """The nodes of two questions that a random horizon of 50 keeps, of 200 each."""
    return select("random", 50, np.ones(len(NODES)), OFFSETS, NODES, KEYS, step)[1]


def test_random_scores_of_a_step_say_nothing_about_those_of_another() -> None:
    first, second = (hash_scores(KEYS, step, OFFSETS, NODES) for step in (0, 1))
    assert len(np.unique(np.concatenate([first, second]))) == 2 * len(NODES)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    assert np.array_equal(first, hash_scores(KEYS, 0, OFFSETS, NODES))


def test_random_horizons_draw_other_nodes_at_other_steps() -> None:
    first, second = drawn(0), drawn(1)
    assert len(first) == len(second) == 100
    assert 10 <= len(np.intersect1d(first, second)) <= 40  # 25 by chance
    assert np.array_equal(first, drawn(0))


def test_what_is_no_number_is_not_selected() -> None:
    nan, offsets, nodes = float("nan"), np.array([0, 7]), np.arange(7, dtype=np.int32)
    scores = np.array([nan, 0.5, nan, 0.25, nan, 0.75, nan])
    assert select_top(scores, offsets, nodes, 2, 0.0)[1].tolist() == [1, 5]
    assert select_top(np.full(7, nan), offsets, nodes, 2, 0.0)[1].tolist() == []
