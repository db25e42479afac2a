"""Appendix B and the inequalities of the corollary's proof in mpmath, written down as they are printed.

Where the print slips, the proofs decide: e^{-aλ(n+1)/2}, (1+4M_Ξ)^{p-1}, 2^p M_Ξ^p. Numbers of the size of C1 are kept
by their logarithm, under names that begin with `ln_`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import mpmath
from mpmath import mpf

mpmath.mp.dps = 90

A_IOTA = mpf(1) / 2
B_IOTA = 4 * mpmath.log(2) ** 2 + mpf(5) / 2
M_IOTA = L_IOTA = mpf(1)
L_TILDE_IOTA = 1 + mpmath.exp(-3) / 2


def constants(
    L: Any, K: Any, J: Any, M: Any, U0: Any, *, d: int, eta1: Any, eta2: Any, p: Any, delta: Any, beta: Any, start: Any
) -> dict[str, Any]:
    """Every constant by the name that the library gives it."""
    L, K, J, M, U0, eta1, eta2, p, delta, beta, start = map(mpf, (L, K, J, M, U0, eta1, eta2, p, delta, beta, start))
    c: dict[str, Any] = {}
    c["K_tilde"] = max(K, U0)
    c["a_iota"], c["b_iota"], c["L_iota"], c["M_iota"], c["L_tilde_iota"] = A_IOTA, B_IOTA, L_IOTA, M_IOTA, L_TILDE_IOTA
    c["L_delta"] = (
        8 * K * (K + 2**p * M**p * M_IOTA) / delta
        + 2 * L
        + 2 ** (p + 1) * L_IOTA * M**p
        + 2 ** (p + 3) * M_IOTA * M**p * (K + 2**p * M**p * M_IOTA) / delta
    )
    c["a"] = a = min(eta1, eta2 * A_IOTA) / 2
    c["b"] = b = eta2 * B_IOTA + 2 * (K + 2**p * M_IOTA * M**p) ** 2 / min(eta1, eta2 * A_IOTA)
    c["C1_fraktur"] = min(a, mpmath.cbrt(a)) / 64
    c["C2_fraktur"] = (8 * K + 2 ** (p + 3) * M_IOTA * M**p) * (K + 2**p * M**p * M_IOTA)
    c["C3_fraktur"] = 2 * L + 2 ** (p + 1) * L_IOTA * M**p + eta1 + eta2 * L_TILDE_IOTA + 1
    c["L_tilde"] = c["C2_fraktur"] / delta + c["C3_fraktur"]
    c["step_max"] = min(c["C1_fraktur"] / c["L_tilde"] ** 2, 1 / a)
    E = 256 * beta * (K + 2**p * M_IOTA * M**p) ** 4 / (delta * min(eta1, eta2 * A_IOTA) ** 2)
    c["ln_c_dot"], c["ln_C1"], c["ln_C2"] = -E, mpf("1.75") * E, mpf("1.75") * E
    # L̃_δ - 1 by its summands, because the 1 of a tiny L̃_δ - 1 would eat its digits
    L_H = c["L_delta"] + eta1 + eta2 * L_TILDE_IOTA
    c["C3"] = (d + 1) / (2 * beta) * mpmath.log1p(beta / (d + 1)) + (d + 1) / (2 * beta) * (
        1 + mpmath.log(L_H * (b + 1) / a)
    )
    low = min(eta1, eta2)
    c["R_K"] = mpmath.sqrt((3 * c["K_tilde"] + (c["K_tilde"] + 2**p * M**p) ** 2 / low) * 4 / low)
    c["M1_fraktur"] = (K + 2**p * M_IOTA * M**p) ** 2
    c["c1_fraktur"] = 2 * c["M1_fraktur"] * c["step_max"] + 2 * b + 2 * (d + 1) / beta
    c["C4_fraktur"] = J + 8 * p * c["K_tilde"] / mpmath.sqrt(eta2) * (1 + 4 * M) ** (p - 1)
    c["C4_tilde"] = (
        J
        + 4 * p / mpmath.sqrt(eta2) * (1 + 4 * M) ** (p - 1) * (1 + 2 * c["K_tilde"])
        + 2 ** (p + 3) * p * M**p / eta2 * (1 + 4 * M) ** (p - 1)
    )
    c["C4"] = c["C4_tilde"] + (J + 2 * p * (1 + 4 * M) ** (p - 1)) * (1 + c["R_K"])
    c["C5"] = c["C4_fraktur"] * mpmath.sqrt(c["c1_fraktur"]) * mpmath.sqrt(c["step_max"] + 1 / a)
    c["C6"] = c["C4_fraktur"] * start
    return c


def agrees(value: Decimal, digits: str) -> bool:
    """Whether the value rounds to the digits: within half a unit of the last one."""
    known = Decimal(digits)
    return abs(value - known) <= Decimal((0, (5,), int(known.as_tuple().exponent) - 1))


def exp(x: Any) -> Any:
    """e^x; 0 and inf where its digits would fill the memory and can no longer matter."""
    return mpf(0) if x < -(10**9) else mpmath.inf if x > 10**9 else mpmath.exp(x)


def bound_terms(c: dict[str, Any], *, m: int, ell: int, j: int, delta: Any, ln_step: Any, ln_n: Any) -> dict[str, Any]:
    """The logarithms of the terms of eqn:eerub by the library's names; λ and n by their logarithms."""
    ln_mesh = mpmath.log(m) / 2 - j * mpmath.log(2)
    return {
        "convergence": c["ln_C1"] - exp(c["ln_c_dot"] + ln_step + ln_n) / 4,
        "step": c["ln_C2"] + ln_step / 4,
        "temperature": mpmath.log(c["C3"]),
        "smoothing": mpmath.log(delta * m * (ell + j) * mpmath.log(2)),
        "quadrature": ln_mesh + mpmath.log(c["C4"]),
        "moments": ln_mesh + mpmath.log(c["C5"]),
        "start": ln_mesh + mpmath.log(c["C6"]) - c["a"] * (exp(ln_step + ln_n) + exp(ln_step)) / 2,
    }


