"""Scratch arrays of message passing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from robust_sgld.kernels.chain_filter import POINTS


class Workspace(NamedTuple):
    """Scratch arrays of one chain; k axes of z, n points an axis. `space` says how many numbers the flat ones hold."""

    order: np.ndarray  # (k,) the axes in the order they are summed
    penalty: np.ndarray  # (m, n) ι(x_i-z)²/δ
    gain: np.ndarray  # (n,)
    first: np.ndarray  # (k,) points of each axis that matter
    last: np.ndarray  # (k,)
    low: np.ndarray  # (k,) the nodes at which A_i is computed, both ends included
    high: np.ndarray  # (k,)
    start: np.ndarray  # (k,) the first node at which A_i is stored
    stored: np.ndarray  # (k,) how many
    at: np.ndarray  # (k,) where A_i stands in the flat arrays
    rows: np.ndarray  # (k,) where its exponentials stand
    centre: np.ndarray  # (k,) mean of τ_i
    spread: np.ndarray  # (k,) Q_i
    shift: np.ndarray  # (k, n)
    filters: np.ndarray  # (k, n, POINTS)
    idle: np.ndarray  # (k, n) points whose terms turned out to be negligible at every node
    request: np.ndarray  # (3,)
    message: np.ndarray  # flat
    slope: np.ndarray  # flat, h A_i'
    adjoint: np.ndarray  # flat
    inverse: np.ndarray  # flat, 1 / Σ of the exponentials
    exponential: np.ndarray  # flat
    top: np.ndarray  # four more, of one message
    total: np.ndarray
    first_message: np.ndarray
    first_inverse: np.ndarray


def workspace(n: int, dim: int, nodes: int = 4096, space: int = 1 << 16) -> Workspace:
    """For data of dimension m = dim on n points an axis; `nodes` and `space` as ws.request asks for them."""
    k = dim - 1
    integers = np.zeros((9, k), dtype=np.int64)
    return Workspace(
        integers[0], np.zeros((dim, n)), np.zeros(n), *integers[1:], np.zeros(k), np.zeros(k),
        np.zeros((k, n), dtype=np.int64), np.zeros((k, n, POINTS)), np.zeros((k, n), dtype=np.bool_),
        np.zeros(3, dtype=np.int64),
        *np.zeros((4, nodes)), np.zeros(space), *np.zeros((4, nodes + 4 * POINTS)),
    )  # fmt: skip
