"""Scalar functions that the compiled loops share.

The compiler may take a·b+c as one operation and nothing else. In particular it must not reorder sums: a freshly
compiled and a cached copy of the same function would then give different last bits; `vectors` has sums in fixed lanes.
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

    x = k log 2 + r with |r| ≤ log(2)/2; 1 + r + r² q(r) with the q of degree 9 that makes the largest relative
    error smallest (3.7e-18, by Remez' algorithm), times 2^k through the exponent bits.
    """
    x = min(max(x, -708.0), 709.0)
    shifted = x * _LOG2E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 2.5000072190215835e-08
    p = p * r + 2.7630234052893854e-07
    p = p * r + 2.755758626743288e-06
    p = p * r + 2.4801493135841673e-05
    p = p * r + 0.00019841269506777747
    p = p * r + 0.0013888888943597998
    p = p * r + 0.008333333333494335
    p = p * r + 0.041666666666530267
    p = p * r + 0.16666666666666413
    p = p * r + 0.5000000000000011
    p = p * r * r + r + 1.0
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


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
