"""The excess risk that a trial really has, beside the bound that the theorem gives it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.data import Dataset
from robust_sgld.dro import split
from robust_sgld.problems import Problem
from robust_sgld.result import TrialResult
from robust_sgld.samplers import LangevinSampler, RobustSGLD
from robust_sgld.theory.constants import TheoryConstants
from robust_sgld.theory.frontier import frontier_of
from robust_sgld.theory.lognumber import LogNumber
from robust_sgld.theory.minimum import DualMinimum, PrimalMinimum, dual_minimum, primal_minimum
from robust_sgld.theory.values import robust_value

INTEGRALS = 2000
"""About how many integrals over the data the minimisations of `measured_excess_risk` take."""
MOST_SECONDS = 20.0


@dataclass(frozen=True)
class Mean:
    """A mean over runs with its 95 % interval (Student's t); NaN where there are too few runs."""

    mean: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, values: np.ndarray) -> Mean:
        """Of the finite values; a run that diverged has none."""
        from scipy.special import stdtrit  # scipy.stats takes a second to import

        values = values[np.isfinite(values)]
        if values.size == 0:
            return cls(math.nan, math.nan, math.nan, 0)
        mean = float(values.mean())
        if values.size == 1:
            return cls(mean, math.nan, math.nan, 1)
        half = float(stdtrit(values.size - 1, 0.975) * values.std(ddof=1) / math.sqrt(values.size))
        return cls(mean, mean - half, mean + half, values.size)


@dataclass(frozen=True, eq=False)
class ExcessRisk:
    """Of the last states of R runs; NaN for a run that diverged."""

    v: np.ndarray
    """(R,) v^{δ,ℓ,j}(θ̄_n)"""
    v_max: np.ndarray
    """(R,) v^{ℓ,j}(θ̄_n), with the true maximum"""
    u: np.ndarray
    """(R,) u^{ℓ,j}(θ_n), the robust value"""
    smoothed: DualMinimum
    """z_{D,ℓ,j,δ}"""
    primal: PrimalMinimum
    """z_{P,ℓ,j}"""
    smoothing_bound: float
    """δ log N, which v^{ℓ,j} - v^{δ,ℓ,j} does not exceed (eqn:nesterov_ineq)"""
    step_ratio: float | None
    """λ/λ_max,δ; None where the problem declares no constants"""

    @property
    def smoothed_excess(self) -> Mean:
        """E[v^{δ,ℓ,j}(θ̄_n)] - z_{D,ℓ,j,δ}, the left side of prop:excess_risk_discrete."""
        return Mean.of(self.v - self.smoothed.value)

    @property
    def excess(self) -> Mean:
        """E[u^{ℓ,j}(θ_n)] - z_{P,ℓ,j}, the left side of corollary:excess_risk_discrete."""
        return Mean.of(self.u - self.primal.value)

    @property
    def smoothing_error(self) -> Mean:
        """E[v^{ℓ,j}(θ̄_n) - v^{δ,ℓ,j}(θ̄_n)]."""
        return Mean.of(self.v_max - self.v)

    @property
    def robust_value(self) -> Mean:
        """E[u^{ℓ,j}(θ_n)]."""
        return Mean.of(self.u)

    def headline(self) -> dict[str, float]:
        """The numbers that are logged with a trial."""
        numbers = {
            "excess_risk": self.excess.mean,
            "excess_risk_low": self.excess.low,
            "excess_risk_high": self.excess.high,
            "smoothed_excess_risk": self.smoothed_excess.mean,
            "smoothed_excess_risk_low": self.smoothed_excess.low,
            "smoothed_excess_risk_high": self.smoothed_excess.high,
            "robust_value": self.robust_value.mean,
            "smallest_robust_value": self.primal.value,
            "smallest_objective": self.smoothed.value,
            "smoothing_error": self.smoothing_error.mean,
            "smoothing_bound": self.smoothing_bound,
        }
        if self.step_ratio is not None:
            numbers["step_size_over_max"] = self.step_ratio
        return numbers


def measured_excess_risk(result: TrialResult, sampler: LangevinSampler, data: Dataset) -> ExcessRisk:
    """What the last states of a robust trial are worth, against the smallest values that minimisation finds.

    Notes
    -----
    Values are over μ_{0,ℓ,j}, the floored data, as the theorem has it, while the sampler sees the data as they are: a
    part of the excess is the grid's, and no number of updates removes it.
    """
    if not isinstance(sampler, RobustSGLD):
        raise InvalidInput(f"an excess risk is measured for robust_sgld, not for {sampler.name}, which has no dual.")
    dual = sampler.dual
    frontier = frontier_of(sampler.problem, sampler.dro, data.train)
    seconds = 1e-6 * dual.engine.microseconds(dual.problem, dual.dro) * len(frontier.weights) * INTEGRALS
    if seconds > MOST_SECONDS:
        raise InvalidInput(
            f"finding the smallest objective with engine={dual.engine.name} would take about {seconds:.0f} s, more "
            f"than the {MOST_SECONDS:g} that a trial spends on it."
        )
    states = result.states[:, -1]
    finite = np.isfinite(states).all(axis=1)
    v, v_max, u = np.full((3, len(states)), np.nan)
    if finite.any():
        v[finite] = dual.integral(states[finite], frontier.atoms, frontier.weights)
        v_max[finite] = dual.integral(states[finite], frontier.atoms, frontier.weights, maximum=True)
        u[finite] = [robust_value(frontier, theta).value for theta in split(states[finite])[0]]
    known = states[[int(np.nanargmin(v))]] if finite.any() else None
    smoothed = dual_minimum(dual, frontier.atoms, frontier.weights, known=known)
    primal = primal_minimum(dual, frontier, smoothed)
    return ExcessRisk(v, v_max, u, smoothed, primal, dual.dro.delta * dual.grid.log_size, _step_ratio(sampler))


def _step_ratio(sampler: RobustSGLD) -> float | None:
    if type(sampler.problem).constants is Problem.constants:
        return None
    # λ_max,δ depends on neither β nor the start
    constants = TheoryConstants.of(sampler.problem, sampler.dro, beta=1.0, theta0=0.0)
    return float(LogNumber.of(sampler.step_size) / constants.step_max)
