"""Compiled loops over many updates, and over many pairs (θ̄, x), of the sigmoid regression."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT, compiled_langevin_update, log_cosh
from robust_sgld.kernels.sigmoid_grid import log_sum
from robust_sgld.kernels.sigmoid_safe import maximum
from robust_sgld.kernels.vectors import borrowed


@njit(**EXACT)
def log_sums(theta_bar, x, axis, delta, cut, ws, value, grad_u, cost, counts):
    """`log_sum` at B pairs."""
    theta_bar, x, axis, ws, counts = borrowed(theta_bar), borrowed(x), borrowed(axis), borrowed(ws), borrowed(counts)
    d = theta_bar.shape[1] - 1
    for i in range(len(x)):
        value[i] = log_sum(theta_bar[i], x[i], axis, delta, cut, ws, ws.out, counts)
        for a in range(d):
            grad_u[i, a] = ws.out[a]
        cost[i] = ws.out[d]


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
    train, axis, ws, states, counts = borrowed(train), borrowed(axis), borrowed(ws), borrowed(states), borrowed(counts)
    state, expectation = borrowed(theta0), ws.out
    d = theta0.size - 1
    for n in range(indices.size):
        log_sum(state, train[indices[n]], axis, delta, cut, ws, expectation, counts)
        after = states[n]
        total = 0.0
        for i in range(d):
            gradient = eta1 * state[i] + expectation[i]
            after[i] = compiled_langevin_update(state[i], gradient, noise[n, i], step_size, noise_scale)
            total += after[i]
        gradient = math.tanh(state[d]) * (eta2 * log_cosh(state[d]) - expectation[d])
        after[d] = compiled_langevin_update(state[d], gradient, noise[n, d], step_size, noise_scale)
        if not math.isfinite(total + after[d]):
            states[n:] = np.nan
            return
        state = after
