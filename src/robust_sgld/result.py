"""What the runs of a trial say: arrays over runs and kept updates, headline numbers, bands."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from robust_sgld.diagnostics import ess_bulk, r_hat
from robust_sgld.dro import iota, split
from robust_sgld.npz import read_arrays, write_arrays


@dataclass(frozen=True, eq=False)
class TrialResult:
    """Arrays over runs (R), kept updates (T) and kept updates with an objective (T'). NaN where there is nothing.

    `n_es` is 0 for a run that never entered the band, `diverged_at` is 0 for a run that stayed finite.
    """

    sampler: str
    engine: str
    n_iter: int
    seed: int
    reference: float
    """the test loss that the band is around"""
    tolerance: float
    theta_star: np.ndarray
    """(d,) NaN where it is not known"""
    clean_minimiser: np.ndarray
    """(d,) the minimiser of the test risk"""
    clean_minimum: float
    """the test risk there: the smallest test loss that any θ can have"""
    wall_seconds: float
    """of the whole trial, all workers together; of all its parts, where it was interrupted"""
    workers: int
    runs: np.ndarray
    """(R,) run numbers"""
    axis: np.ndarray
    objective_axis: np.ndarray
    states: np.ndarray
    """(R, T, state_dim)"""
    losses: np.ndarray
    """(R, T)"""
    objective: np.ndarray
    """(R, T'), v^{δ,ℓ,j}; no columns for a sampler without a dual"""
    n_es: np.ndarray
    loss_at_n_es: np.ndarray
    closest_loss: np.ndarray
    smallest_loss: np.ndarray
    final_loss: np.ndarray
    inside_after_hit: np.ndarray
    """(R,) share of the updates after n_es inside the band"""
    seconds: np.ndarray
    """(R,) of the sampling alone: processor time on one core; under torch, which takes several, time that passed"""
    loss_seconds: np.ndarray
    """(R,) of losses and objective, likewise"""
    diverged_at: np.ndarray

    @property
    def reached(self) -> np.ndarray:
        """(R,) whether a run entered the band."""
        return self.n_es > 0

    @property
    def theta(self) -> np.ndarray:
        """(R, T, d)"""
        return self.states[..., : len(self.clean_minimiser)]

    @property
    def iota_alpha(self) -> np.ndarray:
        """(R, T) ι(α), the dual variable 𝔞; no columns for a sampler without α."""
        if self.states.shape[-1] == len(self.clean_minimiser):
            return np.empty((len(self.runs), 0))
        return iota(split(self.states)[1])

    @np.errstate(over="ignore")  # distances of runs that are far away
    def headline(self) -> dict[str, float]:
        """The numbers that a list of trials is compared by."""
        final = self.theta[:, -1]
        late = self.theta[:, self.axis > self.n_iter / 2]
        late = late[np.isfinite(late).all(axis=(1, 2))]
        numbers = {
            "n_es": float(self.n_es.max()) if self.reached.all() else math.nan,
            "n_es_median": float(np.median(self.n_es[self.reached])) if self.reached.any() else math.nan,
            "reached_fraction": float(self.reached.mean()),
            "missed": float((~self.reached).sum()),
            "diverged": float((self.diverged_at > 0).sum()),
            "final_mse_mean": _mean(self.final_loss),
            "final_mse_std": _std(self.final_loss),
            "smallest_mse_mean": _mean(self.smallest_loss),
            "inside_after_hit": _mean(self.inside_after_hit),
            "seconds_per_run": float(self.seconds.mean()),
            "loss_seconds_per_run": float(self.loss_seconds.mean()),
            "wall_seconds": self.wall_seconds,
            "distance_to_theta_star": _mean(np.linalg.norm(final - self.theta_star, axis=1)),
            "distance_to_clean_minimiser": _mean(np.linalg.norm(final - self.clean_minimiser, axis=1)),
            "reference_mse": self.reference,
            "clean_minimum_mse": self.clean_minimum,
        }
        if self.iota_alpha.size:
            numbers["final_iota"] = _mean(self.iota_alpha[:, -1])
            numbers["final_objective"] = _mean(self.objective[:, -1])
        if late.shape[0] > 0 and late.shape[1] >= 4:
            # NumPy's, because max() and min() lose a NaN or keep it as it happens to stand
            numbers["r_hat_max"] = float(np.max([r_hat(late[..., i]) for i in range(late.shape[-1])]))
            numbers["ess_bulk_min"] = float(np.min([ess_bulk(late[..., i]) for i in range(late.shape[-1])]))
        return numbers

    def save(self, path: Path) -> None:
        """Everything, as an npz without pickle."""
        write_arrays(path, {f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, path: Path) -> TrialResult:
        """What `save` wrote; refuses anything else."""
        stored = read_arrays(path, [f.name for f in fields(cls)], "a stored trial")
        values: dict[str, Any] = {name: array.item() if array.ndim == 0 else array for name, array in stored.items()}
        return cls(**values)


def bands(paths: np.ndarray) -> dict[str, np.ndarray]:
    """Mean, median and 5–95 % over the runs (axis 0) of paths (R, T), each (T,).

    A run is left out where it is not finite; where none is finite, all four are NaN.
    """
    alive = np.isfinite(paths)
    known = alive.any(axis=0)
    result = {name: np.full(paths.shape[1:], np.nan) for name in ("mean", "median", "q05", "q95")}
    if not known.any():
        return result
    kept = np.where(alive, paths, np.nan)[:, known]
    result["mean"][known] = np.nanmean(kept, axis=0)
    # NumPy takes quantiles around NaN column by column, in Python: only where a run is left out
    quantiles = np.quantile if alive.all() else np.nanquantile
    levels = {"q05": 0.05, "median": 0.5, "q95": 0.95}
    for name, values in zip(levels, quantiles(kept, list(levels.values()), axis=0), strict=True):
        result[name][known] = values
    return result


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def _std(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.std(ddof=1)) if finite.size > 1 else math.nan
