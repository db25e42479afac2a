"""The absolute residual, smoothed at zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robust_sgld.checks import positive
from robust_sgld.kernels.index_loss import PSEUDO_HUBER
from robust_sgld.problems.linear_index import ResidualLoss

if TYPE_CHECKING:
    from torch import Tensor


class PseudoHuberLoss(ResidualLoss):
    """U = sqrt(r² + c²) - c with r = y - s(t) and c = scale: |r| - c far out, r²/(2c) near zero.

    ρ' = r / sqrt(r²+c²), so |ρ'| ≤ 1; ρ'' = c²/(r²+c²)^{3/2} ≤ 1/c. Both are bounded for every residual, so the
    assumptions hold for every link (see `ResidualLoss`).
    """

    loss_code = PSEUDO_HUBER

    def __init__(self, dim: int = 4, link: str = "sigmoid", scale: float = 0.1):
        super().__init__(dim, link)
        self.scale = positive("scale", scale)

    def rho(self, r: Tensor) -> Tensor:
        # (r² + c²) - c², divided by the sum of the roots: nothing cancels where r is small
        return r**2 / ((r**2 + self.scale**2).sqrt() + self.scale)

    def rho_prime(self, r: Tensor) -> Tensor:
        return r / (r**2 + self.scale**2).sqrt()

    def rho_bounds(self, residual: float) -> tuple[float, float]:
        return 1.0, 1 / self.scale

    def kernel_numbers(self) -> tuple[float, float]:
        return self.scale, 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, link={self.link.name!r}, scale={self.scale:g})"
