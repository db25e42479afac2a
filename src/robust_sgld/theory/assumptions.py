"""Are the declared constants right? Sampled lower estimates of L_∇, K_∇, J_U and max|U(0,x)|, each with its witness.

A sample can only ever prove a declared constant too small; that it finds nothing is evidence, not a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robust_sgld.checks import InvalidInput, integer
from robust_sgld.dro import DRO
from robust_sgld.problems import Problem

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 1e-9
"""A sampled ratio may exceed the declared constant by this share before it is a contradiction: of two θ of size 100
that are 1e-4 apart the distance is known to 1e-10 of it."""


@dataclass(frozen=True)
class Sampled:
    """One declared constant, the largest value that was sampled, and where."""

    name: str
    label: str
    meaning: str
    declared: float
    sampled: float
    witness: str

    @property
    def slack(self) -> float:
        """declared / sampled; how generous the declared constant looks."""
        return self.declared / self.sampled if self.sampled > 0 else math.inf


@dataclass(frozen=True)
class Assumptions:
    """What was checked, all of it holding: sampled constants, and statements about Ξ and the data."""

    sampled: tuple[Sampled, ...]
    holds: tuple[str, ...]


def check_assumptions(
    problem: Problem, dro: DRO, data: np.ndarray | None = None, *, samples: int = 20_000, seed: int = 0
) -> Assumptions:
    """assumption:1, assumption:3 and assumption:4 for the problem on Ξ; raises `InvalidInput` with the witness.

    Parameters
    ----------
    data : (n, m) rows that must lie in Ξ, if given
    samples : how many points, or pairs of points, each constant is sampled at

    Notes
    -----
    θ is drawn in random directions with |θ| log-uniform over 10^±2; half of the x at corners of Ξ, half uniform; pairs
    are apart by log-uniform distances, so that both local slopes and long chords are seen. An ℓ too small for Ξ, and a
    Ξ that its floor leaves (lemma:finite_grid), are refused by `Grid` itself.
    """
    declared = problem.constants(dro.support)
    samples = integer("samples", samples, least=1)
    stream = np.random.default_rng(integer("seed", seed, least=0))
    grid = dro.grid(problem.dim)
    draw = _Draw(problem, dro.support, samples, stream)
    theta, x = draw.theta(), draw.x()
    other_theta, other_x = draw.near(theta), draw.near_in_support(x)
    gradient, other_gradient = _numpy(problem.grad, theta, x), _numpy(problem.grad, other_theta, x)
    slope = _difference(gradient, other_gradient)
    rise = _difference(_numpy(problem.U, theta, x)[:, None], _numpy(problem.U, theta, other_x)[:, None])
    theta_gap = np.linalg.norm(theta - other_theta, axis=1)
    x_gap = np.linalg.norm(x - other_x, axis=1)
    at_zero = np.abs(_numpy(problem.U, np.zeros_like(theta), x))
    corner = np.linalg.norm(x, axis=1)

    def both(i: int) -> str:
        return f"theta={_point(theta[i])}, x={_point(x[i])}"

    sampled = (
        _largest(
            "L_nabla", "assumption:3", "|∇_θU(θ,x)-∇_θU(θ',x)| / |θ-θ'|", declared.L_nabla, slope / theta_gap,
            lambda i: f"{both(i)}, theta'={_point(other_theta[i])}",
        ),
        _largest("K_nabla", "assumption:3", "|∇_θU(θ,x)|", declared.K_nabla, np.linalg.norm(gradient, axis=1), both),
        _largest(
            "J_U", "assumption:4", "|U(θ,x)-U(θ,x')| / ((1+|θ|)|x-x'|)", declared.J_U,
            rise / ((1 + np.linalg.norm(theta, axis=1)) * x_gap), lambda i: f"{both(i)}, x'={_point(other_x[i])}",
        ),
        _largest("U0_max", "remark:u_lipschitz", "|U(0,x)|", declared.U0_max, at_zero, lambda i: f"x={_point(x[i])}"),
        _largest("M_Xi", "assumption:1", "|x|", declared.M_Xi, corner, lambda i: f"x={_point(x[i])}"),
    )  # fmt: skip
    if declared.K_nabla <= 1:
        raise InvalidInput(f"K_nabla must be above 1 (assumption:3), and {declared.K_nabla:g} is declared.")
    low, high = grid.support
    half = 2.0 ** (grid.ell - 1)
    holds = [
        f"Ξ = [{low:g}, {high:g}]^{grid.dim} lies in [{-half:g}, {half:g})^{grid.dim} (ℓ = {grid.ell})",
        f"the floor of Ξ stays in Ξ: {low:g} is a multiple of 2^-j = {grid.step:g}",
    ]
    if data is not None:
        rows = grid.check_inside("data", data)
        holds.append(f"all {len(rows)} data points lie in Ξ")
    return Assumptions(sampled, tuple(holds))


class _Draw:
    def __init__(self, problem: Problem, support: tuple[float, float], samples: int, stream: np.random.Generator):
        self.d, self.m, self.support, self.n, self.stream = problem.n_params, problem.dim, support, samples, stream

    def _directions(self, dim: int) -> np.ndarray:
        raw = self.stream.standard_normal((self.n, dim))
        return raw / np.linalg.norm(raw, axis=1, keepdims=True)

    def _lengths(self, low: float, high: float) -> np.ndarray:
        return 10 ** self.stream.uniform(low, high, (self.n, 1))

    def theta(self) -> np.ndarray:
        return self._lengths(-2, 2) * self._directions(self.d)

    def near(self, theta: np.ndarray) -> np.ndarray:
        # not below 1e-4: a difference of gradients must stay well above their rounding
        return theta + self._lengths(-4, 1) * self._directions(self.d)

    def x(self) -> np.ndarray:
        low, high = self.support
        uniform = self.stream.uniform(low, high, (self.n, self.m))
        corners = self.stream.choice(np.array([low, high]), (self.n, self.m))
        corners[:1] = high if abs(high) >= abs(low) else low
        half = (self.n + 1) // 2
        return np.concatenate([corners[:half], uniform[half:]])

    def near_in_support(self, x: np.ndarray) -> np.ndarray:
        low, high = self.support
        share = np.minimum(self._lengths(-4, 0.3), 1.0)
        return x + share * (self.stream.uniform(low, high, x.shape) - x)


def _numpy(function: Callable[[Tensor, Tensor], Tensor], theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        return function(torch.from_numpy(theta), torch.from_numpy(x)).numpy()


def _difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """|first - second| row by row, less what rounding may have added to it."""
    size = np.linalg.norm(first, axis=1) + np.linalg.norm(second, axis=1)
    return np.maximum(np.linalg.norm(first - second, axis=1) - 1e-13 * size, 0.0)


def _largest(
    name: str, label: str, meaning: str, declared: float, values: np.ndarray, witness: Callable[[int], str]
) -> Sampled:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InvalidInput(f"{meaning} is {values[bad[0]]} at {witness(int(bad[0]))}; the theory needs it finite.")
    i = int(values.argmax())
    if values[i] > declared * (1 + ROUNDING):
        raise InvalidInput(
            f"{name} = {declared:g} is declared ({label}), but {meaning} = {values[i]:.6g} at {witness(i)}."
        )
    return Sampled(name, label, meaning, float(declared), float(values[i]), witness(i))


def _point(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"
