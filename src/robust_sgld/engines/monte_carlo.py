"""Engine `monte_carlo`: a seeded estimate of the sum over the grid, for any problem with p = 2 and any m.

Σ_j F_j = Σ_z exp[-ι|x_z-z|²/δ] G(z) with G(z) = Σ_y exp[(U(θ,(z,y)) - ι(x_y-y)²)/δ]. The sum over y, the last column,
is done in full: a loss depends on its target more than on anything else, and sampling it too would leave a handful of
samples with all the weight. z_1 … z_S are drawn from discretised Gaussian kernels around x_z, products over the axes,

    q(z) = (1/3) Σ_c exp[-cι|x_z-z|²/δ] / Z_c,   c = 1, 1/4, 1/16,   Z_c = Π_i Σ_{z_i} exp[-cι(x_i-z_i)²/δ],

as many from each width: the adversary moves points where the loss grows, away from x, where a kernel of width 1 alone
would never look and its effective sample size would not tell. Then with w_s = exp[-ι|x_z-z_s|²/δ] G(z_s) / q(z_s)

    Σ_j F_j ≈ (1/S) Σ_s w_s,

and the weights, normalised by their own sum, estimate the softmax. With the effective sample size
ESS = (Σ w_s)² / Σ w_s² the standard error of the log-sum is sqrt(1/ESS - 1/S). Where ESS collapses the estimate is
worth nothing, and the engine refuses.
"""

from __future__ import annotations

import hashlib

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO, iota, split
from robust_sgld.engines.base import Accuracy, Engine, LogSum
from robust_sgld.problems import Problem

LEAST_EFFECTIVE = 10.0
"""Fewer effective samples are refused: the standard error of the log-sum would exceed 0.3."""
MOST_POINTS = 1000
"""Points an axis: y is summed in full for each sample."""
WIDTHS = np.array([1.0, 1 / 4, 1 / 16])
"""The c of the kernels that z is drawn from."""


class MonteCarloEngine(Engine):
    """Self-normalised importance sampling of z from discretised Gaussian kernels around x; y is summed in full.

    The stream of a pair is made from the seed and the bits of (θ̄, x): an estimate is the same alone, in a batch, and
    with any number of workers, and independent from one update to the next.
    """

    name = "monte_carlo"
    exact = False

    def __init__(self, problem: Problem, dro: DRO, accuracy: Accuracy):
        super().__init__(problem, dro, accuracy)
        self.samples, self.seed = accuracy.samples, accuracy.seed
        self._axis = self.grid.axis
        self._pairs, self._sum, self._least = 0, 0.0, np.inf

    @classmethod
    def refusal(cls, problem: Problem, dro: DRO) -> str | None:
        if problem.dim < 2:
            return "it needs a column beside the target."
        points = dro.grid(problem.dim).points_per_axis
        if points > MOST_POINTS:
            return f"its axes have {points} points, more than the {MOST_POINTS} that it sums for each sample."
        return None if dro.p == 2 else f"it needs p=2, and p is {dro.p:g}."

    @classmethod
    def microseconds(cls, problem: Problem, dro: DRO) -> float:
        return 1e4

    def numbers(self) -> dict[str, float]:
        """Effective samples so far, smallest and on average."""
        if not self._pairs:
            return {}
        return {"effective_samples_min": float(self._least), "effective_samples_mean": self._sum / self._pairs}

    def log_sum(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        value, grad_u, cost = zip(*(self._pair(t, row) for t, row in zip(theta_bar, x, strict=True)), strict=True)
        return LogSum(np.array(value), np.array(grad_u), np.array(cost))

    def maximum(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        raise InvalidInput("engine=monte_carlo cannot give the true maximum over the grid; engine=dense can.")

    def _pair(self, theta_bar: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Value, gradient and cost of `LogSum` at one (θ̄, x)."""
        z, repeats, log_ratio, distance = self._draw(theta_bar, x)
        points = np.empty((len(z), len(self._axis), self.problem.dim))
        points[..., :-1], points[..., -1] = z[:, None, :], self._axis
        theta, alpha = split(theta_bar)
        import torch  # slow to import, and `auto` looks at every engine

        at, xi = torch.from_numpy(np.ascontiguousarray(theta)), torch.from_numpy(points)
        moved = (x[-1] - self._axis) ** 2
        with torch.no_grad():
            u = self.problem.U(at, xi.reshape(-1, self.problem.dim)).numpy().reshape(points.shape[:2])
        exponent = (u - iota(alpha) * moved) / self.dro.delta + log_ratio[:, None]
        top = exponent.max()
        weight = np.exp(exponent - top)
        total = float((repeats @ weight).sum())
        weight /= total
        self._watch(1.0 / float(repeats @ weight.sum(axis=1) ** 2))
        weight *= repeats[:, None]
        # what is below 2^-60 of the sum cannot change it, and most points are
        counts = weight > 2.0**-60
        gradient = self.problem.grad(at, xi[torch.from_numpy(counts)]).detach().numpy()
        cost = float((weight * (distance[:, None] + moved)).sum())
        return float(top + np.log(total / self.samples)), (weight[counts][:, None] * gradient).sum(axis=0), cost

    def _draw(self, theta_bar: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Distinct z (K, m-1), how often each was drawn, log(exp[-ι|x_z-z|²/δ] / q(z)) and |x_z-z|², all (K,)."""
        sharpness = iota(split(theta_bar)[1]) / self.dro.delta * WIDTHS
        exponent = -sharpness[:, None, None] * (x[:-1, None] - self._axis) ** 2  # (c, m-1, n)
        top = exponent.max(axis=-1)
        kernel = np.exp(exponent - top[..., None])
        total = kernel.sum(axis=-1)
        below = np.cumsum(kernel, axis=-1) / total[..., None]
        log_z = (top + np.log(total)).sum(axis=-1)
        uniform = self._stream(theta_bar, x).random((self.samples, len(x) - 1))
        width = np.arange(self.samples) % len(WIDTHS)
        # the number of points whose cumulated probability is below u; the last one's is 1 but for rounding
        drawn = (uniform[..., None] > below[width, :, :-1]).sum(axis=-1)
        distinct, repeats = np.unique(drawn, axis=0, return_counts=True)
        z = self._axis[distinct]
        distance = ((x[:-1] - z) ** 2).sum(axis=-1)
        log_kernels = -sharpness * distance[:, None] - log_z  # (K, c)
        most = log_kernels.max(axis=-1)
        log_q = most + np.log(np.exp(log_kernels - most[:, None]).mean(axis=-1))
        return z, repeats, -sharpness[0] * distance - log_q, distance

    def _stream(self, theta_bar: np.ndarray, x: np.ndarray) -> np.random.Generator:
        digest = hashlib.blake2b(digest_size=16)
        for part in (np.array([self.seed], dtype="<u8"), theta_bar.astype("<f8"), x.astype("<f8")):
            digest.update(part.tobytes())
        return np.random.Generator(np.random.Philox(key=int.from_bytes(digest.digest(), "little")))

    def _watch(self, effective: float) -> None:
        if not np.isfinite(effective):
            return  # a state that has left the finite numbers is the sampler's affair
        self._pairs += 1
        self._sum += effective
        self._least = min(self._least, effective)
        if effective < LEAST_EFFECTIVE:
            raise InvalidInput(
                f"engine=monte_carlo: only {effective:.1f} of {self.samples} samples are effective (at least "
                f"{LEAST_EFFECTIVE:g} are needed), so the estimate is worthless; more samples, a larger dro.delta or "
                "an alpha_0 further from 0 would help, or engine=dense where the grid fits."
            )
