"""The largest term and the sum over the grid for U = (y - σ(⟨w,z⟩+b))² and p = 2, for any finite parameters.

Visits every z, in log space throughout: for where the ranges of `sigmoid_grid` would leave float64.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT, log_cosh, stable_sigmoid


@njit(**EXACT)
def best_end(s, iota, x_y, low, high):
    """max over the grid of (y-s)² - ι(x_y-y)² for ι ≤ 1, where it is convex in y: at an end."""
    return max((low - s) ** 2 - iota * (x_y - low) ** 2, (high - s) ** 2 - iota * (x_y - high) ** 2)


@njit(**EXACT)
def best_inside(s, iota, x_y, low, high, step, inverse_step, inverse_curvature):
    """The same for ι > 1, where it is concave in y: at the grid point nearest to the vertex."""
    vertex = min(max((iota * x_y - s) * inverse_curvature, low), high)
    y = low + step * np.floor((vertex - low) * inverse_step + 0.5)
    return (y - s) ** 2 - iota * (x_y - y) ** 2


@njit(**EXACT)
def best_y(s, iota, x_y, low, high, step, inverse_step, inverse_curvature):
    """f(s) = max over the grid of (y-s)² - ι(x_y-y)²; the curvature's inverse is 1/(ι-1), or 0 for ι ≤ 1."""
    if inverse_curvature > 0.0:
        return best_inside(s, iota, x_y, low, high, step, inverse_step, inverse_curvature)
    return best_end(s, iota, x_y, low, high)


@njit(**EXACT)
def _next_point(index, n):
    """The odometer over z; False after the last."""
    for i in range(index.size - 1, -1, -1):
        index[i] += 1
        if index[i] < n:
            return True
        index[i] = 0
    return False


@njit(**EXACT)
def _at_point(index, theta_bar, x, axis):
    t, distance = theta_bar[index.size], 0.0
    for i in range(index.size):
        z = axis[index[i]]
        t += theta_bar[i] * z
        distance += (x[i] - z) ** 2
    return stable_sigmoid(t), distance


@njit(**EXACT)
def maximum(theta_bar, x, axis):
    """max over the grid of U(θ,ξ) - ι(α)|x-ξ|²."""
    n = axis.size
    iota, x_y = log_cosh(theta_bar[x.size]), x[x.size - 1]
    inverse_curvature = 1.0 / (iota - 1.0) if iota > 1.0 else 0.0
    index = np.zeros(x.size - 1, dtype=np.int64)
    best = -np.inf
    more = True
    while more:
        s, distance = _at_point(index, theta_bar, x, axis)
        f = best_y(s, iota, x_y, axis[0], axis[n - 1], axis[1] - axis[0], 1.0 / (axis[1] - axis[0]), inverse_curvature)
        best = max(best, f - iota * distance)
        more = _next_point(index, n)
    return best


@njit(**EXACT)
def safe_log_sum(theta_bar, x, axis, delta, cut, out, counts):
    """As `sigmoid_grid.log_sum`: every z, and of its terms those within `cut` of the maximum."""
    k, n = x.size - 1, axis.size
    iota, x_y = log_cosh(theta_bar[k + 1]), x[k]
    inverse_curvature = 1.0 / (iota - 1.0) if iota > 1.0 else 0.0
    most = maximum(theta_bar, x, axis)
    out[: k + 2] = 0.0
    total = 0.0
    index = np.zeros(k, dtype=np.int64)
    more = True
    while more:
        s, distance = _at_point(index, theta_bar, x, axis)
        f = best_y(s, iota, x_y, axis[0], axis[n - 1], axis[1] - axis[0], 1.0 / (axis[1] - axis[0]), inverse_curvature)
        counts[1] += 1
        if (f - iota * distance - most) / delta > -cut:
            for a in range(n):
                y = axis[a]
                exponent = ((y - s) ** 2 - iota * ((x_y - y) ** 2 + distance) - most) / delta
                if exponent > -cut:
                    weight = math.exp(exponent)
                    total += weight
                    out[k + 1] += weight * ((x_y - y) ** 2 + distance)
                    slope = -2.0 * weight * (y - s) * s * (1.0 - s)
                    out[k] += slope
                    for i in range(k):
                        out[i] += slope * axis[index[i]]
                    counts[0] += 1
                    counts[2] += 1
        more = _next_point(index, n)
    for i in range(k + 2):
        out[i] /= total
    return math.log(total) + most / delta
