"""Every constant of Appendix B, for any problem that declares L_∇, K_∇, J_U and max|U(0,x)| over Ξ.

Each entry carries the paper's label, the formula as coded and a status; `TheoryConstants.table` lists them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robust_sgld import checks
from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO
from robust_sgld.problems import Constants, Problem
from robust_sgld.theory.lognumber import LogNumber, Real, exponential

PRINTED = "printed"
DERIVED = "derived exactly, not printed"
RECONSTRUCTED = "reconstructed, order of magnitude only"

MAX_P = 1e12
"""Above this exponent of the cost even the logarithm of C1's logarithm is too large to keep."""


@dataclass(frozen=True)
class Entry:
    """One constant: what it is called, where the paper has it, how it is computed, and its value."""

    name: str
    symbol: str
    label: str
    formula: str
    status: str
    value: LogNumber


class _Constant(cached_property):
    """A cached property that also knows its symbol, label, formula and status."""

    def __init__(self, method: Callable, symbol: str, label: str, formula: str, status: str):
        super().__init__(method)
        self.symbol, self.label, self.formula, self.status = symbol, label, formula, status
        self.__doc__ = f"{symbol} = {formula} ({label}; {status})."


def constant(symbol: str, label: str, formula: str, status: str = PRINTED) -> Callable[[Callable], cached_property]:
    """Makes a method an entry of the table."""
    return lambda method: _Constant(method, symbol, label, formula, status)


