"""What else a user could have picked: robust regression with the library made for it, on the same data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robust_sgld.blas import one_blas_thread
from robust_sgld.data import Dataset, sigmoid
from robust_sgld.losses import LossEvaluator, minimise_risk
from robust_sgld.problems import SigmoidRegression
from robust_sgld.report.formats import Column, Record, Table, mse, seconds, sort_last
from robust_sgld.report.statistics import mean
from robust_sgld.report.trials import ReportTrial

SCALE = 0.1
"""residuals beyond this count less: the size of the clean noise"""
START = -2.0
"""every coordinate of the first guess: the samplers' own start"""
CLIP = 0.01
"""y is moved into [CLIP, 1 - CLIP] before its logit"""


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimate of θ and what it cost."""

    method: str
    theta: np.ndarray
    seconds: float
    oracle: bool = False
    """whether it was told which rows are outliers"""


def baselines(data: Dataset) -> list[Fit]:
    """Every alternative, fitted to the training rows.

    `scipy.optimize.least_squares` minimises ½ Σ C² ρ((y-σ(⟨w,z⟩+b))²/C²) with C = SCALE and ρ(s) = s (linear),
    2(√(1+s)-1) (soft_l1), Huber's, or log(1+s) (cauchy). scikit-learn's `HuberRegressor` fits ⟨w,z⟩+b to the logit of
    y, which exists only after y is clipped. The oracle is the linear one on the rows that are no outliers.
    """
    found = [
        _timed(f"SciPy least_squares, {loss}", lambda loss=loss: _least_squares(data.train, loss))  # type: ignore[misc]
        for loss in ("linear", "soft_l1", "huber", "cauchy")
    ]
    found.append(_timed("scikit-learn HuberRegressor, logit", lambda: _huber_on_logit(data.train)))
    if data.outlier is not None and not data.outlier.all():
        clean = data.train[~data.outlier]
        found.append(_timed("oracle: linear on the clean rows", lambda: _least_squares(clean, "linear"), oracle=True))
    return found


def _timed(method: str, fit: Callable[[], np.ndarray], *, oracle: bool = False) -> Fit:
    fit()  # the first call of a library pays for its imports
    with one_blas_thread():  # seconds of one core, as the samplers' are
        began = time.perf_counter()
        theta = fit()
        return Fit(method, theta, time.perf_counter() - began, oracle)


def _least_squares(rows: np.ndarray, loss: str) -> np.ndarray:
    from scipy.optimize import least_squares

    z, y = np.column_stack([rows[:, :-1], np.ones(len(rows))]), rows[:, -1]

    def residual(theta: np.ndarray) -> np.ndarray:
        return sigmoid(z @ theta) - y

    def jacobian(theta: np.ndarray) -> np.ndarray:
        s = sigmoid(z @ theta)
        return (s * (1 - s))[:, None] * z

    return least_squares(residual, np.full(z.shape[1], START), jacobian, loss=loss, f_scale=SCALE).x


def _huber_on_logit(rows: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import HuberRegressor

    y = np.clip(rows[:, -1], CLIP, 1 - CLIP)
    model = HuberRegressor(max_iter=10_000).fit(rows[:, :-1], np.log(y / (1 - y)))
    return np.append(model.coef_, model.intercept_)


def records(
    data: Dataset, fits: Sequence[Fit], trials: Sequence[ReportTrial], others: Sequence[ReportTrial] = ()
) -> list[Record]:
    """Fits and trials in one list, by test loss; for a trial means over its runs, at the last update.

    `others` are trials with another loss and the same prediction σ(t): they are judged by its squared error too.
    """
    problem = SigmoidRegression(data.dim)
    evaluator = LossEvaluator(problem, data.test)
    truth = np.full(problem.n_params, math.nan) if data.theta_star is None else data.theta_star
    best = minimise_risk(problem, data.test, np.zeros(problem.n_params) if data.theta_star is None else truth)
    found: list[Record] = [
        {
            "method": fit.method,
            "kind": "oracle" if fit.oracle else "robust regression",
            "mse": float(evaluator.losses(fit.theta[None])[0]),
            "distance_to_theta_star": float(np.linalg.norm(fit.theta - truth)),
            "distance_to_clean_minimiser": float(np.linalg.norm(fit.theta - best)),
            "seconds": fit.seconds,
        }
        for fit in fits
    ]
    for trial in [*trials, *others]:
        final = trial.result.theta[:, -1]
        final = final[np.isfinite(final).all(axis=1)]
        another = not trial.is_sigmoid
        found.append(
            {
                "method": f"{trial.label}, {trial.loss}" if another else trial.label,
                "kind": "sampler, other loss" if another else "sampler",
                "mse": mean(evaluator.losses(final) if another else trial.result.final_loss),
                "distance_to_theta_star": mean(np.linalg.norm(final - truth, axis=1)),
                "distance_to_clean_minimiser": mean(np.linalg.norm(final - best, axis=1)),
                "seconds": mean(trial.result.seconds),
            }
        )
    return sorted(found, key=lambda record: sort_last(record["mse"]))


def table(data: Dataset, rows: Sequence[Record]) -> Table:
    """The comparison, best first."""
    columns = [
        Column("method", lambda r: r["method"], numeric=False),
        Column("kind", lambda r: r["kind"], numeric=False),
        Column("test MSE", lambda r: mse(r["mse"]), lambda r: sort_last(r["mse"])),
        Column(
            "|θ - θ*|",
            lambda r: _distance(r["distance_to_theta_star"]),
            lambda r: sort_last(r["distance_to_theta_star"]),
        ),
        Column(
            "|θ - clean-risk minimiser|",
            lambda r: _distance(r["distance_to_clean_minimiser"]),
            lambda r: sort_last(r["distance_to_clean_minimiser"]),
        ),
        Column("seconds", lambda r: seconds(r["seconds"]), lambda r: sort_last(r["seconds"])),
    ]
    y = data.train[:, -1]
    clipped = int(((y < CLIP) | (y > 1 - CLIP)).sum())
    notes = [
        f"All are fitted to the same {len(data.train)} training rows and judged on the same {len(data.test)} test "
        f"rows. SciPy's fits start at {START:g} in every coordinate, as the samplers do, with f_scale = {SCALE:g}. "
        f"The logit of y does not exist outside (0, 1), so y is clipped to [{CLIP:g}, {1 - CLIP:g}] for "
        f"HuberRegressor ({clipped} rows). The oracle is told which rows are outliers, which no user knows. "
        "Samplers: means over the runs at the last update, seconds a run on one core. The clean-risk minimiser is "
        "the θ of the smallest test loss.",
    ]
    return Table("baselines", "Alternatives and samplers on the same data", columns, rows, notes)


def _distance(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
