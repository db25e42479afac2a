"""Random streams: one independent pair of streams a run, so that run k does not depend on its company.

Run k of seed s draws its data indices from `SeedSequence(s, spawn_key=(k, 0))` and its Gaussian noise from
`SeedSequence(s, spawn_key=(k, 1))`. Hence run k is the same alone, in a batch, with any number of workers and on any
machine; a shorter run is a prefix of a longer one; and two samplers with the same seed see the same data points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from robust_sgld.checks import InvalidInput, integer


class Draws(NamedTuple):
    """What drives R runs of n updates: X_{n+1} by its row in the training set, and Z_{n+1}."""

    indices: np.ndarray
    """(R, n) int64, rows of the training set."""
    noise: np.ndarray
    """(R, n, dim) float64, standard normal."""


def checked_seed(seed: int, name: str = "seed") -> int:
    """A whole number of 0 … 2^63-1, which every store and every file can hold."""
    seed = integer(name, seed, least=0)
    if seed >= 2**63:
        raise InvalidInput(f"{name} must be below 2^63, got {seed}.")
    return seed


def draws(seed: int, runs: int | Iterable[int], n_iter: int, n_data: int, dim: int) -> Draws:
    """Indices and noise of some runs.

    `runs` is a number of runs (0 … runs-1) or the run numbers themselves; `dim` is the dimension of the sampler's
    state (d+1 for robust SGLD, d for SGLD).
    """
    seed = checked_seed(seed)
    n_iter = integer("n_iter", n_iter, least=1)
    n_data = integer("n_data", n_data, least=1)
    dim = integer("dim", dim, least=1)
    if isinstance(runs, Iterable):
        numbers = [integer("run number", k, least=0) for k in runs]
    else:
        numbers = list(range(integer("runs", runs, least=1)))
    indices = np.empty((len(numbers), n_iter), dtype=np.int64)
    noise = np.empty((len(numbers), n_iter, dim))
    for row, k in enumerate(numbers):
        indices[row] = _stream(seed, k, 0).integers(0, n_data, size=n_iter)
        _stream(seed, k, 1).standard_normal(out=noise[row])
    return Draws(indices, noise)


def _stream(seed: int, run: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run, purpose))))
