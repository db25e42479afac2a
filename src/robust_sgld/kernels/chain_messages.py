"""The sum over the grid for any loss u(t, y) of one linear index and p = 2, by passing messages along the axes.

With ι = ι(α), t = ⟨w,z⟩+b and k = m-1 axes of z the sum is a chain of one-dimensional ones:

    A_0(t) = log Σ_y exp{[u(t, y) - ι(x_y-y)²]/δ}
    A_{i+1}(t) = log Σ_z exp{A_i(t + w_i z) - ι(x_i-z)²/δ},   log Σ_j F_j = A_k(b).

Each A_i lives on the nodes t = (whole number)·h of a window; between nodes it is interpolated (`chain_filter`). The
gradient is the derivative of this recursion, by reverse mode. What keeps it small, each within e^{-cut} of the sum:

1. *Axes.* A_i is L-Lipschitz with L = max|A_0'|, for sums of exponentials do not steepen. So z lies below the grid
   point z' nearest to x_i by at least ι[(x_i-z)²-(x_i-z')²]/δ - L|w_i||z-z'|; where that exceeds the cut z is left out.
2. *Windows.* Under the weights exp{-ι|x-z|²/δ} alone, each z_i has a variance of at most V = δ/(2ι) + 4^{-j}/4 under
   any tilt (and at most a quarter of its range squared), so the index τ_i = b + Σ_{l≥i} w_l z_l of the axes still to be
   summed is sub-Gaussian around its mean with Q_i = V Σ_{l≥i} w_l². With the tilt of at most e^{L|t-Et|} that A_0
   brings, the share of the sum with |τ_i-Eτ_i| > D is below e^{-cut} for D = L Q_i + sqrt(L²Q_i² + 2 Q_i C), where C =
   cut + L²(Q_0-Q_i)/2 + L sqrt(Q_0) + log 4. A_i is computed there and continued as a constant beyond.

The axes go in falling order of |w_i|, so that windows shrink soonest. The error of interpolation is estimated at every
call, to leading order: tenth differences of the messages, weighted by what each node contributes to the result.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.chain_filter import (
    LEFT,
    POINTS,
    REMAINDER,
    dot_at,
    interpolate,
    slopes,
    tenth_difference,
    transpose,
    weights,
)
from robust_sgld.kernels.chain_rows import (
    add,
    clear,
    close,
    closest,
    copy,
    exponentiate,
    first_rows,
    scale,
    times,
)
from robust_sgld.kernels.elementary import EXACT, fast_exp, log_cosh
from robust_sgld.kernels.vectors import lane_dot, lane_sum

DONE, NEED_TABLE, NEED_SPACE, TOO_LARGE = range(4)
"""What a call ends with: a result; the table or the workspace must grow to ws.request first; the window is absurd."""
BLOCK = 512
"""Nodes that share one bound on the slope of u."""
MARGIN = POINTS // 2 + 1
"""Nodes that interpolation, and the estimate of its error, read beyond the target."""
OVERHANG = 20
"""Nodes of a window beyond the radius that carries its mass. Interpolation reads five nodes to either side, those were
made from five more of the message before, and so on; an outermost coefficient is below 0.002, so that the kink where a
message is continued as a constant counts 1e-11 of itself after four times."""
MAX_NODES = 1 << 21
"""The most nodes that a message may have."""


@njit(**EXACT)
def _prepare(theta_bar, x, axis, delta, h, ws):
    """Penalties, order of the axes, means and spreads; returns the least and the largest index of the whole grid."""
    k, n = ws.order.size, axis.size
    iota, b = log_cosh(theta_bar[k + 1]), theta_bar[k]
    rate = iota / delta
    step = axis[1] - axis[0] if n > 1 else 0.0
    variance = 0.25 * (axis[n - 1] - axis[0]) ** 2
    if rate > 0.0:
        variance = min(variance, 0.5 / rate + 0.25 * step * step)
    for i in range(k + 1):
        for a in range(n):
            gap = x[i] - axis[a]
            ws.penalty[i, a] = rate * gap * gap
    for i in range(k):
        j = i
        while j > 0 and abs(theta_bar[ws.order[j - 1]]) < abs(theta_bar[i]):
            ws.order[j] = ws.order[j - 1]
            j -= 1
        ws.order[j] = i
    centre, spread = b, 0.0
    least, most = b, b
    for o in range(k - 1, -1, -1):
        i = ws.order[o]
        w, penalty = theta_bar[i], ws.penalty[i]
        nearest = penalty.min()
        for a in range(n):
            ws.gain[a] = fast_exp(nearest - penalty[a])
        centre += w * lane_dot(ws.gain, axis, n) / lane_sum(ws.gain, n)
        spread += w * w * variance
        ws.centre[o], ws.spread[o] = centre, spread
        least += min(w * axis[0], w * axis[n - 1])
        most += max(w * axis[0], w * axis[n - 1])
    return least, most


@njit(**EXACT)
def _radius(ws, o, lipschitz, cut):
    """D of the module's docstring."""
    q, q0 = ws.spread[o], ws.spread[0]
    room = cut + 0.5 * lipschitz * lipschitz * (q0 - q) + lipschitz * math.sqrt(q0) + 1.3862943611198906
    return lipschitz * q + math.sqrt(lipschitz * lipschitz * q * q + 2.0 * q * room)


