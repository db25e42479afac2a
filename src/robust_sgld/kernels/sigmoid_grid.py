"""The sum over the grid for U = (y - σ(⟨w,z⟩+b))² and p = 2, exact to rounding, without visiting most of the grid.

The exponent of F at ξ = (z, y) is

    E(z, y) = [ (y-s)² - ι (x_y-y)² - ι |x_z-z|² ] / δ,   s = σ(⟨w,z⟩+b).

What makes it fast, each step exact:

1. *Pruning.* f(s) = max_y {(y-s)² - ι(x_y-y)²} is known in closed form (a quadratic in y) and convex in s (a maximum
   of convex functions), so on a line of z along one axis, where s is monotone, it is at most the larger of its two end
   values. A line, and the stretch of it around x, that lies more than `cut` below the best point seen cannot change the
   sum: with cut = log N + 37 all that is dropped is below 2^-53 of it.
2. *No exponential for a sigmoid.* e^{-t} is a product over the axes: a table of e^{-w_i z_i} a step, then products.
3. *Two exponentials a z, not 13.* E is linear in y times s: with v = exp(-2sh/δ) the sum over y = y_0 + kh is a
   polynomial in v whose coefficients do not depend on z. All its terms are positive, so Horner's rule keeps the
   relative accuracy.
4. *Contiguous arrays*, so that the compiler vectorises every loop over candidates.

Where a range of exponents would leave float64 (a very small δ, a very large θ) the step is done by `_safe_log_sum`: the
same pruning of the sum, in log space throughout.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import (
    EXACT,
    compiled_langevin_update,
    fast_exp,
    lane_dot,
    lane_sum,
    log_cosh,
    stable_sigmoid,
)

SPAN = 600.0
"""Exponents may differ by this much before the fast path is left; e^±700 is what float64 holds."""


class Workspace(NamedTuple):
    """Scratch arrays of one chain; n = points an axis, k = m-1 axes of z, c = n^k candidates at most."""

    exp_table: np.ndarray  # (k, 2n+8) e^{-w_i z}; the tail is padding that is read but never used
    distance: np.ndarray  # (k, 2n+8) (x_i - z)²
    axis: np.ndarray  # (2n+8,)
    near: np.ndarray  # (k,) index of the grid point nearest to x_i
    first: np.ndarray  # (k,) the range of indices that can matter on each axis
    last: np.ndarray
    outer: np.ndarray  # (k,) the axes in the order lines are built; the last one is the inner axis
    line: np.ndarray  # (6, c) e^{-t} and distance before the inner axis, bounds, stretch
    line_z: np.ndarray  # (k, c)
    candidate: np.ndarray  # (8, c + 2n+8)
    candidate_z: np.ndarray  # (k, c + 2n+8)
    poly: np.ndarray  # (4, n+8) coefficients in v


def workspace(axis: np.ndarray, dim: int) -> Workspace:
    """Scratch for data of dimension m = dim."""
    n, k = len(axis), dim - 1
    c = n**k
    padded = np.zeros(2 * n + 8)
    padded[:n] = axis
    integers = np.zeros((4, k), dtype=np.int64)
    return Workspace(
        np.zeros((k, 2 * n + 8)),
        np.zeros((k, 2 * n + 8)),
        padded,
        *integers,
        np.zeros((6, c // n + 8)),
        np.zeros((k, c // n + 8)),
        np.zeros((8, c + 2 * n + 8)),
        np.zeros((k, c + 2 * n + 8)),
        np.zeros((4, n + 8)),
    )


@njit(**EXACT)
def whole_fours(n):
    """n rounded up to a multiple of four: loops of such a length leave no scalar rest."""
    return (n + 3) // 4 * 4


@njit(**EXACT)
def _best_end(s, iota, x_y, low, high):
    """max over the grid of (y-s)² - ι(x_y-y)² for ι ≤ 1, where it is convex in y: at an end."""
    return max((low - s) ** 2 - iota * (x_y - low) ** 2, (high - s) ** 2 - iota * (x_y - high) ** 2)


@njit(**EXACT)
def _best_inside(s, iota, x_y, low, high, step, inverse_step, inverse_curvature):
    """The same for ι > 1, where it is concave in y: at the grid point nearest to the vertex."""
    vertex = min(max((iota * x_y - s) * inverse_curvature, low), high)
    y = low + step * np.floor((vertex - low) * inverse_step + 0.5)
    return (y - s) ** 2 - iota * (x_y - y) ** 2


@njit(**EXACT)
def _best_y(s, iota, x_y, low, high, step, inverse_step, inverse_curvature):
    """f(s) = max over the grid of (y-s)² - ι(x_y-y)²; the curvature's inverse is 1/(ι-1), or 0 for ι ≤ 1."""
    if inverse_curvature > 0.0:
        return _best_inside(s, iota, x_y, low, high, step, inverse_step, inverse_curvature)
    return _best_end(s, iota, x_y, low, high)


