"""Checks: what passes comes back as a plain number or array; what does not names itself and the trouble."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robust_sgld.checks import InvalidInput, array, integer, positive, real


def test_a_refusal_is_a_value_error():
    assert issubclass(InvalidInput, ValueError)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0)])
def test_real_and_positive_return_a_float(value):
    for check in (real, positive):
        result = check("x", value)
        assert type(result) is float
        assert result == 2.0


@pytest.mark.parametrize("value", [None, "2", True, np.bool_(True), [2.0], np.array([2.0]), 2j])
def test_real_refuses_what_is_no_number(value):
    with pytest.raises(InvalidInput, match="delta must be a number"):
        real("delta", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_real_refuses_what_is_not_finite(value):
    with pytest.raises(InvalidInput, match="delta must be a finite number"):
        real("delta", value)


def test_real_may_allow_infinity_but_never_nan():
    assert real("beta", math.inf, finite=False) == math.inf
    with pytest.raises(InvalidInput, match="beta must be a finite number"):
        real("beta", math.nan, finite=False)


@pytest.mark.parametrize("value", [0, 0.0, -1e-300, -3])
def test_positive_refuses_zero_and_below(value):
    with pytest.raises(InvalidInput, match="eta1 must be above 0"):
        positive("eta1", value)


@pytest.mark.parametrize("value", [10_000, 1e4, np.int32(10_000), np.array(10_000)])
def test_integer_takes_whole_numbers_of_any_type(value):
    result = integer("n_iter", value, least=1)
    assert type(result) is int
    assert result == 10_000


@pytest.mark.parametrize("value", [1.5, math.nan, math.inf, "3", None, True])
def test_integer_refuses_what_is_not_whole(value):
    with pytest.raises(InvalidInput, match="runs must be a whole number"):
        integer("runs", value, least=1)


def test_integer_refuses_below_its_least():
    with pytest.raises(InvalidInput, match="runs must be at least 1, got 0"):
        integer("runs", 0, least=1)


def test_array_returns_contiguous_float64():
    result = array("x", np.arange(6, dtype=np.int32).reshape(2, 3).T, shape=(None, 2))
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, [[0, 3], [1, 4], [2, 5]])


@pytest.mark.parametrize(
    ("value", "shape"),
    [([1.0], (2,)), ([[1.0]], (None,)), (1.0, (None,)), ([], (None,)), (np.ones((3, 2)), (None, 4))],
)
def test_array_refuses_another_shape(value, shape):
    with pytest.raises(InvalidInput, match=r"x must have shape \(.*got \("):
        array("x", value, shape=shape)


@pytest.mark.parametrize("value", [["a", "b"], [[1.0], [1.0, 2.0]], [10**400], object()])
def test_array_refuses_what_is_not_numeric(value):
    with pytest.raises(InvalidInput, match="x must be numeric"):
        array("x", value, shape=(None,))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_array_says_where_it_is_not_finite(bad):
    with pytest.raises(InvalidInput, match=r"train has a value that is not finite .* at position \(3, 1\)"):
        array("train", np.where(np.arange(10).reshape(5, 2) == 7, bad, 1.0), shape=(None, 2))
