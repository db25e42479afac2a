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
from typing import NamedTuple

import numpy as np
from numba import njit

from robust_sgld.kernels.chain_filter import (
    LEFT,
    POINTS,
    REMAINDER,
    add_adjoint,
    convolve,
    tenth_difference,
    weights,
)
from robust_sgld.kernels.elementary import EXACT, fast_exp, log_cosh
from robust_sgld.kernels.logarithm import fast_log
from robust_sgld.kernels.vectors import lane_dot, lane_sum

DONE, NEED_TABLE, NEED_SPACE, TOO_LARGE = range(4)
"""What a call ends with: a result; the table or the workspace must grow to ws.request first; the window is absurd."""
BLOCK = 512
"""Nodes that share one bound on the slope of u."""
MARGIN = POINTS // 2 + 1
"""Nodes that interpolation, and the estimate of its error, read beyond the target."""
MAX_NODES = 1 << 21
"""The most nodes that a message may have."""


class Workspace(NamedTuple):
    """Scratch arrays of one chain; k axes of z, n points an axis. `space` says how many numbers the flat ones hold."""

    order: np.ndarray  # (k,) the axes in the order they are summed
    penalty: np.ndarray  # (m, n) ι(x_i-z)²/δ
    gain: np.ndarray  # (n,)
    first: np.ndarray  # (k,) points of each axis that matter
    last: np.ndarray  # (k,)
    low: np.ndarray  # (k,) the nodes at which A_i is computed, both ends included
    high: np.ndarray  # (k,)
    start: np.ndarray  # (k,) the first node at which A_i is stored
    stored: np.ndarray  # (k,) how many
    at: np.ndarray  # (k,) where A_i stands in the flat arrays
    rows: np.ndarray  # (k,) where its exponentials stand
    centre: np.ndarray  # (k,) mean of τ_i
    spread: np.ndarray  # (k,) Q_i
    shift: np.ndarray  # (k, n)
    value_filter: np.ndarray  # (k, n, POINTS)
    slope_filter: np.ndarray  # (k, n, POINTS)
    request: np.ndarray  # (3,)
    message: np.ndarray  # flat
    adjoint: np.ndarray  # flat
    inverse: np.ndarray  # flat, 1 / Σ of the exponentials
    exponential: np.ndarray  # flat
    scratch: np.ndarray  # (4, …)


def workspace(n: int, dim: int, nodes: int = 4096, space: int = 1 << 16) -> Workspace:
    """For data of dimension m = dim on n points an axis; `nodes` and `space` as ws.request asks for them."""
    k = dim - 1
    integers = np.zeros((9, k), dtype=np.int64)
    return Workspace(
        integers[0], np.zeros((dim, n)), np.zeros(n), *integers[1:], np.zeros(k), np.zeros(k),
        np.zeros((k, n), dtype=np.int64), np.zeros((k, n, POINTS)), np.zeros((k, n, POINTS)),
        np.zeros(3, dtype=np.int64),
        np.zeros(nodes), np.zeros(nodes), np.zeros(nodes), np.zeros(space), np.zeros((4, nodes + 4 * POINTS)),
    )  # fmt: skip


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
def _exponentiate(row, top, total, n):
    for i in range(n):
        row[i] = fast_exp(row[i] - top[i])
        total[i] += row[i]


@njit(**EXACT)
def _close(top, total, n, message, inverse):
    """A = top + log Σ and 1/Σ."""
    for i in range(n):
        message[i] = top[i] + fast_log(total[i])
        inverse[i] = 1.0 / total[i]


@njit(**EXACT)
def _first_message(table, table_low, axis, inverse_delta, penalty, low, n, cut, ws):
    """A_0 on n nodes from `low` into scratch[2], 1/Σ into scratch[3], exponentials into rows 0 … of `exponential`."""
    top, total = ws.scratch[0, :n], ws.scratch[1, :n]
    top[:] = -np.inf
    for a in range(axis.size):
        u, row, p = table[a, low - table_low : low - table_low + n], ws.exponential[a * n : (a + 1) * n], penalty[a]
        for i in range(n):
            row[i] = u[i] * inverse_delta - p
            top[i] = max(top[i], row[i])
    total[:] = 0.0
    for a in range(axis.size):
        row = ws.exponential[a * n : (a + 1) * n]
        closest = -np.inf
        for i in range(n):
            closest = max(closest, row[i] - top[i])
        if closest > -cut:
            _exponentiate(row, top, total, n)
        else:
            row[:] = 0.0
    _close(top, total, n, ws.scratch[2], ws.scratch[3])


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
            weights(distance - whole, ws.value_filter[o, a], ws.slope_filter[o, a])