@njit(**EXACT)
def _fill_tables(theta, x, ws, n):
    for i in range(ws.near.size):
        table, distance, w, x_i = ws.exp_table[i], ws.distance[i], theta[i], x[i]
        for a in range(whole_fours(n)):
            table[a] = fast_exp(-w * ws.axis[a])
            gap = x_i - ws.axis[a]
            distance[a] = gap * gap


@njit(**EXACT)
def _build_lines(bias, ws):
    """Every combination of the outer axes inside their ranges: e^{-t} so far, distance so far, coordinates."""
    count = 1
    ws.line[0, 0] = math.exp(-bias)
    ws.line[1, 0] = 0.0
    for o in range(ws.outer.size - 1):
        i = ws.outer[o]
        first, width = ws.first[i], ws.last[i] - ws.first[i] + 1
        table, distance = ws.exp_table[i, first:], ws.distance[i, first:]
        axis = ws.axis[first:]
        # from the last line to the first, so that a line is read before its place is written
        for at in range(count - 1, -1, -1):
            to = np.uintp(at * width)
            e, d = ws.line[0, at], ws.line[1, at]
            for before in range(o):
                z = ws.line_z[before, at]
                row = ws.line_z[before]
                for a in range(width):
                    row[to + np.uintp(a)] = z
            exp_t, dist, z_here = ws.line[0], ws.line[1], ws.line_z[o]
            for a in range(width):
                exp_t[to + np.uintp(a)] = e * table[a]
            for a in range(width):
                dist[to + np.uintp(a)] = d + distance[a]
            for a in range(width):
                z_here[to + np.uintp(a)] = axis[a]
        count *= width
    return count


@njit(**EXACT)
def _bound_lines(count, lines, e_first, e_last, e_near, iota, x_y, low, high, step, inverse_step, inverse_curvature):
    exp_t, distance, upper, lower = lines[0], lines[1], lines[2], lines[3]
    if inverse_curvature > 0.0:
        for at in range(count):
            e, g = exp_t[at], iota * distance[at]
            s_first, s_last, s_near = 1.0 / (1.0 + e * e_first), 1.0 / (1.0 + e * e_last), 1.0 / (1.0 + e * e_near)
            f_first = _best_inside(s_first, iota, x_y, low, high, step, inverse_step, inverse_curvature)
            f_last = _best_inside(s_last, iota, x_y, low, high, step, inverse_step, inverse_curvature)
            f_near = _best_inside(s_near, iota, x_y, low, high, step, inverse_step, inverse_curvature)
            upper[at] = max(f_first, f_last) - g
            lower[at] = f_near - g
    else:
        for at in range(count):
            e, g = exp_t[at], iota * distance[at]
            s_first, s_last, s_near = 1.0 / (1.0 + e * e_first), 1.0 / (1.0 + e * e_last), 1.0 / (1.0 + e * e_near)
            f_first, f_last = _best_end(s_first, iota, x_y, low, high), _best_end(s_last, iota, x_y, low, high)
            upper[at] = max(f_first, f_last) - g
            lower[at] = _best_end(s_near, iota, x_y, low, high) - g


