"""Where the adversary moves the data: the softmax-weighted mean of the grid, seen from each atom of μ_{0,ℓ,j}."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robust_sgld.blas import one_blas_thread
from robust_sgld.data import Dataset
from robust_sgld.dro import DRO, iota, split
from robust_sgld.problems import SigmoidRegression
from robust_sgld.report import published
from robust_sgld.report.trials import ReportTrial, Setting
from robust_sgld.result import TrialResult

MOST_POINTS = 1_000_000
"""of a grid that is enumerated here"""


@dataclass(frozen=True, eq=False)
class Displacement:
    """At the last state of one run."""

    trial: ReportTrial
    state: np.ndarray
    """(d+1,)"""
    atoms: np.ndarray
    """(a, m)"""
    weights: np.ndarray
    """(a,)"""
    moved: np.ndarray
    """(a, m) Σ_j F_j ξ_j / Σ_j F_j"""
    cost: np.ndarray
    """(a,) Σ_j F_j |x-ξ_j|^p / Σ_j F_j"""
    outlier_share: np.ndarray
    """(a,) of the rows of an atom that are outliers; 0 where this is not known"""

    @property
    def iota_alpha(self) -> float:
        """The price 𝔞 = ι(α) of moving mass."""
        return float(iota(split(self.state)[1]))

    def index(self, points: np.ndarray) -> np.ndarray:
        """⟨w,z⟩+b_0 of points (…, m)."""
        theta = split(self.state)[0]
        return points[..., :-1] @ theta[:-1] + theta[-1]


def typical_run(result: TrialResult) -> int | None:
    """The run whose final loss is the (lower) median; None if all diverged."""
    finite = np.flatnonzero(np.isfinite(result.final_loss))
    order = finite[np.argsort(result.final_loss[finite], kind="stable")]
    return int(order[(len(order) - 1) // 2]) if order.size else None


def dro_of(trial: ReportTrial) -> DRO:
    """The trial's own DRO; what its parameters do not say is the paper's."""

    def known(key: str) -> Setting:
        value = trial.setting(key)
        return published.SETTINGS[key] if value is None else value

    eta1, delta, p, ell, j, support = (known(f"dro.{n}") for n in ("eta1", "delta", "p", "ell", "j", "support"))
    return DRO(eta1, trial.eta2, delta, p, ell, j, support)  # type: ignore[arg-type]  # DRO checks them


def displacement(trial: ReportTrial, data: Dataset) -> Displacement | None:
    """For the typical run of a robust trial of the sigmoid regression; None where that is not possible.

    F_j = exp[(U(θ,ξ_j) - ι(α)|x-ξ_j|^p)/δ] for x an atom of μ_{0,ℓ,j} (defn:v_delta), summed literally.
    """
    import torch

    run = typical_run(trial.result)
    if not trial.has_dual or not trial.is_sigmoid or run is None:
        return None
    problem, dro = SigmoidRegression(data.dim), dro_of(trial)
    grid = dro.grid(data.dim)
    if grid.size > MOST_POINTS:
        return None
    atoms, weights = grid.measure(data.train)
    outlier = np.zeros(len(atoms))
    if data.outlier is not None:
        _, atom = np.unique(grid.floor(data.train), axis=0, return_inverse=True)
        outlier = np.bincount(atom.ravel(), weights=data.outlier, minlength=len(atoms)) / np.bincount(atom.ravel())
    state = trial.result.states[run, -1]
    theta, alpha = split(state)
    points = grid.points()
    u = problem.U(torch.tensor(theta), torch.tensor(points)).numpy()
    moved, cost = np.empty_like(atoms), np.empty(len(atoms))
    with one_blas_thread():
        for i, x in enumerate(atoms):
            # |x-ξ_j|² as an outer sum over the axes, in the order of `points`
            squared = functools.reduce(np.add.outer, [(grid.axis - x_i) ** 2 for x_i in x]).ravel()
            distance = squared if dro.p == 2 else squared ** (dro.p / 2)
            exponent = (u - iota(alpha) * distance) / dro.delta
            weight = np.exp(exponent - exponent.max())
            weight /= weight.sum()
            moved[i], cost[i] = weight @ points, weight @ distance
    return Displacement(trial, state, atoms, weights, moved, cost, outlier)


def displacements(trials: Sequence[ReportTrial], data: Dataset) -> list[Displacement]:
    """Of the trials with the smallest, a middle and the largest η₂, in this order; fewer where there are fewer."""
    robust = sorted((trial for trial in trials if trial.has_dual), key=lambda trial: trial.eta2 or 0.0)
    shown = [robust[i] for i in sorted({0, len(robust) // 2, len(robust) - 1})] if robust else []
    return [found for trial in shown if (found := displacement(trial, data)) is not None]
