"""Engine `pruned`: the same sum to rounding, compiled, visiting only what can change it.

For the sigmoid regression with p = 2; see `robust_sgld.kernels.sigmoid_grid` for how and why it is exact.
"""

from __future__ import annotations

import numpy as np

from robust_sgld.dro import DRO
from robust_sgld.engines.base import Accuracy, Engine, LogSum
from robust_sgld.kernels import sigmoid_chain as kernel
from robust_sgld.kernels.sigmoid_lines import workspace
from robust_sgld.problems import Problem, SigmoidRegression

MAX_LINES = 2_000_000
"""The most values of z that scratch arrays are made for (about 200 MB a worker)."""


class PrunedEngine(Engine):
    """Compiled and exact to float64 rounding; what makes 100-run trials take seconds."""

    name = "pruned"
    compiled = True

    def __init__(self, problem: Problem, dro: DRO, accuracy: Accuracy):
        super().__init__(problem, dro, accuracy)
        # All that is dropped is below N e^{-cut} = e^{-37} < 2^{-53} of the sum.
        self._cut = self.grid.log_size + 37.0
        self.counts = np.zeros(3, dtype=np.int64)
        """Grid points summed, sigmoids and exponentials computed so far."""

    @classmethod
    def refusal(cls, problem: Problem, dro: DRO) -> str | None:
        if type(problem) is not SigmoidRegression:
            return f"it is for SigmoidRegression alone, not for {type(problem).__name__}."
        if dro.p != 2:
            return f"it needs p=2, and p is {dro.p:g}."
        grid = dro.grid(problem.dim)
        n = grid.points_per_axis
        if n < 2:
            return "it needs at least two grid points an axis."
        if n ** (problem.dim - 1) > MAX_LINES:
            return f"its {n}^{problem.dim - 1} values of z are more than the {MAX_LINES} that it takes."
        return None

    @classmethod
    def microseconds(cls, problem: Problem, dro: DRO) -> float:
        return 2.5 + 0.0006 * dro.grid(problem.dim).points_per_axis ** (problem.dim - 1)

    def log_sum(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        theta_bar, x = np.ascontiguousarray(theta_bar), np.ascontiguousarray(x)
        value, cost = np.empty(len(x)), np.empty(len(x))
        grad_u = np.empty((len(x), self.problem.n_params))
        ws = workspace(self.grid.axis, self.problem.dim)
        counts = np.zeros_like(self.counts)
        kernel.log_sums(theta_bar, x, self.grid.axis, self.dro.delta, self._cut, ws, value, grad_u, cost, counts)
        self.counts += counts
        return LogSum(value, grad_u, cost)

    def maximum(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        value = np.empty(len(x))
        kernel.maxima(np.ascontiguousarray(theta_bar), np.ascontiguousarray(x), self.grid.axis, value)
        return value

    def chain(
        self,
        train: np.ndarray,
        theta0: np.ndarray,
        indices: np.ndarray,
        noise: np.ndarray,
        step_size: float,
        noise_scale: float,
    ) -> np.ndarray:
        states = np.empty(noise.shape)
        ws = workspace(self.grid.axis, self.problem.dim)
        # threads share an engine: each counts for itself and adds at the end, while it holds the interpreter lock
        counts = np.zeros_like(self.counts)
        for r in range(len(states)):
            kernel.robust_chain(
                train, theta0, indices[r], noise[r], step_size, noise_scale, self.dro.eta1, self.dro.eta2,
                self.grid.axis, self.dro.delta, self._cut, ws, states[r], counts,
            )  # fmt: skip
        self.counts += counts
        return states