@njit(**EXACT)
def _largest(values, count):
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
def _stretches(count, lines, floor, inverse_iota, x_inner, low, inverse_step, first, last):
    """On each line the indices around x that may lie above the floor: ι (x-z)² ≤ upper - floor."""
    upper, start, stop = lines[2], lines[4], lines[5]
    for at in range(count):
        radius = math.sqrt(max(upper[at] - floor, 0.0) * inverse_iota)
        start[at] = max(np.ceil((x_inner - radius - low) * inverse_step - 1e-9), first)
        stop[at] = min(np.floor((x_inner + radius - low) * inverse_step + 1e-9), last)


@njit(**EXACT)
def _put_four(row, at, a, b, c, d):
    row[at] = a
    row[at + np.uintp(1)] = b
    row[at + np.uintp(2)] = c
    row[at + np.uintp(3)] = d


@njit(**EXACT)
def _gather(count, ws, inner, points):
    """The surviving z as contiguous arrays: e^{-t}, |x_z-z|², coordinates. Returns how many.

    A stretch is rounded up to whole groups of four, which vectorise; the points that this adds are points of the grid,
    so the sum only gains terms that it need not have had. Unsigned indices spare the test for negative ones.
    """
    n = np.uintp(0)
    outer = ws.outer.size - 1
    table, distance, axis = ws.exp_table[inner], ws.distance[inner], ws.axis
    exp_t, dist, z_inner = ws.candidate[0], ws.candidate[1], ws.candidate_z[outer]
    for at in range(count):
        start = int(ws.line[4, at])
        here = int(ws.line[5, at]) - start + 1
        if here <= 0:
            continue
        e, d = ws.line[0, at], ws.line[1, at]
        size = whole_fours(here)
        if size <= points:
            i = np.uintp(min(start, points - size))
            end = n + np.uintp(size)
            j = n
            while j < end:
                i1, i2, i3 = i + np.uintp(1), i + np.uintp(2), i + np.uintp(3)
                _put_four(exp_t, j, e * table[i], e * table[i1], e * table[i2], e * table[i3])
                _put_four(dist, j, d + distance[i], d + distance[i1], d + distance[i2], d + distance[i3])
                _put_four(z_inner, j, axis[i], axis[i1], axis[i2], axis[i3])
                for o in range(outer):
                    z = ws.line_z[o, at]
                    _put_four(ws.candidate_z[o], j, z, z, z, z)
                i += np.uintp(4)
                j += np.uintp(4)
        else:
            end = n + np.uintp(here)
            for a in range(here):
                j = n + np.uintp(a)
                exp_t[j] = e * table[start + a]
                dist[j] = d + distance[start + a]
                z_inner[j] = axis[start + a]
                for o in range(outer):
                    ws.candidate_z[o, j] = ws.line_z[o, at]
        n = end
    return np.int64(n)


@njit(**EXACT)
def _coefficients(poly, y, x_y, peak, degree, top):
    """Of the polynomials in v for Σ_y F, Σ_y F y and Σ_y F (x_y-y)², up to degree `top`; poly[3] has the exponents."""
    for a in range(top + 1):
        poly[0, a] = fast_exp(poly[3, a] - peak)
    for a in range(degree + 1, top + 1):
        poly[0, a] = 0.0
    for a in range(top + 1):
        poly[1, a] = poly[0, a] * y[a]
        poly[2, a] = poly[0, a] * (x_y - y[a]) ** 2


