"""Choosing parameters without a clean test set: losses of training rows by models that have not seen them.

The held-out rows are as contaminated as the others. Their mean loss rewards a model that fits the outliers, so it is
given beside two that leave the largest losses out: the trimmed mean and the median.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from robust_sgld.checks import InvalidInput, integer, rate
from robust_sgld.problems import Problem
from robust_sgld.rng import checked_seed, draws
from robust_sgld.samplers import LangevinSampler

CRITERIA = ("mean", "trimmed", "median")


def tail_mean(paths: np.ndarray) -> np.ndarray:
    """The mean of the second half of paths (R, n, k) over runs and updates, (k,): what is taken as the estimate."""
    return paths[:, paths.shape[1] // 2 :].mean(axis=(0, 1))


def fold_numbers(rows: int, folds: int, seed: int) -> np.ndarray:
    """(rows,) the fold of each row: 0 … folds-1, in sizes that differ by at most one, at random."""
    folds, rows = integer("folds", folds, least=2), integer("rows", rows, least=1)
    if folds > rows:
        raise InvalidInput(f"folds must be at most the number of rows, got {folds} for {rows} rows.")
    numbers = np.arange(rows) % folds
    return np.random.default_rng(checked_seed(seed)).permutation(numbers)


def held_out_losses(
    sampler: LangevinSampler,
    rows: np.ndarray,
    *,
    folds: int = 5,
    runs: int = 2,
    n_iter: int = 5000,
    theta0: float | Sequence[float] = 0.0,
    seed: int = 0,
    workers: int | None = None,
) -> np.ndarray:
    """(n,) U(θ_{-k(i)}, x_i): row i's loss under the estimate from the folds that it is not in.

    The estimate is `tail_mean` over `runs` runs of `n_iter` updates. NaN for a fold in which a run diverged.
    """
    from joblib import Parallel, delayed

    rows = sampler.check_data("rows", rows)
    fold = fold_numbers(len(rows), folds, seed)
    runs, n_iter = integer("runs", runs, least=1), integer("n_iter", n_iter, least=2)
    start = sampler.initial_state(theta0)
    workers = os.cpu_count() or 1 if workers is None else integer("workers", workers, least=1)

    def estimate(k: int) -> np.ndarray:
        kept = np.ascontiguousarray(rows[fold != k])
        stream = draws(seed, range(k * runs, (k + 1) * runs), n_iter, len(kept), sampler.state_dim)
        return sampler.theta(tail_mean(sampler.advance(kept, start, stream.indices, stream.noise)))

    estimates = Parallel(n_jobs=workers, prefer="threads")(delayed(estimate)(k) for k in range(folds))
    losses = np.empty(len(rows))
    for k, theta in enumerate(estimates):
        losses[fold == k] = row_losses(sampler.problem, theta, rows[fold == k])
    return losses


def row_losses(problem: Problem, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(n,) U(θ, x_i)."""
    import torch

    with torch.no_grad():
        return problem.U(torch.tensor(theta), torch.tensor(rows)).numpy()


def criteria(losses: np.ndarray, trim: float = 0.3) -> dict[str, float]:
    """Mean, mean of the smallest 1 - trim (at least one), and median of held-out losses (n,).

    The trimmed mean withstands a share of outliers up to `trim`, the median up to one half; the mean none. The median
    looks at one row alone, so it is the noisier of the two.
    """
    trim = rate("trim", trim, "share")
    kept = np.sort(losses)[: max(1, round((1 - trim) * len(losses)))]
    return {"mean": float(losses.mean()), "trimmed": float(kept.mean()), "median": float(np.median(losses))}
