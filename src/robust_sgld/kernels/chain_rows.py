"""Loops over the nodes of one message, each of which vectorises.

Places are given as an array and an offset: a slice would cost more than a short loop.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT, fast_exp
from robust_sgld.kernels.logarithm import fast_log

FLOOR = -80.0
"""Exponents below it count as nothing: e^-80 is 1e-35 of the largest term at its node."""


@njit(**EXACT)
def exponentiate(rows, to, top, total, n):
    base = np.uintp(to)
    for i in range(n):
        exponent = rows[base + np.uintp(i)] - top[i]
        value = fast_exp(exponent) if exponent > FLOOR else 0.0
        rows[base + np.uintp(i)] = value
        total[i] += value


@njit(**EXACT)
def close(top, total, n, message, inverse, at):
    """A = top + log Σ and 1/Σ."""
    base = np.uintp(at)
    for i in range(n):
        message[base + np.uintp(i)] = top[i] + fast_log(total[i])
        inverse[base + np.uintp(i)] = 1.0 / total[i]


@njit(**EXACT)
def closest(rows, to, top, n):
    """max of rows[to+i] - top[i], in four lanes."""
    b0 = b1 = b2 = b3 = rows[to] - top[0]
    whole, base = n // 4 * 4, np.uintp(to)
    for i in range(0, whole, 4):
        k, j = np.uintp(i), base + np.uintp(i)
        b0 = max(b0, rows[j] - top[k])
        b1 = max(b1, rows[j + np.uintp(1)] - top[k + np.uintp(1)])
        b2 = max(b2, rows[j + np.uintp(2)] - top[k + np.uintp(2)])
        b3 = max(b3, rows[j + np.uintp(3)] - top[k + np.uintp(3)])
    for i in range(whole, n):
        b0 = max(b0, rows[to + i] - top[i])
    return max(max(b0, b1), max(b2, b3))


@njit(**EXACT)
def first_rows(table, a, at, inverse_delta, penalty, n, rows, to, top):
    base, target = np.uintp(at), np.uintp(to)
    for i in range(n):
        value = table[a, base + np.uintp(i)] * inverse_delta - penalty
        rows[target + np.uintp(i)] = value
        top[i] = max(top[i], value)


@njit(**EXACT)
def clear(values, at, n, value):
    base = np.uintp(at)
    for i in range(n):
        values[base + np.uintp(i)] = value


@njit(**EXACT)
def scale(adjoint, inverse, at, n, out):
    """adjoint/Σ; what is far below rounding becomes 0, for arithmetic near the end of float64's range is very slow."""
    base = np.uintp(at)
    for j in range(n):
        value = adjoint[base + np.uintp(j)]
        out[j] = value * inverse[base + np.uintp(j)] if abs(value) > 1e-40 else 0.0


@njit(**EXACT)
def times(x, y, at, n, out, to):
    """out[to+j] = x[j] y[at+j]."""
    p, r = np.uintp(at), np.uintp(to)
    for j in range(n):
        out[r + np.uintp(j)] = x[j] * y[p + np.uintp(j)]


@njit(**EXACT)
def add(x, n, out, to):
    base = np.uintp(to)
    for j in range(n):
        out[base + np.uintp(j)] += x[j]


@njit(**EXACT)
def copy(x, at, n, out):
    base = np.uintp(at)
    for j in range(n):
        out[j] = x[base + np.uintp(j)]
