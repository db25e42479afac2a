"""The dyadic grid Ξ ∩ K_{ℓ,j}^m, the floor map onto it, and the measure μ_{0,ℓ,j} that it carries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robust_sgld.checks import InvalidInput, array, integer, real


@dataclass(frozen=True)
class Grid:
    """Ξ ∩ K_{ℓ,j}^m for Ξ = [lower, upper]^m (label defn:dyadic).

    K_{ℓ,j} = {-2^{ℓ-1}, -2^{ℓ-1} + 2^{-j}, …, 2^{ℓ-1} - 2^{-j}}.

    Refused are a Ξ that does not lie in [-2^{ℓ-1}, 2^{ℓ-1})^m, and a lower end that is not a multiple of 2^{-j}: the
    floor of a point of Ξ would leave Ξ, and lemma:finite_grid would not hold.

    Notes
    -----
    The paper writes N = 2^{m(ℓ+j)}, the size of all of K^m. `size` is the number of points that Ξ really holds (13^4
    for the published experiment). N only shifts V^δ by a constant; the gradient is the same.
    """

    dim: int
    ell: int
    j: int
    support: tuple[float, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", integer("dim", self.dim, least=1))
        object.__setattr__(self, "ell", integer("ell", self.ell, least=1))
        object.__setattr__(self, "j", integer("j", self.j, least=0))
        try:
            lower, upper = self.support
        except (TypeError, ValueError):
            raise InvalidInput(f"support must be a pair (lower, upper), got {self.support!r}.") from None
        lower, upper = real("support's lower end", lower), real("support's upper end", upper)
        object.__setattr__(self, "support", (lower, upper))
        if self.ell + self.j > 40:
            raise InvalidInput(
                f"ell + j must be at most 40, got {self.ell + self.j}: an axis would have 2^(ell+j) points."
            )
        if lower >= upper:
            raise InvalidInput(f"support must have its lower end below its upper end, got [{lower:g}, {upper:g}].")
        half = 2.0 ** (self.ell - 1)
        if lower < -half or upper >= half:
            need = 1
            while need < 40 and (lower < -(2.0 ** (need - 1)) or upper >= 2.0 ** (need - 1)):
                need += 1
            raise InvalidInput(
                f"support [{lower:g}, {upper:g}] must lie inside [-2^(ell-1), 2^(ell-1)) = [{-half:g}, {half:g}) "
                f"for ell={self.ell}; ell={need} is large enough."
            )
        if lower != math.floor(lower / self.step) * self.step:
            raise InvalidInput(
                f"support's lower end {lower:g} must be a multiple of 2^-j = {self.step:g}, else the floor of a data "
                f"point leaves the support; {math.floor(lower / self.step) * self.step:g} would do."
            )

    @property
    def step(self) -> float:
        """The mesh 2^{-j}."""
        return 2.0**-self.j

    @property
    def points_per_axis(self) -> int:
        """n, the size of [lower, upper] ∩ K_{ℓ,j}, without forming it."""
        lower, upper = self.support
        return math.floor(upper / self.step) - round(lower / self.step) + 1

    @cached_property
    def axis(self) -> np.ndarray:
        """(n,) the points of [lower, upper] ∩ K_{ℓ,j}, ascending."""
        return (round(self.support[0] / self.step) + np.arange(self.points_per_axis)) * self.step

    @property
    def size(self) -> int:
        """The number of grid points n^m, an exact (arbitrarily large) integer."""
        return self.points_per_axis**self.dim

    @property
    def log_size(self) -> float:
        """log N, without forming N."""
        return self.dim * math.log(self.points_per_axis)

    def points(self) -> np.ndarray:
        """(N, m) every grid point; the last coordinate runs fastest."""
        mesh = np.meshgrid(*[self.axis] * self.dim, indexing="ij")
        return np.stack([c.ravel() for c in mesh], axis=-1)

    def check_inside(self, name: str, x: np.ndarray, columns: tuple[str, ...] | None = None) -> np.ndarray:
        """`x` as an (n, m) array of points of Ξ; the error names the row and the column."""
        x = array(name, x, shape=(None, self.dim))
        lower, upper = self.support
        outside = (x < lower) | (x > upper)
        if outside.any():
            row, column = (int(i) for i in np.argwhere(outside)[0])
            label = columns[column] if columns else str(column)
            raise InvalidInput(
                f"{name}: row {row}, column {label} is {x[row, column]:g}, outside the support "
                f"[{lower:g}, {upper:g}] ({int(outside.any(axis=1).sum())} of {len(x)} rows are outside)."
            )
        return x

    def floor(self, x: np.ndarray) -> np.ndarray:
        """[x]_j, the floor map of eqn:gridfun: 2^{-j} ⌊2^j x⌋, coordinate by coordinate."""
        return np.floor(np.asarray(x, dtype=np.float64) / self.step) * self.step

    def measure(self, x: np.ndarray, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """μ_{0,ℓ,j} of the empirical measure of the rows of x (eqn:dprobmeasure): atoms (a, m) and weights (a,).

        Where there are more than `most` atoms, those at `most` equally spaced quantiles of the rows in lexicographic
        order stand for all: the same for the same rows, and each row with the same share.
        """
        atoms, counts = np.unique(self.floor(self.check_inside("data", x)), axis=0, return_counts=True)
        if most is not None and len(atoms) > most:
            rows = (np.arange(most) + 0.5) / most * counts.sum()
            kept, counts = np.unique(np.searchsorted(np.cumsum(counts), rows), return_counts=True)
            atoms = atoms[kept]
        return atoms, counts / counts.sum()
