"""The pinball loss of quantile regression, smoothed at zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robust_sgld.checks import InvalidInput, positive, real
from robust_sgld.kernels.index_loss import QUANTILE
from robust_sgld.problems.linear_index import ResidualLoss

if TYPE_CHECKING:
    from torch import Tensor


class QuantileLoss(ResidualLoss):
    """U = τ r + c log(1 + e^{-r/c}) with r = y - s(t), τ = level and c = scale.

    For c → 0 this is the pinball loss max(τ r, (τ-1) r), which it exceeds by at most c log 2. It is convex and
    positive, with its minimum at r = c log((1-τ)/τ). ρ' = τ - 1/(1+e^{r/c}) lies in (τ-1, τ), and 0 < ρ'' ≤ 1/(4c).
    Both are bounded for every residual, so the assumptions hold for every link (see `ResidualLoss`).
    """

    loss_code = QUANTILE

    def __init__(self, dim: int = 4, link: str = "sigmoid", level: float = 0.5, scale: float = 0.05):
        super().__init__(dim, link)
        self.level, self.scale = real("level", level), positive("scale", scale)
        if not 0 < self.level < 1:
            raise InvalidInput(f"level must lie between 0 and 1 (0.5 is the median), got {self.level:g}.")

    def rho(self, r: Tensor) -> Tensor:
        from torch.nn.functional import softplus

        # torch's softplus drops its exponential beyond the threshold; at 40 that is below 2^-53
        return self.level * r + self.scale * softplus(-r / self.scale, threshold=40)

    def rho_prime(self, r: Tensor) -> Tensor:
        return self.level - (-r / self.scale).sigmoid()

    def rho_bounds(self, residual: float) -> tuple[float, float]:
        return max(self.level, 1 - self.level), 1 / (4 * self.scale)

    def kernel_numbers(self) -> tuple[float, float]:
        return self.level, self.scale

    def __repr__(self) -> str:
        kind, link = type(self).__name__, self.link.name
        return f"{kind}(dim={self.dim}, link={link!r}, level={self.level:g}, scale={self.scale:g})"
