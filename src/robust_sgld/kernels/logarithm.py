"""A logarithm that vectorises, beside `elementary.fast_exp`."""

from __future__ import annotations

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT

_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # the bits of 1/sqrt(2)
_BIAS = np.uint64(0x4000000000000000)  # keeps the shifted bits positive, so that a logical shift is right
_MAGIC = np.uint64(0x4338000000000000)  # the bits of 1.5 · 2^52
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


@njit(**EXACT)
def fast_log(x: float) -> float:
    """log x for a normal positive x, to about an ulp of max(|log x|, 1), without branches or calls.

    x = 2^e m with m in [1/sqrt(2), sqrt(2)); log m = 2 artanh(s), s = (m-1)/(m+1), |s| ≤ 0.1716: the series up to s^23,
    whose remainder is below 2e-18 of it.
    """
    bits = np.uint64(np.float64(x).view(np.uint64))
    e = (bits - _ROOT_HALF + _BIAS) >> np.uint64(52)
    m = np.uint64(bits - (e << np.uint64(52)) + _BIAS).view(np.float64)
    k = np.uint64(e + _MAGIC).view(np.float64) - 6755399441056768.0  # 1.5 · 2^52 + 1024
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    p = 1.0 / 23.0
    p = p * q + 1.0 / 21.0
    p = p * q + 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    small = 2.0 * s
    return k * _LN2_HIGH + (small + (small * q * p + k * _LN2_LOW))
