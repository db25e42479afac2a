"""Engine `dense`: the literal sum over every grid point, in torch, for any problem and any p ≥ 1."""

from __future__ import annotations

import numpy as np
import torch

from robust_sgld.dro import DRO, iota, split
from robust_sgld.engines.base import Engine, LogSum
from robust_sgld.problems import Problem

MAX_BYTES = 4 * 2**30
"""The most that the grid and the gradients on it may take for one state."""
BLOCK_BYTES = 256 * 2**20
"""States are taken in blocks of about this size, to bound the memory of a large batch."""


def _bytes_per_state(problem: Problem, dro: DRO) -> int:
    # points (m), gradients (d), and about four scalars a point, in float64
    return 8 * dro.grid(problem.dim).size * (problem.dim + problem.n_params + 4)


class DenseEngine(Engine):
    """Evaluates U and ∇_θU at all N points for every state; the reference, and the way in for a user's own model."""

    name = "dense"

    def __init__(self, problem: Problem, dro: DRO):
        super().__init__(problem, dro)
        self._xi = torch.from_numpy(self.grid.points())
        self._block = max(1, BLOCK_BYTES // _bytes_per_state(problem, dro))

    @classmethod
    def refusal(cls, problem: Problem, dro: DRO) -> str | None:
        need = _bytes_per_state(problem, dro)
        if need > MAX_BYTES:
            return (
                f"its grid of {len(dro.grid(problem.dim).axis)}^{problem.dim} points would need {need / 2**30:.3g} GiB "
                f"(limit {MAX_BYTES / 2**30:g} GiB); a smaller dro.j or fewer columns would fit."
            )
        return None

    def _exponents(self, theta_bar: np.ndarray, x: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """U(θ,ξ_j) - ι(α)|x-ξ_j|^p and |x-ξ_j|^p, both (B, N)."""
        theta, alpha = split(theta_bar)
        cost = ((torch.tensor(x)[:, None, :] - self._xi) ** 2).sum(-1)
        if self.dro.p != 2:
            cost = cost ** (self.dro.p / 2)
        with torch.no_grad():
            u = self.problem.U(torch.from_numpy(np.ascontiguousarray(theta))[:, None, :], self._xi)
        return u - torch.from_numpy(iota(alpha))[:, None] * cost, cost

    def log_sum(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        parts = [
            self._log_sum_block(theta_bar[i : i + self._block], x[i : i + self._block])
            for i in range(0, len(x), self._block)
        ]
        return LogSum(*(np.concatenate(p) for p in zip(*parts, strict=True)))

    def _log_sum_block(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        exponent, cost = self._exponents(theta_bar, x)
        exponent = exponent / self.dro.delta
        value = torch.logsumexp(exponent, dim=1)
        share = torch.exp(exponent - value[:, None])
        theta = torch.from_numpy(np.ascontiguousarray(split(theta_bar)[0]))
        grad = self.problem.grad(theta[:, None, :], self._xi)
        return LogSum(value.numpy(), (share[..., None] * grad).sum(1).numpy(), (share * cost).sum(1).numpy())

    def maximum(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        parts = [
            self._exponents(theta_bar[i : i + self._block], x[i : i + self._block])[0].amax(1).numpy()
            for i in range(0, len(x), self._block)
        ]
        return np.concatenate(parts)