@njit(**EXACT)
def _steepest(table_steep, table_low, low, high):
    """The bound on |∂u/∂t| over the blocks of nodes that touch low … high."""
    first, last = low // BLOCK - table_low // BLOCK, high // BLOCK - table_low // BLOCK
    found = 0.0
    for i in range(first, last + 1):
        found = max(found, table_steep[i])
    return found


@njit(**EXACT)
def _first_message(table, table_low, points, inverse_delta, penalty, low, n, cut, ws):
    """A_0 on n nodes from `low` and 1/Σ into first_message and first_inverse, exponentials into the first rows."""
    rows, top, total = ws.exponential, ws.top, ws.total
    clear(top, 0, n, -np.inf)
    clear(total, 0, n, 0.0)
    for a in range(points):
        first_rows(table, a, low - table_low, inverse_delta, penalty[penalty.shape[0] - 1, a], n, rows, a * n, top)
    for a in range(points):
        if closest(rows, a * n, top, n) < -cut:
            clear(rows, a * n, n, 0.0)
        else:
            exponentiate(rows, a * n, top, total, n)
    close(top, total, n, ws.first_message, ws.first_inverse, 0)


@njit(**EXACT)
def _axes_that_matter(theta_bar, x, axis, lipschitz, cut, ws):
    n = axis.size
    for o in range(ws.order.size):
        i = ws.order[o]
        penalty, tilt = ws.penalty[i], lipschitz * abs(theta_bar[i])
        near = penalty.argmin()
        first, last = 0, n - 1
        while first < near and penalty[first] - penalty[near] - tilt * (axis[near] - axis[first]) > cut:
            first += 1
        while last > near and penalty[last] - penalty[near] - tilt * (axis[last] - axis[near]) > cut:
            last -= 1
        ws.first[o], ws.last[o] = first, last


@njit(**EXACT)
def _filters(theta_bar, axis, h, ws):
    """For every axis and point that matters: by how many nodes it shifts, and the interpolation at the rest."""
    k = ws.order.size
    for o in range(k):
        w = theta_bar[ws.order[o]]
        base = theta_bar[k] if o == k - 1 else 0.0
        for a in range(ws.first[o], ws.last[o] + 1):
            distance = (base + w * axis[a]) / h
            whole = math.floor(distance)
            ws.shift[o, a] = int(whole)
            weights(distance - whole, ws.filters, o, a)


@njit(**EXACT)
def _clip(centre, radius, h, low, high):
    """The nodes of low … high that lie within the radius, and those that interpolation there reads."""
    below = min(max((centre - radius) / h - OVERHANG, float(low)), float(high))
    above = min(max((centre + radius) / h + OVERHANG, float(low)), float(high))
    return int(np.floor(below)), int(np.ceil(above))


@njit(**EXACT)
def _windows(h, lipschitz, cut, first_low, first_size, ws):
    """Where each message is stored and computed, from the last axis back; the sizes that they need into ws.request."""
    k, n = ws.order.size, ws.gain.size
    low, high = 0, 0
    for o in range(k - 1, -1, -1):
        one, other = ws.shift[o, ws.first[o]], ws.shift[o, ws.last[o]]
        start, end = low + min(one, other) - MARGIN, high + max(one, other) + MARGIN
        ws.start[o], ws.stored[o] = start, end - start + 1
        if o == 0:
            low, high = first_low, first_low + first_size - 1
        else:
            radius = _radius(ws, o, lipschitz, cut)
            low, high = _clip(ws.centre[o], radius, h, start, end)
        ws.low[o], ws.high[o] = low, high
    nodes, space = 0, n * first_size
    for o in range(k):
        ws.at[o] = nodes
        nodes += ws.stored[o] + 2
        if o > 0:
            ws.rows[o] = space
            space += (ws.last[o - 1] - ws.first[o - 1] + 1) * (ws.high[o] - ws.low[o] + 1)
    ws.request[1], ws.request[2] = nodes, space
    return nodes <= ws.message.size and space <= ws.exponential.size


