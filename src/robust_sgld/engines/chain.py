"""Engine `chain`: the sum over the whole product grid by passing messages along its axes, at a cost linear in m.

For any loss of one linear index with p = 2; see `robust_sgld.kernels.chain_messages` for how. Its one error is that of
interpolating the messages, and it is controlled: every sum comes with an estimate, a sum whose estimate exceeds the
tolerance is done again with half the spacing, and along a run the sum is compared with one of half the spacing at
intervals; where the two differ by more than the tolerance the run goes back to the last state that agreed.
"""

from __future__ import annotations

import math

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO, iota, split
from robust_sgld.engines.base import Accuracy, Engine, LogSum
from robust_sgld.engines.index_table import IndexTable, Table
from robust_sgld.kernels import chain_loop as loop
from robust_sgld.kernels import chain_messages as kernel
from robust_sgld.kernels.chain_maximum import best_point
from robust_sgld.kernels.chain_workspace import workspace
from robust_sgld.problems import LinearIndexProblem, Problem

FIRST_LEVEL = 4
"""Sums start with nodes 2^-4 apart."""
CHECK_EVERY = 500
"""Updates between two comparisons with half the spacing."""
MAXIMUM_LEVELS = 6, 12
MAXIMUM_GAP = 1e-6


class ChainEngine(Engine):
    """Compiled; equal to the literal sum within `tolerance` on log Σ_j F_j."""

    name = "chain"
    compiled = True

    def __init__(self, problem: Problem, dro: DRO, accuracy: Accuracy):
        super().__init__(problem, dro, accuracy)
        assert isinstance(problem, LinearIndexProblem)
        self.tolerance = accuracy.tolerance
        self._table = IndexTable(problem, self.grid.axis)
        # what is left out on each axis, of each window and of y is below e^-cut of the sum each
        parts = problem.dim * (self.grid.points_per_axis + 2)
        self._cut = math.log(parts) - math.log(min(self.tolerance, 1.0)) + 5.0
        self.sent_back = 0
        """How often a comparison with half the spacing failed so far and updates were done again."""

    @classmethod
    def refusal(cls, problem: Problem, dro: DRO) -> str | None:
        if not isinstance(problem, LinearIndexProblem):
            return f"it is for losses of one linear index (LinearIndexProblem), not for {type(problem).__name__}."
        if type(problem).U is not LinearIndexProblem.U:
            return f"{type(problem).__name__} has a U of its own, and the engine knows its u(t, y) alone."
        if dro.p != 2:
            return f"it needs p=2, and p is {dro.p:g}."
        return None

    @classmethod
    def microseconds(cls, problem: Problem, dro: DRO) -> float:
        return (8.0 + 3.7 * problem.dim) * (0.5 + dro.grid(problem.dim).points_per_axis / 26)

    def log_sum(self, theta_bar: np.ndarray, x: np.ndarray) -> LogSum:
        theta_bar, x = np.ascontiguousarray(theta_bar), np.ascontiguousarray(x)
        value, cost = np.empty(len(x)), np.empty(len(x))
        grad_u = np.empty((len(x), self.problem.n_params))
        scratch, done = _Scratch(self), 0
        while done < len(x):
            status, level, done = loop.log_sums(
                theta_bar, x, self.grid.axis, self.dro.delta, self._cut, scratch.tables, FIRST_LEVEL, self.tolerance,
                scratch.ws, value, grad_u, cost, done,
            )  # fmt: skip
            if status != kernel.DONE:
                scratch.provide(status, level, theta_bar[done])
        return LogSum(value, grad_u, cost)

    def maximum(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(B,) the value at a grid point, below the true maximum by at most the gap of `maximum_bounds`."""
        return self.maximum_bounds(theta_bar, x)[0]

    def maximum_bounds(self, theta_bar: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on max_j {U(θ,ξ_j) - ι(α)|x-ξ_j|²}, each (B,): the lower one is attained at a grid point.

        The spacing is halved until they are `MAXIMUM_GAP` apart, or narrowest; there they may stay apart by about
        max|∂u/∂t| times the spacing where two choices of the adversary tie.
        """
        theta_bar, x = np.ascontiguousarray(theta_bar), np.ascontiguousarray(x)
        lower, upper = np.empty(len(x)), np.empty(len(x))
        scratch = _Scratch(self)
        for i in range(len(x)):
            for level in range(MAXIMUM_LEVELS[0], MAXIMUM_LEVELS[1] + 1):
                lower[i], upper[i] = self._maximum_at(level, theta_bar[i], x[i], scratch)
                if upper[i] - lower[i] <= MAXIMUM_GAP:
                    break
        return lower, upper

    def _maximum_at(self, level: int, theta_bar: np.ndarray, x: np.ndarray, scratch: _Scratch) -> tuple[float, float]:
        import torch

        axis, choice = self.grid.axis, np.empty(len(x) - 1, dtype=np.int64)
        status = kernel.NEED_TABLE
        while status != kernel.DONE:
            table = scratch.tables[level - loop.WIDEST]
            status, upper = best_point(
                theta_bar, x, axis, 2.0**-level, table.values, table.low, choice, scratch.ws.request
            )
            if status != kernel.DONE:
                scratch.provide(status, level, theta_bar)
        theta, alpha = split(theta_bar)
        points = np.column_stack([np.tile(axis[choice], (len(axis), 1)), axis])
        with torch.no_grad():
            u = self.problem.U(torch.from_numpy(theta.copy()), torch.from_numpy(points)).numpy()
        lower = float((u - iota(alpha) * ((x - points) ** 2).sum(axis=1)).max())
        return lower, max(upper, lower)

    def chain(
        self,
        train: np.ndarray,
        theta0: np.ndarray,
        indices: np.ndarray,
        noise: np.ndarray,
        step_size: float,
        noise_scale: float,
    ) -> np.ndarray:
        states = np.empty(noise.shape)
        for r in range(len(states)):
            self._run(train, theta0, indices[r], noise[r], step_size, noise_scale, states[r])
        return states

    def _run(
        self,
        train: np.ndarray,
        theta0: np.ndarray,
        indices: np.ndarray,
        noise: np.ndarray,
        step_size: float,
        noise_scale: float,
        states: np.ndarray,
    ) -> None:
        """One run; the spacing follows the estimated error, and every so often it is checked against half of it."""
        scratch, control = _Scratch(self), np.array([FIRST_LEVEL, 0, 0])
        state, n, least = theta0.copy(), 0, loop.WIDEST
        checked, agreed = -1, state.copy()
        while n < len(states):
            if n % CHECK_EVERY == 0 and n != checked:
                level = self._disagreeing(state, train[indices[n]], int(control[0]), scratch)
                if level is None:
                    checked, agreed = n, state.copy()
                else:
                    self.sent_back += 1
                    n, state, checked, least = max(checked, 0), agreed.copy(), -1, level + 1
                    control[:] = least, 0, 0
                    if least > loop.NARROWEST:
                        raise self._too_sharp(state)
                    continue
            stop = min((n // CHECK_EVERY + 1) * CHECK_EVERY, len(states))
            status, level, n = loop.robust_chain(
                train, state, n, stop, indices, noise, step_size, noise_scale, self.dro.eta1, self.dro.eta2,
                self.grid.axis, self.dro.delta, self._cut, scratch.tables, least, self.tolerance, scratch.ws, states,
                control,
            )  # fmt: skip
            if status != kernel.DONE:
                scratch.provide(status, level, state)

    def _disagreeing(self, state: np.ndarray, x: np.ndarray, first: int, scratch: _Scratch) -> int | None:
        """None where half the spacing and wider windows give the same log-sum within the tolerance, else the level."""
        level, value = self._settle(state, x, first, self._cut, self.tolerance, scratch)
        finer = min(level + 1, loop.NARROWEST)
        _, other = self._settle(state, x, finer, self._cut + 5.0, math.inf, scratch)
        return None if abs(value - other) <= self.tolerance else level

    def _settle(
        self, state: np.ndarray, x: np.ndarray, first: int, cut: float, tolerance: float, scratch: _Scratch
    ) -> tuple[int, float]:
        """The level that the sum needs, from `first` on, and its value."""
        out = np.empty(len(state))
        while True:
            status, level, value, _ = loop.settled_log_sum(
                state, x, self.grid.axis, self.dro.delta, cut, scratch.tables, first, tolerance, scratch.ws, out
            )
            if status == kernel.DONE:
                return level, value
            scratch.provide(status, level, state)

    def _too_sharp(self, theta_bar: np.ndarray) -> InvalidInput:
        return InvalidInput(
            f"engine=chain cannot reach tolerance={self.tolerance:g} at theta_bar={np.round(theta_bar, 6)} even with "
            f"{2.0**-loop.NARROWEST:.1e} between the nodes of its table: with delta={self.dro.delta:g} the sum is too "
            "sharp; a larger tolerance or delta would do."
        )


class _Scratch:
    """Workspace and tables of one caller; grown when the kernel asks for it."""

    def __init__(self, engine: ChainEngine):
        self._engine = engine
        self._n, self._dim = engine.grid.points_per_axis, engine.problem.dim
        self.ws = workspace(self._n, self._dim)
        nothing = Table(np.empty((self._n, 0)), 0, np.empty(0))
        self.tables = (nothing,) * (loop.NARROWEST - loop.WIDEST + 1)
        """of every level, as far as they are needed"""

    def provide(self, status: int, level: int, theta_bar: np.ndarray) -> None:
        """What the kernel ended for the lack of."""
        request = self.ws.request
        if status == kernel.NEED_TABLE:
            tables = list(self.tables)
            tables[level - loop.WIDEST] = self._engine._table.covering(level, int(request[0]), int(request[1]))
            self.tables = tuple(tables)
        elif status == kernel.NEED_SPACE:
            nodes = max(2 * int(request[1]), len(self.ws.message))
            self.ws = workspace(self._n, self._dim, nodes, max(2 * int(request[2]), len(self.ws.exponential)))
        elif status == loop.TOO_SHARP:
            raise self._engine._too_sharp(theta_bar)
        else:
            raise InvalidInput(
                f"engine=chain: theta_bar={np.round(theta_bar, 3)} spreads the index <w,z>+b over more than "
                f"{kernel.MAX_NODES} nodes that are {2.0**-level:g} apart; a smaller step_size keeps theta smaller."
            )