@njit(**EXACT)
def _clip(centre, radius, h, low, high):
    """The nodes of low … high that lie within the radius, and those that interpolation there reads."""
    below = min(max((centre - radius) / h - MARGIN, float(low)), float(high))
    above = min(max((centre + radius) / h + MARGIN, float(low)), float(high))
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
    """A_0 from the scratch into its place, continued as a constant."""
    at, start, count = ws.at[0], ws.start[0], ws.stored[0]
    values, inverses = ws.scratch[2], ws.scratch[3]
    for i in range(count):
        j = min(max(start + i - first_low, 0), first_size - 1)
        ws.message[at + i] = values[j]
        ws.inverse[at + i] = inverses[j]


@njit(**EXACT)
def _continue_flat(ws, o):
    """A_o beyond the window where it was computed."""
    at, left = ws.at[o], ws.low[o] - ws.start[o]
    right = ws.high[o] - ws.start[o]
    message = ws.message[at : at + ws.stored[o]]
    message[:left] = message[left]
    message[right + 1 :] = message[right]


@njit(**EXACT)
def _row(a, c, penalty, n, row, top):
    """row = interpolated message - penalty, and the running maximum."""
    convolve(a, c, n, row)
    for i in range(n):
        row[i] -= penalty
        top[i] = max(top[i], row[i])


@njit(**EXACT)
def _pass_on(ws, o):
    """A_o from A_{o-1}."""
    i = o - 1
    axis = ws.order[i]
    n = ws.high[o] - ws.low[o] + 1
    top, total = ws.scratch[0, :n], ws.scratch[1, :n]
    top[:] = -np.inf
    total[:] = 0.0
    before = ws.message[ws.at[i] : ws.at[i] + ws.stored[i]]
    for a in range(ws.first[i], ws.last[i] + 1):
        to = ws.rows[o] + (a - ws.first[i]) * n
        begin = ws.low[o] + ws.shift[i, a] - LEFT - ws.start[i]
        _row(before[begin:], ws.value_filter[i, a], ws.penalty[axis, a], n, ws.exponential[to : to + n], top)
    for a in range(ws.first[i], ws.last[i] + 1):
        to = ws.rows[o] + (a - ws.first[i]) * n
        _exponentiate(ws.exponential[to : to + n], top, total, n)
    at = ws.at[o] + ws.low[o] - ws.start[o]
    _close(top, total, n, ws.message[at : at + n], ws.inverse[at : at + n])
    _continue_flat(ws, o)


@njit(**EXACT)
def _finish(ws, axis, x, h, delta, out):
    """The last axis, at t = b alone: the value; seeds the adjoint of the last message."""
    k = ws.order.size
    o, i = k - 1, ws.order[k - 1]
    message, adjoint = ws.message[ws.at[o] :], ws.adjoint[ws.at[o] :]
    top = -np.inf
    for a in range(ws.first[o], ws.last[o] + 1):
        begin, v = ws.shift[o, a] - LEFT - ws.start[o], 0.0
        for q in range(POINTS):
            v += ws.value_filter[o, a, q] * message[begin + q]
        ws.gain[a] = v - ws.penalty[i, a]
        top = max(top, ws.gain[a])
    total = 0.0
    for a in range(ws.first[o], ws.last[o] + 1):
        ws.gain[a] = math.exp(ws.gain[a] - top)
        total += ws.gain[a]
    for a in range(ws.first[o], ws.last[o] + 1):
        share = ws.gain[a] / total
        begin, slope = ws.shift[o, a] - LEFT - ws.start[o], 0.0
        for q in range(POINTS):
            slope += ws.slope_filter[o, a, q] * message[begin + q]
            adjoint[begin + q] += share * ws.value_filter[o, a, q]
        out[k] += delta / h * share * slope
        out[i] += delta / h * share * slope * axis[a]
        out[k + 1] += share * (x[i] - axis[a]) ** 2
    return top + math.log(total)


