"""Values, not only bounds: u^{ℓ,j}(θ) exactly, and the error of smoothing, measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robust_sgld.checks import array
from robust_sgld.dro import split
from robust_sgld.dual import DualObjective
from robust_sgld.theory.frontier import Frontier

ROUNDING = 1e-13
"""A cut that lies this much above the function, as a share of max(|A|, 1), touches it."""


@dataclass(frozen=True)
class RobustValue:
    """u^{ℓ,j}(θ) and where the minimum over 𝔞 lies."""

    value: float
    """u^{ℓ,j}(θ) = min_{𝔞≥0} { Σ_k w_k max_ξ {U(θ,ξ)-𝔞|x_k-ξ|^p} + η2𝔞²/2 } + η1|θ|²/2 (eqn:u_discretised_exp)"""
    a: float
    """the minimiser 𝔞; η2𝔞 is the transport cost of the worst case"""


def inverse_iota(a: np.ndarray | float) -> np.ndarray:
    """The α ≥ 0 with ι(α) = 𝔞: arccosh(e^𝔞) = 𝔞 + log(1 + sqrt(1-e^{-2𝔞}))."""
    return np.asarray(a + np.log1p(np.sqrt(-np.expm1(-2 * np.asarray(a, dtype=np.float64)))))


def robust_value(frontier: Frontier, theta: np.ndarray) -> RobustValue:
    """u^{ℓ,j}(θ) to rounding, for one θ (d,).

    A(𝔞) = Σ_k w_k max_s {gain_k(s) - 𝔞c(s)} is convex and piecewise linear with slope -T(𝔞), T the transport cost,
    which falls from T(0) to 0. So the minimiser of A + η2𝔞²/2 lies in [0, T(0)/η2]. Each step takes the two known lines
    on either side of it and goes to the minimiser of their maximum plus η2𝔞²/2; as there are finitely many lines, it
    ends where no line is new.
    """
    theta = array("theta", theta, shape=(frontier.problem.n_params,))
    gains, eta2 = frontier.gains(theta), frontier.dro.eta2

    def line(a: float) -> _Line:
        exponent = gains - a * frontier.cost
        best = exponent.argmax(axis=1)
        worth = exponent[np.arange(len(best)), best]
        return _Line(a, float(frontier.weights @ worth), float(frontier.weights @ frontier.cost[best]))

    left = line(0.0)
    # where 𝔞 times the shortest way exceeds the largest gain nothing moves, however small η2 is
    still = 2 * (gains.max() - gains[np.isfinite(gains)].min()) / frontier.cost[1:].min(initial=np.inf)
    right = line(min(left.transport / eta2, float(still)))
    best = min(left, right, key=lambda known: known.dual(eta2))
    while True:
        a = _meeting(left, right, eta2)
        here = line(a)
        best = min(best, here, key=lambda known: known.dual(eta2))
        touches = here.worth <= max(left.at(a), right.at(a)) + ROUNDING * max(abs(here.worth), 1.0)
        if touches or not left.a < a < right.a:
            return RobustValue(best.dual(eta2) + 0.5 * frontier.dro.eta1 * float(theta @ theta), best.a)
        if eta2 * a < here.transport:
            left = here
        else:
            right = here


class _Line(NamedTuple):
    """A(𝔞) at one 𝔞 and the transport cost there: the line A - T·(· - 𝔞), which lies nowhere above A."""

    a: float
    worth: float
    transport: float

    def at(self, a: float) -> float:
        return self.worth - self.transport * (a - self.a)

    def dual(self, eta2: float) -> float:
        return self.worth + 0.5 * eta2 * self.a**2


def _meeting(left: _Line, right: _Line, eta2: float) -> float:
    """The minimiser of max{left, right} + η2𝔞²/2: where the lines meet, or the vertex T/η2 of the one that is above."""
    a = left.a
    if left.transport != right.transport:
        a = (left.at(0.0) - right.at(0.0)) / (left.transport - right.transport)
    return min(max(a, right.transport / eta2, left.a), left.transport / eta2, right.a)


@dataclass(frozen=True)
class Values:
    """The dual objective at one state θ̄ = (θ, α), with and without smoothing, and the primal value at its θ."""

    robust: RobustValue
    """u^{ℓ,j}(θ), the least that v^{ℓ,j}(θ, ·) can be"""
    v_max: float
    """v^{ℓ,j}(θ̄), with the true maximum (defn:small_v_discrete)"""
    v: float
    """v^{δ,ℓ,j}(θ̄) (defn:small_v_delta_discrete)"""
    smoothing_bound: float
    """δ log N with the N points that Ξ really holds (eqn:nesterov_ineq)"""

    @property
    def smoothing_error(self) -> float:
        """v^{ℓ,j} - v^{δ,ℓ,j}, which lies in [0, δ log N]."""
        return self.v_max - self.v

    @property
    def dual_gap(self) -> float:
        """v^{ℓ,j}(θ̄) - u^{ℓ,j}(θ) ≥ 0: what a better α would gain."""
        return self.v_max - self.robust.value


def values_at(dual: DualObjective, theta_bar: np.ndarray, data: np.ndarray) -> Values:
    """All of `Values` at one state (d+1,), for μ_{0,ℓ,j} made of the data rows."""
    theta_bar = array("theta_bar", theta_bar, shape=(dual.problem.n_params + 1,))
    atoms, weights = dual.grid.measure(data)
    frontier = Frontier(dual.problem, dual.dro, atoms, weights)
    return Values(
        robust=robust_value(frontier, split(theta_bar)[0]),
        v_max=float(dual.integral(theta_bar, atoms, weights, maximum=True)),
        v=float(dual.integral(theta_bar, atoms, weights)),
        smoothing_bound=dual.dro.delta * dual.grid.log_size,
    )
