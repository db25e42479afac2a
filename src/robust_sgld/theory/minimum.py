"""z_{D,ℓ,j,δ} and z_{D,ℓ,j} by deterministic minimisation from many starts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from robust_sgld.blas import one_blas_thread
from robust_sgld.checks import array, integer
from robust_sgld.dro import iota, split
from robust_sgld.dual import DualObjective
from robust_sgld.theory.frontier import Frontier
from robust_sgld.theory.values import inverse_iota, robust_value


@dataclass(frozen=True, eq=False)
class DualMinimum:
    """The smallest v^{δ,ℓ,j} that was found, and what every start ended at."""

    value: float
    """z_{D,ℓ,j,δ}, or above it if no start found the global minimum"""
    theta_bar: np.ndarray
    """(d+1,) the minimiser, with α ≥ 0"""
    found: np.ndarray
    """(starts,) the values that the starts ended at, ascending"""

    @property
    def agreement(self) -> float:
        """The share of the starts that ended at the smallest value, to 1e-6."""
        return float((self.found <= self.value + 1e-6).mean())


def dual_minimum(
    dual: DualObjective,
    atoms: np.ndarray,
    weights: np.ndarray,
    *,
    starts: int = 12,
    seed: int = 0,
    known: np.ndarray | None = None,
) -> DualMinimum:
    """inf v^{δ,ℓ,j} (eqn:dro_problem_dual_discrete_smoothed) by L-BFGS-B over (θ, 𝔞) with 𝔞 = ι(α) ≥ 0.

    In 𝔞 the objective is convex, where in α it has a stationary point at 0. The gradient is
    (η1θ + Σ_k w_k E_F[∇_θU], η2𝔞 - Σ_k w_k E_F[|x_k-ξ|^p]), the mean over the atoms of H without the factor ι'(α).

    Parameters
    ----------
    starts : how many seeded starts, θ normal with deviations 1 and 3 in turn and 𝔞 exponential
    known : (k, d+1) states to start from beside them, such as the last states of a trial; 0 where there are none
    """
    d, dro = dual.problem.n_params, dual.dro
    stream = np.random.default_rng(integer("seed", seed, least=0))
    points = [] if known is not None else [np.zeros(d + 1)]
    for i in range(integer("starts", starts, least=0)):
        points.append(np.append(stream.standard_normal(d) * (1.0, 3.0)[i % 2], stream.exponential()))
    if known is not None:
        for state in array("known", known, shape=(None, d + 1)):
            points.append(np.append(split(state)[0], iota(split(state)[1])))

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        theta, a = split(point)
        pairs = np.tile(np.append(theta, inverse_iota(a)), (len(atoms), 1))
        value, grad_u, cost = dual.engine.log_sum(pairs, atoms)
        v = weights @ value * dro.delta - dro.delta * dual.grid.log_size
        v += 0.5 * dro.eta1 * theta @ theta + 0.5 * dro.eta2 * a**2
        return float(v), np.append(dro.eta1 * theta + weights @ grad_u, dro.eta2 * a - weights @ cost)

    bounds = [(None, None)] * d + [(0.0, None)]
    options = {"ftol": 1e-13, "gtol": 1e-9, "maxiter": 500}
    with one_blas_thread():
        ends = [minimize(objective, p, jac=True, method="L-BFGS-B", bounds=bounds, options=options) for p in points]
    best = min(ends, key=lambda end: end.fun)
    theta, a = split(best.x)
    return DualMinimum(
        float(best.fun), np.append(theta, inverse_iota(a)), np.sort(np.array([float(end.fun) for end in ends]))
    )


@dataclass(frozen=True, eq=False)
class PrimalMinimum:
    """z_{P,ℓ,j} = inf u^{ℓ,j} between two numbers."""

    value: float
    """the smallest u^{ℓ,j}(θ) that was found: never below z_{P,ℓ,j}"""
    lower: float
    """inf v^{δ',ℓ,j} at a small δ', which is at most z_{P,ℓ,j} (eqn:nesterov_ineq) if its minimum is the global one"""
    theta: np.ndarray
    """(d,) where u^{ℓ,j} is `value`"""


SHRINK = (0.1, 0.01)
"""The δ', as shares of δ, through which the smoothed minimiser is followed towards δ = 0."""


def primal_minimum(dual: DualObjective, frontier: Frontier, smoothed: DualMinimum) -> PrimalMinimum:
    """inf u^{ℓ,j}, which has kinks, by following the minimiser of v^{δ',ℓ,j} as δ' falls to δ/100."""
    at = smoothed
    candidates = []
    for share in SHRINK:
        smoother = DualObjective(dual.problem, replace(dual.dro, delta=share * dual.dro.delta), dual.engine.name)
        at = dual_minimum(smoother, frontier.atoms, frontier.weights, starts=0, known=at.theta_bar[None])
        theta = split(at.theta_bar)[0]
        candidates.append((robust_value(frontier, theta).value, theta))
    value, theta = min(candidates, key=lambda candidate: candidate[0])
    return PrimalMinimum(value, at.value, theta)
