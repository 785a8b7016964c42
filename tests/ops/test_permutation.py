"""Keyed permutations: bijective, the same in compiled code and PyTorch, and uniform."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpmpn.ops.permutation import ROUNDS, bit_split, combine, permuted, permuted_torch, round_keys, sample

keys = st.integers(0, 2**64 - 1)


def compiled(count, size, key):
    rounds = np.empty(ROUNDS, np.uint64)
    round_keys(np.uint64(key), rounds)
    return [permuted(i, size, rounds, *bit_split(size)) for i in range(count)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(size=st.integers(1, 3000), key=keys)
def test_is_a_permutation(size, key):
    assert np.array_equal(sample(size, size, np.uint64(key)), np.arange(size))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(size=st.integers(1, 2**40), count=st.integers(1, 30), key=keys)
def test_torch_gives_the_same_values(size, count, key):
    count = min(count, size)
    signed = key - 2**64 if key >= 2**63 else key
    found = permuted_torch(
        torch.arange(count), torch.full((count,), size), torch.full((count,), signed)
    ).tolist()
    assert found == compiled(count, size, key)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(size=st.integers(1, 3000), count=st.integers(1, 200), key=keys)
def test_samples_are_the_first_values_in_their_order(size, count, key):
    """Few of many are sorted, many of few are marked."""
    count = min(count, size)
    assert sample(count, size, np.uint64(key)).tolist() == sorted(compiled(count, size, key))


def test_samples_are_uniform():
    for size, count in ((7, 3), (50, 20), (1000, 100)):
        hits, pairs, repeats = np.zeros(size), 0, 20_000
        for i in range(repeats):
            drawn = sample(count, size, np.uint64(combine(np.uint64(i), 5)))
            hits[drawn] += 1
            pairs += drawn[0] == 0 and drawn[1] == 1
        assert chisquare(hits).pvalue > 1e-4
        expected = count * (count - 1) / (size * (size - 1))
        spread = np.sqrt(expected * (1 - expected) / repeats)
        assert abs(pairs / repeats - expected) < 5 * spread
