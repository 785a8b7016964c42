"""Keyed pseudorandom permutations: sampling without replacement that depends on a key alone.

The first n values of a permutation of 0..size-1 are a uniform sample of n without replacement. The permutation is
a Feistel network over the smallest power of two that holds `size`, walked until it falls below `size`; it needs no
memory, costs O(n) whatever the size, and gives the same values in compiled code and in PyTorch on any device.
"""

import numpy as np
import torch

from dpmpn.kernels import Ints, inline_kernel, kernel

ROUNDS = 6
_MULTIPLIERS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND, _STEP = np.uint64(_MULTIPLIERS[0]), np.uint64(_MULTIPLIERS[1]), np.uint64(_GOLDEN)
_SHIFT = np.uint64(33)
_SPARSE = 16  # where fewer than one value of so many is drawn, they are sorted instead of marked


@inline_kernel
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits so that every input bit reaches every output bit."""
    x = np.uint64(x)
    x = (x ^ (x >> _SHIFT)) * _FIRST
    x = (x ^ (x >> _SHIFT)) * _SECOND
    return x ^ (x >> _SHIFT)


@kernel
def combine(key: np.uint64, value: int) -> np.uint64:
    """Derive a new key from a key and a value."""
    return mix(np.uint64(key) + _STEP * (np.uint64(value) + np.uint64(1)))


@kernel
def round_keys(key: np.uint64, out: Ints) -> None:
    """Fill `out` with the keys of the Feistel rounds."""
    for i in range(ROUNDS):
        out[i] = combine(key, i)


@kernel
def bit_split(size: int) -> tuple[int, int]:
    """Split the bits that hold 0..size-1 into a left and a right half."""
    bits = 6  # a smaller domain would mix too little
    while (1 << bits) < size:
        bits += 1
    return bits // 2, bits - bits // 2


@inline_kernel
def scramble(half: np.uint64, key: np.uint64) -> np.uint64:
    """The round function: two products, since one alone is linear in `half` and shows in small domains."""
    x = (half ^ key) * _FIRST
    return ((x ^ (x >> _SHIFT)) * _SECOND) >> _SHIFT


@kernel
def permuted(index: int, size: int, keys: Ints, left_bits: int, right_bits: int) -> np.int64:
    """The image of `index` under the permutation of 0..size-1 given by the round keys."""
    left_mask = (np.uint64(1) << np.uint64(left_bits)) - np.uint64(1)
    right_mask = (np.uint64(1) << np.uint64(right_bits)) - np.uint64(1)
    x = np.uint64(index)
    while True:
        left, right = x >> np.uint64(right_bits), x & right_mask
        for i in range(0, ROUNDS, 2):
            left ^= scramble(right, keys[i]) & left_mask
            right ^= scramble(left, keys[i + 1]) & right_mask
        x = (left << np.uint64(right_bits)) | right
        if x < np.uint64(size):
            return np.int64(x)


@kernel
def draw(size: int, keys: Ints, out: Ints) -> None:
    """Fill `out` with the images of 0, 1, ... under the permutation of 0..size-1, ascending."""
    left_bits, right_bits = bit_split(size)
    if size > _SPARSE * len(out):
        for i in range(len(out)):
            out[i] = permuted(i, size, keys, left_bits, right_bits)
        out.sort()
        return
    drawn = np.zeros(size, np.bool_)  # quicker than to sort, where many of all are drawn
    for i in range(len(out)):
        drawn[permuted(i, size, keys, left_bits, right_bits)] = True
    n = 0
    for i in range(size):
        if drawn[i]:
            out[n] = i
            n += 1


@kernel
def sample(count: int, size: int, key: np.uint64) -> Ints:
    """`count` distinct values of 0..size-1, ascending."""
    keys = np.empty(ROUNDS, np.uint64)
    round_keys(key, keys)
    out = np.empty(count, np.int64)
    draw(size, keys, out)
    return out


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _logical_shift(x: torch.Tensor, bits: int) -> torch.Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def mix_torch(x: torch.Tensor) -> torch.Tensor:
    """`mix` on int64 tensors, whose products wrap as unsigned ones do."""
    x = (x ^ _logical_shift(x, 33)) * _signed(_MULTIPLIERS[0])
    x = (x ^ _logical_shift(x, 33)) * _signed(_MULTIPLIERS[1])
    return x ^ _logical_shift(x, 33)


def _scramble_torch(half: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    x = (half ^ key) * _signed(_MULTIPLIERS[0])
    return _logical_shift((x ^ _logical_shift(x, 33)) * _signed(_MULTIPLIERS[1]), 33)


def combine_torch(key: torch.Tensor, value: torch.Tensor | int) -> torch.Tensor:
    """`combine` on int64 tensors."""
    return mix_torch(key + (torch.as_tensor(value, device=key.device) + 1) * _signed(_GOLDEN))


def permuted_torch(index: torch.Tensor, size: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """`permuted` on int64 tensors of one shape: the image of each index under the permutation of its size and key."""
    bits = torch.full_like(size, 6)
    while (short := (1 << bits) < size).any():
        bits = bits + short
    left_bits = bits // 2
    right_bits = bits - left_bits
    left_mask, right_mask = (1 << left_bits) - 1, (1 << right_bits) - 1
    keys = [combine_torch(key, i) for i in range(ROUNDS)]

    def feistel(x: torch.Tensor) -> torch.Tensor:
        left, right = x >> right_bits, x & right_mask
        for i in range(0, ROUNDS, 2):
            left = left ^ (_scramble_torch(right, keys[i]) & left_mask)
            right = right ^ (_scramble_torch(left, keys[i + 1]) & right_mask)
        return (left << right_bits) | right

    x = feistel(index)
    while (outside := x >= size).any():
        x = torch.where(outside, feistel(x), x)
    return x
