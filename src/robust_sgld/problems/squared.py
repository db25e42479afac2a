"""Least squares through a link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robust_sgld.kernels.index_loss import SQUARED
from robust_sgld.problems.linear_index import ResidualLoss

if TYPE_CHECKING:
    from torch import Tensor


class SquaredLoss(ResidualLoss):
    """U = (y - s(t))².

    |ρ'| = 2|r| and ρ'' = 2. Under a bounded link |r| is bounded over Ξ and the assumptions hold (see `ResidualLoss`);
    under the identity link ∇_θU = -2(y-t)(z, 1) is not bounded, so assumption:3 fails and `constants` refuses.
    """

    loss_code = SQUARED

    def __init__(self, dim: int = 4, link: str = "sigmoid"):
        super().__init__(dim, link)

    def rho(self, r: Tensor) -> Tensor:
        return r**2

    def rho_prime(self, r: Tensor) -> Tensor:
        return 2 * r

    def rho_bounds(self, residual: float) -> tuple[float, float]:
        return 2 * residual, 2.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, link={self.link.name!r})"
