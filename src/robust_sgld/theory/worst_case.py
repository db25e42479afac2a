"""The worst case: where the adversary moves the data, what that costs it, and what it gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robust_sgld.checks import InvalidInput, array, real
from robust_sgld.data import Dataset
from robust_sgld.dro import DRO
from robust_sgld.losses import LossEvaluator
from robust_sgld.problems import Problem
from robust_sgld.theory.frontier import Frontier, frontier_of
from robust_sgld.theory.values import RobustValue, robust_value

TIE = 1e-9
"""Places whose worth to the adversary differs by less than this share are equally good to it."""


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The distribution that attains max_ξ {U(θ,ξ) - 𝔞|x_k-ξ|^p} for every atom x_k, as moves of mass.

    At the best 𝔞 it attains the supremum of defn:u_discrete: it is the adversary's answer to θ.
    """

    theta: np.ndarray
    a: float
    source: np.ndarray
    """(K, m) from where"""
    target: np.ndarray
    """(K, m) to where"""
    mass: np.ndarray
    """(K,) how much; sums to 1"""
    transport_cost: float
    """Σ mass |source-target|^p"""
    loss: float
    """∫U(θ,·) under the worst case"""
    floored_loss: float
    """∫U(θ,·)dμ_{0,ℓ,j}: the training data on the grid, before the adversary"""
    empirical_loss: float
    """the mean of U(θ,·) over the training rows as they are"""
    clean_loss: float
    """the mean of U(θ,·) over the test rows"""
    penalty: float
    """(Σ mass |source-target|^p)² / (2η2)"""
    robust: RobustValue
    """u^{ℓ,j}(θ)"""
    regulariser: float
    """η1|θ|²/2"""

    @property
    def value(self) -> float:
        """loss - penalty + regulariser; never above u^{ℓ,j}(θ), and equal to it at the best 𝔞."""
        return self.loss - self.penalty + self.regulariser

    @property
    def moved(self) -> float:
        """The share of the mass that does not stay where it was."""
        return float(self.mass[(self.source != self.target).any(axis=1)].sum())

    def to_dict(self) -> dict[str, float]:
        """The numbers, for a table."""
        return {
            "a": self.a,
            "clean_loss": self.clean_loss,
            "empirical_loss": self.empirical_loss,
            "floored_loss": self.floored_loss,
            "worst_case_loss": self.loss,
            "transport_cost": self.transport_cost,
            "penalty": self.penalty,
            "regulariser": self.regulariser,
            "worst_case_value": self.value,
            "robust_value": self.robust.value,
            "moved": self.moved,
        }


def worst_case(problem: Problem, dro: DRO, theta: np.ndarray, data: Dataset, a: float | None = None) -> WorstCase:
    """The maximising distribution at (θ, 𝔞); 𝔞 is the minimiser of eqn:u_discretised_exp unless given.

    Where an atom has several best places, at different costs, its mass is split between the nearest and the farthest of
    them, by the same share for every atom, such that the transport cost comes as near to η2𝔞 as it can. At the best 𝔞
    it reaches it: that is when the distribution attains the supremum. Places at the same cost get equal parts.
    """
    theta = array("theta", theta, shape=(problem.n_params,))
    frontier = frontier_of(problem, dro, data.train)
    robust = robust_value(frontier, theta)
    a = robust.a if a is None else real("a", a)
    if a < 0:
        raise InvalidInput(f"a must not be negative, got {a:g}.")
    nearest, farthest = _best_distances(frontier, theta, a)
    low = frontier.weights @ frontier.cost[nearest]
    high = frontier.weights @ frontier.cost[farthest]
    far = 0.0 if high == low else float(np.clip((dro.eta2 * a - low) / (high - low), 0.0, 1.0))
    source, target, mass = _moves(frontier, theta, nearest, farthest, far)
    cost = float(mass @ np.linalg.norm(source - target, axis=1) ** dro.p)
    return WorstCase(
        theta=theta,
        a=a,
        source=source,
        target=target,
        mass=mass,
        transport_cost=cost,
        loss=_mean_loss(problem, theta, target, mass),
        floored_loss=_mean_loss(problem, theta, frontier.atoms, frontier.weights),
        empirical_loss=float(LossEvaluator(problem, data.train).losses(theta[None])[0]),
        clean_loss=float(LossEvaluator(problem, data.test).losses(theta[None])[0]),
        penalty=cost**2 / (2 * dro.eta2),
        robust=robust,
        regulariser=0.5 * dro.eta1 * float(theta @ theta),
    )


def _best_distances(frontier: Frontier, theta: np.ndarray, a: float) -> tuple[np.ndarray, np.ndarray]:
    """(A,) the smallest and the largest squared distance at which each atom's maximum is attained."""
    worth = frontier.gains(theta) - a * frontier.cost
    best = worth.max(axis=1, keepdims=True)
    tied = worth >= best - TIE * np.maximum(np.abs(best), 1.0)
    return tied.argmax(axis=1), worth.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)


def _moves(
    frontier: Frontier, theta: np.ndarray, nearest: np.ndarray, farthest: np.ndarray, far: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    gains, losses = frontier.gains(theta), frontier.losses(theta)
    sources, targets, masses = [], [], []
    for k, weight in enumerate(frontier.weights):
        shares = {nearest[k]: 1.0} if nearest[k] == farthest[k] else {nearest[k]: 1.0 - far, farthest[k]: far}
        for squared, share in shares.items():
            if share == 0.0:
                continue
            places = frontier.points_at(k, losses, gains[k, squared], squared)
            sources.append(np.tile(frontier.atoms[k], (len(places), 1)))
            targets.append(places)
            masses.append(np.full(len(places), weight * share / len(places)))
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(masses)


def _mean_loss(problem: Problem, theta: np.ndarray, x: np.ndarray, weights: np.ndarray) -> float:
    import torch

    with torch.no_grad():
        return float(weights @ problem.U(torch.tensor(theta), torch.tensor(x)).numpy())


@dataclass(frozen=True, eq=False)
class BeforeAndAfter:
    """The data before and after the adversary, as masses on the grid's axis (n points, m columns)."""

    columns: tuple[str, ...]
    axis: np.ndarray
    """(n,)"""
    before: np.ndarray
    """(m, n) each column's mass at each grid value"""
    after: np.ndarray
    before_joint: np.ndarray
    """(m-1, n, n) the joint mass of each other column (first index along the axis) and the last column"""
    after_joint: np.ndarray
    displacement: np.ndarray
    """(m,) the mean of |target - source| column by column"""


def before_and_after(case: WorstCase, dro: DRO, columns: tuple[str, ...]) -> BeforeAndAfter:
    """The numbers of the figure 'data before and after the adversary': each column alone, and with the last one (y)."""
    grid = dro.grid(case.source.shape[1])
    n, m = len(grid.axis), grid.dim
    places = [np.rint((points - grid.axis[0]) / grid.step).astype(int) for points in (case.source, case.target)]
    alone = [np.array([np.bincount(at[:, i], case.mass, n) for i in range(m)]) for at in places]
    joint = [
        np.array([np.bincount(at[:, i] * n + at[:, -1], case.mass, n * n).reshape(n, n) for i in range(m - 1)])
        for at in places
    ]
    return BeforeAndAfter(
        columns=columns,
        axis=grid.axis,
        before=alone[0],
        after=alone[1],
        before_joint=joint[0],
        after_joint=joint[1],
        displacement=case.mass @ np.abs(case.target - case.source),
    )
