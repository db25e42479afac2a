"""u(t, y) of a linear-index problem at the nodes t = k·2^{-level}, tabulated from the problem's own torch code.

Values come in blocks of a fixed size and place, each row of a block by one call of the same shape, so that the bits of
a value do not depend on what was asked for before, or by which thread.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.kernels.chain_messages import BLOCK
from robust_sgld.problems import LinearIndexProblem


class Table(NamedTuple):
    """Nodes low … low + M - 1 of one level."""

    values: np.ndarray
    """(n, M) u at every y of the axis"""
    low: int
    """a multiple of BLOCK"""
    steep: np.ndarray
    """(M / BLOCK,) max |Δu| / h over each block and all y"""


class IndexTable:
    """The tables of one problem and one axis of y; they only ever grow."""

    def __init__(self, problem: LinearIndexProblem, axis: np.ndarray):
        self.problem, self.axis = problem, axis
        self._levels: dict[int, Table] = {}
        self._lock = threading.Lock()

    def covering(self, level: int, low: int, high: int) -> Table:
        """A table of that level that holds the nodes low … high."""
        known = self._levels.get(level)
        first, last = low // BLOCK, high // BLOCK
        if known is not None and known.low <= low and high < known.low + known.values.shape[1]:
            return known
        with self._lock:
            known = self._levels.get(level)
            if known is not None:
                first = min(first, known.low // BLOCK)
                last = max(last, known.low // BLOCK + len(known.steep) - 1)
            have = range(0) if known is None else range(known.low // BLOCK, known.low // BLOCK + len(known.steep))
            made = {b: self._block(level, b) for b in range(first, last + 1) if b not in have}
            values, steep = [], []
            for b in range(first, last + 1):
                if b in made:
                    values.append(made[b][0])
                    steep.append(made[b][1])
                elif b == have.start:
                    assert known is not None
                    values.append(known.values)
                    steep.append(known.steep)
            grown = Table(np.ascontiguousarray(np.concatenate(values, axis=1)), first * BLOCK, np.concatenate(steep))
            self._levels[level] = grown
            return grown

    def _block(self, level: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        import torch

        h = 2.0**-level
        t = torch.arange(number * BLOCK, (number + 1) * BLOCK + 1, dtype=torch.float64) * h
        rows = np.empty((len(self.axis), BLOCK + 1))
        with torch.no_grad():
            for row, y in zip(rows, self.axis.tolist(), strict=True):
                row[:] = self.problem.u(t, torch.full_like(t, y)).numpy()
        if not np.isfinite(rows).all():
            y, node = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
            raise InvalidInput(
                f"{self.problem!r}: u(t, y) is {rows[y, node]} at t={float(t[node]):g}, y={self.axis[y]:g}; "
                "the sum over the grid needs it finite."
            )
        return rows[:, :-1], np.array([np.abs(np.diff(rows, axis=1)).max() / h])
