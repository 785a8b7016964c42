"""Shares of cells: drawn together as far as chance explains how they differ, and no further."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmpn.calibrate.shrunken_share import shrunken_share


def test_cells_that_differ_by_chance_alone_have_one_share() -> None:
    whole = np.full(200, 40)
    part = np.random.default_rng(0).binomial(whole, 0.3)
    share = shrunken_share(part, whole)
    assert np.abs(share - 0.3).max() < 0.06 < np.abs(part / whole - 0.3).max()


def test_cells_that_differ_keep_their_own_share_and_small_ones_borrow() -> None:
    whole = np.array([1000, 1000, 2, 0])
    share = shrunken_share(np.array([100, 700, 2, 0]), whole)
    assert share[:2] == pytest.approx([0.1, 0.7], abs=0.01)
    assert 0.5 < share[2] < 0.95
    assert share[3] == pytest.approx(802 / 2002)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=20))
def test_it_is_a_share_between_that_of_the_cell_and_that_of_all(cells: list[tuple[int, int]]) -> None:
    part, rest = np.array(cells).T
    whole = part + rest
    if whole.sum() == 0:
        return
    share, mean = shrunken_share(part, whole), part.sum() / whole.sum()
    own = np.where(whole > 0, part / np.maximum(whole, 1), mean)
    assert (share >= np.minimum(own, mean) - 1e-12).all() and (share <= np.maximum(own, mean) + 1e-12).all()
    if mean > 0:
        assert (share > 0).all()
