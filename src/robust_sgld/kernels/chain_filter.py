"""Interpolation of a table on equally spaced nodes, as one fixed filter of ten coefficients.

A table a[k] stands for A(kh). At t_k + s the value is Σ_q c_q(f) a[k + ⌊s/h⌋ - 4 + q], f the fraction of s/h: the
polynomial through the ten nearest nodes. The filter depends on s alone, so that one filter serves every node, in a loop
that vectorises.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT

POINTS = 10
LEFT = POINTS // 2 - 1
"""nodes that the filter reads to the left of the one below the target"""

_BARYCENTRIC = np.array([1.0, -9.0, 36.0, -84.0, 126.0, -126.0, 84.0, -36.0, 9.0, -1.0]) / -362880.0
"""1 / Π_{r≠q} (q-r)"""


def _end_slopes() -> np.ndarray:
    """(5, 11) the derivative at node r of the polynomial through the nodes 0 … 10, r = 0 … 4."""
    nodes = np.arange(POINTS + 1)
    weight = np.array([math.prod(float(q - r) for r in nodes if r != q) for q in nodes])
    found = np.empty((POINTS // 2, POINTS + 1))
    for r in range(POINTS // 2):
        for q in nodes:
            if q != r:
                found[r, q] = weight[r] / weight[q] / (r - q)
        found[r, r] = sum(1.0 / (r - q) for q in nodes if q != r)
    return found


_END_SLOPES = _end_slopes()

REMAINDER = (0.5 * 1.5 * 2.5 * 3.5 * 4.5) ** 2 / 3628800.0
"""max over f in [0, 1] of |Π_q (f - o_q)| / 10!: the interpolation error is this times the tenth difference, to leading
order"""


@njit(**EXACT)
def weights(f, filters, o, z):
    """c_q(f) for the nodes q - 4, q = 0 … 9, into filters[o, z]: products from either side, so f = 0 needs no care."""
    before = 1.0
    for q in range(POINTS):
        filters[o, z, q] = before
        before *= f - (q - LEFT)
    after = 1.0
    for q in range(POINTS - 1, -1, -1):
        filters[o, z, q] *= after * _BARYCENTRIC[q]
        after *= f - (q - LEFT)


@njit(**EXACT)
def interpolate(a, at, filters, o, z, penalty, n, out, to, top):
    """out[to+k] = Σ_q c_q a[at+k+q] - penalty for k < n with c = filters[o, z], and its running maximum top[k].

    Here and below places are given as an array and an offset: a slice would cost more than a short loop.
    """
    c0, c1, c2, c3, c4 = filters[o, z, 0], filters[o, z, 1], filters[o, z, 2], filters[o, z, 3], filters[o, z, 4]
    c5, c6, c7, c8, c9 = filters[o, z, 5], filters[o, z, 6], filters[o, z, 7], filters[o, z, 8], filters[o, z, 9]
    base, target = np.uintp(at), np.uintp(to)
    for i in range(n):
        k = base + np.uintp(i)
        low = (c0 * a[k] + c1 * a[k + np.uintp(1)]) + (c2 * a[k + np.uintp(2)] + c3 * a[k + np.uintp(3)])
        high = (c6 * a[k + np.uintp(6)] + c7 * a[k + np.uintp(7)]) + (c8 * a[k + np.uintp(8)] + c9 * a[k + np.uintp(9)])
        value = (low + high) + (c4 * a[k + np.uintp(4)] + c5 * a[k + np.uintp(5)]) - penalty
        out[target + np.uintp(i)] = value
        top[i] = max(top[i], value)


@njit(**EXACT)
def transpose(g, filters, o, z, n, out):
    """out[k] = Σ_q c_{9-q} g[k+q] for k < n: the transpose of `interpolate`, for g with nine zeros on either side."""
    c0, c1, c2, c3, c4 = filters[o, z, 0], filters[o, z, 1], filters[o, z, 2], filters[o, z, 3], filters[o, z, 4]
    c5, c6, c7, c8, c9 = filters[o, z, 5], filters[o, z, 6], filters[o, z, 7], filters[o, z, 8], filters[o, z, 9]
    for i in range(n):
        k = np.uintp(i)
        low = (c9 * g[k] + c8 * g[k + np.uintp(1)]) + (c7 * g[k + np.uintp(2)] + c6 * g[k + np.uintp(3)])
        high = (c3 * g[k + np.uintp(6)] + c2 * g[k + np.uintp(7)]) + (c1 * g[k + np.uintp(8)] + c0 * g[k + np.uintp(9)])
        out[k] = (low + high) + (c5 * g[k + np.uintp(4)] + c4 * g[k + np.uintp(5)])


@njit(**EXACT)
def slopes(a, at, n, out):
    """out[at+k] = h A'(t_k) for the n ≥ 11 nodes a[at+k], by differences of eleven points: exact up to degree 10.

    They are central but for the five nodes at either end.
    """
    base = np.uintp(at)
    for i in range(n - POINTS):
        k = base + np.uintp(i)
        near = 2100.0 * (a[k + np.uintp(6)] - a[k + np.uintp(4)]) - 600.0 * (a[k + np.uintp(7)] - a[k + np.uintp(3)])
        far = 150.0 * (a[k + np.uintp(8)] - a[k + np.uintp(2)]) - 25.0 * (a[k + np.uintp(9)] - a[k + np.uintp(1)])
        out[k + np.uintp(5)] = (near + far + 2.0 * (a[k + np.uintp(10)] - a[k])) * (1.0 / 2520.0)
    for i in range(POINTS // 2):
        first, last = 0.0, 0.0
        for q in range(POINTS + 1):
            first += _END_SLOPES[i, q] * a[at + q]
            last -= _END_SLOPES[i, q] * a[at + n - 1 - q]
        out[at + i], out[at + n - 1 - i] = first, last


@njit(**EXACT)
def tenth_difference(a, at, n, out):
    """out[k] = |Σ_q (-1)^q C(10,q) a[at+k+q]| for k < n."""
    base = np.uintp(at)
    for i in range(n):
        k = base + np.uintp(i)
        outer = (a[k] + a[k + np.uintp(10)]) - 10.0 * (a[k + np.uintp(1)] + a[k + np.uintp(9)])
        inner = 45.0 * (a[k + np.uintp(2)] + a[k + np.uintp(8)]) - 120.0 * (a[k + np.uintp(3)] + a[k + np.uintp(7)])
        middle = 210.0 * (a[k + np.uintp(4)] + a[k + np.uintp(6)]) - 252.0 * a[k + np.uintp(5)]
        out[i] = abs((outer + inner) + middle)


@njit(**EXACT)
def dot_at(x, y, at, n):
    """Σ x[i] y[at+i] for i < n, in eight lanes."""
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
    whole, base = n // 8 * 8, np.uintp(at)
    for i in range(0, whole, 8):
        k, j = np.uintp(i), base + np.uintp(i)
        a0 += x[k] * y[j]
        a1 += x[k + np.uintp(1)] * y[j + np.uintp(1)]
        a2 += x[k + np.uintp(2)] * y[j + np.uintp(2)]
        a3 += x[k + np.uintp(3)] * y[j + np.uintp(3)]
        a4 += x[k + np.uintp(4)] * y[j + np.uintp(4)]
        a5 += x[k + np.uintp(5)] * y[j + np.uintp(5)]
        a6 += x[k + np.uintp(6)] * y[j + np.uintp(6)]
        a7 += x[k + np.uintp(7)] * y[j + np.uintp(7)]
    for i in range(whole, n):
        a0 += x[i] * y[at + i]
    return ((a0 + a4) + (a1 + a5)) + ((a2 + a6) + (a3 + a7))
