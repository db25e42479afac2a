"""The parameters of the regularised DRO problem and of its discretised, smoothed dual; ι; the state θ̄ = (θ, α)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robust_sgld.checks import InvalidInput, positive, real
from robust_sgld.grid import Grid


@dataclass(frozen=True)
class DRO:
    """min_θ sup_μ { ∫U dμ - d_c(μ_0,μ)²/(2η2) } + η1|θ|²/2 with c = |x-x'|^p (label eqn:dro_problem).

    `delta` is Nesterov's smoothing (co:smoothing); `ell`, `j` and Ξ = [support]^m make the grid (defn:dyadic). Larger
    `eta2` means a smaller penalty and so a stronger adversary.
    """

    eta1: float = 1e-3
    eta2: float = 1.0
    delta: float = 0.1
    p: float = 2
    ell: int = 3
    j: int = 1
    support: tuple[float, float] = (-3.0, 3.0)

    def __post_init__(self) -> None:
        for name in ("eta1", "eta2", "delta"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "p", real("p", self.p))
        if self.p < 1:
            raise InvalidInput(f"p must be at least 1 (the cost is |x-x'|^p), got {self.p:g}.")
        grid = Grid(1, self.ell, self.j, self.support)
        for name in ("ell", "j", "support"):
            object.__setattr__(self, name, getattr(grid, name))

    def grid(self, dim: int) -> Grid:
        """Ξ ∩ K_{ℓ,j}^m for data of dimension m."""
        return Grid(dim, self.ell, self.j, self.support)


def split(theta_bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """θ̄ = (θ, α): states (…, d+1) into (…, d) and (…)."""
    return theta_bar[..., :-1], theta_bar[..., -1]


def iota(alpha: np.ndarray | float) -> np.ndarray:
    """ι(α) = log cosh α = |α| + log(1 + e^{-2|α|}) - log 2 (def:iota), without overflow."""
    magnitude = np.abs(alpha)
    return magnitude + np.log1p(np.exp(-2 * magnitude)) - math.log(2)


def iota_prime(alpha: np.ndarray | float) -> np.ndarray:
    """ι'(α) = tanh α."""
    return np.tanh(alpha)
