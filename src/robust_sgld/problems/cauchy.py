"""The Cauchy loss: large residuals lose their pull."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robust_sgld.checks import positive
from robust_sgld.kernels.index_loss import CAUCHY
from robust_sgld.problems.linear_index import ResidualLoss

if TYPE_CHECKING:
    from torch import Tensor


class CauchyLoss(ResidualLoss):
    """U = log(1 + (r/c)²) with r = y - s(t) and c = scale: minus the log-density of Cauchy noise, up to a constant.

    ρ' = 2r/(c²+r²), so |ρ'| ≤ 1/c, attained at r = c, and falls to zero beyond; ρ'' = 2(c²-r²)/(c²+r²)² lies between
    -1/(4c²) and 2/c². Both are bounded for every residual, so the assumptions hold for every link (see `ResidualLoss`).
    """

    loss_code = CAUCHY

    def __init__(self, dim: int = 4, link: str = "sigmoid", scale: float = 0.1):
        super().__init__(dim, link)
        self.scale = positive("scale", scale)

    def rho(self, r: Tensor) -> Tensor:
        return ((r / self.scale) ** 2).log1p()

    def rho_prime(self, r: Tensor) -> Tensor:
        return 2 * r / (self.scale**2 + r**2)

    def rho_bounds(self, residual: float) -> tuple[float, float]:
        return 1 / self.scale, 2 / self.scale**2

    def kernel_numbers(self) -> tuple[float, float]:
        return self.scale, 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, link={self.link.name!r}, scale={self.scale:g})"
