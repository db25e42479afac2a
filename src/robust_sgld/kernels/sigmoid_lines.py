"""Which values of z can change the sum over the grid: lines along one axis, bounded, cut to stretches, gathered.

f(s) = max_y {(y-s)² - ι(x_y-y)²} is known in closed form and convex in s (a maximum of convex functions), so on a line
of z along one axis, where s is monotone, it is at most the larger of its two end values. A line, and the stretch of it
around x, that lies more than the cut below the best point seen cannot change the sum.

Eight numbers are written at a time and the position advances by as many as count: what is written beyond is overwritten
by what comes next, and at the end it lies beyond the count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT, fast_exp
from robust_sgld.kernels.sigmoid_safe import best_end, best_inside
from robust_sgld.kernels.vectors import LANES, put_constant, put_scaled, put_shifted

EXP_T, DISTANCE = 0, 1
"""Rows of lines and candidates: e^{-t} and |x_z-z|², so far; the coordinates follow."""


class Workspace(NamedTuple):
    """Scratch arrays of one chain; n = points an axis, k = m-1 axes of z, w = n rounded up to whole lanes."""

    axis: np.ndarray  # (1, n + w) the tail is padding that is read but never used
    exp_table: np.ndarray  # (k, n + w) e^{-w_i z}
    distance: np.ndarray  # (k, n + w) (x_i - z)²
    near: np.ndarray  # (k,) index of the grid point nearest to x_i
    first: np.ndarray  # (k,) the range of indices that can matter on each axis
    last: np.ndarray
    outer: np.ndarray  # (k,) the axes in the order lines are built; the last one is the inner axis
    line: np.ndarray  # (2, k+1, n^(k-1) + w) two buffers, each filled from the other
    bound: np.ndarray  # (4, n^(k-1) + w) upper and lower bound, first and last index of the stretch
    candidate: np.ndarray  # (k+2, n^k + n + w)
    term: np.ndarray  # (6, n^k + n + w) s, v, scale, and three polynomials in v
    poly: np.ndarray  # (4, n + w) their coefficients, and the exponents of these
    out: np.ndarray  # (k+2,) E_F[∇_θU] and E_F[|x-ξ|²]


def whole_lanes(n):  # type: ignore[no-untyped-def]
    """n rounded up to a multiple of eight."""
    return (n + LANES - 1) // LANES * LANES


compiled_whole_lanes = njit(**EXACT)(whole_lanes)


def workspace(axis: np.ndarray, dim: int) -> Workspace:
    """Scratch for data of dimension m = dim."""
    n, k = len(axis), dim - 1
    w = whole_lanes(n)
    padded = np.zeros((1, n + w))
    padded[0, :n] = axis
    lines, candidates = n ** (k - 1) + w, n**k + n + w
    return Workspace(
        padded,
        np.zeros((k, n + w)),
        np.zeros((k, n + w)),
        *np.zeros((4, k), dtype=np.int64),
        np.zeros((2, k + 1, lines)),
        np.zeros((4, lines)),
        np.zeros((k + 2, candidates)),
        np.zeros((6, candidates)),
        np.zeros((4, n + w)),
        np.zeros(k + 2),
    )


@njit(**EXACT)
def fill_tables(theta, x, ws, n):
    """e^{-w_i z} and (x_i-z)² at every point of every axis."""
    axis = ws.axis[0]
    for i in range(ws.near.size):
        table, distance, w, x_i = ws.exp_table[i], ws.distance[i], theta[i], x[i]
        for a in range(compiled_whole_lanes(n)):
            table[a] = fast_exp(-w * axis[a])
            gap = x_i - axis[a]
            distance[a] = gap * gap


@njit(**EXACT)
def _put_points(to, at, line, number, coordinates, ws, i, first, width):
    """The points of a line along axis i, beside the coordinates that it has already; returns where the next begin."""
    e, d = line[EXP_T, number], line[DISTANCE, number]
    done = 0
    while True:
        put_scaled(to, EXP_T, at + done, ws.exp_table, i, first + done, e)
        put_shifted(to, DISTANCE, at + done, ws.distance, i, first + done, d)
        for row in range(2, 2 + coordinates):
            put_constant(to, row, at + done, line[row, number])
        put_shifted(to, 2 + coordinates, at + done, ws.axis, 0, first + done, 0.0)
        done += LANES
        if done >= width:
            return at + width


@njit(**EXACT)
def build_lines(exp_bias, ws):
    """Every combination of the outer axes inside their ranges. Returns how many, and the buffer that they are in."""
    count, here = 1, 0
    ws.line[0, EXP_T, 0] = exp_bias
    ws.line[0, DISTANCE, 0] = 0.0
    for o in range(ws.outer.size - 1):
        i = ws.outer[o]
        first, width = ws.first[i], ws.last[i] - ws.first[i] + 1
        source, to = ws.line[here], ws.line[1 - here]
        end = 0
        for at in range(count):
            end = _put_points(to, end, source, at, o, ws, i, first, width)
        count, here = end, 1 - here
    return count, here


@njit(**EXACT)
def bound_lines(
    count, line, bound, e_first, e_last, e_near, iota, x_y, low, high, step, inverse_step, inverse_curvature
):
    """The most that a line can hold but for the distance along it, and what its point nearest to x does hold."""
    exp_t, distance, upper, lower = line[EXP_T], line[DISTANCE], bound[0], bound[1]
    if inverse_curvature > 0.0:
        for at in range(count):
            e, g = exp_t[at], iota * distance[at]
            s_first, s_last, s_near = 1.0 / (1.0 + e * e_first), 1.0 / (1.0 + e * e_last), 1.0 / (1.0 + e * e_near)
            f_first = best_inside(s_first, iota, x_y, low, high, step, inverse_step, inverse_curvature)
            f_last = best_inside(s_last, iota, x_y, low, high, step, inverse_step, inverse_curvature)
            f_near = best_inside(s_near, iota, x_y, low, high, step, inverse_step, inverse_curvature)
            upper[at] = max(f_first, f_last) - g
            lower[at] = f_near - g
    else:
        for at in range(count):
            e, g = exp_t[at], iota * distance[at]
            s_first, s_last, s_near = 1.0 / (1.0 + e * e_first), 1.0 / (1.0 + e * e_last), 1.0 / (1.0 + e * e_near)
            f_first, f_last = best_end(s_first, iota, x_y, low, high), best_end(s_last, iota, x_y, low, high)
            upper[at] = max(f_first, f_last) - g
            lower[at] = best_end(s_near, iota, x_y, low, high) - g


@njit(**EXACT)
def largest(values, count):
    """max values[:count], in four lanes."""
    b0 = b1 = b2 = b3 = values[0]
    whole = count // 4 * 4
    for i in range(0, whole, 4):
        b0 = max(b0, values[i])
        b1 = max(b1, values[i + 1])
        b2 = max(b2, values[i + 2])
        b3 = max(b3, values[i + 3])
    for i in range(whole, count):
        b0 = max(b0, values[i])
    return max(max(b0, b1), max(b2, b3))


@njit(**EXACT)
def cut_stretches(count, bound, floor, inverse_iota, x_inner, low, inverse_step, first, last):
    """On each line the indices around x that may lie above the floor: ι (x-z)² ≤ upper - floor."""
    upper, start, stop = bound[0], bound[2], bound[3]
    for at in range(count):
        radius = math.sqrt(max(upper[at] - floor, 0.0) * inverse_iota)
        start[at] = min(max(np.ceil((x_inner - radius - low) * inverse_step - 1e-9), first), last)
        stop[at] = min(np.floor((x_inner + radius - low) * inverse_step + 1e-9), last)


@njit(**EXACT)
def gather(count, line, ws, inner):
    """The surviving z as contiguous arrays, in ws.candidate. Returns how many."""
    n = 0
    outer = ws.outer.size - 1
    for at in range(count):
        start = int(ws.bound[2, at])
        width = int(ws.bound[3, at]) - start + 1
        if width > 0:
            n = _put_points(ws.candidate, n, line, at, outer, ws, inner, start, width)
    return n
