"""The constants of Appendix B: the known values to the digits given, and a literal transcription at any size."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robust_sgld as rs
from robust_sgld.theory import TheoryConstants, excess_risk_bound
from robust_sgld.theory.bound import smoothing_term
from robust_sgld.theory.constants import DERIVED, PRINTED, RECONSTRUCTED, start_norm
from tests import appendix_b
from tests.appendix_b import agrees

KNOWN = {
    "a": "5e-4",
    "b": "5.74592004e8",
    "b_iota": "4.421812",
    "L_tilde_iota": "1.024894",
    "C1_fraktur": "7.8125e-6",
    "C2_fraktur": "2298368",
    "C3_fraktur": "16754.0259",
    "L_tilde": "2.30004340e7",
    "step_max": "1.4767874e-20",
    "R_K": "1.072002e6",
    "M1_fraktur": "287296",
    "C4_fraktur": "156828",
    "C4_tilde": "214628",
    "C4": "1.374310e8",
    "C5": "2.377570e11",
    "C6": "627312",
    "K_tilde": "392",
    "C3": "1.62e-7",
}
"""At m=d=4, p=2, η1=1e-3, η2=1, δ=0.1, β=1e9, θ0=-2, α0=0; the digits as they were given."""


@pytest.fixture(scope="module")
def published() -> TheoryConstants:
    return TheoryConstants.of(rs.SigmoidRegression(4), rs.DRO(), beta=1e9, theta0=-2.0)


@pytest.mark.parametrize("name", KNOWN)
def test_known_values(published: TheoryConstants, name: str) -> None:
    assert agrees(getattr(published, name).decimal, KNOWN[name])


def test_the_known_smoothing_term() -> None:
    assert agrees(smoothing_term(0.1, 4, 3, 1).decimal, "1.109")


def test_inputs_are_the_problems(published: TheoryConstants) -> None:
    assert [float(x) for x in (published.M_Xi, published.K_nabla, published.L_nabla, published.J_U)] == pytest.approx(
        [6, 392, 8232, 28], rel=1e-15
    )
    assert float(published.U0_max) == pytest.approx(12.25, rel=1e-15)


def test_every_entry_has_its_papers(published: TheoryConstants) -> None:
    table = published.table()
    reference = literal(published_parameters())
    names = {entry.name for entry in table}
    assert names == {name.removeprefix("ln_") for name in reference}
    assert {entry.name for entry in table if entry.status == RECONSTRUCTED} == {"c_dot", "C1", "C2"}
    assert {entry.name for entry in table if entry.status == DERIVED} == {"L_tilde_iota"}
    assert {entry.status for entry in table} == {PRINTED, DERIVED, RECONSTRUCTED}
    for entry in table:
        assert ":" in entry.label
        assert entry.formula in str(getattr(TheoryConstants, entry.name).__doc__)


def published_parameters() -> dict[str, Any]:
    return {
        "declared": rs.SigmoidRegression(4).constants((-3.0, 3.0)), "d": 4, "eta1": 1e-3, "eta2": 1.0, "p": 2.0,
        "delta": 0.1, "beta": 1e9, "start": 4.0,
    }  # fmt: skip


def literal(parameters: dict[str, Any]) -> dict[str, Any]:
    rest = dict(parameters)
    known = rest.pop("declared")
    return appendix_b.constants(known.L_nabla, known.K_nabla, known.J_U, known.M_Xi, known.U0_max, **rest)


WIDE = st.floats(min_value=1e-250, max_value=1e250)
PARAMETERS = st.fixed_dictionaries(
    {
        "declared": st.builds(
            rs.Constants,
            L_nabla=WIDE,
            K_nabla=st.floats(min_value=1.001, max_value=1e250),
            J_U=WIDE,
            M_Xi=st.floats(min_value=1e-6, max_value=1e12),
            U0_max=st.one_of(st.just(0.0), WIDE),
        ),
        "d": st.integers(1, 10_000),
        "eta1": WIDE,
        "eta2": WIDE,
        "p": st.one_of(st.floats(min_value=1, max_value=50), st.floats(min_value=50, max_value=1e4)),
        "delta": WIDE,
        "beta": WIDE,
        "start": st.one_of(st.just(0.0), WIDE),
    }
)


@given(PARAMETERS)
@settings(max_examples=60)
def test_literal_transcription_at_any_size(parameters: dict[str, Any]) -> None:
    """No parameter overflows, and every constant is the printed formula's."""
    constants = TheoryConstants(**parameters)
    reference = literal(parameters)
    for entry in constants.table():
        json.dumps(entry.value.to_dict(), allow_nan=False)
        if f"ln_{entry.name}" in reference:
            expected = reference[f"ln_{entry.name}"]
        elif reference[entry.name] == 0:
            assert entry.value.is_zero
            continue
        else:
            expected = mpmath.log(reference[entry.name])
        # 60 digits, of which a logarithm of a logarithm of size 1e5 costs five and sums a few
        assert abs(mpmath.mpf(str(entry.value.ln)) - expected) <= mpmath.mpf("1e-45") * max(1, abs(expected)), (
            entry.name
        )


