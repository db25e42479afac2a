"""The dyadic grid, the floor map and μ_{0,ℓ,j} against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robust_sgld as rs
from tests import literal

GRIDS = [
    (4, 3, 1, (-3.0, 3.0)),
    (1, 1, 0, (-1.0, 0.5)),
    (2, 2, 3, (-1.0, 1.3)),
    (3, 3, 0, (-4.0, 3.9)),
    (2, 4, 2, (-0.25, 6.0)),
    (1, 3, 1, (0.5, 0.7)),
]


@pytest.mark.parametrize(("dim", "ell", "j", "support"), GRIDS)
def test_points_are_the_dyadics_inside_the_support(dim, ell, j, support):
    grid = rs.Grid(dim, ell, j, support)
    want = literal.grid(dim, ell, j, support)
    np.testing.assert_array_equal(grid.points(), want)
    np.testing.assert_array_equal(grid.axis, np.unique(want))
    assert grid.size == len(want)
    assert grid.points_per_axis == len(grid.axis)
    assert grid.log_size == pytest.approx(np.log(len(want)), rel=1e-15)


def test_the_published_grid():
    grid = rs.DRO().grid(4)
    np.testing.assert_array_equal(grid.axis, np.linspace(-3, 3, 13))
    assert grid.size == 28_561


def test_the_size_is_exact_and_free_however_large():
    assert rs.Grid(33, 3, 1, (-3, 3)).size == 13**33
    assert rs.Grid(2, 3, 37, (-3, 3)).size == (6 * 2**37 + 1) ** 2


@given(
    ell=st.integers(1, 5),
    j=st.integers(0, 6),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda e: abs(e[0] - e[1]) > 1e-3),
    seed=st.integers(0, 1000),
)
def test_the_floor_of_a_point_of_the_support_is_a_grid_point(ell, j, ends, seed):
    """lemma:finite_grid needs it; the largest grid point that is not above x in any coordinate."""
    half = 2.0 ** (ell - 1)
    lower = np.floor((2 * min(ends) - 1) * half * 2**j) / 2**j
    upper = min((2 * max(ends) - 1) * half, half * (1 - 1e-9))
    if lower >= upper:
        return
    grid = rs.Grid(2, ell, j, (lower, upper))
    x = np.random.default_rng(seed).uniform(lower, upper, (20, 2))
    x[0], x[1] = lower, upper
    floor = grid.floor(x)
    np.testing.assert_array_equal(floor, literal.floored(x, ell, j))
    assert np.isin(floor, grid.axis).all()


def test_measure_counts_the_floored_rows(rng):
    grid = rs.Grid(2, 2, 0, (-2.0, 1.5))
    x = rng.uniform(-2, 1.5, (500, 2))
    atoms, weights = grid.measure(x)
    rows = [tuple(row) for row in literal.floored(x, 2, 0)]
    assert sorted(map(tuple, atoms)) == sorted(set(rows))
    for atom, weight in zip(atoms, weights, strict=True):
        assert weight == pytest.approx(rows.count(tuple(atom)) / 500, abs=1e-15)
    assert weights.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"support": (-3, 4)}, ["must lie inside", "ell=4 is large enough"]),
        ({"support": (-5, 3)}, ["must lie inside", "ell=4 is large enough"]),
        ({"support": (-30, 3)}, ["ell=6 is large enough"]),
        ({"support": (3, -3)}, ["lower end below its upper end"]),
        ({"support": (1, 1)}, ["lower end below its upper end"]),
        ({"support": (-2.7, 3)}, ["multiple of 2^-j = 0.5", "-3 would do"]),
        ({"support": (float("nan"), 3)}, ["support's lower end must be a finite number"]),
        ({"support": (-3, float("inf"))}, ["support's upper end must be a finite number"]),
        ({"support": 3}, ["pair (lower, upper)"]),
        ({"support": (1, 2, 3)}, ["pair (lower, upper)"]),
        ({"dim": 0}, ["dim must be at least 1"]),
        ({"ell": 0}, ["ell must be at least 1"]),
        ({"ell": 2.5}, ["ell must be a whole number"]),
        ({"j": -1}, ["j must be at least 0"]),
        ({"j": 60}, ["ell + j must be at most 40"]),
    ],
)
def test_refusals(change, words):
    with pytest.raises(rs.InvalidInput) as refusal:
        rs.Grid(**{"dim": 4, "ell": 3, "j": 1, "support": (-3.0, 3.0)} | change)
    for word in words:
        assert word in str(refusal.value)


def test_a_value_outside_the_support_is_named_by_row_and_column():
    grid = rs.Grid(3, 3, 1, (-3.0, 3.0))
    x = np.zeros((5, 3))
    x[2, 1], x[4, 0] = 3.01, -9
    with pytest.raises(rs.InvalidInput, match=r"train: row 2, column 1 is 3.01, outside .*\[-3, 3\] \(2 of 5 rows"):
        grid.check_inside("train", x)
    with pytest.raises(rs.InvalidInput, match=r"row 2, column age is 3\.01"):
        grid.check_inside("train", x, ("height", "age", "y"))
    x[2, 1], x[4, 0] = 3, -3
    np.testing.assert_array_equal(grid.check_inside("train", x), x)


def test_many_atoms_are_thinned_evenly(rng):
    """200 of 5 000: weights are whole multiples of 1/200."""
    grid, rows = rs.Grid(6, 3, 1, (-3.0, 3.0)), rng.uniform(-3, 3, (5000, 6))
    atoms, weights = grid.measure(rows, 200)
    assert len(atoms) <= 200
    np.testing.assert_allclose(weights.sum(), 1)
    np.testing.assert_allclose(weights * 200, np.round(weights * 200), atol=1e-12)
    everything, all_weights = grid.measure(rows)
    assert len(everything) > 4000
    assert {tuple(atom) for atom in atoms} <= {tuple(atom) for atom in everything}
    # rows are sorted by their first column, so its mean is stratified: a cell of 0.5, not the spread of 3.5/sqrt(200)
    assert weights @ atoms[:, 0] == pytest.approx(all_weights @ everything[:, 0], abs=0.02)
    few, few_weights = grid.measure(rows[:50], 200)
    np.testing.assert_array_equal(few, grid.measure(rows[:50])[0])
    np.testing.assert_array_equal(few_weights, grid.measure(rows[:50])[1])
