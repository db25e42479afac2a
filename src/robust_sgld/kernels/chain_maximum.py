"""max over the grid of u(t, y) - ι|x-ξ|², by the same passing of messages with maxima in place of sums.

    M_0(t) = max_y {u(t, y) - ι(x_y-y)²},   M_{i+1}(t) = max_z {M_i(t + w_i z) - ι(x_i-z)²},   the maximum is M_k(b).

Messages are interpolated linearly. With u'' ≥ -C in t each M_i is convex up to Ct²/2, so a linear interpolation lies
below it by at most Ch²/8, and above it only where it bends upwards: M_k(b) + k C h²/8 is an upper bound. Following the
best choices back from b gives a point of the grid, whose exact value is a lower bound.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.chain_messages import DONE, MAX_NODES, NEED_TABLE, TOO_LARGE
from robust_sgld.kernels.elementary import EXACT, log_cosh


@njit(**EXACT)
def _first(theta_bar, x, axis, iota, table, table_low, low, size, message):
    """M_0 on the nodes from `low`; returns the largest -u'' h² of all y there, 0 if u is convex."""
    message[:size] = -np.inf
    bend = 0.0
    for a in range(axis.size):
        u = table[a, low - table_low : low - table_low + size]
        penalty = iota * (x[x.size - 1] - axis[a]) ** 2
        for i in range(size):
            message[i] = max(message[i], u[i] - penalty)
        for i in range(1, size - 1):
            bend = max(bend, 2.0 * u[i] - u[i - 1] - u[i + 1])
    return bend


@njit(**EXACT)
def _shifted(before, at, f, penalty, size, after):
    for i in range(size):
        k = np.uintp(at + i)
        after[i] = max(after[i], before[k] + f * (before[k + np.uintp(1)] - before[k]) - penalty)


@njit(**EXACT)
def _look_up(message, start, t, h):
    place = t / h
    whole = math.floor(place)
    k = int(whole) - start
    return message[k] + (place - whole) * (message[k + 1] - message[k])


@njit(**EXACT)
def best_point(theta_bar, x, axis, h, table, table_low, choice, request):
    """(status, upper bound); choice (k,) receives the point of each axis of z that the lower bound takes."""
    k, n = x.size - 1, axis.size
    iota, b = log_cosh(theta_bar[k + 1]), theta_bar[k]
    start, end = np.empty(k + 1, dtype=np.int64), np.empty(k + 1, dtype=np.int64)
    least, most = b, b
    for o in range(k, -1, -1):
        if o < k:
            w = theta_bar[o]
            least += min(w * axis[0], w * axis[n - 1])
            most += max(w * axis[0], w * axis[n - 1])
        if not (most - least) / h < MAX_NODES or not max(abs(least), abs(most)) / h < 1e15:
            return TOO_LARGE, 0.0
        # a node more on either side for every axis: rounding may put a target just outside
        start[o], end[o] = int(np.floor(least / h)) - (k - o) - 1, int(np.floor(most / h)) + (k - o) + 2
    if start[0] < table_low or end[0] >= table_low + table.shape[1]:
        request[0], request[1] = start[0], end[0]
        return NEED_TABLE, 0.0
    messages = np.empty((k, end[0] - start[0] + 1))
    bend = _first(theta_bar, x, axis, iota, table, table_low, start[0], end[0] - start[0] + 1, messages[0])
    for o in range(1, k):
        size = end[o] - start[o] + 1
        messages[o, :size] = -np.inf
        for a in range(n):
            place = theta_bar[o - 1] * axis[a] / h
            whole = math.floor(place)
            at = start[o] + int(whole) - start[o - 1]
            _shifted(messages[o - 1], at, place - whole, iota * (x[o - 1] - axis[a]) ** 2, size, messages[o])
    t, upper = b, 0.0
    for o in range(k - 1, -1, -1):
        best, best_at = -np.inf, 0
        for a in range(n):
            there = _look_up(messages[o], start[o], t + theta_bar[o] * axis[a], h) - iota * (x[o] - axis[a]) ** 2
            if there > best:
                best, best_at = there, a
        if o == k - 1:
            upper = best + k * bend / 8.0
        choice[o] = best_at
        t += theta_bar[o] * axis[best_at]
    return DONE, upper
