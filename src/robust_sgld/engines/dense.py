"""Engine `dense`: the literal sum over every grid point, in torch, for any problem and any p ≥ 1."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO, iota, split
from robust_sgld.engines.base import Accuracy, Engine, LogSum
from robust_sgld.problems import Problem

if TYPE_CHECKING:
    import torch

MAX_BYTES = 4 * 2**30
"""The most memory that one state may take."""
BLOCK_BYTES = 256 * 2**20
"""States are taken in blocks of about this size, to bound the memory of a large batch."""


def _bytes_per_state(problem: Problem, dro: DRO) -> int:
    # Numbers held for one grid point at the peak, as measured: the point, its difference to x and the square (3m), the
    # copy of θ that autograd needs, the gradient and its weighted form (3d), and the intermediate results of U.
    return 8 * dro.grid(problem.dim).size * (3 * problem.dim + 3 * problem.n_params + 16)


class DenseEngine(Engine):
    """Evaluates U and ∇_θU at all N points for every state; the reference, and the way in for a user's own model."""

    name = "dense"

    def __init__(self, problem: Problem, dro: DRO, accuracy: Accuracy):
        super().__init__(problem, dro, accuracy)
        import torch  # slow to import, and `auto` looks at every engine

        self._xi = torch.from_numpy(self.grid.points())
        shape = tuple(problem.U(torch.zeros(2, 1, problem.n_params, dtype=torch.float64), self._xi[:1]).shape)
        if shape != (2, 1):
            raise InvalidInput(
                f"{problem!r}: U must return one number a pair, shape (2, 1) for theta (2, 1, {problem.n_params}) and "
                f"x (1, {problem.dim}), got {shape}."
            )
        self._block = max(1, BLOCK_BYTES // _bytes_per_state(problem, dro))

    @classmethod
    def refusal(cls, problem: Problem, dro: DRO) -> str | None:
        need = _bytes_per_state(problem, dro)
        if need > MAX_BYTES:
            return (
                f"its grid of {dro.grid(problem.dim).points_per_axis}^{problem.dim} points would need "
                f"{Decimal(need) / 2**30:.3g} GiB (limit {MAX_BYTES / 2**30:g} GiB); "
                "a smaller dro.j or fewer columns would fit."
            )
        return None

    @classmethod
    def microseconds(cls, problem: Problem, dro: DRO) -> float:
        grid = dro.grid(problem.dim)
        return 100.0 + 0.16 * math.exp(min(grid.log_size, 700.0))

    def _exponents(self, theta_bar: np.ndarray, x: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """U(θ,ξ_j) - ι(α)|x-ξ_j|^p and |x-ξ_j|^p, both (B, N)."""
        import torch

        theta, alpha = split(theta_bar)
        cost = ((torch.tensor(x)[:, None, :] - self._xi) ** 2).sum(-1)
        if self.dro.p != 2:
            cost = cost ** (self.dro.p / 2)
        with torch.no_grad():
            u = self.problem.U(_distinct(theta)[:, None, :], self._xi)
        return u - torch.from_numpy(iota(alpha))[:, None] * cost, cost

    def log_sum(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        parts = [
            self._log_sum_block(theta_bar[i : i + self._block], x[i : i + self._block])
            for i in range(0, len(x), self._block)
        ]
        return LogSum(*(np.concatenate(p) for p in zip(*parts, strict=True)))

    def _log_sum_block(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        value, cost = self._exponents(theta_bar, x)
        exponent = value.numpy() / self.dro.delta
        top = exponent.max(axis=1)
        # Sums in NumPy, whose order N alone decides (torch's depends on B and on its threads), and so the exponential:
        # torch's is off by 1e-11 now and then where several threads are the first in a process to call it.
        weight = np.exp(exponent - top[:, None])
        total = weight.sum(axis=1)
        grad = self.problem.grad(_distinct(split(theta_bar)[0])[:, None, :], self._xi).detach().numpy()
        grad_u = np.stack([(weight * grad[..., i]).sum(axis=1) for i in range(self.problem.n_params)], axis=1)
        return LogSum(top + np.log(total), grad_u / total[:, None], (weight * cost.numpy()).sum(axis=1) / total)

    def maximum(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        parts = [
            self._exponents(theta_bar[i : i + self._block], x[i : i + self._block])[0].amax(1).numpy()
            for i in range(0, len(x), self._block)
        ]
        return np.concatenate(parts)


def _distinct(theta: np.ndarray) -> torch.Tensor:
    """θ (B, d), or (1, d) where all are the same, as in an integral over the data: it then broadcasts."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(theta[:1] if (theta == theta[:1]).all() else theta))
