"""Losses that see θ and z through one number, t = ⟨w,z⟩+b: what message passing and the compiled loops are for."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

import numpy as np

from robust_sgld.checks import InvalidInput, integer
from robust_sgld.problems.base import Constants, Problem
from robust_sgld.problems.links import Link, link_of

if TYPE_CHECKING:
    from torch import Tensor

Values = TypeVar("Values", "Tensor", np.ndarray)


class KernelCode(NamedTuple):
    """A loss as `kernels.index_loss` knows it: which formula, which link, and the two numbers of the formula."""

    loss: int
    link: int
    first: float
    second: float


class LinearIndexProblem(Problem):
    """U(θ, x) = u(t, y) with t = ⟨w,z⟩+b, θ = (w, b), x = (z, y); d = m.

    To bring your own, implement `u` in torch; autograd gives its slope. The engine `chain` takes any of them at any m.

    `loss_code` names the formula among those of `kernels.index_loss`. It counts only where a class itself declares it:
    a subclass may compute another u, so it runs in torch until it declares its own.
    """

    loss_code: ClassVar[int | None] = None

    def __init__(self, dim: int = 4, link: str = "identity"):
        dim = integer("dim (z and y together)", dim, least=2)
        super().__init__(dim, dim)
        self.link: Link = link_of(link)

    @abstractmethod
    def u(self, t: Tensor, y: Tensor) -> Tensor:
        """u(t, y), elementwise with broadcasting."""

    def u_and_slope(self, t: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """u(t, y) and ∂u/∂t; by autograd unless overridden."""
        import torch

        t, y = torch.broadcast_tensors(t.detach(), y.detach())
        leaf = t.clone().requires_grad_(True)
        with torch.enable_grad():
            value = self.u(leaf, y)
        (slope,) = torch.autograd.grad(value.sum(), leaf)
        return value.detach(), slope

    def index(self, theta: Tensor, x: Tensor) -> Tensor:
        """t = ⟨w,z⟩+b; the last column of x is not read."""
        return (x[..., :-1] * theta[..., :-1]).sum(-1) + theta[..., -1]

    def predict(self, theta: Tensor, x: Tensor) -> Tensor:
        """s(t), the link of the index; the last column of x is not read."""
        return self.link.value(self.index(theta, x))

    def target(self, y: Values) -> Values:
        """What `predict` is to be near, of tensors or arrays: y itself, unless labels are coded otherwise."""
        return y

    def U(self, theta: Tensor, x: Tensor) -> Tensor:
        return self.u(self.index(theta, x), x[..., -1])

    def grad(self, theta: Tensor, x: Tensor) -> Tensor:
        """∂u/∂t · (z, 1)."""
        _, slope = self.u_and_slope(self.index(theta, x), x[..., -1])
        direction = x.clone()
        direction[..., -1] = 1.0
        return slope[..., None] * direction

    @property
    def kernel_code(self) -> KernelCode | None:
        """How the compiled loops compute this loss; None where they do not know it."""
        code = type(self).__dict__.get("loss_code")
        return None if code is None else KernelCode(code, self.link.code, *self.kernel_numbers())

    def kernel_numbers(self) -> tuple[float, float]:
        """The two numbers of the compiled formula; unused ones are 0."""
        return 0.0, 0.0


class ResidualLoss(LinearIndexProblem):
    """U(θ, x) = ρ(y - s(t)), s the link. A loss of this kind is ρ, ρ' and bounds on |ρ'| and |ρ''|.

    Its constants, wherever P1 = sup|ρ'| and P2 = sup|ρ''| over the residuals that can occur are finite: with S1 =
    sup|s'| and S2 = sup|s''| of the link,

        |∂u/∂t| = |ρ' s'| ≤ P1 S1 =: G1   and   |∂²u/∂t²| = |ρ'' s'² - ρ' s''| ≤ P2 S1² + P1 S2 =: G2.

    ∇_θU = ∂u/∂t · z̃ with z̃ = (z, 1), |z̃| ≤ Z = sqrt(1 + (m-1)r²), r = max|Ξ|, and t is Z-Lipschitz in θ: so K_∇ = G1 Z
    and L_∇ = G2 Z². Between x and x' the loss changes by at most G1|w||z-z'| + P1|y-y'|, so by Cauchy and Schwarz
    J_U = max(G1, P1) does. ρ ≥ 0 is monotone on either side of its minimum, so |U(0,x)| is largest at an end of the
    support. The paper wants K_∇ > 1; a smaller one is declared as 2.
    """

    @abstractmethod
    def rho(self, r: Tensor) -> Tensor:
        """ρ(r), r = y - s(t)."""

    @abstractmethod
    def rho_prime(self, r: Tensor) -> Tensor:
        """ρ'(r)."""

    @abstractmethod
    def rho_bounds(self, residual: float) -> tuple[float, float]:
        """sup |ρ'| and sup |ρ''| over |r| ≤ residual, which may be infinite."""

    def u(self, t: Tensor, y: Tensor) -> Tensor:
        return self.rho(y - self.link.value(t))

    def u_and_slope(self, t: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        s = self.link.value(t)
        return self.rho(y - s), -self.rho_prime(y - s) * self.link.slope(s)

    def constants(self, support: tuple[float, float]) -> Constants:
        """K_∇ = G1 Z, L_∇ = G2 Z², J_U = max(G1, P1), as derived for the class."""
        import torch

        link, (low, high) = self.link, support
        first, second = self.rho_bounds(max(high - link.low, link.high - low))
        if not math.isfinite(first):
            raise InvalidInput(
                f"{self!r} does not meet assumption:3: with the {link.name} link its gradient in θ is not bounded, "
                "because the residual y - t grows with θ; a bounded link (sigmoid, tanh) or a loss of bounded slope "
                "(pseudo_huber, cauchy, quantile) has constants."
            )
        reach = max(abs(low), abs(high))
        z = math.sqrt(1 + (self.dim - 1) * reach**2)
        slope = first * link.slope_max
        at_zero = self.rho(torch.tensor([low, high], dtype=torch.float64) - link.at_zero)
        return Constants(
            L_nabla=(second * link.slope_max**2 + first * link.curvature_max) * z**2,
            K_nabla=slope * z if slope * z > 1 else 2.0,
            J_U=max(slope, first),
            M_Xi=math.sqrt(self.dim) * reach,
            U0_max=float(at_zero.abs().max()),
        )