def proof_inequalities(
    c: dict[str, Any], *, epsilon: Any, m: int, d: int, ell: int, j: int, delta: Any, beta: Any, ln_step: Any, ln_n: Any
) -> dict[str, tuple[Any, Any]]:
    """ln left and ln right of every inequality of the proof of corollary:main_result, and of the corollary itself."""
    terms = bound_terms(c, m=m, ell=ell, j=j, delta=delta, ln_step=ln_step, ln_n=ln_n)
    ln_mesh = mpmath.log(m) / 2 - j * mpmath.log(2)
    ln_fifth, ln_tenth = mpmath.log(mpf(epsilon) / 5), mpmath.log(mpf(epsilon) / 10)

    def ln(x: Any) -> Any:
        return mpmath.log(x)

    def ln_total(*logs: Any) -> Any:
        top = max(logs)
        return top + mpmath.log(mpmath.fsum(mpmath.exp(x - top) for x in logs if x - top > -1000))

    return {
        "a": (ln_mesh + ln(c["C4"] + c["C4_fraktur"] * (1 / c["a"] + 2 * c["b"])), ln_fifth),
        "b": (terms["smoothing"], ln_tenth),
        "c": (ln_mesh + ln(c["C4_fraktur"] * (2 * c["M1_fraktur"] + 1) * c["step_max"]), ln_tenth),
        "d": (terms["temperature"], ln_tenth),
        "e": (ln_mesh + ln(c["C4_fraktur"] * (d + 1) / beta), ln_tenth),
        "step": (ln_step, ln(c["step_max"])),
        "f": (terms["step"], ln_fifth),
        "g": (ln_total(terms["convergence"], terms["start"]), ln_fifth),
        "corollary": (ln_total(*terms.values()), mpmath.log(mpf(epsilon))),
    }
