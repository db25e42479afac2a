"""The paper's problem: least squares through a sigmoid neuron."""

from __future__ import annotations

import math

from robust_sgld.kernels.index_loss import SQUARED
from robust_sgld.problems.base import Constants
from robust_sgld.problems.squared import SquaredLoss


class SigmoidRegression(SquaredLoss):
    """U(θ, x) = |y - σ(⟨w,z⟩+b)|² with θ = (w, b) and x = (z, y) (label eq:DROexample_U); d = m.

    Its gradient is eqn:grad_U; its constants are those of prop:regression_example.
    """

    loss_code = SQUARED

    def __init__(self, dim: int = 4):
        super().__init__(dim, "sigmoid")

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim})"
