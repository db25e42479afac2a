"""Columns into Ξ and back: robust centre and scale, what is clipped, coefficients in the file's units."""

from __future__ import annotations

import numpy as np
import pytest

import robust_sgld as rs
from robust_sgld.scaling import Scaling, centre_and_spread


def test_median_and_mad_of_a_normal_column(rng):
    """Of 20 000 normal values: the median has standard deviation 1.25σ/√n, 1.4826·MAD about 1.17σ/√n; five of them."""
    centre, spread, binary = centre_and_spread(rng.normal(7, 2, 20_000))
    assert abs(centre - 7) < 5 * 1.25 * 2 / np.sqrt(20_000)
    assert abs(spread - 2) < 5 * 1.17 * 2 / np.sqrt(20_000)
    assert not binary


def test_outliers_below_one_half_do_not_carry_the_map_away(rng):
    """With 40 % of the values at 10^9 the median and the MAD stay within the range of the others."""
    clean = rng.normal(0, 1, 1000)
    column = np.concatenate([clean, np.full(600, 1e9)])
    centre, spread, _ = centre_and_spread(column)
    assert clean.min() < centre < clean.max()
    assert 0.5 < spread < clean.max() - clean.min()


def test_the_interval_of_reach_goes_to_the_ends_of_the_support(rng):
    raw = np.column_stack([rng.normal(5, 2, 501), rng.normal(-1, 30, 501)])
    _, scaling = rs.standardise(raw, support=(-2.0, 6.0), reach=2.5, target_range=(0.0, 1.0))
    for i, (low, high) in enumerate([(-2, 6), (0, 1)]):
        middle, spread, _ = centre_and_spread(raw[:, i])
        ends = np.full((2, 2), 0.0)
        ends[:, i] = middle - 2.5 * spread, middle + 2.5 * spread
        np.testing.assert_allclose(scaling.apply(ends)[:, i], [low, high], rtol=0, atol=1e-12)


def test_what_lies_outside_is_moved_to_the_edge_and_counted(rng):
    raw = rng.normal(0, 1, (400, 3))
    raw[:7, 0], raw[:3, 2] = 50, -80
    scaled, scaling = rs.standardise(raw, reach=6.0)
    assert scaling.clipped.tolist() == [7, 0, 3]
    assert (scaled[:7, 0] == 3).all()
    assert (scaled[:3, 2] == -3).all()
    np.testing.assert_allclose(scaling.undo(scaled)[7:], raw[7:], rtol=1e-12, atol=1e-12)


def test_without_a_reach_all_rows_fit_and_nothing_is_clipped(rng):
    raw = rng.standard_cauchy((300, 4))
    scaled, scaling = rs.standardise(raw, reach=None)
    assert not scaling.clipped.any()
    assert np.abs(scaled).max() == pytest.approx(3)
    np.testing.assert_allclose(scaling.undo(scaled), raw, rtol=1e-9, atol=1e-9)


def test_two_values_a_constant_and_a_column_that_is_mostly_zero(rng):
    n = 200
    dummy = np.where(np.arange(n) < 15, 8.0, 2.0)
    sparse = np.where(np.arange(n) < 60, rng.uniform(1, 2, n), 0.0)
    label = np.where(rng.random(n) < 0.3, 1.0, 0.0)
    scaled, scaling = rs.standardise(
        np.column_stack([dummy, sparse, np.full(n, 4.0), label]), reach=3.0, target_range=(-1.0, 1.0)
    )
    assert set(scaled[:, 0]) == {-1.0, 1.0}
    # its MAD is 0: sqrt(π/2) times the mean absolute deviation from the median 0
    assert scaling.scale[1] == pytest.approx(np.sqrt(np.pi / 2) * sparse.mean())
    assert (scaled[:, 2] == 0).all()
    assert set(scaled[:, 3]) == {-1.0, 1.0}
    assert (scaled[:, 3] == 2 * label - 1).all()


def test_the_same_index_on_raw_features(rng):
    raw = rng.normal(3, [1, 10, 0.1, 5], (50, 4))
    scaled, scaling = rs.standardise(raw, reach=None)
    theta = rng.normal(size=(6, 4))
    weights, intercept = scaling.index(theta)
    expected = scaled[:, :-1] @ theta[:, :-1].T + theta[:, -1]
    np.testing.assert_allclose(raw[:, :-1] @ weights.T + intercept, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(scaling.features(raw[:, :-1]), scaled[:, :-1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(scaling.target(scaled[:, -1]), raw[:, -1], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"support": (3, -3)}, "support must have low < high"),
        ({"support": 3}, "support must be a pair"),
        ({"reach": 0}, "reach must be above 0"),
        ({"target_range": (0, 9)}, "must lie in the support"),
    ],
)
def test_refusals(change, words, rng):
    with pytest.raises(rs.InvalidInput, match=words):
        rs.standardise(rng.normal(size=(20, 2)), **change)


def test_a_scale_of_zero_is_refused():
    with pytest.raises(rs.InvalidInput, match="above 0"):
        Scaling(np.zeros(2), np.array([1.0, 0.0]), np.zeros(2))
