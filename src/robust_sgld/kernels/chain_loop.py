"""Many sums by message passing: pairs for the objective, and the whole loop of robust SGLD.

Both return to Python when they need what only Python has: a wider or finer table of the loss, or more scratch space.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.chain_messages import DONE, log_sum
from robust_sgld.kernels.elementary import EXACT, compiled_langevin_update, log_cosh

REFINE, COARSEN = 4, 5
"""Two more ways to end, after those of `chain_messages`: the spacing is too wide, or needlessly narrow."""
SAFETY = 4.0
"""The estimated error must stay below the tolerance by this factor: it is one of leading order."""
CALM = 64
"""So many updates in a row must allow twice the spacing before it is taken."""
GROWTH = 2.0**11
"""What twice the spacing may do to the error: 2^10 to leading order."""


@njit(**EXACT)
def log_sums(theta_bar, x, which, axis, delta, h, cut, table, low, steep, tolerance, ws, value, grad_u, cost, begin):
    """`log_sum` at the pairs `which` from number `begin` on; which[i] becomes -1 - which[i] where h will not do."""
    d = theta_bar.shape[1] - 1
    out = np.empty(d + 1)
    for i in range(begin, which.size):
        at = which[i]
        status, result, error = log_sum(theta_bar[at], x[at], axis, delta, h, cut, table, low, steep, ws, out)
        if status != DONE:
            return status, i
        value[at], cost[at] = result, out[d]
        grad_u[at] = out[:d]
        if not SAFETY * error <= tolerance:
            which[i] = -1 - at
    return DONE, which.size


@njit(**EXACT)
def robust_chain(
    train, state, begin, stop, indices, noise, step_size, noise_scale, eta1, eta2, axis, delta, h, cut,
    table, low, steep, tolerance, widest, ws, states, calm,
):  # fmt: skip
    """Updates begin … stop-1 of robust SGLD (eqn:sgld with H of defn:grad_v_delta); `state` moves along.

    Returns how it ended and the first update that is not done. `calm` counts on between calls.
    """
    d = state.size - 1
    expectation = np.empty(d + 1)
    for n in range(begin, stop):
        x = train[indices[n]]
        status, _, error = log_sum(state, x, axis, delta, h, cut, table, low, steep, ws, expectation)
        if status != DONE:
            return status, n
        if not SAFETY * error <= tolerance:
            return REFINE, n
        for i in range(d):
            gradient = eta1 * state[i] + expectation[i]
            state[i] = compiled_langevin_update(state[i], gradient, noise[n, i], step_size, noise_scale)
        gradient = math.tanh(state[d]) * (eta2 * log_cosh(state[d]) - expectation[d])
        state[d] = compiled_langevin_update(state[d], gradient, noise[n, d], step_size, noise_scale)
        states[n] = state
        if not np.isfinite(state.sum()):
            states[n:] = np.nan
            return DONE, states.shape[0]
        calm[0] = calm[0] + 1 if SAFETY * GROWTH * error <= tolerance else 0
        if calm[0] >= CALM and not widest:
            calm[0] = 0
            return COARSEN, n + 1
    return DONE, stop
