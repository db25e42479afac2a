"""Scalar functions that the compiled loops share.

The compiler may take a·b+c as one operation and nothing else. In particular it must not reorder sums: a freshly
compiled and a cached copy of the same function would then give different last bits. Sums are reordered by hand instead,
in eight fixed lanes, which vectorise.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

EXACT = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to an integer, which then stands in the low bits


@njit(**EXACT)
def fast_exp(x: float) -> float:
    """e^x to 1 ulp or so, without branches or calls, so that loops over it vectorise; x is clamped to [-708, 709].

    x = k log 2 + r with |r| ≤ log(2)/2; a Taylor polynomial of degree 13 in r (remainder below 5e-18), times 2^k
    through the exponent bits.
    """
    x = min(max(x, -708.0), 709.0)
    shifted = x * _LOG2E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r * r + r + 1.0
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


@njit(**EXACT)
def lane_sum(values, n):
    """Σ values[:n] in eight lanes."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = n // 8 * 8
    for i in range(0, whole, 8):
        a0 += values[i]
        a1 += values[i + 1]
        a2 += values[i + 2]
        a3 += values[i + 3]
        a4 += values[i + 4]
        a5 += values[i + 5]
        a6 += values[i + 6]
        a7 += values[i + 7]
    for i in range(whole, n):
        a0 += values[i]
    return ((a0 + a4) + (a1 + a5)) + ((a2 + a6) + (a3 + a7))


@njit(**EXACT)
def lane_dot(x, y, n):
    """Σ x[i] y[i] for i < n, in eight lanes."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole = n // 8 * 8
    for i in range(0, whole, 8):
        a0 += x[i] * y[i]
        a1 += x[i + 1] * y[i + 1]
        a2 += x[i + 2] * y[i + 2]
        a3 += x[i + 3] * y[i + 3]
        a4 += x[i + 4] * y[i + 4]
        a5 += x[i + 5] * y[i + 5]
        a6 += x[i + 6] * y[i + 6]
        a7 += x[i + 7] * y[i + 7]
    for i in range(whole, n):
        a0 += x[i] * y[i]
    return ((a0 + a4) + (a1 + a5)) + ((a2 + a6) + (a3 + a7))


@njit(**EXACT)
def stable_sigmoid(t: float) -> float:
    """1 / (1 + e^{-t}) for any t."""
    if t >= 0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@njit(**EXACT)
def log_cosh(alpha: float) -> float:
    """ι(α), as in `robust_sgld.dro.iota`."""
    magnitude = abs(alpha)
    return magnitude + math.log1p(math.exp(-2.0 * magnitude)) - 0.6931471805599453


def langevin_update(state, gradient, noise, step_size, noise_scale):  # type: ignore[no-untyped-def]
    """One SGLD update (label eqn:sgld): θ̄ - λ H(θ̄, X) + sqrt(2λ/β) Z. The only place where it is written."""
    return state - step_size * gradient + noise_scale * noise


compiled_langevin_update = njit(**EXACT)(langevin_update)
