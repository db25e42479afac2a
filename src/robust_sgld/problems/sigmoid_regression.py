"""The paper's problem: least squares through a sigmoid neuron."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from robust_sgld.checks import integer
from robust_sgld.problems.base import Constants, Problem

if TYPE_CHECKING:
    from torch import Tensor


class SigmoidRegression(Problem):
    """U(θ, x) = |y - σ(⟨w,z⟩+b)|² with θ = (w, b) and x = (z, y) (label eq:DROexample_U); d = m.

    Its constants are those of prop:regression_example.
    """

    def __init__(self, dim: int = 4):
        dim = integer("dim (z and y together)", dim, least=2)
        super().__init__(dim, dim)

    def U(self, theta: Tensor, x: Tensor) -> Tensor:
        return (x[..., -1] - self.predict(theta, x)) ** 2

    def predict(self, theta: Tensor, x: Tensor) -> Tensor:
        """σ(⟨w,z⟩+b); the last column of x is not read."""
        return ((x[..., :-1] * theta[..., :-1]).sum(-1) + theta[..., -1]).sigmoid()

    def grad(self, theta: Tensor, x: Tensor) -> Tensor:
        """-2 (y-s) s (1-s) (z, 1) with s = σ(⟨w,z⟩+b) (label eqn:grad_U)."""
        s = self.predict(theta, x)
        common = -2 * (x[..., -1] - s) * s * (1 - s)
        direction = x.clone()
        direction[..., -1] = 1.0
        return common[..., None] * direction

    def constants(self, support: tuple[float, float]) -> Constants:
        """L_∇ = 6m(1+M_Ξ)³, K_∇ = 2m(1+M_Ξ)², J_U = 4(1+M_Ξ); U(0,x) = (y-½)²."""
        reach = max(abs(support[0]), abs(support[1]))
        m_xi = math.sqrt(self.dim) * reach
        return Constants(
            L_nabla=6 * self.dim * (1 + m_xi) ** 3,
            K_nabla=2 * self.dim * (1 + m_xi) ** 2,
            J_U=4 * (1 + m_xi),
            M_Xi=m_xi,
            U0_max=max((support[0] - 0.5) ** 2, (support[1] - 0.5) ** 2),
        )
