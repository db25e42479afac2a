"""Logistic regression on labels -1 and +1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from robust_sgld.kernels.index_loss import LOGISTIC
from robust_sgld.problems.base import Constants
from robust_sgld.problems.linear_index import LinearIndexProblem, Values

if TYPE_CHECKING:
    from torch import Tensor


class LogisticLoss(LinearIndexProblem):
    """U = log(1 + e^{-yt}) for labels y of -1 and +1; `predict` is σ(t), the probability of +1.

    The adversary moves y along the whole axis of the grid, so the constants are those of every y in Ξ. With r = max|Ξ|
    and Z = sqrt(1 + (m-1)r²): |∂u/∂t| = |y|σ(-yt) ≤ r and ∂²u/∂t² = y²σ'(yt) ≤ r²/4, so K_∇ = r Z and L_∇ = r²Z²/4;
    |∂u/∂y| = |t|σ(-yt) ≤ Z|θ|, so between x and x' the loss changes by at most r|w||z-z'| + Z|θ||y-y'|, and J_U =
    sqrt(r² + Z²). U(0,x) = log 2. The assumptions hold.
    """

    loss_code = LOGISTIC

    def __init__(self, dim: int = 4):
        super().__init__(dim, "sigmoid")

    def u(self, t: Tensor, y: Tensor) -> Tensor:
        from torch.nn.functional import softplus

        return softplus(-y * t, threshold=40)  # beyond 40 the exponential is below 2^-53 and torch drops it

    def u_and_slope(self, t: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.u(t, y), -y * (-y * t).sigmoid()

    def target(self, y: Values) -> Values:
        """(1+y)/2, so that the squared error of a prediction is the Brier score."""
        return (1 + y) / 2

    def constants(self, support: tuple[float, float]) -> Constants:
        """K_∇ = rZ, L_∇ = r²Z²/4, J_U = sqrt(r²+Z²), U(0,x) = log 2."""
        reach = max(abs(support[0]), abs(support[1]))
        z = math.sqrt(1 + (self.dim - 1) * reach**2)
        return Constants(
            L_nabla=reach**2 * z**2 / 4,
            K_nabla=reach * z if reach * z > 1 else 2.0,
            J_U=math.hypot(reach, z),
            M_Xi=math.sqrt(self.dim) * reach,
            U0_max=math.log(2),
        )
