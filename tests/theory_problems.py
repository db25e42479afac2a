"""A small problem whose constants are known exactly, and small data for it."""

from __future__ import annotations

import math

import numpy as np
import torch

import robust_sgld as rs


class Wave(rs.Problem):
    """U(θ, x) = sin⟨θ,x⟩: |∇_θU| ≤ |x|, its Lipschitz constant is |x|², and |U(θ,x)-U(θ,x')| ≤ |θ||x-x'|."""

    def __init__(self, dim: int = 2, **declared: float):
        super().__init__(dim, dim)
        self.declared = declared

    def U(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (theta * x).sum(-1).sin()

    def constants(self, support: tuple[float, float]) -> rs.Constants:
        reach = math.sqrt(self.dim) * max(map(abs, support))
        exact = {"L_nabla": reach**2, "K_nabla": reach, "J_U": 1.0, "M_Xi": reach, "U0_max": 0.0}
        return rs.Constants(**(exact | self.declared))


SMALL = rs.DRO(eta1=0.05, eta2=0.3, delta=0.05, ell=2, j=1, support=(-1.0, 1.5))
"""36 grid points in the plane."""


def wave_U(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.sin(x @ theta)


def small_rows(rng: np.random.Generator, n: int = 30, dim: int = 2) -> np.ndarray:
    return rng.uniform(-1.0, 1.5, (n, dim))