@njit(**EXACT)
def _store_first(ws, first_low, first_size):
    """A_0 from where it was computed into its place, continued as a constant."""
    at, start, count = ws.at[0], ws.start[0], ws.stored[0]
    message, inverse, values, inverses = ws.message, ws.inverse, ws.first_message, ws.first_inverse
    for i in range(count):
        j = min(max(start + i - first_low, 0), first_size - 1)
        message[at + i] = values[j]
        inverse[at + i] = inverses[j]
    slopes(message, at, count, ws.slope)


@njit(**EXACT)
def _continue_flat(message, at, left, right, stored):
    """A message beyond its nodes left … right, at which it was computed."""
    clear(message, at, left, message[at + left])
    clear(message, at + right + 1, stored - right - 1, message[at + right])


@njit(**EXACT)
def _pass_on(ws, o, cut):
    """A_o from A_{o-1}."""
    i = o - 1
    axis, first, last = ws.order[i], ws.first[i], ws.last[i]
    n = ws.high[o] - ws.low[o] + 1
    message, rows, top, total, filters, at_row = ws.message, ws.exponential, ws.top, ws.total, ws.filters, ws.rows[o]
    clear(top, 0, n, -np.inf)
    clear(total, 0, n, 0.0)
    base = ws.at[i] + ws.low[o] - LEFT - ws.start[i]
    for a in range(first, last + 1):
        to = at_row + (a - first) * n
        interpolate(message, base + ws.shift[i, a], filters, i, a, ws.penalty[axis, a], n, rows, to, top)
    for a in range(first, last + 1):
        to = at_row + (a - first) * n
        ws.idle[i, a] = closest(rows, to, top, n) < -cut
        if not ws.idle[i, a]:
            exponentiate(rows, to, top, total, n)
    at, left = ws.at[o], ws.low[o] - ws.start[o]
    close(top, total, n, message, ws.inverse, at + left)
    _continue_flat(message, at, left, left + n - 1, ws.stored[o])
    slopes(message, at, ws.stored[o], ws.slope)


@njit(**EXACT)
def _finish(ws, axis, x, out):
    """The last axis, at t = b alone: the value; seeds the adjoint of the last message."""
    k = ws.order.size
    o, i = k - 1, ws.order[k - 1]
    message, slope, adjoint, base = ws.message, ws.slope, ws.adjoint, ws.at[o] - LEFT - ws.start[o]
    top = -np.inf
    for a in range(ws.first[o], ws.last[o] + 1):
        begin, v = base + ws.shift[o, a], 0.0
        for q in range(POINTS):
            v += ws.filters[o, a, q] * message[begin + q]
        ws.gain[a] = v - ws.penalty[i, a]
        top = max(top, ws.gain[a])
    total = 0.0
    for a in range(ws.first[o], ws.last[o] + 1):
        ws.gain[a] = math.exp(ws.gain[a] - top)
        total += ws.gain[a]
    for a in range(ws.first[o], ws.last[o] + 1):
        share = ws.gain[a] / total
        begin, along = base + ws.shift[o, a], 0.0
        for q in range(POINTS):
            along += ws.filters[o, a, q] * slope[begin + q]
            adjoint[begin + q] += share * ws.filters[o, a, q]
        out[k] += share * along
        out[i] += share * along * axis[a]
        out[k + 1] += share * (x[i] - axis[a]) ** 2
    return top + math.log(total)


@njit(**EXACT)
def _pull_back(ws, o, axis, x, negligible, out):
    """The adjoint of A_{o-1} from that of A_o, and what the axis between them adds to the gradient and the cost."""
    i = o - 1
    k, which, first = ws.order.size, ws.order[i], ws.first[i]
    n = ws.high[o] - ws.low[o] + 1
    at = ws.at[o] + ws.low[o] - ws.start[o]
    scaled, padded, spread = ws.top, ws.total, ws.first_message
    adjoint, rows, slope, filters = ws.adjoint, ws.exponential, ws.slope, ws.filters
    scale(adjoint, ws.inverse, at, n, scaled)
    clear(padded, 0, POINTS - 1, 0.0)
    clear(padded, POINTS - 1 + n, POINTS + 1, 0.0)
    size = n + POINTS - 1
    base = ws.at[i] + ws.low[o] - LEFT - ws.start[i]
    along, cost = 0.0, 0.0
    for a in range(first, ws.last[i] + 1):
        if ws.idle[i, a]:
            continue
        times(scaled, rows, ws.rows[o] + (a - first) * n, n, padded, POINTS - 1)
        share = lane_sum(padded, n + POINTS - 1)
        if abs(share) < negligible:
            continue
        begin = base + ws.shift[i, a]
        transpose(padded, filters, i, a, size, spread)
        along += axis[a] * dot_at(spread, slope, begin, size)
        cost += (x[which] - axis[a]) ** 2 * share
        add(spread, size, adjoint, begin)
    out[which] += along
    out[k + 1] += cost


