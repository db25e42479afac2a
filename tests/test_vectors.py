"""Vector instructions of the compiled loops: what they add up, in which order, and what they write."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from robust_sgld.kernels.vectors import borrowed, lane_dot, lane_sum, put_constant, put_scaled, put_shifted


@njit
def sum_of(values, n):
    return lane_sum(values, n)


@njit
def dot_of(x, y, n):
    return lane_dot(x, y, n)


@njit
def write(to, source):
    put_scaled(to, 0, 1, source, 1, 2, 3.0)
    put_shifted(to, 1, 4, source, 0, 0, -0.5)
    put_constant(to, 2, 0, 7.0)


@njit
def total_of_both(pair):
    first, second = borrowed(pair)
    return first.sum() + second[0].sum()


def halved(lanes: np.ndarray) -> float:
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return float(lanes[0])


def in_lanes(terms: np.ndarray) -> float:
    """The documented order: 32 lanes over all whole groups of 32, eight over the rest, then one by one."""
    n = len(terms)
    wide, eight = n // 32 * 32, n // 8 * 8
    total = 0.0
    for lanes, part in ((32, terms[:wide]), (8, terms[wide:eight])):
        sums = np.zeros(lanes)
        for group in part.reshape(-1, lanes):
            sums = sums + group
        total += halved(sums)
    return total + float(np.add.accumulate(np.append(0.0, terms[eight:]))[-1])


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 32, 33, 40, 100, 371])
def test_sums_have_the_documented_order_to_the_last_bit(n, rng):
    x, y = rng.normal(size=(2, n + 3)) * 10.0 ** rng.integers(-8, 8, size=(2, n + 3))
    assert sum_of(x, n) == in_lanes(x[:n])
    assert dot_of(x, y, n) == in_lanes(x[:n] * y[:n])
    # each of at most n additions rounds a partial sum that is at most Σ|x|
    assert abs(sum_of(x, n) - math.fsum(x[:n])) <= n * 2.0**-53 * np.abs(x[:n]).sum()


def test_eight_numbers_are_written_and_no_more():
    source = np.arange(24.0).reshape(2, 12)
    to = np.full((3, 13), np.nan)
    write(to, source)
    expected = np.full((3, 13), np.nan)
    expected[0, 1:9] = 3.0 * source[1, 2:10]
    expected[1, 4:12] = source[0, :8] - 0.5
    expected[2, :8] = 7.0
    np.testing.assert_array_equal(to, expected)


def test_borrowed_arrays_hold_the_same_numbers(rng):
    pair = rng.normal(size=7), rng.normal(size=(2, 3))
    assert total_of_both(pair) == pytest.approx(pair[0].sum() + pair[1][0].sum(), rel=1e-14)


@pytest.mark.parametrize(
    "values", [np.ones(8, dtype=np.float32), np.ones((8, 2))[:, 0], np.ones((4, 2))], ids=["float32", "strided", "2-d"]
)
def test_other_arrays_are_refused_at_compilation(values):
    with pytest.raises(TypingError, match="contiguous array of float64"):
        sum_of(values, 4)
