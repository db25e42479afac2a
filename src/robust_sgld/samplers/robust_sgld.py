"""Robust SGLD: the Langevin recursion on (θ, α) along the gradient of the smoothed dual."""

from __future__ import annotations

import numpy as np

from robust_sgld.dro import DRO, split
from robust_sgld.dual import DualObjective
from robust_sgld.engines import Accuracy
from robust_sgld.problems import Problem
from robust_sgld.samplers.base import LangevinSampler


class RobustSGLD(LangevinSampler):
    """H is H^{δ,ℓ,j} of defn:grad_v_delta; the state is θ̄ = (θ, α).

    Notes
    -----
    X is the raw data point, as in the published experiment, not its floor on the grid.
    """

    name = "robust_sgld"

    def __init__(
        self,
        problem: Problem,
        dro: DRO,
        step_size: float = 0.01,
        beta: float = 1e9,
        engine: str = "auto",
        tolerance: float = 1e-8,
        samples: int = 1000,
        engine_seed: int = 0,
    ):
        """`tolerance` is the error that engine `chain` may make in the log of a sum; `samples` and `engine_seed` belong
        to engine `monte_carlo`; the other engines are exact to rounding.
        """
        super().__init__(problem, step_size, beta)
        self.dro = dro
        self.dual = DualObjective(problem, dro, engine, Accuracy(tolerance, samples, engine_seed))

    @property
    def state_dim(self) -> int:
        return self.problem.n_params + 1

    @property
    def engine_name(self) -> str:
        return self.dual.engine.name

    @property
    def compiled(self) -> bool:
        return self.dual.engine.compiled

    def theta(self, states: np.ndarray) -> np.ndarray:
        return split(states)[0]

    def check_data(self, name: str, x: np.ndarray, columns: tuple[str, ...] | None = None) -> np.ndarray:
        return self.dual.grid.check_inside(name, x, columns)

    def gradient(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self.dual.gradient(states, x)

    def objective(self, theta_bar: np.ndarray, data: np.ndarray) -> np.ndarray:
        """v^{δ,ℓ,j} of (…, d+1) states over the floored data."""
        return self.dual.v(theta_bar, data)

    def numbers(self) -> dict[str, float]:
        return self.dual.engine.numbers()

    def _chain(
        self, train: np.ndarray, theta0: np.ndarray, indices: np.ndarray, noise: np.ndarray
    ) -> np.ndarray | None:
        return self.dual.engine.chain(train, theta0, indices, noise, self.step_size, self.noise_scale)
