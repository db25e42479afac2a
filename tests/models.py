"""Problems as a user would write them: U in torch and nothing else; and the same in NumPy."""

from __future__ import annotations

import numpy as np
import torch

import robust_sgld as rs


class Parabola(rs.Problem):
    """U(θ, x) = a|θ|²/2, whatever x: SGLD on it is an AR(1) process."""

    def __init__(self, a: float, n_params: int = 1):
        super().__init__(dim=1, n_params=n_params)
        self.a = a

    def U(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.a / 2 * (theta**2).sum(-1) + 0 * x[..., 0]


class Curve(rs.Problem):
    """U(θ, (z, y)) = (y - θ_1 - θ_2 z - θ_3 z²)²: three parameters, two columns."""

    def __init__(self) -> None:
        super().__init__(dim=2, n_params=3)

    def U(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        z, y = x[..., 0], x[..., 1]
        return (y - theta[..., 0] - theta[..., 1] * z - theta[..., 2] * z**2) ** 2


def curve_U(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    z, y = x[..., 0], x[..., 1]
    return (y - theta[0] - theta[1] * z - theta[2] * z**2) ** 2


def curve_grad_U(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    z, y = x[..., 0], x[..., 1]
    residual = y - theta[0] - theta[1] * z - theta[2] * z**2
    return -2 * residual[..., None] * np.stack([np.ones_like(z), z, z**2], axis=-1)


class TorchSigmoid(rs.SigmoidRegression):
    """The paper's problem as a class of its own: no compiled path may claim it, because U could be another."""


class Explosive(rs.Problem):
    """U(θ, x) = θ²/2 + x²θ: a row with x = 1e200 sends θ to -infinity at once."""

    def __init__(self) -> None:
        super().__init__(dim=1, n_params=1)

    def U(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return theta[..., 0] ** 2 / 2 + x[..., 0] ** 2 * theta[..., 0]
