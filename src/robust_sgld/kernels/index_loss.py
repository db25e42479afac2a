"""Losses u(t, y) of one linear index t = ⟨w,z⟩+b, compiled: SGLD on them, and their mean over a data set.

A compiled function that takes a function cannot be cached between processes, so a loss is a small integer, a link is
another, and two numbers `a` and `b` are the loss's parameters. A loss that is not here runs in torch.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT, compiled_langevin_update, fast_exp, stable_sigmoid
from robust_sgld.kernels.logarithm import fast_log
from robust_sgld.kernels.vectors import borrowed, lane_sum

SQUARED, PSEUDO_HUBER, CAUCHY, QUANTILE, LOGISTIC = range(5)
"""r² · sqrt(r²+a²)-a · log(1+(r/a)²) · a r + b log(1+e^{-r/b}) · log(1+e^{-yt}); r = y - s(t)"""
SIGMOID, IDENTITY, TANH = range(3)

BLOCK = 512


@njit(**EXACT)
def slope(loss, link, a, b, t, y):
    """∂u/∂t at one (t, y)."""
    if loss == LOGISTIC:
        return -y * stable_sigmoid(-y * t)
    if link == SIGMOID:
        s = stable_sigmoid(t)
        s_prime = s * (1.0 - s)
    elif link == TANH:
        s = math.tanh(t)
        s_prime = 1.0 - s * s
    else:
        s, s_prime = t, 1.0
    r = y - s
    if loss == SQUARED:
        rho_prime = 2.0 * r
    elif loss == PSEUDO_HUBER:
        rho_prime = r / math.sqrt(r * r + a * a)
    elif loss == CAUCHY:
        rho_prime = 2.0 * r / (a * a + r * r)
    else:
        rho_prime = a - stable_sigmoid(-r / b)
    return -rho_prime * s_prime


@njit(**EXACT)
def _losses(loss, link, a, b, t, y, n):
    """t[:n] is overwritten by u(t, y); each loop vectorises."""
    if loss == LOGISTIC:
        for i in range(n):
            v = -y[i] * t[i]
            t[i] = max(v, 0.0) + fast_log(1.0 + fast_exp(-abs(v)))
        return
    if link == SIGMOID:
        for i in range(n):
            t[i] = y[i] - 1.0 / (1.0 + fast_exp(-t[i]))
    elif link == TANH:
        for i in range(n):
            t[i] = y[i] - (1.0 - 2.0 / (1.0 + fast_exp(2.0 * t[i])))
    else:
        for i in range(n):
            t[i] = y[i] - t[i]
    if loss == SQUARED:
        for i in range(n):
            t[i] = t[i] * t[i]
    elif loss == PSEUDO_HUBER:
        for i in range(n):
            t[i] = t[i] * t[i] / (math.sqrt(t[i] * t[i] + a * a) + a)
    elif loss == CAUCHY:
        inverse = 1.0 / (a * a)
        for i in range(n):
            t[i] = fast_log(1.0 + t[i] * t[i] * inverse)
    else:
        inverse = 1.0 / b
        for i in range(n):
            v = -t[i] * inverse
            t[i] = a * t[i] + b * (max(v, 0.0) + fast_log(1.0 + fast_exp(-abs(v))))


@njit(**EXACT)
def mean_losses(loss, link, a, b, thetas, columns, losses):
    """(1/n) Σ u(⟨w,z_i⟩+b, y_i) at every row of thetas, for data given by columns (m, n) with y last."""
    d, n = columns.shape
    t, y = np.empty(BLOCK), columns[d - 1]
    for k in range(len(thetas)):
        total = 0.0
        for start in range(0, n, BLOCK):
            size = min(BLOCK, n - start)
            for i in range(size):
                t[i] = thetas[k, d - 1]
            for c in range(d - 1):
                w, z = thetas[k, c], columns[c, start : start + size]
                for i in range(size):
                    t[i] += w * z[i]
            _losses(loss, link, a, b, t, y[start : start + size], size)
            total += lane_sum(t, size)
        losses[k] = total / n


@njit(**EXACT)
def plain_chain(loss, link, a, b, train, theta0, indices, noise, step_size, noise_scale, states):
    """SGLD (eqn:sgld with H = ∇_θU = ∂u/∂t (z, 1)): the state after every update into states (n, d)."""
    train, states = borrowed(train), borrowed(states)
    state = borrowed(theta0)
    d = theta0.size
    for n in range(indices.size):
        x, after = train[indices[n]], states[n]
        t = state[d - 1]
        for i in range(d - 1):
            t += state[i] * x[i]
        along = slope(loss, link, a, b, t, x[d - 1])
        total = 0.0
        for i in range(d):
            gradient = along * x[i] if i < d - 1 else along
            after[i] = compiled_langevin_update(state[i], gradient, noise[n, i], step_size, noise_scale)
            total += after[i]
        if not math.isfinite(total):
            states[n:] = np.nan
            return
        state = after
