"""The theorem's bound on the excess risk of a run, term by term."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

from robust_sgld.theory.constants import PRINTED, RECONSTRUCTED, TheoryConstants, mesh_factor
from robust_sgld.theory.lognumber import LogNumber, Real, decayed


@dataclass(frozen=True)
class Term:
    """One term of eqn:eerub, and what makes it smaller."""

    name: str
    formula: str
    remedy: str
    status: str
    value: LogNumber


@dataclass(frozen=True)
class Bound:
    """E[u(θ_n)] - inf u ≤ the sum of the terms (theorem:excess risk), for step sizes in (0, λ_max,δ)."""

    terms: tuple[Term, ...]

    @property
    def total(self) -> LogNumber:
        return reduce(add, (term.value for term in self.terms))

    @property
    def dominating(self) -> Term:
        """The largest term."""
        return max(self.terms, key=lambda term: term.value)

    @property
    def dominating_printed(self) -> Term:
        """The largest of the terms whose constants the paper prints."""
        return max((term for term in self.terms if term.status == PRINTED), key=lambda term: term.value)


def excess_risk_bound(constants: TheoryConstants, *, m: int, ell: int, j: int, step_size: Real, n_iter: Real) -> Bound:
    """C1 e^{-ċλn/4} + C2 λ^{1/4} + C3 + δ m(ℓ+j) log 2 + √m/2^j (C4 + C5 + C6 e^{-aλ(n+1)/2}) (eqn:eerub).

    Notes
    -----
    The paper counts N = 2^{m(ℓ+j)} grid points; δ log N with the points that Ξ really holds is smaller.
    """
    c, step, n = constants, LogNumber.of(step_size), LogNumber.of(n_iter)
    mesh = mesh_factor(m, j)
    return Bound(
        (
            Term(
                "convergence",
                "C1 e^{-ċλn/4}",
                "a smaller beta or a larger delta (both in E), then more updates",
                RECONSTRUCTED,
                decayed(c.C1, c.c_dot * step * n / 4),
            ),
            Term(
                "step",
                "C2 λ^{1/4}",
                "a smaller beta or a larger delta (both in E), then a smaller step_size",
                RECONSTRUCTED,
                c.C2 * step.root(4),
            ),
            Term("temperature", "C3", "a larger beta", PRINTED, c.C3),
            Term("smoothing", "δ m(ℓ+j) log 2", "a smaller delta", PRINTED, smoothing_term(c.delta, m, ell, j)),
            Term("quadrature", "√m/2^j C4", "a finer grid (larger j)", PRINTED, mesh * c.C4),
            Term("moments", "√m/2^j C5", "a finer grid (larger j)", PRINTED, mesh * c.C5),
            Term(
                "start",
                "√m/2^j C6 e^{-aλ(n+1)/2}",
                "a finer grid (larger j), more updates, or a start nearer to 0",
                PRINTED,
                decayed(mesh * c.C6, c.a * step * (n + 1) / 2),
            ),
        )
    )


def smoothing_term(delta: Real, m: int, ell: int, j: int) -> LogNumber:
    """δ m(ℓ+j) log 2 = δ log N with the paper's N = 2^{m(ℓ+j)}."""
    return LogNumber.of(delta) * (m * (ell + j)) * LogNumber.of(2).ln
