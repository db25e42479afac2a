"""What a learning problem is: a loss U(θ, x), its gradient, and, where they are known, its constants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robust_sgld.checks import InvalidInput, integer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Constants:
    """The constants of assumption:1, assumption:3 and assumption:4 over a given Ξ."""

    L_nabla: float
    """|∇_θU(θ,x) - ∇_θU(θ',x)| ≤ L_∇ |θ-θ'|"""
    K_nabla: float
    """|∇_θU(θ,x)| ≤ K_∇"""
    J_U: float
    """|U(θ,x) - U(θ,x')| ≤ J_U (1+|θ|) |x-x'|"""
    M_Xi: float
    """max over Ξ of |x|"""
    U0_max: float
    """max over Ξ of |U(0,x)|"""


class Problem(ABC):
    """A loss U: R^d × Ξ → R.

    To bring your own, implement `U` in torch; autograd gives the gradient. Override `grad` for speed and `constants` to
    make the theory available. `dim` is m, the dimension of a data point; `n_params` is d, and need not equal m.
    """

    def __init__(self, dim: int, n_params: int):
        self.dim = integer("dim", dim, least=1)
        self.n_params = integer("n_params", n_params, least=1)

    @abstractmethod
    def U(self, theta: Tensor, x: Tensor) -> Tensor:
        """U(θ, x): θ (…, d) and x (…, m), broadcast against each other, to (…)."""

    def grad(self, theta: Tensor, x: Tensor) -> Tensor:
        """∇_θU(θ, x), shape (…, d); by autograd unless overridden."""
        import torch

        shape = torch.broadcast_shapes(theta.shape[:-1], x.shape[:-1])
        leaf = theta.detach().expand(*shape, self.n_params).clone().requires_grad_(True)
        with torch.enable_grad():
            total = self.U(leaf, x.detach()).sum()
        (gradient,) = torch.autograd.grad(total, leaf)
        return gradient

    def guess(self) -> np.ndarray:
        """(d,) where a search for the minimiser of a risk may start."""
        return np.zeros(self.n_params)

    def constants(self, support: tuple[float, float]) -> Constants:
        """L_∇, K_∇, J_U, M_Ξ and max|U(0,x)| over Ξ = [support]^m."""
        raise InvalidInput(
            f"{type(self).__name__} does not declare its constants; override `constants` to use the theory."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"
