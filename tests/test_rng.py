"""Draws: one independent pair of streams a run."""

from __future__ import annotations

import numpy as np
import pytest

import robust_sgld as rs


def test_shapes_and_ranges():
    draws = rs.draws(3, runs=4, n_iter=50, n_data=7, dim=5)
    assert draws.indices.shape == (4, 50)
    assert draws.indices.dtype == np.int64
    assert set(np.unique(draws.indices)) == set(range(7))
    assert draws.noise.shape == (4, 50, 5)
    assert draws.noise.dtype == np.float64


def test_run_k_is_the_same_alone_and_in_any_company():
    together = rs.draws(3, 5, 40, 100, 2)
    for numbers in ([3], [4, 3, 0]):
        some = rs.draws(3, numbers, 40, 100, 2)
        np.testing.assert_array_equal(some.indices, together.indices[numbers])
        np.testing.assert_array_equal(some.noise, together.noise[numbers])


def test_a_short_run_is_the_beginning_of_a_long_one():
    short, long = rs.draws(3, 2, 10, 100, 3), rs.draws(3, 2, 1000, 100, 3)
    np.testing.assert_array_equal(short.indices, long.indices[:, :10])
    np.testing.assert_array_equal(short.noise, long.noise[:, :10])


def test_samplers_of_different_dimension_see_the_same_data_points():
    np.testing.assert_array_equal(rs.draws(3, 2, 30, 100, 4).indices, rs.draws(3, 2, 30, 100, 5).indices)


def test_seeds_and_runs_differ():
    """Two of 2·3 streams of 200 uniform indices below 1e6 agree somewhere at one place with probability 200·15/1e6."""
    first, second = rs.draws(0, 3, 200, 10**6, 1), rs.draws(1, 3, 200, 10**6, 1)
    streams = np.concatenate([first.indices, second.indices])
    noises = np.concatenate([first.noise, second.noise])[..., 0]
    for a in range(6):
        for b in range(a):
            assert (streams[a] == streams[b]).mean() < 0.02
            assert not np.isin(noises[a], noises[b]).any()


def test_noise_is_standard_normal_and_indices_uniform():
    """1e6 numbers: the mean has standard error 1e-3, the variance √2·1e-3; bounds are 4.5 of them.

    Σ (count - n/k)²/(n/k) over k=100 values is about χ² with 99 degrees of freedom: mean 99, sd 14.07.
    """
    draws = rs.draws(7, 100, 2_000, 100, 5)
    assert abs(draws.noise.mean()) < 4.5e-3
    assert abs(draws.noise.var() - 1) < 4.5 * 2**0.5 * 1e-3
    counts = np.bincount(draws.indices.ravel(), minlength=100)
    expected = draws.indices.size / 100
    assert abs(((counts - expected) ** 2 / expected).sum() - 99) < 4.5 * 14.07


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"runs": [0, -1]}, "run number must be at least 0"),
        ({"n_iter": 0}, "n_iter must be at least 1"),
        ({"n_data": 0}, "n_data must be at least 1"),
        ({"dim": 0}, "dim must be at least 1"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(rs.InvalidInput, match=words):
        rs.draws(**{"seed": 0, "runs": 1, "n_iter": 1, "n_data": 1, "dim": 1} | change)
