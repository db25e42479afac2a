"""Sums by message passing with the spacing that each needs: pairs for the objective, and the loop of robust SGLD.

The nodes of level l are 2^-l apart; `tables` holds the loss on levels WIDEST, WIDEST+1, … The functions return to
Python when they need what only Python has: a wider table of the loss, or more scratch space.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.chain_messages import DONE, log_sum
from robust_sgld.kernels.elementary import EXACT, compiled_langevin_update, log_cosh

WIDEST, NARROWEST = 2, 14
TOO_SHARP = 4
"""One more way to end, after those of `chain_messages`: the narrowest spacing is too wide."""
SAFETY = 4.0
"""The estimated error must stay below the tolerance by this factor: it is one of leading order."""
GAIN = 2.0**10
"""What half the spacing does to the error, to leading order."""
CALM, PRESSURE = 64, 12
"""Scores at which a run widens or narrows the spacing that its updates start from."""


@njit(**EXACT)
def spacing(level):
    """2^-level."""
    return 1.0 / np.float64(np.int64(1) << np.int64(level))


@njit(**EXACT)
def settled_log_sum(theta_bar, x, axis, delta, cut, tables, first, tolerance, ws, out):
    """`log_sum` at the first level, from `first` on, whose estimated error is within the tolerance.

    Returns a status, the level, log Σ_j F_j and the estimated error.
    """
    level = first
    while True:
        table = tables[level - WIDEST]
        status, value, error = log_sum(
            theta_bar, x, axis, delta, spacing(level), cut, table.values, table.low, table.steep, ws, out
        )
        if status != DONE or SAFETY * error <= tolerance:
            return status, level, value, error
        if level == NARROWEST:
            return TOO_SHARP, level, value, error
        # as many levels as the estimate asks for, but few: far from the tolerance it is a rough one
        steps = 1 + int(SAFETY * error > GAIN * tolerance) + int(SAFETY * error > GAIN * GAIN * tolerance)
        level = min(level + steps, NARROWEST)


@njit(**EXACT)
def log_sums(theta_bar, x, axis, delta, cut, tables, first, tolerance, ws, value, grad_u, cost, begin):
    """`settled_log_sum` at the pairs from number `begin` on; a status, the level it is about, and the pair."""
    d = theta_bar.shape[1] - 1
    out = np.empty(d + 1)
    for i in range(begin, len(x)):
        status, level, result, _ = settled_log_sum(
            theta_bar[i], x[i], axis, delta, cut, tables, first, tolerance, ws, out
        )
        if status != DONE:
            return status, level, i
        value[i], cost[i] = result, out[d]
        grad_u[i] = out[:d]
    return DONE, first, len(x)


@njit(**EXACT)
def robust_chain(
    train, state, begin, stop, indices, noise, step_size, noise_scale, eta1, eta2, axis, delta, cut, tables, least,
    tolerance, ws, states, control,
):  # fmt: skip
    """Updates begin … stop-1 of robust SGLD (eqn:sgld with H of defn:grad_v_delta); `state` moves along.

    Returns a status, the level it is about, and the first update that is not done. control = [level that updates start
    from, calm, pressure] lasts between calls: an update that needs a finer level adds to the pressure, one that would
    do with a wider one to the calm, and at a score the starting level changes, never below `least`.
    """
    d = state.size - 1
    expectation = np.empty(d + 1)
    for n in range(begin, stop):
        x = train[indices[n]]
        status, level, _, error = settled_log_sum(
            state, x, axis, delta, cut, tables, control[0], tolerance, ws, expectation
        )
        if status != DONE:
            return status, level, n
        for i in range(d):
            gradient = eta1 * state[i] + expectation[i]
            state[i] = compiled_langevin_update(state[i], gradient, noise[n, i], step_size, noise_scale)
        gradient = math.tanh(state[d]) * (eta2 * log_cosh(state[d]) - expectation[d])
        state[d] = compiled_langevin_update(state[d], gradient, noise[n, d], step_size, noise_scale)
        states[n] = state
        if not np.isfinite(state.sum()):
            states[n:] = np.nan
            return DONE, level, states.shape[0]
        if level > control[0]:
            control[1], control[2] = 0, control[2] + 2
        else:
            wider = 2.0 * GAIN * SAFETY * error <= tolerance
            control[1] = control[1] + 1 if wider else max(control[1] - 4, 0)
            control[2] = max(control[2] - 1, 0)
        if control[2] >= PRESSURE:
            control[0], control[1], control[2] = min(control[0] + 1, NARROWEST), 0, 0
        elif control[1] >= CALM and control[0] > least:
            control[0], control[1], control[2] = control[0] - 1, 0, 0
    return DONE, control[0], stop