@given(PARAMETERS, WIDE, st.integers(1, 10**12), st.integers(1, 40), st.integers(0, 40), st.integers(1, 10_000))
@settings(max_examples=60)
def test_bound_term_by_term_at_any_size(
    parameters: dict[str, Any], step: float, n: int, ell: int, j: int, m: int
) -> None:
    parameters["start"] = max(parameters["start"], 1e-250)
    bound = excess_risk_bound(TheoryConstants(**parameters), m=m, ell=ell, j=j, step_size=step, n_iter=n)
    expected = appendix_b.bound_terms(
        literal(parameters), m=m, ell=ell, j=j, delta=mpmath.mpf(parameters["delta"]),
        ln_step=mpmath.log(mpmath.mpf(step)), ln_n=mpmath.log(n),
    )  # fmt: skip
    for term in bound.terms:
        reference = expected[term.name]
        assert abs(mpmath.mpf(str(term.value.ln)) - reference) <= mpmath.mpf("1e-40") * max(1, abs(reference)), (
            term.name
        )
    assert bound.total >= bound.dominating.value >= bound.dominating_printed.value
    assert bound.dominating.value == max(term.value for term in bound.terms)
    json.dumps(bound.total.to_dict(), allow_nan=False)


def test_L_tilde_iota_is_the_supremum() -> None:
    """|(ι ι')'| = tanh² + ι sech² at 2·10⁵ points: never above 1+e^{-3}/2, and within the grid's error of it."""
    alpha = np.linspace(-40, 40, 200_001)
    slope = np.tanh(alpha) ** 2 + rs.iota(alpha) / np.cosh(alpha) ** 2
    top = float(appendix_b.L_TILDE_IOTA)
    assert slope.max() <= top + 1e-15
    # the curvature at the top is below 1 and the points are 4e-4 apart
    assert slope.max() >= top - (4e-4) ** 2


def test_iota_is_dissipative() -> None:
    alpha = np.linspace(-40, 40, 200_001)
    a, b = float(appendix_b.A_IOTA), float(appendix_b.B_IOTA)
    assert (alpha * rs.iota(alpha) * np.tanh(alpha) >= a * alpha**2 - b).all()


def test_start_norm_reads_theta0_as_samplers_do() -> None:
    sampler = rs.RobustSGLD(rs.SigmoidRegression(3), rs.DRO())
    for theta0 in (-2.0, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, -4.0]):
        assert float(start_norm(theta0, 3)) == pytest.approx(np.linalg.norm(sampler.initial_state(theta0)), rel=1e-15)
    assert start_norm(0.0, 3).is_zero
    assert float(start_norm(1.5e308, 9).log10) == pytest.approx(308.653, abs=1e-3)  # 4.5e308 is no float
    with pytest.raises(rs.InvalidInput, match="theta0"):
        start_norm([1.0, 2.0], 3)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"declared": replace(published_parameters()["declared"], K_nabla=1.0)}, "K_nabla"),
        ({"declared": replace(published_parameters()["declared"], L_nabla=-1.0)}, "L_nabla"),
        ({"declared": replace(published_parameters()["declared"], J_U=float("nan"))}, "J_U"),
        ({"p": 0.5}, "p must"),
        ({"p": 1e13}, "p must"),
    ],
)
def test_what_the_theory_cannot_use_is_refused(change: dict[str, Any], word: str) -> None:
    with pytest.raises(rs.InvalidInput, match=word):
        TheoryConstants(**(published_parameters() | change))


def test_an_infinite_beta_has_no_theory() -> None:
    with pytest.raises(rs.InvalidInput, match="beta"):
        TheoryConstants.of(rs.SigmoidRegression(4), rs.DRO(), beta=float("inf"), theta0=0.0)
