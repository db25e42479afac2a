"""Raw columns into Ξ by an affine map a column, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robust_sgld.checks import InvalidInput, array, positive, real

NORMAL_MAD = 1.482602218505602
"""standard deviation over median absolute deviation of a normal law: 1/Φ^{-1}(3/4)"""
NORMAL_MEAN_AD = 1.2533141373155001
"""standard deviation over mean absolute deviation of a normal law: sqrt(π/2)"""


@dataclass(frozen=True, eq=False)
class Scaling:
    """x = (raw - centre) / scale, column by column; y is the last column."""

    centre: np.ndarray
    """(m,)"""
    scale: np.ndarray
    """(m,) above 0"""
    clipped: np.ndarray
    """(m,) how many training values of a column lay outside Ξ and were moved to its edge"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", array("scaling centre", self.centre, shape=(None,)))
        object.__setattr__(self, "scale", array("scaling scale", self.scale, shape=self.centre.shape))
        object.__setattr__(self, "clipped", np.asarray(self.clipped, dtype=np.int64).reshape(self.centre.shape))
        if (self.scale <= 0).any():
            raise InvalidInput("the scale of every column must be above 0.")

    def apply(self, raw: np.ndarray) -> np.ndarray:
        """Rows (…, m) in the file's units to standardised ones."""
        return (raw - self.centre) / self.scale

    def undo(self, x: np.ndarray) -> np.ndarray:
        """Standardised rows (…, m) to the file's units."""
        return x * self.scale + self.centre

    def features(self, raw: np.ndarray) -> np.ndarray:
        """The same for features alone, (…, m-1)."""
        return (raw - self.centre[:-1]) / self.scale[:-1]

    def target(self, y: np.ndarray) -> np.ndarray:
        """A standardised target or prediction in the file's units."""
        return y * self.scale[-1] + self.centre[-1]

    def index(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (…, m-1) and intercept (…) of the same index on raw features, for θ = (w, b).

        ⟨w, (z-c)/s⟩ + b = ⟨w/s, z⟩ + b - ⟨w/s, c⟩.
        """
        weights = theta[..., :-1] / self.scale[:-1]
        return weights, theta[..., -1] - weights @ self.centre[:-1]


def standardise(
    raw: np.ndarray,
    support: tuple[float, float] = (-3.0, 3.0),
    reach: float | None = 4.0,
    target_range: tuple[float, float] | None = None,
) -> tuple[np.ndarray, Scaling]:
    """Training rows (n, m) in Ξ = [support]^m, and the map that brought them there.

    The centre of a column is its median and its spread 1.4826 times the median absolute deviation (the standard
    deviation of a normal law), because the mean and the standard deviation would follow the outliers that the method
    is to withstand: half of the values can be moved anywhere before these are lost. Median ± reach·spread goes to the
    ends of the support (for y of `target_range`, where it is given). Where more than half of the values are equal, the
    spread is sqrt(π/2) times the mean absolute deviation; a column of two values (a dummy, a label) has its middle as
    the centre and half the difference as the spread, and a target of two values goes to the ends of its range.

    The sampler refuses points outside Ξ. Scaling so that the farthest row fits would let one outlier press all others
    onto a few grid points, and dropping rows would hide it; so what lies outside Ξ is moved to its edge, column by
    column, and counted. `reach=None` scales all rows in, for data without outliers.
    """
    raw = array("rows", raw, shape=(None, None))
    lower, upper = _range("support", support)
    low, high = (lower, upper) if target_range is None else _range("target_range", target_range)
    if low < lower or high > upper:
        raise InvalidInput(f"target_range ({low:g}, {high:g}) must lie in the support ({lower:g}, {upper:g}).")
    centre, scale = np.empty(raw.shape[1]), np.empty(raw.shape[1])
    for i, column in enumerate(raw.T):
        last = i == raw.shape[1] - 1
        left, right = (low, high) if last else (lower, upper)
        middle, spread, binary = centre_and_spread(column)
        if spread == 0:
            width = 1.0
        elif last and binary:
            width = spread
        else:
            width = float(np.abs(column - middle).max()) if reach is None else positive("reach", reach) * spread
        scale[i] = 2 * width / (right - left)
        centre[i] = middle - scale[i] * (left + right) / 2
    scaled = (raw - centre) / scale
    # a value that is meant to lie on the edge may miss it by a rounding error, which is no clipping
    slack = 1e-9 * (upper - lower)
    clipped = ((scaled < lower - slack) | (scaled > upper + slack)).sum(axis=0)
    return np.clip(scaled, lower, upper), Scaling(centre, scale, clipped)


def centre_and_spread(column: np.ndarray) -> tuple[float, float, bool]:
    """Of one column, see `standardise`, and whether it has exactly two values; a constant has spread 0."""
    least, most = float(column.min()), float(column.max())
    if ((column == least) | (column == most)).all():
        return (least + most) / 2, (most - least) / 2, least < most
    middle = float(np.median(column))
    away = np.abs(column - middle)
    return middle, NORMAL_MAD * float(np.median(away)) or NORMAL_MEAN_AD * float(away.mean()), False


def _range(name: str, value: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a pair (low, high), got {value!r}.") from None
    low, high = real(name, low), real(name, high)
    if low >= high:
        raise InvalidInput(f"{name} must have low < high, got ({low:g}, {high:g}).")
    return low, high
