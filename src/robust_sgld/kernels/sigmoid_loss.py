"""Mean squared loss of a sigmoid neuron over a fixed data set, at every state of a long path.

`mean_losses` evaluates every state. `certified_losses` gives every state's loss with a rigorous error bound at a
fraction of the cost: the loss is expanded around an anchor to third order in θ, and a new anchor is made when the
remainder grows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from robust_sgld.kernels.elementary import EXACT, fast_exp
from robust_sgld.kernels.vectors import lane_dot, lane_sum

BLOCK = 512


@njit(**EXACT)
def _linear_index(theta, columns, start, stop, t):
    """t_i = ⟨w, z_i⟩ + b for rows start … stop of the data, given by columns (m, n) with y last."""
    d = theta.size
    bias = theta[d - 1]
    for i in range(stop - start):
        t[i] = bias
    for a in range(d - 1):
        w = theta[a]
        z = columns[a, start:stop]
        for i in range(stop - start):
            t[i] += w * z[i]


@njit(**EXACT)
def _sum_of_squares(t, y, count):
    """Σ (y - σ(t))²; t is overwritten."""
    for i in range(count):
        residual = y[i] - 1.0 / (1.0 + fast_exp(-t[i]))
        t[i] = residual * residual
    return lane_sum(t, count)


@njit(**EXACT)
def mean_loss(theta, columns):
    """(1/n) Σ (y_i - σ(⟨w,z_i⟩+b))², in blocks that stay in the first-level cache."""
    n = columns.shape[1]
    t = np.empty(BLOCK)
    y = columns[theta.size - 1]
    total = 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        _linear_index(theta, columns, start, stop, t)
        total += _sum_of_squares(t, y[start:stop], stop - start)
    return total / n


@njit(**EXACT)
def mean_losses(thetas, columns, losses):
    """`mean_loss` at every row of thetas."""
    for i in range(len(thetas)):
        losses[i] = mean_loss(thetas[i], columns)


@njit(**EXACT)
def _derivatives(t, y, count, g0, g1, g2, g3):
    """g = (y-σ(t))² and its first three derivatives in t, divided by 0!, 1!, 2!, 3!."""
    for i in range(count):
        s = 1.0 / (1.0 + fast_exp(-t[i]))
        r = y[i] - s
        s1 = s * (1.0 - s)
        s2 = s1 * (1.0 - 2.0 * s)
        s3 = s1 * (1.0 - 6.0 * s1)
        g0[i] = r * r
        g1[i] = -2.0 * r * s1
        g2[i] = s1 * s1 - r * s2
        g3[i] = s1 * s2 - r * s3 * (1.0 / 3.0)


@njit(**EXACT)
def loss_and_gradient(theta, columns, gradient):
    """`mean_loss` at one θ, and its gradient."""
    d, n = columns.shape
    t, work = np.empty(n), np.empty((4, n))
    _linear_index(theta, columns, 0, n, t)
    _derivatives(t, columns[d - 1], n, work[0], work[1], work[2], work[3])
    for a in range(d - 1):
        gradient[a] = lane_dot(columns[a], work[1], n) / n
    gradient[d - 1] = work[1].mean()
    return work[0].mean()


@njit(**EXACT)
def _expand(theta, columns, monomials, orders, multiplicity, derivatives, coefficients):
    """Taylor coefficients of the mean loss at theta, one for each monomial in Δ."""
    n = columns.shape[1]
    t = derivatives[4]
    _linear_index(theta, columns, 0, n, t)
    _derivatives(t, columns[theta.size - 1], n, derivatives[0], derivatives[1], derivatives[2], derivatives[3])
    for q in range(orders.size):
        coefficients[q] = multiplicity[q] * lane_dot(monomials[q], derivatives[orders[q]], n) / n


@njit(**EXACT)
def certified_losses(
    thetas, columns, monomials, orders, multiplicity, factors, second_moment, reach, fourth, tolerance, loss, radius
):
    """loss[i] ± radius[i] contains the mean loss at thetas[i].

    With Δ = θ - anchor and z̃ = (z, 1) the remainder of third order is at most
    (sup|g''''|/24) · mean (Δ·z̃)^4 ≤ (fourth/24) · (Δᵀ S Δ) · (max_i |Δ·z̃_i|)², S = mean z̃ z̃ᵀ, and
    max |Δ·z̃| ≤ Σ |Δ_a| reach_a.
    """
    d = thetas.shape[1]
    n = columns.shape[1]
    derivatives = np.empty((5, n))
    coefficients = np.zeros(orders.size)
    delta = np.empty(d + 1)
    anchor = thetas[0].copy()
    have_anchor = False
    for i in range(len(thetas)):
        bound, sup = np.inf, 0.0
        if have_anchor:
            for a in range(d):
                delta[a] = thetas[i, a] - anchor[a]
                sup += abs(delta[a]) * reach[a]
            quadratic = 0.0
            for a in range(d):
                row = 0.0
                for c in range(d):
                    row += second_moment[a, c] * delta[c]
                quadratic += delta[a] * row
            bound = fourth / 24.0 * max(quadratic, 0.0) * sup * sup
        # beyond |Δ·z̃| = 1 terms may cancel (collinear columns) and 1e-13 would no longer cover their rounding
        if not (bound <= tolerance and sup <= 1.0):
            anchor[:] = thetas[i]
            _expand(anchor, columns, monomials, orders, multiplicity, derivatives, coefficients)
            have_anchor = True
            loss[i] = coefficients[0]
            radius[i] = 1e-13 * (1.0 + abs(loss[i]))
            if not math.isfinite(loss[i]):
                have_anchor = False
            continue
        delta[d] = 1.0
        value = 0.0
        for q in range(orders.size):
            value += coefficients[q] * delta[factors[q, 0]] * delta[factors[q, 1]] * delta[factors[q, 2]]
        loss[i] = value
        radius[i] = bound + 1e-13 * (1.0 + abs(value))