@njit(**EXACT)
def _exponentials(n, candidate, poly, top, slope, inverse_delta, y0, iota, shift):
    """s, v and the factor of each candidate; the three polynomials down to their last four coefficients."""
    exp_t, dist, sig, v, scale = candidate[0], candidate[1], candidate[2], candidate[3], candidate[4]
    p, q, r = candidate[5], candidate[6], candidate[7]
    p_top, q_top, r_top = poly[0, top], poly[1, top], poly[2, top]
    for c in range(n):
        s = 1.0 / (1.0 + exp_t[c])
        sig[c] = s
        scale[c] = fast_exp(((s - 2.0 * y0) * s - iota * dist[c]) * inverse_delta - shift)
        v[c] = fast_exp(slope * s)
    if top == 4:
        for c in range(n):
            p[c] = p_top
            q[c] = q_top
            r[c] = r_top
        return
    for k in range(top - 4, 3, -4):
        p3, p2, p1, p0 = poly[0, k + 3], poly[0, k + 2], poly[0, k + 1], poly[0, k]
        q3, q2, q1, q0 = poly[1, k + 3], poly[1, k + 2], poly[1, k + 1], poly[1, k]
        r3, r2, r1, r0 = poly[2, k + 3], poly[2, k + 2], poly[2, k + 1], poly[2, k]
        if k == top - 4:
            for c in range(n):
                w = v[c]
                p[c] = (((p_top * w + p3) * w + p2) * w + p1) * w + p0
                q[c] = (((q_top * w + q3) * w + q2) * w + q1) * w + q0
                r[c] = (((r_top * w + r3) * w + r2) * w + r1) * w + r0
        else:
            for c in range(n):
                w = v[c]
                p[c] = (((p[c] * w + p3) * w + p2) * w + p1) * w + p0
                q[c] = (((q[c] * w + q3) * w + q2) * w + q1) * w + q0
                r[c] = (((r[c] * w + r3) * w + r2) * w + r1) * w + r0


@njit(**EXACT)
def _reduce(n, candidate, poly):
    """Σ F, Σ F |x-ξ|² and Σ F (y-s) s (1-s); the last sum's terms are left in candidate[6]."""
    dist, sig, v, scale = candidate[1], candidate[2], candidate[3], candidate[4]
    p_, q_, r_ = candidate[5], candidate[6], candidate[7]
    p3, p2, p1, p0 = poly[0, 3], poly[0, 2], poly[0, 1], poly[0, 0]
    q3, q2, q1, q0 = poly[1, 3], poly[1, 2], poly[1, 1], poly[1, 0]
    r3, r2, r1, r0 = poly[2, 3], poly[2, 2], poly[2, 1], poly[2, 0]
    for c in range(n):
        w, s, pre = v[c], sig[c], scale[c]
        p = (((p_[c] * w + p3) * w + p2) * w + p1) * w + p0
        q = (((q_[c] * w + q3) * w + q2) * w + q1) * w + q0
        r = (((r_[c] * w + r3) * w + r2) * w + r1) * w + r0
        p_[c] = pre * p
        q_[c] = pre * (q - s * p) * s * (1.0 - s)
        r_[c] = pre * (r + p * dist[c])
    return lane_sum(p_, n), lane_sum(r_, n), lane_sum(q_, n)


