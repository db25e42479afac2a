"""The one interface of all engines: the log-sum over the grid and its gradient at (θ̄, x).

Everything that the dual problem needs is a functional of F_j = exp[(U(θ,ξ_j) - ι(α)|x-ξ_j|^p)/δ]. An engine is a way to
sum the F_j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from robust_sgld.checks import integer, positive
from robust_sgld.dro import DRO
from robust_sgld.problems import Problem
from robust_sgld.rng import checked_seed


@dataclass(frozen=True)
class Accuracy:
    """How exact an engine is that does not sum every term; the others do not use it."""

    tolerance: float = 1e-8
    """the error that `chain` may make in log Σ_j F_j"""
    samples: int = 1000
    """that `monte_carlo` draws for each sum"""
    seed: int = 0
    """of these samples"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", positive("tolerance", self.tolerance))
        object.__setattr__(self, "samples", integer("samples", self.samples, least=2))
        object.__setattr__(self, "seed", checked_seed(self.seed, "engine_seed"))


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

    def __init__(self, problem: Problem, dro: DRO, accuracy: Accuracy):
        self.problem, self.dro, self.grid = problem, dro, dro.grid(problem.dim)

    @classmethod
    @abstractmethod
    def refusal(cls, problem: Problem, dro: DRO) -> str | None:
        """None where this engine is valid, else the reason why it is not."""

    @classmethod
    @abstractmethod
    def microseconds(cls, problem: Problem, dro: DRO) -> float:
        """About what one sum costs, as benchmarked on one machine: what `auto` goes by."""

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
