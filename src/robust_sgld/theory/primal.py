"""The primal of a small grid, solved as it stands: the check that strong duality holds in numbers."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from robust_sgld.checks import InvalidInput, array
from robust_sgld.dro import DRO
from robust_sgld.problems import Problem
from robust_sgld.theory.frontier import frontier_of

MAX_COUPLING = 200_000
"""The most entries (atoms times grid points) of a coupling."""


def primal_value(problem: Problem, dro: DRO, theta: np.ndarray, data: np.ndarray) -> float:
    """sup_μ { ∫U dμ - d_c(μ_{0,ℓ,j},μ)²/(2η2) } + η1|θ|²/2 over measures on the grid (defn:u_discrete).

    Over couplings π of μ_{0,ℓ,j} with anything, since the cheapest coupling is the best one:

        maximise Σ π_{ki} U_i - T²/(2η2)  subject to  Σ_i π_{ki} = w_k,  π ≥ 0,  T = Σ π_{ki} |x_k-ξ_i|^p.

    The square is replaced by its tangents, one more a round, each round a linear program. Its value is an upper bound,
    the true objective at its solution a lower one, and the rounds end when they meet.
    """
    theta = array("theta", theta, shape=(problem.n_params,))
    frontier = frontier_of(problem, dro, data)
    atoms, weights, points = frontier.atoms, frontier.weights, frontier.grid.points()
    k, n = len(atoms), len(points)
    if k * n > MAX_COUPLING:
        raise InvalidInput(
            f"a coupling of {k} atoms and {n} grid points is too large to solve; at most {MAX_COUPLING}."
        )
    cost = np.linalg.norm(atoms[:, None] - points, axis=2).ravel() ** dro.p
    # variables: π (k·n), then q ≥ T²/(2η2)
    gain = np.append(np.tile(frontier.losses(theta), k), -1.0)
    rows = csr_array((np.ones(k * n), (np.repeat(np.arange(k), n), np.arange(k * n))), shape=(k, k * n + 1))
    tangents: list[float] = [0.0]
    while True:
        at = np.array(tangents)
        # q ≥ t²/(2η2) + t (T-t)/η2 at each tangent point t
        cuts = np.column_stack([at[:, None] * cost / dro.eta2, -np.ones(len(at))])
        solution = linprog(-gain, A_ub=cuts, b_ub=at**2 / (2 * dro.eta2), A_eq=rows, b_eq=weights, method="highs")
        if not solution.success:
            raise RuntimeError(f"the linear program of the primal failed: {solution.message}")
        coupling = solution.x[:-1]
        transport = float(cost @ coupling)
        lower = float(gain[:-1] @ coupling) - transport**2 / (2 * dro.eta2)
        if -solution.fun - lower <= 1e-9 * max(1.0, abs(lower)) or transport in tangents:
            return lower + 0.5 * dro.eta1 * float(theta @ theta)
        tangents.append(transport)
