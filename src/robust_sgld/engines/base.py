"""The one interface of all engines: the log-sum over the grid and its gradient at (θ̄, x).

Everything that the dual problem needs is a functional of F_j = exp[(U(θ,ξ_j) - ι(α)|x-ξ_j|^p)/δ]. An engine is a way to
sum the F_j; `dense` and `pruned` are here, and a message-passing one fits the same four methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from robust_sgld.dro import DRO
from robust_sgld.problems import Problem


class LogSum(NamedTuple):
    """At B pairs (θ̄, x)."""

    value: np.ndarray
    """(B,) log Σ_j F_j"""
    grad_U: np.ndarray
    """(B, d) Σ_j F_j ∇_θU(θ,ξ_j) / Σ_j F_j"""
    cost: np.ndarray
    """(B,) Σ_j F_j |x-ξ_j|^p / Σ_j F_j"""


class Engine(ABC):
    """A way to sum the grid for one problem and one DRO."""

    name: ClassVar[str]
    compiled: ClassVar[bool] = False
    """Whether `chain` does the whole loop."""
    exact: ClassVar[bool] = True
    """Whether it gives the sum itself (to rounding, or to a tolerance that it keeps) and not an estimate."""

    def __init__(self, problem: Problem, dro: DRO):
        self.problem, self.dro, self.grid = problem, dro, dro.grid(problem.dim)

    @classmethod
    @abstractmethod
    def refusal(cls, problem: Problem, dro: DRO) -> str | None:
        """None where this engine is valid, else the reason why it is not."""

    @abstractmethod
    def log_sum(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        """θ̄ (B, d+1) and x (B, m), pair by pair."""

    @abstractmethod
    def maximum(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(B,) max_j { U(θ,ξ_j) - ι(α)|x-ξ_j|^p }, the true maximum of defn:small_v_discrete."""

    def numbers(self) -> dict[str, float]:
        """What a user should know of the engine's work so far, by name."""
        return {}

    def chain(
        self,
        train: np.ndarray,
        theta0: np.ndarray,
        indices: np.ndarray,
        noise: np.ndarray,
        step_size: float,
        noise_scale: float,
    ) -> np.ndarray | None:
        """All updates of R runs, (R, n, d+1), where the engine has a compiled loop; None where it has not."""
        return None
