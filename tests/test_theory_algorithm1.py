"""Algorithm 1: the known values, and whatever it returns substituted back into the proof, literally."""

from __future__ import annotations

import json
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robust_sgld as rs
from robust_sgld.theory import Algorithm1, LogNumber, algorithm1
from robust_sgld.theory.algorithm1 import closed_j, grid_points, smallest_ell
from tests import appendix_b
from tests.appendix_b import agrees


class Declared(rs.SigmoidRegression):
    """Any constants; the theory reads nothing else of a problem."""

    def __init__(self, dim: int, declared: rs.Constants):
        super().__init__(dim)
        self.declared = declared

    def constants(self, support: tuple[float, float]) -> rs.Constants:
        return self.declared


def mp(x: LogNumber) -> Any:
    return mpmath.mpf(str(x.ln))


def substituted(
    chosen: Algorithm1, known: rs.Constants, dro: rs.DRO, d: int, start: float
) -> dict[str, tuple[Any, Any]]:
    delta, beta = mpmath.exp(mp(chosen.delta)), mpmath.exp(mp(chosen.beta))
    c = appendix_b.constants(
        known.L_nabla, known.K_nabla, known.J_U, known.M_Xi, known.U0_max,
        d=d, eta1=dro.eta1, eta2=dro.eta2, p=dro.p, delta=delta, beta=beta, start=start,
    )  # fmt: skip
    return appendix_b.proof_inequalities(
        c, epsilon=chosen.epsilon, m=chosen.m, d=d, ell=chosen.ell, j=chosen.j, delta=delta, beta=beta,
        ln_step=mp(chosen.step_size), ln_n=mp(chosen.n_iter),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("epsilon", "j", "delta", "beta", "order"),
    [(0.1, 55, "6.2185e-5", "50000", 28), (1.0, 51, "6.6791e-4", "2536.5", 26)],
)
def test_known_values(epsilon: float, j: int, delta: str, beta: str, order: int) -> None:
    chosen = algorithm1(rs.SigmoidRegression(4), rs.DRO(), epsilon, -2.0)
    assert (chosen.ell, chosen.j) == (3, j)
    assert agrees(chosen.delta_below.decimal, delta)
    assert agrees(chosen.beta_above.decimal, beta)
    assert int(chosen.n_iter.to_dict()["log10_log10"] or 0) == order
    assert int((1 / chosen.step_size).to_dict()["log10_log10"] or 0) == order
    known = rs.SigmoidRegression(4).constants((-3.0, 3.0))
    for name, (left, right) in substituted(chosen, known, rs.DRO(), 4, 4.0).items():
        assert left < right, name
    assert all(inequality.holds for inequality in chosen.inequalities())


WIDE = st.floats(min_value=1e-60, max_value=1e60)


@given(
    declared=st.builds(
        rs.Constants,
        L_nabla=WIDE,
        K_nabla=st.floats(min_value=1.001, max_value=1e60),
        J_U=WIDE,
        M_Xi=st.floats(min_value=1e-6, max_value=1e12),
        U0_max=WIDE,
    ),
    eta1=WIDE,
    eta2=WIDE,
    p=st.floats(min_value=1, max_value=60),
    epsilon=WIDE,
    m=st.integers(2, 60),
    theta0=st.one_of(st.just(0.0), WIDE),
    support=st.sampled_from([(-3.0, 3.0), (2.5, 2.78125), (-0.125, 4e9)]),
)
@settings(max_examples=50)
def test_whatever_it_returns_satisfies_the_proof(
    declared: rs.Constants,
    eta1: float,
    eta2: float,
    p: float,
    epsilon: float,
    m: int,
    theta0: float,
    support: tuple[float, float],
) -> None:
    # the DRO's own grid plays no role here and only has to be valid
    dro = rs.DRO(eta1=eta1, eta2=eta2, p=p, ell=smallest_ell(support), j=closed_j(support[0]), support=support)
    chosen = algorithm1(Declared(m, declared), dro, epsilon, theta0)
    start = theta0 * mpmath.sqrt(m) if theta0 else mpmath.mpf("1e-400")  # a C6 of 0 has no logarithm
    for name, (left, right) in substituted(chosen, declared, dro, m, start).items():
        assert left < right, name
    assert all(inequality.holds for inequality in chosen.inequalities())
    assert chosen.ell == dro.ell
    assert chosen.j >= dro.j
    for number in (chosen.delta, chosen.beta, chosen.step_size, chosen.n_iter, chosen.grid_points):
        json.dumps(number.to_dict(), allow_nan=False)


def test_the_grid_is_fine_enough_for_the_floor_of_the_support() -> None:
    """A huge ε would do with j = 1; the lower end 2.53125 = 81/32 needs j = 5 (lemma:finite_grid)."""
    dro = rs.DRO(ell=3, j=6, support=(2.53125, 3.0))
    assert algorithm1(rs.SigmoidRegression(4), dro, 1e60, -2.0).j == 5


def test_the_largest_exponent_of_the_cost() -> None:
    """p = 1e12 makes E = 10^(4·10^12), whose own logarithm's logarithm is still kept."""
    chosen = algorithm1(rs.SigmoidRegression(4), rs.DRO(p=1e12), 0.1, -2.0)
    assert all(inequality.holds for inequality in chosen.inequalities())
    assert json.loads(json.dumps(chosen.n_iter.to_dict(), allow_nan=False))["log10_log10"] > 4e12


def test_small_numbers_of_updates_are_whole() -> None:
    """With a huge ε one update is enough."""
    chosen = algorithm1(rs.SigmoidRegression(4), rs.DRO(), 1e20, -2.0)
    assert float(chosen.n_iter) == 1.0
    assert all(inequality.holds for inequality in chosen.inequalities())


@pytest.mark.parametrize("support", [(-3.0, 3.0), (0.0, 0.999), (-4.0, 3.5), (-1.0, 4.0)])
def test_smallest_ell_is_what_the_grid_accepts(support: tuple[float, float]) -> None:
    ell = smallest_ell(support)
    rs.Grid(1, ell, 1, support)
    if ell > 1:
        with pytest.raises(rs.InvalidInput, match="ell"):
            rs.Grid(1, ell - 1, 1, support)


@pytest.mark.parametrize(("lower", "j"), [(-3.0, 0), (0.5, 1), (-2.75, 2), (0.1, 55)])
def test_closed_j_makes_the_lower_end_a_grid_point(lower: float, j: int) -> None:
    assert closed_j(lower) == j


@pytest.mark.parametrize(("support", "m", "j"), [((-3.0, 3.0), 4, 1), ((-1.0, 1.4), 2, 3), ((0.5, 2.0), 3, 1)])
def test_grid_points_are_counted(support: tuple[float, float], m: int, j: int) -> None:
    assert float(grid_points(support, m, j)) == pytest.approx(rs.Grid(m, 3, j, support).size, rel=1e-14)


def test_grid_points_beyond_any_integer() -> None:
    assert float(grid_points((-3.0, 3.0), 2, 5000).log2) == pytest.approx(2 * (5000 + 2.584962500721156), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_a_wanted_risk_must_be_positive(epsilon: float) -> None:
    with pytest.raises(rs.InvalidInput, match="epsilon"):
        algorithm1(rs.SigmoidRegression(4), rs.DRO(), epsilon, -2.0)
