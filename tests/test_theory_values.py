"""Exact values: u^{ℓ,j} against brute force and against the primal, and the errors of smoothing and of the grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import robust_sgld as rs
from robust_sgld.theory import (
    Frontier,
    frontier_of,
    inverse_iota,
    primal_value,
    quadrature_errors,
    quadrature_numbers,
    robust_value,
    trial_quadrature,
    values_at,
)
from robust_sgld.theory.quadrature import quadrature_bound
from tests import literal
from tests.theory_problems import SMALL, Wave, small_rows, wave_U


def brute_force(dro: rs.DRO, theta: np.ndarray, rows: np.ndarray) -> float:
    """min over 𝔞 of the mean over all rows of the literal maximum over the grid, by bisection-like search."""
    xi = literal.grid(rows.shape[1], dro.ell, dro.j, dro.support)
    at = literal.floored(rows, dro.ell, dro.j)
    cost = np.linalg.norm(at[:, None] - xi, axis=2) ** dro.p
    loss = wave_U(theta, xi)

    def dual(a: float) -> float:
        return (loss - a * cost).max(axis=1).mean() + dro.eta2 / 2 * a**2

    top = cost.max() / dro.eta2
    found = minimize_scalar(dual, bounds=(0.0, top), method="bounded", options={"xatol": 1e-11 * top, "maxiter": 2000})
    return min(found.fun, dual(0.0)) + dro.eta1 / 2 * theta @ theta


@given(
    seed=st.integers(0, 2**32 - 1),
    eta2=st.floats(0.01, 10),
    p=st.sampled_from([1.0, 1.5, 2.0, 3.0]),
    j=st.integers(0, 2),
    scale=st.floats(0.1, 5),
)
@settings(max_examples=40)
def test_robust_value_is_the_minimum_over_the_dual_variable(
    seed: int, eta2: float, p: float, j: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    dro = replace(SMALL, eta2=eta2, p=p, j=j)
    rows, theta = small_rows(rng), scale * rng.standard_normal(2)
    found = robust_value(frontier_of(Wave(), dro, rows), theta)
    # the search stops within 1e-11·top ≤ 2e-8 of a kink, whose slopes are at most 2·max cost ≤ 90
    assert found.value == pytest.approx(brute_force(dro, theta, rows), abs=4e-6)
    assert found.value <= brute_force(dro, theta, rows) + 1e-12
    assert found.a >= 0


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("j", [0, 1])
@pytest.mark.parametrize("eta2", [0.02, 0.3, 5.0])
def test_strong_duality(rng: np.random.Generator, p: float, j: int, eta2: float) -> None:
    """The primal, solved over couplings, is u^{ℓ,j} (eq:discrete-duality)."""
    dro = replace(SMALL, p=p, j=j, eta2=eta2)
    rows = small_rows(rng, 12)
    for problem in (Wave(), rs.SigmoidRegression(2)):
        theta = 2 * rng.standard_normal(2)
        dual = robust_value(frontier_of(problem, dro, rows), theta).value
        assert primal_value(problem, dro, theta, rows) == pytest.approx(dual, abs=1e-6)


def test_a_primal_that_is_too_large_is_refused(paper: rs.Dataset, problem: rs.SigmoidRegression) -> None:
    with pytest.raises(rs.InvalidInput, match="too large"):
        primal_value(problem, rs.DRO(), np.zeros(4), paper.train)


@pytest.mark.parametrize("eta2", [0.01, 1.0, 2.0])
def test_robust_value_of_the_published_problem(
    paper: rs.Dataset, problem: rs.SigmoidRegression, rng: np.random.Generator, eta2: float
) -> None:
    """u^{ℓ,j} is v^{ℓ,j} at its 𝔞 by the engine, and no nearby 𝔞 is better."""
    dro = rs.DRO(eta2=eta2)
    dual = rs.DualObjective(problem, dro)
    frontier = frontier_of(problem, dro, paper.train)
    theta = rng.standard_normal(4)
    found = robust_value(frontier, theta)
    a = np.array([found.a, 0.99 * found.a, 1.01 * found.a, found.a + 1e-5, found.a - 1e-5])
    states = np.column_stack([np.tile(theta, (5, 1)), inverse_iota(a)])
    v = dual.integral(states, frontier.atoms, frontier.weights, maximum=True)
    assert v[0] == pytest.approx(found.value, rel=1e-12)
    assert (v[1:] > v[0]).all()


def test_a_weak_penalty_and_a_strong_one(rng: np.random.Generator) -> None:
    """η2 → 0: nothing may move; η2 → ∞: everything moves to the maximum of U."""
    rows, theta = small_rows(rng), np.array([1.3, -0.4])
    xi = literal.grid(2, SMALL.ell, SMALL.j, SMALL.support)
    ridge = SMALL.eta1 / 2 * theta @ theta
    still = robust_value(frontier_of(Wave(), replace(SMALL, eta2=1e-300), rows), theta)
    floored = literal.floored(rows, SMALL.ell, SMALL.j)
    assert still.value == pytest.approx(wave_U(theta, floored).mean() + ridge, rel=1e-12)
    free = robust_value(frontier_of(Wave(), replace(SMALL, eta2=1e12), rows), theta)
    # what is left is T²/(2η2) with T below 45
    assert free.value == pytest.approx(wave_U(theta, xi).max() + ridge, abs=1e-8)


def test_a_grid_of_one_point() -> None:
    dro = rs.DRO(ell=1, j=0, support=(0.0, 0.5))
    found = robust_value(frontier_of(Wave(), dro, np.full((3, 2), 0.25)), np.array([0.3, 0.4]))
    assert found.a == 0.0
    assert found.value == pytest.approx(0.5 * dro.eta1 * 0.25, rel=1e-12)


@given(st.floats(0, 500))
def test_inverse_iota(a: float) -> None:
    assert float(rs.iota(inverse_iota(a))) == pytest.approx(a, rel=1e-12, abs=1e-15)


@given(seed=st.integers(0, 2**32 - 1), delta=st.floats(1e-3, 2), alpha=st.floats(-4, 4))
@settings(max_examples=30)
def test_smoothing_is_sandwiched(seed: int, delta: float, alpha: float) -> None:
    """0 ≤ v^{ℓ,j} - v^{δ,ℓ,j} ≤ δ log N, and u^{ℓ,j} is below v^{ℓ,j} (eqn:nesterov_ineq)."""
    rng = np.random.default_rng(seed)
    dual = rs.DualObjective(Wave(), replace(SMALL, delta=delta))
    values = values_at(dual, np.append(3 * rng.standard_normal(2), alpha), small_rows(rng))
    assert values.smoothing_bound == pytest.approx(delta * np.log(36), rel=1e-15)
    assert -1e-12 <= values.smoothing_error <= values.smoothing_bound + 1e-12
    assert values.dual_gap >= -1e-12
    assert values.v_max == pytest.approx(values.v + values.smoothing_error, rel=1e-15)


def test_values_are_those_of_the_definitions(rng: np.random.Generator) -> None:
    rows, state = small_rows(rng, 8), np.array([1.0, -2.0, 0.7])
    values = values_at(rs.DualObjective(Wave(), SMALL), state, rows)
    xi = literal.grid(2, SMALL.ell, SMALL.j, SMALL.support)
    at = literal.floored(rows, SMALL.ell, SMALL.j)
    assert values.v == pytest.approx(np.mean([literal.V_tilde(state, x, xi, SMALL, wave_U) for x in at]), rel=1e-12)
    assert values.v_max == pytest.approx(
        np.mean([literal.V_tilde_max(state, x, xi, SMALL, wave_U) for x in at]), rel=1e-12
    )


def test_refining_the_grid_stays_inside_the_bound(rng: np.random.Generator) -> None:
    rows = small_rows(rng, 200)
    for theta in (np.zeros(2), np.array([2.0, 1.0]), 4 * rng.standard_normal(2)):
        levels = quadrature_errors(Wave(), SMALL, theta, rows, (3, 0, 1, 2, 5))
        assert [level.j for level in levels] == [0, 1, 2, 3, 5]
        assert levels[-1].error == 0.0
        for level in levels:
            assert level.error <= level.bound
    # the error does fall with the mesh: at j=3 it is below a quarter of that at j=0
    assert levels[3].error < levels[0].error / 4


def test_what_a_trial_logs_of_its_grid(paper: rs.Dataset) -> None:
    """At the mean of the last θ of the runs that stayed finite, on j-1, j, j+1; j+2 would have 5.8 million points."""
    sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(eta2=2.0))
    result = rs.run_trial(sampler, paper, runs=3, n_iter=20, workers=1)
    result.states[1, -1] = np.nan
    levels = trial_quadrature(result, sampler, paper.train)
    assert [level.j for level in levels] == [0, 1, 2]
    theta = result.theta[[0, 2], -1].mean(axis=0)
    for level in levels:
        frontier = frontier_of(sampler.problem, replace(sampler.dro, j=level.j), paper.train)
        assert level.value == robust_value(frontier, theta).value
        assert level.error == abs(level.value - levels[-1].value)
    numbers = quadrature_numbers(levels, 1)
    assert numbers["quadrature_error"] == levels[1].error
    bounds = [quadrature_bound(sampler.problem, replace(sampler.dro, j=j), theta) for j in (1, 2)]
    assert numbers["quadrature_bound"] == sum(bounds)
    assert numbers["robust_value_at_j0"] == levels[0].value
    # on the finest mesh of the list there is nothing to compare with
    assert set(quadrature_numbers(levels, 2)) == {"robust_value_at_j0", "robust_value_at_j1", "robust_value_at_j2"}
    assert trial_quadrature(result, rs.SGLD(sampler.problem), paper.train) == []


def test_a_problem_without_constants_has_an_error_and_no_bound() -> None:
    class Undeclared(Wave):
        constants = rs.Problem.constants

    declared, own = (
        quadrature_errors(problem, SMALL, np.ones(2), small_rows(np.random.default_rng(3)), (0, 1))
        for problem in (Wave(), Undeclared())
    )
    assert [level.error for level in own] == [level.error for level in declared]
    assert np.isnan([level.bound for level in own]).all()


def test_quadrature_bound_is_the_printed_one(problem: rs.SigmoidRegression) -> None:
    """√m/2^j (C̃4 + ℭ4|θ|) at the published constants: 1·(214628 + 156828·5)."""
    assert quadrature_bound(problem, rs.DRO(), np.array([3.0, 0, 4.0, 0])) == pytest.approx(214628 + 156828 * 5)


def test_grids_that_cannot_be_tabulated_are_refused() -> None:
    with pytest.raises(rs.InvalidInput, match="too large"):
        Frontier(rs.SigmoidRegression(12), rs.DRO(), np.zeros((1, 12)), np.ones(1))
    with pytest.raises(rs.InvalidInput, match="p=4000"):
        frontier_of(Wave(), replace(SMALL, p=4000.0), np.zeros((1, 2)))


def test_a_loss_that_is_not_finite_is_refused() -> None:
    class Broken(Wave):
        def U(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return (theta * x).sum(-1).log()

    with pytest.raises(rs.InvalidInput, match="U on the grid"):
        robust_value(frontier_of(Broken(), SMALL, np.zeros((1, 2))), np.ones(2))