@njit(**EXACT)
def log_sum(theta_bar, x, axis, delta, cut, ws, out, counts):
    """log Σ_j F_j at one (θ̄, x); out receives E_F[∇_θU] (d numbers) and E_F[|x-ξ|²].

    counts gains [points of the grid whose term is summed, values z whose sigmoid is computed, exponentials].
    """
    k = x.size - 1
    n = axis.size
    low, high, step = axis[0], axis[n - 1], axis[1] - axis[0]
    inverse_step = 1.0 / step  # exact: the step is a power of 2
    x_y, bias = x[k], theta_bar[k]
    iota = log_cosh(theta_bar[k + 1])
    reach = max(abs(low), abs(high))
    t_radius = 0.0
    for i in range(k):
        t_radius += reach * abs(theta_bar[i])
    if not t_radius + abs(bias) < SPAN:
        return _safe_log_sum(theta_bar, x, axis, delta, cut, out, counts)

    _fill_tables(theta_bar, x, ws, n)
    inner = 0
    distance_near, exp_near = 0.0, math.exp(-bias)
    for i in range(k):
        if abs(theta_bar[i]) < abs(theta_bar[inner]):
            inner = i
        a = min(max(int(np.floor((x[i] - low) * inverse_step + 0.5)), 0), n - 1)
        ws.near[i] = a
        distance_near += ws.distance[i, a]
        exp_near *= ws.exp_table[i, a]
    inverse_curvature = 1.0 / (iota - 1.0) if iota > 1.0 else 0.0
    inverse_iota = 1.0 / max(iota, 1e-200)
    s_low, s_high = stable_sigmoid(bias - t_radius), stable_sigmoid(bias + t_radius)
    f_most = max(
        _best_y(s_low, iota, x_y, low, high, step, inverse_step, inverse_curvature),
        _best_y(s_high, iota, x_y, low, high, step, inverse_step, inverse_curvature),
    )
    seen = (
        _best_y(1.0 / (1.0 + exp_near), iota, x_y, low, high, step, inverse_step, inverse_curvature)
        - iota * distance_near
    )

    # the range of each axis that can matter at all, then lines along the axis on which s changes least
    o = 0
    for i in range(k):
        slack = max(f_most - iota * (distance_near - ws.distance[i, ws.near[i]]) - seen + cut * delta, 0.0)
        radius = math.sqrt(slack * inverse_iota)
        ws.first[i] = int(np.ceil(max((x[i] - radius - low) * inverse_step - 1e-9, 0.0)))
        ws.last[i] = int(np.floor(min((x[i] + radius - low) * inverse_step + 1e-9, n - 1.0)))
        if i != inner:
            ws.outer[o] = i
            o += 1
    ws.outer[o] = inner
    lines = _build_lines(bias, ws)
    first, last = ws.first[inner], ws.last[inner]
    table = ws.exp_table[inner]
    _bound_lines(
        lines, ws.line, table[first], table[last], table[ws.near[inner]],
        iota, x_y, low, high, step, inverse_step, inverse_curvature,
    )  # fmt: skip
    nearest = iota * ws.distance[inner, ws.near[inner]]
    most = _largest(ws.line[2], lines) - nearest
    seen = max(seen, _largest(ws.line[3], lines) - nearest)
    floor = seen - cut * delta
    _stretches(lines, ws.line, floor, inverse_iota, x[inner], low, inverse_step, float(first), float(last))
    count = _gather(lines, ws, inner, n)

    # the range of y that can matter, and the coefficients of the polynomials in v
    y_first, y_last = 0, n - 1
    y_floor = floor + iota * distance_near
    while y_first < y_last and _most_at(axis[y_first], s_low, s_high, iota, x_y) < y_floor:
        y_first += 1
    while y_last > y_first and _most_at(axis[y_last], s_low, s_high, iota, x_y) < y_floor:
        y_last -= 1
    degree = y_last - y_first
    peak, at_peak = -np.inf, 0
    for a in range(degree + 1):
        y = axis[y_first + a]
        ws.poly[3, a] = (y * y - iota * (x_y - y) ** 2) / delta
        if ws.poly[3, a] > peak:
            peak, at_peak = ws.poly[3, a], a
    if 2.0 * s_high * step * at_peak / delta > SPAN or (most - seen) / delta > SPAN:
        return _safe_log_sum(theta_bar, x, axis, delta, cut, out, counts)
    top = max(whole_fours(degree), 4)
    _coefficients(ws.poly, ws.axis[y_first:], x_y, peak, degree, top)

    shift = most / delta - 20.0 - peak
    _exponentials(count, ws.candidate, ws.poly, top, -2.0 * step / delta, 1.0 / delta, axis[y_first], iota, shift)
    total, cost, slope = _reduce(count, ws.candidate, ws.poly)
    for o in range(k):
        out[ws.outer[o]] = -2.0 * lane_dot(ws.candidate[6], ws.candidate_z[o], count) / total
    out[k] = -2.0 * slope / total
    out[k + 1] = cost / total
    counts[0] += count * (degree + 1)
    counts[1] += count
    counts[2] += 2 * count + k * n + degree + 1
    return math.log(total) + shift + peak


