"""The error of the grid, measured by refining it, against its bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO
from robust_sgld.problems import Problem
from robust_sgld.result import TrialResult
from robust_sgld.samplers import LangevinSampler, RobustSGLD
from robust_sgld.theory.constants import TheoryConstants, mesh_factor
from robust_sgld.theory.frontier import Frontier
from robust_sgld.theory.values import robust_value

QUICK_VISITS = 500_000_000
"""of grid points, on the meshes that `trial_quadrature` takes: half a second"""
REFINEMENTS = (-1, 0, 1, 2)
"""the meshes that it takes, as steps from the trial's own j"""


@dataclass(frozen=True)
class Level:
    """One mesh of `quadrature_errors`."""

    j: int
    atoms: int
    value: float
    """u^{ℓ,j}(θ)"""
    error: float
    """|u^{ℓ,j}(θ) - u^{ℓ,j'}(θ)| with j' the finest mesh of the list"""
    bound: float
    """what the theory allows that difference to be: the bounds on |u - u^{ℓ,j}| and |u - u^{ℓ,j'}| together; NaN where
    the problem declares no constants"""


def quadrature_errors(
    problem: Problem, dro: DRO, theta: np.ndarray, data: np.ndarray, levels: Sequence[int]
) -> list[Level]:
    """u^{ℓ,j}(θ) on ever finer grids j in `levels`, against the bound.

    |u(θ) - u^{ℓ,j}(θ)| ≤ √m/2^j (C̃4 + ℭ4|θ|) (eqn:primal_diff_fixed_theta). u itself is not known, so the finest grid
    stands in for it and its own bound is added.
    """
    meshes = [replace(dro, j=j) for j in sorted(levels)]
    measures = [mesh.grid(problem.dim).measure(data) for mesh in meshes]
    found = [
        robust_value(Frontier(problem, mesh, *measure), theta).value
        for mesh, measure in zip(meshes, measures, strict=True)
    ]
    declared = type(problem).constants is not Problem.constants
    bounds = [quadrature_bound(problem, mesh, theta) if declared else math.nan for mesh in meshes]
    return [
        Level(mesh.j, len(atoms), value, abs(value - found[-1]), bound + bounds[-1])
        for mesh, (atoms, _), value, bound in zip(meshes, measures, found, bounds, strict=True)
    ]


def quadrature_bound(problem: Problem, dro: DRO, theta: np.ndarray) -> float:
    """√m/2^j (C̃4 + ℭ4|θ|), which |u(θ) - u^{ℓ,j}(θ)| does not exceed (eqn:primal_diff_fixed_theta)."""
    c = TheoryConstants.of(problem, dro, beta=1.0, theta0=0.0)  # neither β nor the start enters C̃4 and ℭ4
    return float(mesh_factor(problem.dim, dro.j) * (c.C4_tilde + c.C4_fraktur * float(np.linalg.norm(theta))))


def quadrature_numbers(levels: Sequence[Level], j: int) -> dict[str, float]:
    """What is logged with a trial on the mesh j: u on every mesh; the error and its bound where a finer mesh is known.

    "robust_value_at_j0", "robust_value_at_j1", …, "quadrature_error", "quadrature_bound".
    """
    numbers = {f"robust_value_at_j{level.j}": level.value for level in levels}
    for level in levels[:-1]:
        if level.j == j:
            numbers |= {"quadrature_error": level.error, "quadrature_bound": level.bound}
    return numbers


def trial_quadrature(result: TrialResult, sampler: LangevinSampler, data: np.ndarray) -> list[Level]:
    """`quadrature_errors` of a robust trial at the mean of its last θ, on its mesh j and on j-1, j+1, j+2.

    Meshes that do not fit Ξ or that take more than half a second are left out; without its own there are none.
    """
    final = result.theta[:, -1]
    final = final[np.isfinite(final).all(axis=1)]
    if not isinstance(sampler, RobustSGLD) or not len(final):
        return []
    problem, dro = sampler.problem, sampler.dro
    levels = [j for step in REFINEMENTS if _quick(problem, dro, j := dro.j + step, data)]
    return quadrature_errors(problem, dro, final.mean(axis=0), data, levels) if dro.j in levels else []


def _quick(problem: Problem, dro: DRO, j: int, data: np.ndarray) -> bool:
    try:
        grid = replace(dro, j=j).grid(problem.dim)
        Frontier.check(grid, grid.measure(data)[0], most_visits=QUICK_VISITS)
    except InvalidInput:
        return False
    return True
