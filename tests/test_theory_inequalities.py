"""The propositions as inequalities along random states: Lipschitz, growth, dissipativity, compactness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robust_sgld as rs
from robust_sgld.theory import TheoryConstants, dual_minimum, frontier_of, primal_minimum, robust_value
from tests.theory_problems import SMALL, Wave, small_rows

STATES = {"seed": st.integers(0, 2**32 - 1), "delta": st.floats(0.01, 2), "eta2": st.floats(0.05, 5)}


def setting(seed: int, delta: float, eta2: float) -> tuple[rs.DualObjective, TheoryConstants, np.random.Generator]:
    dro = replace(SMALL, delta=delta, eta2=eta2)
    constants = TheoryConstants.of(Wave(), dro, beta=1.0, theta0=0.0)
    return rs.DualObjective(Wave(), dro), constants, np.random.default_rng(seed)


def states(rng: np.random.Generator, n: int = 60) -> np.ndarray:
    return 10 ** rng.uniform(-2, 2, (n, 1)) * rng.standard_normal((n, 3))


@given(**STATES)
@settings(max_examples=25)
def test_H_is_lipschitz(seed: int, delta: float, eta2: float) -> None:
    """|H(θ̄_1,x) - H(θ̄_2,x)| ≤ (L̃_δ-1)|θ̄_1-θ̄_2| (prop:glob_lipschitz and eqn:assignments), near and far."""
    dual, c, rng = setting(seed, delta, eta2)
    first = states(rng)
    second = first + 10 ** rng.uniform(-4, 1, (60, 1)) * rng.standard_normal((60, 3))
    x = small_rows(rng, 60)
    change = np.linalg.norm(dual.H(first, x) - dual.H(second, x), axis=1)
    assert (change <= float(c.L_H) * np.linalg.norm(first - second, axis=1) + 1e-9).all()
    assert float(c.L_H) == pytest.approx(float(c.L_tilde) - 1, rel=1e-12)


@given(**STATES)
@settings(max_examples=25)
def test_H_is_dissipative_and_grows_linearly(seed: int, delta: float, eta2: float) -> None:
    """⟨θ̄, H⟩ ≥ a|θ̄|² - b (prop:dissipativity), and |∇V| ≤ K_∇ + 2^p M_Ξ^p (eqn:grad_v_growth)."""
    dual, c, rng = setting(seed, delta, eta2)
    at, x = states(rng), small_rows(rng, 60)
    H = dual.H(at, x)
    assert ((at * H).sum(1) >= float(c.a) * (at**2).sum(1) - float(c.b)).all()
    theta, alpha = rs.split(at)
    smooth = H - np.column_stack([dual.dro.eta1 * theta, dual.dro.eta2 * rs.iota(alpha) * np.tanh(alpha)])
    assert (np.linalg.norm(smooth, axis=1) <= float(c.growth) + 1e-9).all()


@given(seed=st.integers(0, 2**32 - 1), eta2=st.floats(0.05, 5))
@settings(max_examples=4)
def test_minima(seed: int, eta2: float) -> None:
    """The minimiser is stationary, no sampled state is below it, and R_K holds it (lemma:compactness)."""
    dual, c, rng = setting(seed, 0.05, eta2)
    rows = small_rows(rng)
    frontier = frontier_of(dual.problem, dual.dro, rows)
    found = dual_minimum(dual, frontier.atoms, frontier.weights, starts=6)
    pairs = np.tile(found.theta_bar, (len(frontier.atoms), 1))
    assert np.abs(frontier.weights @ dual.H(pairs, frontier.atoms)).max() < 1e-5
    assert found.value == pytest.approx(float(dual.v(found.theta_bar, rows)), abs=1e-12)
    assert found.value == found.found[0]
    assert 0 < found.agreement <= 1
    assert (dual.v(states(rng, 200), rows) >= found.value - 1e-9).all()
    theta, alpha = rs.split(found.theta_bar)
    assert np.linalg.norm(np.append(theta, rs.iota(alpha))) <= float(c.R_K)

    primal = primal_minimum(dual, frontier, found)
    # eqn:nesterov_ineq at the smallest δ' = δ/100: z_{δ'} ≤ z ≤ z_{δ'} + δ' log N, and u at its minimiser is as near
    assert primal.lower <= primal.value <= primal.lower + 0.05 / 100 * dual.grid.log_size + 1e-9
    assert found.value <= primal.value <= found.value + 0.05 * dual.grid.log_size
    assert primal.value == pytest.approx(robust_value(frontier, primal.theta).value, abs=1e-12)
    for theta in rs.split(states(rng, 100))[0]:
        assert robust_value(frontier, theta).value >= primal.lower - 1e-9


def test_the_seed_and_the_known_states_decide_the_starts() -> None:
    dual, _, rng = setting(0, 0.05, 0.3)
    atoms, weights = dual.grid.measure(small_rows(rng))
    known = np.array([[0.1, -0.2, 0.7]])
    assert len(dual_minimum(dual, atoms, weights, starts=3).found) == 4
    assert len(dual_minimum(dual, atoms, weights, starts=0, known=known).found) == 1
    first, again = (dual_minimum(dual, atoms, weights, starts=3, seed=5) for _ in range(2))
    assert np.array_equal(first.found, again.found)
