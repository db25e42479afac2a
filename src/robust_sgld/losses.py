"""Losses along a path, exactly or within a certified bound; hitting times; the minimiser of a risk."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from robust_sgld.blas import one_blas_thread
from robust_sgld.checks import InvalidInput, array, positive
from robust_sgld.problems import LinearIndexProblem, Problem, SigmoidRegression

TORCH_BLOCK = 2**22
"""Numbers that a torch evaluation holds at once."""


def test_losses(theta: np.ndarray, test: np.ndarray, problem: Problem) -> np.ndarray:
    """Mean of U(θ, ·) over the test rows for parameters (…, d): one loss for each, shape (…)."""
    evaluator = LossEvaluator(problem, test)
    theta = np.asarray(theta, dtype=np.float64)
    if theta.shape[-1:] != (problem.n_params,):
        raise InvalidInput(f"theta must have shape (…, {problem.n_params}), got {theta.shape}.")
    return evaluator.losses(theta.reshape(-1, problem.n_params)).reshape(theta.shape[:-1])


test_losses.__test__ = False  # type: ignore[attr-defined]  # its name is the paper's, not a test's


def first_hit(losses: np.ndarray, reference: float, tolerance: float = 0.01) -> int | None:
    """The first update, counted from 1, with (1-tolerance)·ref < loss < (1+tolerance)·ref, strictly; None if never.

    Losses that are NaN (a run that diverged) lie outside.
    """
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 1:
        raise InvalidInput(f"losses must have shape (n_iter,), those of one run, got {losses.shape}.")
    inside = in_band(losses, reference, tolerance)
    return int(inside.argmax()) + 1 if inside.any() else None


def in_band(losses: np.ndarray, reference: float, tolerance: float = 0.01) -> np.ndarray:
    """Where a loss lies strictly within the band around the reference."""
    low, high = band(reference, tolerance)
    return (losses > low) & (losses < high)


def band(reference: float, tolerance: float = 0.01) -> tuple[float, float]:
    """((1-tolerance)·ref, (1+tolerance)·ref)."""
    reference, tolerance = positive("reference", reference), positive("tolerance", tolerance)
    return (1 - tolerance) * reference, (1 + tolerance) * reference


@dataclass(frozen=True)
class PathLosses:
    """What a run's losses say, each exact although few updates are evaluated."""

    n_es: int
    """first update inside the band, counted from 1; 0 if none is"""
    loss_at_n_es: float
    """NaN if the band is never reached"""
    closest: float
    """the loss nearest to the reference"""
    smallest: float
    final: float
    inside_after_hit: float
    """share of the updates after n_es that lie inside the band; NaN without any"""
    evaluated: int
    """updates at which every test row was evaluated"""