@njit(**EXACT)
def _most_at(y, s_low, s_high, iota, x_y):
    """The most that (y-s)² - ι(x_y-y)² can be for s in [s_low, s_high]: convex in s, so at an end."""
    return max((y - s_low) ** 2, (y - s_high) ** 2) - iota * (x_y - y) ** 2


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
        f = _best_y(s, iota, x_y, axis[0], axis[n - 1], axis[1] - axis[0], 1.0 / (axis[1] - axis[0]), inverse_curvature)
        best = max(best, f - iota * distance)
        more = _next_point(index, n)
    return best


@njit(**EXACT)
def _safe_log_sum(theta_bar, x, axis, delta, cut, out, counts):
    """As `log_sum`, for any finite parameters: every z, log space, only terms within `cut` of the maximum."""
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
        f = _best_y(s, iota, x_y, axis[0], axis[n - 1], axis[1] - axis[0], 1.0 / (axis[1] - axis[0]), inverse_curvature)
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


@njit(**EXACT)
def log_sums(theta_bar, x, axis, delta, cut, ws, value, grad_u, cost, counts):
    """`log_sum` at B pairs."""
    d = theta_bar.shape[1] - 1
    out = np.empty(d + 1)
    for i in range(len(x)):
        value[i] = log_sum(theta_bar[i], x[i], axis, delta, cut, ws, out, counts)
        for a in range(d):
            grad_u[i, a] = out[a]
        cost[i] = out[d]


@njit(**EXACT)
def maxima(theta_bar, x, axis, value):
    """`maximum` at B pairs."""
    for i in range(len(x)):
        value[i] = maximum(theta_bar[i], x[i], axis)


@njit(**EXACT)
def robust_chain(
    train, theta0, indices, noise, step_size, noise_scale, eta1, eta2, axis, delta, cut, ws, states, counts
):
    """Robust SGLD (eqn:sgld with H of defn:grad_v_delta): the state after every update into states (n, d+1)."""
    d = theta0.size - 1
    state = theta0.copy()
    expectation = np.empty(d + 1)
    for n in range(indices.size):
        log_sum(state, train[indices[n]], axis, delta, cut, ws, expectation, counts)
        for i in range(d):
            gradient = eta1 * state[i] + expectation[i]
            state[i] = compiled_langevin_update(state[i], gradient, noise[n, i], step_size, noise_scale)
        gradient = math.tanh(state[d]) * (eta2 * log_cosh(state[d]) - expectation[d])
        state[d] = compiled_langevin_update(state[d], gradient, noise[n, d], step_size, noise_scale)
        states[n] = state
        if not np.isfinite(state.sum()):
            states[n:] = np.nan
            return


@njit(**EXACT)
def plain_chain(train, theta0, indices, noise, step_size, noise_scale, states):
    """SGLD on U itself: H is ∇_θU of eqn:grad_U."""
    d = theta0.size
    state = theta0.copy()
    for n in range(indices.size):
        x = train[indices[n]]
        t = state[d - 1]
        for i in range(d - 1):
            t += state[i] * x[i]
        s = stable_sigmoid(t)
        slope = -2.0 * (x[d - 1] - s) * s * (1.0 - s)
        for i in range(d):
            gradient = slope * x[i] if i < d - 1 else slope
            state[i] = compiled_langevin_update(state[i], gradient, noise[n, i], step_size, noise_scale)
        states[n] = state
        if not np.isfinite(state.sum()):
            states[n:] = np.nan
            return
