"""Algorithm 1: ℓ, j, δ, β, λ and n for a wanted excess risk ε, in the order in which each is well defined.

The paper sets ċ, C1, C2 and λ_max before the δ and β that they depend on exist. Here:
ℓ → j → δ → L̃_δ, λ_max → β → ċ, C1, C2 → λ → n. Each choice lies strictly, and barely, inside its printed interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from robust_sgld import checks
from robust_sgld.dro import DRO
from robust_sgld.problems import Problem
from robust_sgld.theory.bound import Bound, excess_risk_bound
from robust_sgld.theory.constants import TheoryConstants, mesh_factor
from robust_sgld.theory.lognumber import CONTEXT, LogNumber

MARGIN = Decimal(2) ** -20
"""How far inside its interval, in ln x, a choice lies."""
RELATIVE_MARGIN = Decimal("1e-30")
"""The same as a share of |ln x|: 30 digits above the rounding of logarithms of any size."""
SMALL = Decimal(10) ** 15
"""Up to here n is rounded up to a whole number."""


@dataclass(frozen=True)
class Inequality:
    """left < right, one step of the corollary's proof."""

    label: str
    formula: str
    left: LogNumber
    right: LogNumber

    @property
    def holds(self) -> bool:
        return self.left < self.right


@dataclass(frozen=True)
class Algorithm1:
    """What Algorithm 1 chooses, and the ends of the open intervals that it chooses from."""

    epsilon: float
    m: int
    ell: int
    j: int
    delta: LogNumber
    delta_below: LogNumber
    beta: LogNumber
    beta_above: LogNumber
    step_size: LogNumber
    step_size_below: LogNumber
    n_iter: LogNumber
    n_iter_above: LogNumber
    grid_points: LogNumber
    """The number of points of Ξ ∩ K_{ℓ,j}^m."""
    constants: TheoryConstants
    """At the δ and β chosen."""

    @property
    def bound(self) -> Bound:
        """The theorem's bound at these choices."""
        return excess_risk_bound(
            self.constants, m=self.m, ell=self.ell, j=self.j, step_size=self.step_size, n_iter=self.n_iter
        )

    def inequalities(self) -> list[Inequality]:
        """The choices substituted into every inequality of the corollary's proof, and into the theorem itself."""
        c, mesh = self.constants, mesh_factor(self.m, self.j)
        epsilon = LogNumber.of(self.epsilon)
        fifth, tenth = epsilon / 5, epsilon / 10
        terms = {term.name: term.value for term in self.bound.terms}
        moments = mesh * c.C4_fraktur * (c.M1_fraktur * 2 + 1) * c.step_max
        return [
            Inequality("eqn:bound_decomp_a", "√m/2^j (C4 + ℭ4(1/a+2b)) < ε/5", mesh * _mesh_constant(c), fifth),
            Inequality("eqn:bound_decomp_b", "δ m(ℓ+j) log 2 < ε/10", terms["smoothing"], tenth),
            Inequality("eqn:bound_decomp_c", "√m/2^j ℭ4 (2𝔐1+1) λ_max < ε/10", moments, tenth),
            Inequality("eqn:bound_decomp_d", "C3 < ε/10", c.C3, tenth),
            Inequality(
                "eqn:bound_decomp_e", "√m/2^j ℭ4 (d+1)/β < ε/10", mesh * c.C4_fraktur * (c.d + 1) / c.beta, tenth
            ),
            Inequality("defn:step", "λ < λ_max", self.step_size, c.step_max),
            Inequality("eqn:bound_decomp_f", "C2 λ^{1/4} < ε/5", terms["step"], fifth),
            Inequality(
                "eqn:bound_decomp_g",
                "C1 e^{-ċλn/4} + √m/2^j C6 e^{-aλ(n+1)/2} < ε/5",
                terms["convergence"] + terms["start"],
                fifth,
            ),
            Inequality("corollary:main_result", "the theorem's bound < ε", self.bound.total, epsilon),
        ]