class TheoryConstants:
    """The constants at one choice of the parameters; each is a `LogNumber`.

    Parameters
    ----------
    declared : L_∇, K_∇, J_U, M_Ξ and max|U(0,x)|
    d : the number of parameters θ
    eta1, eta2, p : of the DRO problem
    delta, beta : smoothing and inverse temperature; plain or `LogNumber`, since Algorithm 1 may ask for any size
    start : |θ̄_0|
    """

    def __init__(
        self, declared: Constants, d: int, *, eta1: float, eta2: float, p: float, delta: Real, beta: Real, start: Real
    ):
        if not 1 <= p <= MAX_P:
            raise InvalidInput(f"p must lie between 1 and {MAX_P:g} for the theory, got {p:g}.")
        self.L_nabla, self.K_nabla, self.J_U, self.M_Xi = (
            LogNumber.of(checks.positive(name, getattr(declared, name)))
            for name in ("L_nabla", "K_nabla", "J_U", "M_Xi")
        )
        self.U0_max = LogNumber.of(abs(checks.real("U0_max", declared.U0_max)))
        if self.K_nabla <= 1:
            raise InvalidInput(f"K_nabla must be above 1 (assumption:3), got {declared.K_nabla:g}.")
        self.eta1, self.eta2 = LogNumber.of(eta1), LogNumber.of(eta2)
        self.delta, self.beta, self.start = LogNumber.of(delta), LogNumber.of(beta), LogNumber.of(start)
        self.p, self.d = p, d

    @classmethod
    def of(
        cls, problem: Problem, dro: DRO, *, beta: Real, theta0: float | Sequence[float], delta: Real | None = None
    ) -> TheoryConstants:
        """At the parameters of `dro`; theta0 as for a sampler: one number for every θ_i, or d or d+1 numbers."""
        if not isinstance(beta, LogNumber):
            beta = checks.positive("beta", beta)
        return cls(
            problem.constants(dro.support),
            problem.n_params,
            eta1=dro.eta1,
            eta2=dro.eta2,
            p=dro.p,
            delta=dro.delta if delta is None else delta,
            beta=beta,
            start=start_norm(theta0, problem.n_params),
        )

    def table(self) -> list[Entry]:
        """All constants, in the order of Appendix B."""
        return [
            Entry(name, c.symbol, c.label, c.formula, c.status, getattr(self, name))
            for name, c in vars(TheoryConstants).items()
            if isinstance(c, _Constant)
        ]

    # What Appendix B builds on.

    @constant("K̃_∇", "remark:u_lipschitz", "max{K_∇, max_x |U(0,x)|}")
    def K_tilde(self) -> LogNumber:
        return max(self.K_nabla, self.U0_max)

    @constant("a_ι", "remark:iota_dissipativity", "1/2")
    def a_iota(self) -> LogNumber:
        return LogNumber.of(0.5)

    @constant("b_ι", "remark:iota_dissipativity", "4 log²2 + 5/2")
    def b_iota(self) -> LogNumber:
        return LogNumber.of(LogNumber.of(2).ln) ** 2 * 4 + 2.5

    @constant("L_ι", "remark:iota_dissipativity", "1")
    def L_iota(self) -> LogNumber:
        return LogNumber.of(1)

    @constant("M_ι", "remark:iota_dissipativity", "1")
    def M_iota(self) -> LogNumber:
        return LogNumber.of(1)

    @constant("L̃_ι", "remark:iota_dissipativity", "1 + e^{-3}/2, sup |(ι ι')'| at ι = 3/2", DERIVED)
    def L_tilde_iota(self) -> LogNumber:
        return 1 / (exponential(LogNumber.of(3)) * 2) + 1

    @property
    def reach(self) -> LogNumber:
        """2^p M_Ξ^p, which no cost |x-x'|^p on Ξ exceeds."""
        return (self.M_Xi * 2) ** self.p

    @property
    def growth(self) -> LogNumber:
        """K_∇ + 2^p M_ι M_Ξ^p, which |∇V^{δ,ℓ,j}| does not exceed (eqn:grad_v_growth)."""
        return self.K_nabla + self.reach * self.M_iota

    @property
    def curvature(self) -> LogNumber:
        """min{η1, η2 a_ι}."""
        return min(self.eta1, self.eta2 * self.a_iota)

    @property
    def cost_slope(self) -> LogNumber:
        """p (1+4M_Ξ)^{p-1}."""
        return LogNumber.of(self.p) * (self.M_Xi * 4 + 1) ** (self.p - 1)

    # Proposition (Lipschitz) and Proposition (dissipativity).

    @constant(
        "L_δ",
        "prop:glob_lipschitz",
        "8K_∇(K_∇+2^p M_Ξ^p M_ι)/δ + 2L_∇ + 2^{p+1} L_ι M_Ξ^p + 2^{p+3} M_ι M_Ξ^p (K_∇+2^p M_Ξ^p M_ι)/δ",
    )
    def L_delta(self) -> LogNumber:
        along_theta = self.K_nabla * 8 * self.growth / self.delta + self.L_nabla * 2
        along_alpha = self.reach * 2 * self.L_iota + self.reach * 8 * self.M_iota * self.growth / self.delta
        return along_theta + along_alpha

    @constant("a", "prop:dissipativity", "min{η1, η2 a_ι}/2")
    def a(self) -> LogNumber:
        return self.curvature / 2

    @constant("b", "prop:dissipativity", "η2 b_ι + 2(K_∇+2^p M_ι M_Ξ^p)² / min{η1, η2 a_ι}")
    def b(self) -> LogNumber:
        return self.eta2 * self.b_iota + self.growth**2 * 2 / self.curvature

    # Proposition (excess risk of the discretised problem).

    @constant("ℭ1", "const:tilde_l_delta", "min{a, a^{1/3}}/64")
    def C1_fraktur(self) -> LogNumber:
        return min(self.a, self.a.root(3)) / 64

    @constant("ℭ2", "const:tilde_l_delta", "(8K_∇ + 2^{p+3} M_ι M_Ξ^p)(K_∇ + 2^p M_Ξ^p M_ι)")
    def C2_fraktur(self) -> LogNumber:
        return (self.K_nabla * 8 + self.reach * 8 * self.M_iota) * self.growth

    @constant("ℭ3", "const:tilde_l_delta", "2L_∇ + 2^{p+1} L_ι M_Ξ^p + η1 + η2 L̃_ι + 1")
    def C3_fraktur(self) -> LogNumber:
        return self.L_nabla * 2 + self.reach * 2 * self.L_iota + self.eta1 + self.eta2 * self.L_tilde_iota + 1

    @constant("L̃_δ", "const:tilde_l_delta", "ℭ2/δ + ℭ3")
    def L_tilde(self) -> LogNumber:
        return self.C2_fraktur / self.delta + self.C3_fraktur

    @property
    def L_H(self) -> LogNumber:
        """L̃_δ - 1 = L_δ + η1 + η2 L̃_ι, the Lipschitz constant of H^{δ,ℓ,j} (eqn:assignments)."""
        return self.L_delta + self.eta1 + self.eta2 * self.L_tilde_iota

    @constant("λ_max,δ", "defn:step", "min{ℭ1/L̃_δ², 1/a}")
    def step_max(self) -> LogNumber:
        return min(self.C1_fraktur / self.L_tilde**2, 1 / self.a)

    @property
    def exponent(self) -> LogNumber:
        """E = 256 β (K_∇+2^p M_ι M_Ξ^p)⁴ / (δ min{η1, η2 a_ι}²), the leading order of what the paper does not print."""
        return self.beta * 256 * self.growth**4 / (self.delta * self.curvature**2)

    @constant(
        "ċ_δ,β", "prop:excess_risk_discrete", "e^{-E}, E = 256β(K_∇+2^p M_ι M_Ξ^p)⁴/(δ min{η1,η2 a_ι}²)", RECONSTRUCTED
    )
    def c_dot(self) -> LogNumber:
        return 1 / exponential(self.exponent)

    @constant("C1_δ,ℓ,j,β", "prop:excess_risk_discrete", "e^{1.75 E}", RECONSTRUCTED)
    def C1(self) -> LogNumber:
        return exponential(self.exponent * 1.75)

    @constant("C2_δ,ℓ,j,β", "prop:excess_risk_discrete", "e^{1.75 E}", RECONSTRUCTED)
    def C2(self) -> LogNumber:
        return exponential(self.exponent * 1.75)

    @property
    def log_condition(self) -> LogNumber:
        """1 + log( (L̃_δ-1)(b+1)/a ); the logarithm is positive, because L̃_δ-1 ≥ η1+η2 ≥ 6a."""
        return LogNumber.of((self.L_H * (self.b + 1) / self.a).ln) + 1

    @constant("C3_δ,β", "eqn:bound_decomp_d", "(d+1)/(2β) [ log(1 + β/(d+1)) + 1 + log((L̃_δ-1)(b+1)/a) ]")
    def C3(self) -> LogNumber:
        per_dimension = self.beta / (self.d + 1)
        return (LogNumber.of((per_dimension + 1).ln) + self.log_condition) / (per_dimension * 2)

    # Lemma (compactness), Proposition (discretisation), the theorem.

    @constant("R_K", "eq:rk_expression", "( (3K̃_∇ + (K̃_∇+2^p M_Ξ^p)²/min{η1,η2}) 4/min{η1,η2} )^{1/2}")
    def R_K(self) -> LogNumber:
        weakest = min(self.eta1, self.eta2)
        return ((self.K_tilde * 3 + (self.K_tilde + self.reach) ** 2 / weakest) * 4 / weakest).root(2)

    @constant("𝔐1", "const:c4_c5_c6", "(K_∇ + 2^p M_ι M_Ξ^p)²")
    def M1_fraktur(self) -> LogNumber:
        return self.growth**2

    @constant("𝔠1_δ,β", "const:c4_c5_c6", "2𝔐1 λ_max,δ + 2b + 2(d+1)/β")
    def c1_fraktur(self) -> LogNumber:
        return self.M1_fraktur * 2 * self.step_max + self.b * 2 + LogNumber.of(2 * (self.d + 1)) / self.beta

    @constant("ℭ4", "const:c4_c5_c6", "J_U + 8p K̃_∇ (1+4M_Ξ)^{p-1} / √η2")
    def C4_fraktur(self) -> LogNumber:
        return self.J_U + self.cost_slope * 8 * self.K_tilde / self.eta2.root(2)

    @constant(
        "C̃4",
        "const:c4_c5_c6",
        "J_U + 4p(1+4M_Ξ)^{p-1}(1+2K̃_∇)/√η2 + 2^{p+3} p M_Ξ^p (1+4M_Ξ)^{p-1}/η2",
    )
    def C4_tilde(self) -> LogNumber:
        near = self.cost_slope * 4 * (self.K_tilde * 2 + 1) / self.eta2.root(2)
        return self.J_U + near + self.reach * 8 * self.cost_slope / self.eta2

    @constant("C4", "const:c4", "C̃4 + (J_U + 2p(1+4M_Ξ)^{p-1})(1 + R_K)")
    def C4(self) -> LogNumber:
        return self.C4_tilde + self.quadrature

    @property
    def quadrature(self) -> LogNumber:
        """(J_U + 2p(1+4M_Ξ)^{p-1})(1+R_K): times √m/2^j it bounds |z_D - z_{D,ℓ,j}| (eqn:quadrature_error)."""
        return (self.J_U + self.cost_slope * 2) * (self.R_K + 1)

    @constant("C5_δ,β", "const:c4_c5_c6", "ℭ4 𝔠1^{1/2} (λ_max,δ + 1/a)^{1/2}")
    def C5(self) -> LogNumber:
        return self.C4_fraktur * self.c1_fraktur.root(2) * (self.step_max + 1 / self.a).root(2)

    @constant("C6", "const:c4_c5_c6", "ℭ4 (E|θ̄_0|²)^{1/2}")
    def C6(self) -> LogNumber:
        return self.C4_fraktur * self.start


def start_norm(theta0: float | Sequence[float], d: int) -> LogNumber:
    """|θ̄_0| for one number (every θ_i, α_0 = 0), d numbers (α_0 = 0) or d+1 numbers."""
    given = checks.array("theta0", np.atleast_1d(np.asarray(theta0)), shape=(None,))
    if given.size not in (1, d, d + 1):
        raise InvalidInput(f"theta0 must be one number, {d} numbers, or {d + 1} with alpha, got {given.size}.")
    state = np.full(d, given[0]) if given.size == 1 else given
    largest = float(np.abs(state).max())
    return LogNumber.of(largest) * math.hypot(*(state / largest)) if largest else LogNumber.of(0)


def mesh_factor(m: int, j: int) -> LogNumber:
    """√m / 2^j."""
    return LogNumber.of(m).root(2) / LogNumber.of(2) ** j