@njit(**EXACT)
def _pull_back(ws, o, axis, x, h, delta, out):
    """The adjoint of A_{o-1} from that of A_o, and what the axis between them adds to the gradient and the cost."""
    i = o - 1
    k, which = ws.order.size, ws.order[i]
    n = ws.high[o] - ws.low[o] + 1
    at = ws.at[o] + ws.low[o] - ws.start[o]
    scaled, padded, slope = ws.scratch[0], ws.scratch[1], ws.scratch[2]
    adjoint, inverse = ws.adjoint[at : at + n], ws.inverse[at : at + n]
    for j in range(n):
        scaled[j] = adjoint[j] * inverse[j]
    padded[: POINTS - 1] = 0.0
    padded[POINTS - 1 + n : n + 2 * POINTS] = 0.0
    g = padded[POINTS - 1 :]
    before, adjoint_before = ws.message[ws.at[i] :], ws.adjoint[ws.at[i] :]
    for a in range(ws.first[i], ws.last[i] + 1):
        to = ws.rows[o] + (a - ws.first[i]) * n
        row = ws.exponential[to : to + n]
        for j in range(n):
            g[j] = scaled[j] * row[j]
        begin = ws.low[o] + ws.shift[i, a] - LEFT - ws.start[i]
        convolve(before[begin:], ws.slope_filter[i, a], n, slope)
        out[which] += delta / h * axis[a] * lane_dot(slope, g, n)
        out[k + 1] += (x[which] - axis[a]) ** 2 * lane_sum(g, n)
        add_adjoint(padded, ws.value_filter[i, a], n + POINTS - 1, adjoint_before[begin:])


@njit(**EXACT)
def _error(ws):
    """Σ over messages and nodes of |adjoint| times the interpolation error there, to leading order."""
    error = 0.0
    for o in range(ws.order.size):
        low, high = max(ws.low[o], ws.start[o]), min(ws.high[o], ws.start[o] + ws.stored[o] - 1)
        n = high - low + 1 - POINTS
        if n > 0:
            at = ws.at[o] + low - ws.start[o]
            half, difference = POINTS // 2, ws.scratch[0]
            tenth_difference(ws.message[at : at + n + POINTS], n, difference[half:])
            difference[:half] = difference[half]
            difference[half + n : n + POINTS] = difference[half + n - 1]
            adjoint = ws.adjoint[at : at + n + POINTS]
            for j in range(n + POINTS):
                difference[j] *= abs(adjoint[j])
            error += REMAINDER * lane_sum(difference, n + POINTS)
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
    _first_message(table, table_low, axis, inverse_delta, ws.penalty[k], low, size, cut, ws)
    lipschitz = 0.0
    values = ws.scratch[2]
    for j in range(size - 1):
        lipschitz = max(lipschitz, abs(values[j + 1] - values[j]))
    lipschitz /= h
    _axes_that_matter(theta_bar, x, axis, lipschitz, cut, ws)
    _filters(theta_bar, axis, h, ws)
    if not _windows(h, lipschitz, cut, low, size, ws):
        return NEED_SPACE, 0.0, 0.0
    _store_first(ws, low, size)
    for o in range(1, k):
        _pass_on(ws, o)
    ws.adjoint[: ws.at[k - 1] + ws.stored[k - 1]] = 0.0
    out[: k + 2] = 0.0
    value = _finish(ws, axis, x, h, delta, out)
    for o in range(k - 1, 0, -1):
        _pull_back(ws, o, axis, x, h, delta, out)
    _cost_of_y(ws, axis, x[k], low, size, out)
    return DONE, value, _error(ws)


@njit(**EXACT)
def _cost_of_y(ws, axis, x_y, first_low, first_size, out):
    k = ws.order.size
    low = max(first_low, ws.start[0])
    n = min(first_low + first_size, ws.start[0] + ws.stored[0]) - low
    at, scaled = ws.at[0] + low - ws.start[0], ws.scratch[0]
    adjoint, inverse = ws.adjoint[at:], ws.inverse[at:]
    for j in range(n):
        scaled[j] = adjoint[j] * inverse[j]
    for a in range(axis.size):
        row = ws.exponential[a * first_size + low - first_low :]
        out[k + 1] += (x_y - axis[a]) ** 2 * lane_dot(scaled, row, n)
