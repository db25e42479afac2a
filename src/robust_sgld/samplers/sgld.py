"""Vanilla SGLD: the Langevin recursion on θ along ∇_θU."""

from __future__ import annotations

import numpy as np

from robust_sgld.kernels import index_loss
from robust_sgld.problems import LinearIndexProblem, Problem
from robust_sgld.samplers.base import LangevinSampler


class SGLD(LangevinSampler):
    """H is ∇_θU(θ, X); the state is θ. There is no η1 term, as in the published experiment."""

    name = "sgld"

    def __init__(self, problem: Problem, step_size: float = 0.01, beta: float = 1e9):
        super().__init__(problem, step_size, beta)
        self._code = problem.kernel_code if isinstance(problem, LinearIndexProblem) else None

    @property
    def state_dim(self) -> int:
        return self.problem.n_params

    @property
    def engine_name(self) -> str:
        return "compiled" if self.compiled else "torch"

    @property
    def compiled(self) -> bool:
        return self._code is not None

    def theta(self, states: np.ndarray) -> np.ndarray:
        return states

    def gradient(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        import torch

        return self.problem.grad(torch.from_numpy(states), torch.from_numpy(np.ascontiguousarray(x))).numpy()

    def _chain(
        self, train: np.ndarray, theta0: np.ndarray, indices: np.ndarray, noise: np.ndarray
    ) -> np.ndarray | None:
        if self._code is None:
            return None
        states = np.empty(noise.shape)
        for r in range(len(states)):
            index_loss.plain_chain(
                *self._code, train, theta0, indices[r], noise[r], self.step_size, self.noise_scale, states[r]
            )
        return states