@njit(**EXACT)
def _error(ws):
    """Σ over messages and nodes of |adjoint| times the interpolation error there, to leading order."""
    error, half, difference, weight = 0.0, POINTS // 2, ws.top, ws.total
    for o in range(ws.order.size):
        low, high = max(ws.low[o], ws.start[o]), min(ws.high[o], ws.start[o] + ws.stored[o] - 1)
        size = high - low + 1
        if size <= POINTS:
            return np.inf
        at = ws.at[o] + low - ws.start[o]
        tenth_difference(ws.message, at, size - POINTS, difference)
        # the nodes at the ends have no difference of their own
        copy(ws.adjoint, at, size, weight)
        for j in range(half):
            error += REMAINDER * abs(weight[j]) * difference[0]
            error += REMAINDER * abs(weight[size - 1 - j]) * difference[size - POINTS - 1]
        for j in range(size - POINTS):
            difference[j] *= abs(weight[half + j])
        error += REMAINDER * lane_sum(difference, size - POINTS)
    return error


@njit(**EXACT)
def log_sum(theta_bar, x, axis, delta, h, cut, table, table_low, table_steep, ws, out):
    """One (θ̄, x): a status, log Σ_j F_j and the estimate of its error; out gets E_F[∇_θU] and E_F[|x-ξ|²]."""
    k = ws.order.size
    inverse_delta = 1.0 / delta
    least, most = _prepare(theta_bar, x, axis, delta, h, ws)
    if not (most - least) / h < MAX_NODES or not max(abs(least), abs(most)) / h < 1e15:
        return TOO_LARGE, 0.0, 0.0
    # every axis reads a few nodes beyond those that it is evaluated at
    low, high = int(np.floor(least / h)) - k * MARGIN, int(np.ceil(most / h)) + k * MARGIN
    if low < table_low or high >= table_low + table.shape[1]:
        ws.request[0], ws.request[1] = low, high
        return NEED_TABLE, 0.0, 0.0
    radius = _radius(ws, 0, _steepest(table_steep, table_low, low, high) * inverse_delta, cut)
    low, high = _clip(ws.centre[0], radius, h, low, high)
    size = high - low + 1
    if size > ws.message.size or size * axis.size > ws.exponential.size:
        ws.request[1], ws.request[2] = size, size * axis.size
        return NEED_SPACE, 0.0, 0.0
    _first_message(table, table_low, axis.size, inverse_delta, ws.penalty, low, size, cut, ws)
    # what lies beyond a window does not count, so the slope inside it is the one that counts: twice, as it narrows
    first, last = low, high
    lipschitz = 0.0
    for _ in range(2):
        lipschitz = 0.0
        for j in range(first - low, last - low):
            lipschitz = max(lipschitz, abs(ws.first_message[j + 1] - ws.first_message[j]))
        lipschitz /= h
        first, last = _clip(ws.centre[0], _radius(ws, 0, lipschitz, cut), h, first, last)
    _axes_that_matter(theta_bar, x, axis, lipschitz, cut, ws)
    _filters(theta_bar, axis, h, ws)
    if not _windows(h, lipschitz, cut, low, size, ws):
        return NEED_SPACE, 0.0, 0.0
    _store_first(ws, low, size)
    for o in range(1, k):
        _pass_on(ws, o, cut)
    clear(ws.adjoint, 0, ws.at[k - 1] + ws.stored[k - 1], 0.0)
    out[: k + 2] = 0.0
    value = _finish(ws, axis, x, out)
    negligible = math.exp(-cut)
    for o in range(k - 1, 0, -1):
        _pull_back(ws, o, axis, x, negligible, out)
    _cost_of_y(ws, axis, x[k], low, size, out)
    for i in range(k + 1):
        out[i] *= delta / h
    return DONE, value, _error(ws)


@njit(**EXACT)
def _cost_of_y(ws, axis, x_y, first_low, first_size, out):
    low = max(first_low, ws.start[0])
    n = min(first_low + first_size, ws.start[0] + ws.stored[0]) - low
    at, scaled, cost = ws.at[0] + low - ws.start[0], ws.top, 0.0
    scale(ws.adjoint, ws.inverse, at, n, scaled)
    for a in range(axis.size):
        cost += (x_y - axis[a]) ** 2 * dot_at(scaled, ws.exponential, a * first_size + low - first_low, n)
    out[ws.order.size + 1] += cost
