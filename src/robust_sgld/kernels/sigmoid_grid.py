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

Where a range of exponents would leave float64 (a very small δ, a very large θ) the step is done by `safe_log_sum`: the
same pruning of the sum, in log space throughout.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT, fast_exp, log_cosh, stable_sigmoid
from robust_sgld.kernels.sigmoid_lines import (
    DISTANCE,
    EXP_T,
    Workspace,
    bound_lines,
    build_lines,
    compiled_whole_lanes,
    cut_stretches,
    fill_tables,
    gather,
    largest,
    workspace,
)
from robust_sgld.kernels.sigmoid_safe import best_y, safe_log_sum
from robust_sgld.kernels.vectors import lane_dot, lane_sum

__all__ = ["Workspace", "log_sum", "workspace"]

SPAN = 600.0
"""Exponents may differ by this much before the fast path is left; e^±700 is what float64 holds."""
MOST_IOTA = 1e100
"""Above it ι times a squared distance might overflow."""


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
def _exponentials(n, candidate, term, poly, top, slope, inverse_delta, y0, iota, shift):
    """s, v and the factor of each candidate; the three polynomials down to their last four coefficients."""
    exp_t, dist = candidate[EXP_T], candidate[DISTANCE]
    sig, v, scale, p, q, r = term[0], term[1], term[2], term[3], term[4], term[5]
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
def _reduce(n, candidate, term, poly):
    """Σ F, Σ F |x-ξ|² and Σ F (y-s) s (1-s); the last sum's terms are left in term[4]."""
    dist, sig, v, scale = candidate[DISTANCE], term[0], term[1], term[2]
    p_, q_, r_ = term[3], term[4], term[5]
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
def _fast_log_sum(theta_bar, x, axis, delta, cut, ws, out, counts):
    """`log_sum`, or NaN where a range of exponents would leave float64."""
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
    if not (t_radius + abs(bias) < SPAN and iota < MOST_IOTA):
        return np.nan

    fill_tables(theta_bar, x, ws, n)
    inner = 0
    exp_bias = math.exp(-bias)
    distance_near, exp_near = 0.0, exp_bias
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
        best_y(s_low, iota, x_y, low, high, step, inverse_step, inverse_curvature),
        best_y(s_high, iota, x_y, low, high, step, inverse_step, inverse_curvature),
    )
    seen = (
        best_y(1.0 / (1.0 + exp_near), iota, x_y, low, high, step, inverse_step, inverse_curvature)
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
    lines, buffer = build_lines(exp_bias, ws)
    line, bound = ws.line[buffer], ws.bound
    first, last = ws.first[inner], ws.last[inner]
    table = ws.exp_table[inner]
    bound_lines(
        compiled_whole_lanes(lines), line, bound, table[first], table[last], table[ws.near[inner]],
        iota, x_y, low, high, step, inverse_step, inverse_curvature,
    )  # fmt: skip
    nearest = iota * ws.distance[inner, ws.near[inner]]
    most = largest(bound[0], lines) - nearest
    seen = max(seen, largest(bound[1], lines) - nearest)
    floor = seen - cut * delta
    cut_stretches(
        compiled_whole_lanes(lines), bound, floor, inverse_iota, x[inner], low, inverse_step, float(first), float(last)
    )
    count = gather(lines, line, ws, inner)

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
        return np.nan
    top = max((degree + 3) // 4 * 4, 4)
    _coefficients(ws.poly, ws.axis[0, y_first:], x_y, peak, degree, top)

    shift = most / delta - 20.0 - peak
    # whole lanes leave no rest to do one by one; what lies beyond the count gets no weight
    padded = compiled_whole_lanes(count)
    term = ws.term
    _exponentials(
        padded, ws.candidate, term, ws.poly, top, -2.0 * step / delta, 1.0 / delta, axis[y_first], iota, shift
    )
    term[2, count:padded] = 0.0
    total, cost, slope = _reduce(padded, ws.candidate, term, ws.poly)
    for o in range(k):
        out[ws.outer[o]] = -2.0 * lane_dot(term[4], ws.candidate[2 + o], padded) / total
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
def log_sum(theta_bar, x, axis, delta, cut, ws, out, counts):
    """log Σ_j F_j at one (θ̄, x); out receives E_F[∇_θU] (d numbers) and E_F[|x-ξ|²].

    counts gains [points of the grid whose term is summed, values z whose sigmoid is computed, exponentials].
    """
    value = _fast_log_sum(theta_bar, x, axis, delta, cut, ws, out, counts)
    if math.isnan(value):
        value = safe_log_sum(theta_bar, x, axis, delta, cut, out, counts)
    return value
