"""Interpolation of a table on equally spaced nodes, as one fixed filter of ten coefficients.

A table a[k] stands for A(kh). At t_k + s the value is Σ_q c_q(f) a[k + ⌊s/h⌋ - 4 + q], f the fraction of s/h: the
polynomial through the ten nearest nodes. The filter depends on s alone, so that one filter serves every node, in a loop
that vectorises.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT

POINTS = 10
LEFT = POINTS // 2 - 1
"""nodes that the filter reads to the left of the one below the target"""

_BARYCENTRIC = np.array([1.0, -9.0, 36.0, -84.0, 126.0, -126.0, 84.0, -36.0, 9.0, -1.0]) / -362880.0
"""1 / Π_{r≠q} (q-r)"""

REMAINDER = (0.5 * 1.5 * 2.5 * 3.5 * 4.5) ** 2 / 3628800.0
"""max over f in [0, 1] of |Π_q (f - o_q)| / 10!: the interpolation error is this times the tenth difference, to leading
order"""


@njit(**EXACT)
def weights(f, c, d):
    """c_q(f) and c_q'(f) for the nodes q - 4, q = 0 … 9, by products from either side: f = 0 needs no care."""
    before, before_slope = 1.0, 0.0
    for q in range(POINTS):
        c[q], d[q] = before, before_slope
        gap = f - (q - LEFT)
        before_slope = before_slope * gap + before
        before *= gap
    after, after_slope = 1.0, 0.0
    for q in range(POINTS - 1, -1, -1):
        d[q] = (d[q] * after + c[q] * after_slope) * _BARYCENTRIC[q]
        c[q] = c[q] * after * _BARYCENTRIC[q]
        gap = f - (q - LEFT)
        after_slope = after_slope * gap + after
        after *= gap


@njit(**EXACT)
def convolve(a, c, n, out):
    """out[k] = Σ_q c[q] a[k+q] for k < n."""
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]
    for i in range(n):
        k = np.uintp(i)
        low = (c0 * a[k] + c1 * a[k + np.uintp(1)]) + (c2 * a[k + np.uintp(2)] + c3 * a[k + np.uintp(3)])
        high = (c6 * a[k + np.uintp(6)] + c7 * a[k + np.uintp(7)]) + (c8 * a[k + np.uintp(8)] + c9 * a[k + np.uintp(9)])
        out[k] = (low + high) + (c4 * a[k + np.uintp(4)] + c5 * a[k + np.uintp(5)])


@njit(**EXACT)
def add_adjoint(g, c, n, out):
    """out[k] += Σ_q c[9-q] g[k+q] for k < n: the transpose of `convolve`, for g with nine zeros on either side."""
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]
    for i in range(n):
        k = np.uintp(i)
        low = (c9 * g[k] + c8 * g[k + np.uintp(1)]) + (c7 * g[k + np.uintp(2)] + c6 * g[k + np.uintp(3)])
        high = (c3 * g[k + np.uintp(6)] + c2 * g[k + np.uintp(7)]) + (c1 * g[k + np.uintp(8)] + c0 * g[k + np.uintp(9)])
        out[k] += (low + high) + (c5 * g[k + np.uintp(4)] + c4 * g[k + np.uintp(5)])


@njit(**EXACT)
def tenth_difference(a, n, out):
    """out[k] = |Σ_q (-1)^q C(10,q) a[k+q]| for k < n."""
    for i in range(n):
        k = np.uintp(i)
        outer = (a[k] + a[k + np.uintp(10)]) - 10.0 * (a[k + np.uintp(1)] + a[k + np.uintp(9)])
        inner = 45.0 * (a[k + np.uintp(2)] + a[k + np.uintp(8)]) - 120.0 * (a[k + np.uintp(3)] + a[k + np.uintp(7)])
        middle = 210.0 * (a[k + np.uintp(4)] + a[k + np.uintp(6)]) - 252.0 * a[k + np.uintp(5)]
        out[k] = abs((outer + inner) + middle)
