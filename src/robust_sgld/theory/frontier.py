"""What the adversary can gain at each distance: the table that u^{ℓ,j}(θ), the best 𝔞 and the worst case are read from.

On a regular grid |x-ξ|^p = (2^{-j})^p s^{p/2} with s the squared distance in steps, a whole number. For every atom x_k
of μ_{0,ℓ,j} the table holds

    gain_k(s) = max { U(θ,ξ) : ξ in the grid, |x_k-ξ|² = s 4^{-j} },

so that max_ξ {U(θ,ξ) - 𝔞|x_k-ξ|^p} = max_s {gain_k(s) - 𝔞 c(s)} for every 𝔞 and p, from a few hundred numbers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from robust_sgld.checks import InvalidInput, array
from robust_sgld.dro import DRO
from robust_sgld.grid import Grid
from robust_sgld.problems import Problem

MAX_POINTS = 20_000_000
"""The most grid points at which U is tabulated."""
MAX_TABLE = 50_000_000
"""The most numbers (atoms times distances) of a table."""
MAX_VISITS = 10_000_000_000
"""The most visits of a grid point that filling a table may take, about ten seconds."""
BLOCK = 8192
"""The grid points whose U is computed at once."""


class Frontier:
    """gain_k(s) for the atoms of one measure and one θ at a time."""

    def __init__(self, problem: Problem, dro: DRO, atoms: np.ndarray, weights: np.ndarray):
        self.problem, self.dro, self.atoms, self.weights = problem, dro, atoms, weights
        self.grid = grid = dro.grid(problem.dim)
        self.check(grid, atoms)
        n = grid.points_per_axis
        self._points = grid.points()
        self._indices = np.rint((atoms - grid.axis[0]) / grid.step).astype(np.int64)
        self.squared = np.arange(grid.dim * (n - 1) ** 2 + 1)
        """s, the squared distances in steps"""
        with np.errstate(over="ignore", under="ignore"):
            self.cost = (grid.step * np.sqrt(self.squared)) ** dro.p
        """c(s) = |x-ξ|^p"""
        if not (np.isfinite(self.cost).all() and (self.cost[1:] > 0).all()):
            raise InvalidInput(f"p={dro.p:g} is too large: |x-x'|^p leaves the floating-point numbers on this grid.")

    @staticmethod
    def check(grid: Grid, atoms: np.ndarray, most_visits: int = MAX_VISITS) -> None:
        """Refuses what is too large to be tabulated."""
        n = grid.points_per_axis
        table = len(atoms) * grid.dim * (n - 1) ** 2
        # one pass over the grid for all atoms that differ in the last coordinate alone; they follow each other
        passes = 1 + int(np.any(np.diff(atoms[:, :-1], axis=0) != 0, axis=1).sum())
        if grid.size > MAX_POINTS or table > MAX_TABLE or passes * grid.size > most_visits:
            raise InvalidInput(
                f"robust values are exact by tabulating U, and a grid of {n}^{grid.dim} points with {len(atoms)} atoms "
                f"is too large for that; a smaller dro.j or fewer columns would fit."
            )

    def losses(self, theta: np.ndarray) -> np.ndarray:
        """(N,) U(θ, ·) at every grid point."""
        import torch

        state = torch.tensor(np.asarray(theta, dtype=np.float64))
        with torch.no_grad():
            # blocks that stay in the cache and on one thread: torch's threads cost more than they save here
            parts = [self.problem.U(state, points) for points in torch.from_numpy(self._points).split(BLOCK)]
        return array("U on the grid", torch.cat(parts).numpy(), shape=(len(self._points),))

    def gains(self, theta: np.ndarray) -> np.ndarray:
        """(A, S) gain_k(s); -inf where no grid point lies at that distance."""
        table = np.full((len(self.atoms), len(self.squared)), -np.inf)
        _fill(self.losses(theta), len(self.grid.axis), self._indices, table)
        return table

    def points_at(self, atom: int, losses: np.ndarray, gain: float, squared: int) -> np.ndarray:
        """(k, m) the grid points at squared distance s from the atom at which U equals the gain."""
        points = self._points[losses == gain]
        steps = np.rint((points - self.atoms[atom]) / self.grid.step)
        return points[(steps**2).sum(1) == squared]


def frontier_of(problem: Problem, dro: DRO, data: np.ndarray) -> Frontier:
    """Of μ_{0,ℓ,j} made of the data rows."""
    grid: Grid = dro.grid(problem.dim)
    return Frontier(problem, dro, *grid.measure(data))


@njit(cache=True, nogil=True)
def _fill(losses, n, indices, table):  # type: ignore[no-untyped-def]
    """table[k, s] = the largest loss at squared distance s from atom k; the grid's last coordinate runs fastest.

    First the largest loss for each distance in all coordinates but the last, best[s, c] with c the last one: a line of
    the grid at a time, and once for all atoms that differ in the last coordinate alone, which follow each other.
    """
    dim = indices.shape[1]
    lines = losses.size // n
    square = np.empty((dim, n), dtype=np.int64)
    best = np.empty(((dim - 1) * (n - 1) ** 2 + 1, n))
    for k in range(indices.shape[0]):
        if k == 0 or np.any(indices[k, : dim - 1] != indices[k - 1, : dim - 1]):
            best[:] = -np.inf
            for i in range(dim - 1):
                for c in range(n):
                    square[i, c] = (c - indices[k, i]) ** 2
            for line in range(lines):
                rest, s = line, 0
                for i in range(dim - 2, -1, -1):
                    s += square[i, rest % n]
                    rest //= n
                at = line * n
                for c in range(n):
                    value, known = losses[at + c], best[s, c]
                    best[s, c] = value if value > known else known
        row, inner = table[k], square[dim - 1]
        for c in range(n):
            inner[c] = (c - indices[k, dim - 1]) ** 2
        for s in range(best.shape[0]):
            if best[s, 0] == -np.inf:  # no line at that distance
                continue
            for c in range(n):
                if best[s, c] > row[s + inner[c]]:
                    row[s + inner[c]] = best[s, c]