def algorithm1(problem: Problem, dro: DRO, epsilon: float, theta0: float | Sequence[float]) -> Algorithm1:
    """Algorithm 1 for the problem, p, η1, η2 and Ξ of `dro`; its own ℓ, j and δ are not read.

    Notes
    -----
    Beside the printed condition, j is large enough for the lower end of Ξ to be a multiple of 2^{-j}, which
    lemma:finite_grid needs.
    """
    wanted = LogNumber.of(checks.positive("epsilon", epsilon))
    m, d = problem.dim, problem.n_params

    def at(delta: LogNumber, beta: LogNumber) -> TheoryConstants:
        return TheoryConstants.of(problem, dro, beta=beta, theta0=theta0, delta=delta)

    one = LogNumber.of(1)
    c = at(one, one)  # only what depends on neither δ nor β is read from it
    root_m = LogNumber.of(m).root(2)
    ell = smallest_ell(dro.support)
    least = max((root_m * 5 * _mesh_constant(c) / wanted).log2, root_m.log2)
    j = max(int(least.to_integral_value(ROUND_FLOOR)) + 1, closed_j(dro.support[0]), 1)
    power = LogNumber.of(2) ** j

    ratio = wanted * power / (c.C1_fraktur * 10 * c.C4_fraktur * (c.M1_fraktur * 2 + 1) * root_m)
    delta_below = min(
        wanted / (LogNumber.of(10 * m * (ell + j)) * LogNumber.of(2).ln),
        c.C2_fraktur / (c.a * c.C1_fraktur).root(2),
        c.C2_fraktur * ratio.root(2),
    )
    delta = _inside(delta_below, -1)
    c = at(delta, one)  # only what does not depend on β is read from it
    beta_above = max(
        LogNumber.of(100 * (d + 1)) / wanted**2,
        c.log_condition * (10 * (d + 1)) / wanted,
        root_m * 10 * c.C4_fraktur * (d + 1) / (wanted * power),
    )
    beta = _inside(beta_above, +1)
    c = at(delta, beta)
    step_size_below = min(c.step_max, wanted**4 / (c.C2**4 * 625))
    step_size = _inside(step_size_below, -1)
    n_iter_above = max(
        _times_log(LogNumber.of(4) / (c.c_dot * step_size), c.C1 * 10 / wanted),
        _times_log(LogNumber.of(2) / (c.a * step_size), c.C6 * 10 / wanted),
    )
    return Algorithm1(
        epsilon=float(epsilon),
        m=m,
        ell=ell,
        j=j,
        delta=delta,
        delta_below=delta_below,
        beta=beta,
        beta_above=beta_above,
        step_size=step_size,
        step_size_below=step_size_below,
        n_iter=_above_whole(n_iter_above),
        n_iter_above=n_iter_above,
        grid_points=grid_points(dro.support, m, j),
        constants=c,
    )


def smallest_ell(support: tuple[float, float]) -> int:
    """The smallest ℓ ≥ 1 with [lower, upper] in [-2^{ℓ-1}, 2^{ℓ-1})."""
    ell = 1
    while support[0] < -(2.0 ** (ell - 1)) or support[1] >= 2.0 ** (ell - 1):
        ell += 1
    return ell


def closed_j(lower: float) -> int:
    """The smallest j ≥ 0 such that `lower` is a multiple of 2^{-j}: a float's denominator is a power of two."""
    return lower.as_integer_ratio()[1].bit_length() - 1


def grid_points(support: tuple[float, float], m: int, j: int) -> LogNumber:
    """The number of points of Ξ ∩ K_{ℓ,j}^m."""
    if j > 2000:  # (upper - lower) 2^j, to more digits than are kept
        width = CONTEXT.subtract(Decimal(support[1]), Decimal(support[0]))
        return (LogNumber.of(width) * LogNumber.of(2) ** j) ** m
    low, high = ((top << j, bottom) for top, bottom in (end.as_integer_ratio() for end in support))
    axis = high[0] // high[1] - -(-low[0] // low[1]) + 1
    return LogNumber.of(axis) ** m


def _mesh_constant(c: TheoryConstants) -> LogNumber:
    """C4 + ℭ4 (1/a + 2b)."""
    return c.C4 + c.C4_fraktur * (1 / c.a + c.b * 2)


def _inside(end: LogNumber, sign: int) -> LogNumber:
    margin = max(MARGIN, CONTEXT.multiply(end.ln.copy_abs(), RELATIVE_MARGIN))
    return LogNumber(CONTEXT.add(end.ln, margin.copy_sign(Decimal(sign))))


def _times_log(factor: LogNumber, x: LogNumber) -> LogNumber:
    """factor · log x, and 0 where the logarithm is negative."""
    return factor * x.ln if x > 1 else LogNumber.of(0)


def _above_whole(end: LogNumber) -> LogNumber:
    """A number above `end`: the next whole one where n can be written out."""
    if end.is_zero:
        return LogNumber.of(1)
    if end.log10 < SMALL.log10():
        return LogNumber.of(math.floor(end.decimal) + 1)
    return _inside(end, +1)
