"""The Langevin recursion, apart from the gradient that it follows.

A sampler is an update rule (eqn:sgld, written once in `kernels.elementary.langevin_update`) and a stochastic gradient.
A new one gives its state's dimension, its gradient and, where there is one, a compiled loop.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from robust_sgld.checks import InvalidInput, array, positive
from robust_sgld.kernels.elementary import langevin_update
from robust_sgld.problems import Problem


class DivergenceWarning(RuntimeWarning):
    """A chain left the finite numbers; its states from there on are NaN."""


class LangevinSampler(ABC):
    """θ̄_{n+1} = θ̄_n - λ H(θ̄_n, X_{n+1}) + sqrt(2λ/β) Z_{n+1}."""

    name: ClassVar[str]

    def __init__(self, problem: Problem, step_size: float, beta: float):
        self.problem = problem
        self.step_size = positive("step_size", step_size)
        self.beta = positive("beta", beta, finite=False)

    @property
    def noise_scale(self) -> float:
        """sqrt(2λ/β); 0 for β = inf."""
        return math.sqrt(2 * self.step_size / self.beta)

    @property
    @abstractmethod
    def state_dim(self) -> int:
        """The dimension of a state: d, or d+1 with α."""

    @property
    @abstractmethod
    def engine_name(self) -> str:
        """Which engine does the work."""

    @abstractmethod
    def theta(self, states: np.ndarray) -> np.ndarray:
        """The parameters θ (…, d) of states (…, state_dim)."""

    @abstractmethod
    def gradient(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        """H at B states and B data points, (B, state_dim)."""

    def check_data(self, name: str, x: np.ndarray, columns: tuple[str, ...] | None = None) -> np.ndarray:
        """Data rows that this sampler can use; `columns` are their names for an error message."""
        return array(name, x, shape=(None, self.problem.dim))

    @property
    def compiled(self) -> bool:
        """Whether the whole loop is compiled: then runs go one by one, else in batches."""
        return False

    def _chain(
        self, train: np.ndarray, theta0: np.ndarray, indices: np.ndarray, noise: np.ndarray
    ) -> np.ndarray | None:
        """The compiled loop, where there is one."""
        return None

    def run(self, train: np.ndarray, theta0: np.ndarray, indices: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """The state after every update.

        Parameters
        ----------
        train : (N, m) data points
        theta0 : (state_dim,) the common start
        indices : (R, n) rows of `train` that the R runs see, one an update
        noise : (R, n, state_dim) standard normal numbers

        Returns
        -------
        (R, n, state_dim) float64. The start is not among them: [:, 0] is the state after the first update. A run that
        leaves the finite numbers is NaN from that update on, with a `DivergenceWarning`; the others are not touched.
        """
        train = self.check_data("train", train)
        theta0 = array("theta0", theta0, shape=(self.state_dim,))
        indices = np.ascontiguousarray(indices)
        if indices.ndim != 2 or not np.issubdtype(indices.dtype, np.integer):
            raise InvalidInput(
                f"indices must be whole numbers of shape (runs, n_iter), got {indices.dtype} {indices.shape}."
            )
        if indices.size == 0 or indices.min() < 0 or indices.max() >= len(train):
            raise InvalidInput(f"indices must lie in 0 … {len(train) - 1}, the rows of train, and not be empty.")
        noise = array("noise", noise, shape=(*indices.shape, self.state_dim))
        states = self.advance(train, theta0, indices.astype(np.int64), noise)
        diverged = np.flatnonzero(~np.isfinite(states[:, -1]).all(axis=1))
        warn_diverged(diverged, [diverged_at(states[run]) for run in diverged], states.shape[1])
        return states

    def advance(self, train: np.ndarray, theta0: np.ndarray, indices: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """`run` without its checks and warnings, for callers that have checked."""
        states = self._chain(train, theta0, indices, noise)
        return self._loop(train, theta0, indices, noise) if states is None else states

    def numbers(self) -> dict[str, float]:
        """What a user should know of the work so far beside the states, by name."""
        return {}

    def initial_state(self, theta0: str | float | np.ndarray | Sequence[float]) -> np.ndarray:
        """A start for this sampler: one number for every θ_i, or d numbers (α_0 = 0), or d+1 numbers (θ_0, α_0).

        "guess" is the problem's own `guess`, which a network needs: units that start alike stay alike. A sampler
        without α takes the θ_0 of d+1 numbers, so that one setting serves all samplers.
        """
        d = self.problem.n_params
        if isinstance(theta0, str):
            if theta0 != "guess":
                raise InvalidInput(f"theta0 must be numbers, or guess for the problem's own, got {theta0!r}.")
            theta0 = self.problem.guess()
        given = array("theta0", np.atleast_1d(theta0), shape=(None,))
        theta = np.full(d, given[0]) if given.size == 1 else given
        if len(theta) not in (d, d + 1):
            raise InvalidInput(f"theta0 must be one number, {d} numbers, or {d + 1} with alpha, got {given.size}.")
        return array("theta0", np.append(theta, 0.0)[: d + 1][: self.state_dim], shape=(self.state_dim,))

    def _loop(self, train: np.ndarray, theta0: np.ndarray, indices: np.ndarray, noise: np.ndarray) -> np.ndarray:
        runs, n_iter = indices.shape
        states = np.full((runs, n_iter, self.state_dim), np.nan)
        state = np.tile(theta0, (runs, 1))
        alive = np.arange(runs)
        for n in range(n_iter):
            with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is dealt with below
                gradient = self.gradient(state, train[indices[alive, n]])
                state = langevin_update(state, gradient, noise[alive, n], self.step_size, self.noise_scale)
            finite = np.isfinite(state).all(axis=1)
            if not finite.all():
                alive, state = alive[finite], state[finite]
                if not alive.size:
                    break
            states[alive, n] = state
        return states


def warn_diverged(runs: Iterable[int], steps: Iterable[int], n_iter: int) -> None:
    """A `DivergenceWarning` for every run whose step of `diverged_at` is not 0."""
    for run, step in zip(runs, steps, strict=True):
        if step:
            warnings.warn(f"run {run} diverged at update {step} of {n_iter}.", DivergenceWarning, stacklevel=3)


def diverged_at(states: np.ndarray) -> int:
    """The first update, counted from 1, at which the states (n, state_dim) are not finite; 0 if they all are."""
    bad = ~np.isfinite(states).all(axis=-1)
    return int(bad.argmax()) + 1 if bad.any() else 0