class LossEvaluator:
    """Mean of U(θ, ·) over fixed rows, for many θ."""

    def __init__(self, problem: Problem, rows: np.ndarray):
        self.problem = problem
        self.rows = array("test", rows, shape=(None, problem.dim))
        self._compiled = type(problem) is SigmoidRegression
        self._code = problem.kernel_code if isinstance(problem, LinearIndexProblem) else None
        if self._code is not None:
            self._columns = np.ascontiguousarray(self.rows.T)
            self._taylor: _Taylor | None = None

    def losses(self, theta: np.ndarray) -> np.ndarray:
        """At every row of theta (n, d), evaluating every data row."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        if self._compiled:
            from robust_sgld.kernels.sigmoid_loss import mean_losses

            result = np.empty(len(theta))
            mean_losses(theta, self._columns, result)
            return result
        if self._code is not None:
            from robust_sgld.kernels import index_loss

            result = np.empty(len(theta))
            index_loss.mean_losses(*self._code, theta, self._columns, result)
            return result
        import torch

        rows = torch.tensor(self.rows)
        block = max(1, TORCH_BLOCK // (self.rows.size + len(rows) * self.problem.n_params))
        result = np.empty(len(theta))
        with torch.no_grad():
            for i in range(0, len(theta), block):
                u = self.problem.U(torch.tensor(theta[i : i + block])[:, None, :], rows)
                result[i : i + block] = u.numpy().mean(axis=1)  # torch's order of summation depends on the block
        return result

    def certified(self, theta: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        """Losses at every row of theta (n, d) and radii: the true loss lies within loss ± radius."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        if not self._compiled:
            return self.losses(theta), np.zeros(len(theta))
        from robust_sgld.kernels.sigmoid_loss import certified_losses

        if self._taylor is None:
            self._taylor = _Taylor.of(self._columns)
        t = self._taylor
        loss, radius = np.empty(len(theta)), np.empty(len(theta))
        certified_losses(
            theta, self._columns, t.monomials, t.orders, t.multiplicity, t.factors, t.second_moment, t.reach, t.fourth,
            tolerance, loss, radius,
        )  # fmt: skip
        return loss, radius

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss at one θ (d,) and its gradient."""
        if self._compiled:
            from robust_sgld.kernels.sigmoid_loss import loss_and_gradient

            gradient = np.empty(self.problem.n_params)
            return loss_and_gradient(np.asarray(theta, dtype=np.float64), self._columns, gradient), gradient
        import torch

        # one pass backwards through the mean, where a gradient for every row would cost as many
        at, rows = torch.tensor(theta, dtype=torch.float64).requires_grad_(True), torch.tensor(self.rows)
        with torch.enable_grad():
            loss = self.problem.U(at, rows).mean()
        if loss.requires_grad:
            (slope,) = torch.autograd.grad(loss, at)
        else:
            slope = self.problem.grad(at.detach(), rows).mean(0)
        return float(loss.detach()), slope.numpy()

    def prediction_errors(self, theta: np.ndarray) -> np.ndarray:
        """Mean squared error of the prediction at every row of theta (n, d), whatever the loss: (target(y) - s(t))².

        NaN for a problem that predicts nothing.
        """
        if not isinstance(self.problem, LinearIndexProblem):
            return np.full(len(theta), np.nan)
        from robust_sgld.kernels import index_loss

        columns = np.ascontiguousarray(self.rows.T)
        columns[-1] = self.problem.target(columns[-1])
        result = np.empty(len(theta))
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        index_loss.mean_losses(index_loss.SQUARED, self.problem.link.code, 0.0, 0.0, theta, columns, result)
        return result

    def along(self, theta: np.ndarray, reference: float, tolerance: float = 0.01) -> PathLosses:
        """Hitting time, extremes and time in the band of a path (n, d).

        Every update gets a certified interval; those whose interval does not settle a question are evaluated in full.
        So the answers are those of evaluating every update.
        """
        low, high = band(reference, tolerance)
        n = len(theta)
        finite = np.isfinite(theta).all(axis=1)
        if not finite.all():
            n = int(finite.argmin())
            theta = theta[:n]
        if n == 0:
            return PathLosses(0, math.nan, math.nan, math.nan, math.nan, math.nan, 0)
        loss, radius = self.certified(theta, tolerance=0.2 * tolerance * reference)
        beyond = ~np.isfinite(loss)  # a state so large that its loss is not a number lies outside every band
        loss[beyond], radius[beyond] = np.inf, 0.0
        known = radius == 0
        evaluated = n if known.all() else 0

        def settle(which: np.ndarray) -> None:
            nonlocal evaluated
            which = which & ~known
            if which.any():
                loss[which] = self.losses(theta[which])
                radius[which] = 0.0
                known[which] = True
                evaluated += int(which.sum())

        settle((np.abs(loss - low) <= radius) | (np.abs(loss - high) <= radius))
        inside = (loss > low) & (loss < high)
        settle(loss - radius <= (loss + radius).min())
        gap = np.abs(loss - reference)
        settle(gap - radius <= (gap + radius).min())
        hit = int(inside.argmax()) if inside.any() else -1
        settle(np.isin(np.arange(n), [hit, n - 1]) if hit >= 0 else np.arange(n) == n - 1)
        after = inside[hit + 1 :]
        # the extremes were settled above: only evaluated updates can hold them
        exact = np.flatnonzero(known)
        return PathLosses(
            n_es=hit + 1,
            loss_at_n_es=float(loss[hit]) if hit >= 0 else math.nan,
            closest=_finite(loss[exact[np.abs(loss[exact] - reference).argmin()]]),
            smallest=_finite(loss[exact].min()),
            final=_finite(loss[-1]) if finite.all() else math.nan,
            inside_after_hit=float(after.mean()) if hit >= 0 and after.size else math.nan,
            evaluated=evaluated,
        )


def _finite(loss: float) -> float:
    return float(loss) if math.isfinite(loss) else math.nan


@dataclass(frozen=True, eq=False)
class _Taylor:
    """What `certified_losses` needs to know of the data: monomials of z̃ = (z, 1) up to degree 3, and bounds."""

    monomials: np.ndarray  # (q, n)
    orders: np.ndarray  # (q,)
    multiplicity: np.ndarray  # (q,) how many ordered tuples a monomial stands for
    factors: np.ndarray  # (q, 3) indices into (Δ, 1)
    second_moment: np.ndarray  # (d, d)
    reach: np.ndarray  # (d,) max |z̃_a|
    fourth: float  # sup |g''''|

    @classmethod
    def of(cls, columns: np.ndarray) -> _Taylor:
        y = columns[-1]
        z = np.vstack([columns[:-1], np.ones(columns.shape[1])])
        d = len(z)
        rows, orders, multiplicity, factors = [], [], [], []
        for order in range(4):
            for index in itertools.combinations_with_replacement(range(d), order):
                rows.append(np.prod(z[list(index)], axis=0) if index else np.ones(z.shape[1]))
                orders.append(order)
                repeats = math.prod(math.factorial(index.count(a)) for a in set(index))
                multiplicity.append(math.factorial(order) / repeats)
                factors.append((*index, *[d] * (3 - order)))
        # |σ'| ≤ 1/4, |σ''| ≤ 1/(6√3), |σ'''| ≤ 1/8, |σ''''| < 0.128;
        # g'''' = 6σ''² + 8σ'σ''' - 2(y-σ)σ'''' and |y-σ| ≤ max(|y|, |y-1|)
        residual = float(np.maximum(np.abs(y), np.abs(y - 1)).max())
        fourth = 6 / 108 + 8 / 32 + 2 * residual * 0.128
        return cls(
            np.ascontiguousarray(rows),
            np.array(orders),
            np.array(multiplicity, dtype=np.float64),
            np.array(factors, dtype=np.int64),
            z @ z.T / z.shape[1],
            np.abs(z).max(axis=1),
            fourth,
        )


def minimise_risk(problem: Problem, rows: np.ndarray, start: np.ndarray) -> np.ndarray:
    """argmin_θ of the mean of U(θ, ·) over the rows, by L-BFGS from `start`: what perfect training would give."""
    from scipy.optimize import minimize

    evaluator = LossEvaluator(problem, rows)
    start = array("start", start, shape=(problem.n_params,))
    # a network's risk has long flat valleys, along which no digit of the loss is left to win
    strict = isinstance(problem, LinearIndexProblem)
    options = {"ftol": 1e-15 if strict else 1e-10, "gtol": 1e-10, "maxiter": 1000}
    with one_blas_thread():
        return minimize(evaluator.loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x
