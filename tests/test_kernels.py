"""The scalar functions of the compiled loops, in units in the last place."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

import robust_sgld as rs
from robust_sgld.kernels.elementary import fast_exp, log_cosh, stable_sigmoid


@njit
def over_array(function, x, out):
    for i in range(x.size):
        out[i] = function(x[i])


def ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest distance in units of the last place of float64; `exact` is in long double."""
    return float(np.max(np.abs(got - exact) / np.spacing(np.abs(exact).astype(float))))


def test_fast_exp_is_exp_to_an_ulp_or_so(rng):
    x = np.concatenate([rng.uniform(-708, 709, 200_000), rng.normal(size=200_000), [0.0, -0.0, 1e-300, 709.0, -708.0]])
    got = np.empty_like(x)
    over_array(fast_exp, x, got)
    assert ulps(got, np.exp(x.astype(np.longdouble))) < 1.5
    assert fast_exp(0.0) == 1.0


def test_fast_exp_is_clamped_and_keeps_nan():
    assert fast_exp(-np.inf) == fast_exp(-708.0) > 0
    assert fast_exp(np.inf) == fast_exp(709.0) < np.inf
    assert np.isnan(fast_exp(np.nan))


def test_stable_sigmoid_anywhere():
    """Two roundings beside the exponential's: within 3 ulps, also where e^t underflows."""
    t = np.concatenate([np.linspace(-700, 700, 5001), [-1e300, 1e300]])
    got = np.array([stable_sigmoid(v) for v in t])
    assert ulps(got[:-2], 1 / (1 + np.exp(-t[:-2].astype(np.longdouble)))) < 3
    assert list(got[-2:]) == [0.0, 1.0]


@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.3, -2.0, 50.0, -1e6])
def test_log_cosh_is_the_iota_of_the_library(alpha):
    assert log_cosh(alpha) == pytest.approx(float(rs.iota(alpha)), rel=1e-15, abs=2.3e-16)
