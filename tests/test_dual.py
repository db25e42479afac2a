"""V^δ, Ṽ^δ, H, v^{δ,ℓ,j} and the true maximum against the literal equations; the sandwich; ι."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch

import robust_sgld as rs
from tests import literal
from tests.models import Curve, curve_grad_U, curve_U

SETTINGS = [
    (3, {}),
    (3, {"eta1": 0.3, "eta2": 0.05, "delta": 0.3, "j": 0}),
    (2, {"eta1": 2.0, "eta2": 7.0, "delta": 0.05, "j": 2, "ell": 2, "support": (-1.0, 1.75)}),
]


def pairs(rng, n, m, support):
    return rng.normal(size=(n, m + 1)), rng.uniform(*support, (n, m))


def test_iota_is_log_cosh_everywhere():
    """Absolute error: the three terms are rounded at size max(1, |α|)."""
    for alpha in (0.0, 1e-12, 1e-3, -0.5, 1.0, -3.0, 20.0, 710.5, 1e4, -1e300):
        exact = mpmath.mpf(abs(alpha)) + mpmath.log1p(mpmath.exp(-2 * mpmath.mpf(abs(alpha)))) - mpmath.log(2)
        assert float(rs.iota(alpha)) == pytest.approx(float(exact), abs=3e-16 * max(1, abs(alpha)))
        assert rs.iota(alpha) >= 0
        assert float(rs.iota_prime(alpha)) == pytest.approx(float(mpmath.tanh(alpha)), abs=3e-16)
    alphas = np.linspace(-30, 30, 601)
    np.testing.assert_allclose(rs.iota(alphas), literal.iota(alphas), atol=1e-14)


def test_split_is_theta_and_alpha():
    theta, alpha = rs.split(np.arange(12.0).reshape(2, 2, 3))
    np.testing.assert_array_equal(theta, [[[0, 1], [3, 4]], [[6, 7], [9, 10]]])
    np.testing.assert_array_equal(alpha, [[2, 5], [8, 11]])


@pytest.mark.parametrize("engine", ["pruned", "dense"])
@pytest.mark.parametrize(("m", "setting"), SETTINGS)
def test_the_pieces_equal_the_literal_equations(engine, m, setting, rng):
    """U/δ ≤ 320 at δ=0.05, so its rounding is 320·2^-52 < 1e-13; values and gradients are below 100."""
    dro = rs.DRO(**setting)
    dual = rs.DualObjective(rs.SigmoidRegression(m), dro, engine)
    xi = literal.grid(m, dro.ell, dro.j, dro.support)
    states, x = pairs(rng, 20, m, dro.support)
    V, V_tilde, V_max, V_tilde_max, H = (
        f(states, x) for f in (dual.V, dual.V_tilde, dual.V_max, dual.V_tilde_max, dual.H)
    )
    for i in range(len(x)):
        assert V[i] == pytest.approx(literal.V(states[i], x[i], xi, dro), abs=1e-12)
        assert V_tilde[i] == pytest.approx(literal.V_tilde(states[i], x[i], xi, dro), abs=1e-12)
        assert V_max[i] == pytest.approx(literal.values(states[i], x[i], xi, dro).max(), abs=1e-12)
        assert V_tilde_max[i] == pytest.approx(literal.V_tilde_max(states[i], x[i], xi, dro), abs=1e-12)
        np.testing.assert_allclose(H[i], literal.H(states[i], x[i], xi, dro), atol=1e-11)


@pytest.mark.parametrize("p", [1, 1.5, 3])
def test_other_costs_and_a_users_problem(p, rng):
    dro = rs.DRO(eta1=0.1, eta2=0.4, delta=0.3, p=p, support=(-2.0, 3.0))
    dual = rs.DualObjective(Curve(), dro)
    xi = literal.grid(2, dro.ell, dro.j, dro.support)
    states, x = rng.normal(size=(20, 4)) * 0.5, rng.uniform(-2, 3, (20, 2))
    H, V_tilde = dual.H(states, x), dual.V_tilde(states, x)
    for i in range(len(x)):
        assert V_tilde[i] == pytest.approx(literal.V_tilde(states[i], x[i], xi, dro, curve_U), abs=1e-11)
        np.testing.assert_allclose(H[i], literal.H(states[i], x[i], xi, dro, curve_U, curve_grad_U), atol=1e-10)


@pytest.mark.parametrize("engine", ["pruned", "dense"])
def test_H_is_the_gradient_of_V_tilde_by_autograd(engine, rng):
    dro = rs.DRO(eta1=0.2, eta2=0.7, delta=0.15)
    dual = rs.DualObjective(rs.SigmoidRegression(3), dro, engine)
    states, x = pairs(rng, 10, 3, (-3, 3))
    leaf, xi = torch.tensor(states, requires_grad=True), torch.tensor(literal.grid(3, 3, 1, (-3, 3)))
    theta, alpha = leaf[:, None, :-1], leaf[:, -1]
    iota = torch.log(torch.cosh(alpha))
    u = (xi[:, -1] - torch.sigmoid((xi[:, :-1] * theta[..., :-1]).sum(-1) + theta[..., -1])) ** 2
    cost = ((torch.tensor(x)[:, None] - xi) ** 2).sum(-1)
    torch.exp(torch.zeros(1, dtype=torch.float64))  # threads that race for a process's first exp can lose digits
    V = dro.delta * torch.logsumexp((u - iota[:, None] * cost) / dro.delta, dim=1)
    (V + dro.eta1 / 2 * (leaf[:, :-1] ** 2).sum(-1) + dro.eta2 / 2 * iota**2).sum().backward()
    np.testing.assert_allclose(dual.H(states, x), leaf.grad, atol=1e-12)


@pytest.mark.parametrize(("problem", "p"), [(rs.SigmoidRegression(2), 2), (rs.SigmoidRegression(2), 1.5), (Curve(), 2)])
def test_H_is_the_gradient_of_V_tilde_by_finite_differences(problem, p, rng):
    """Fourth order with h = 1e-4: truncation h⁴·V^(5)/30 with V^(5) ≤ 1e8, rounding 1e-14/h. Both below 1e-9."""
    dual = rs.DualObjective(problem, rs.DRO(delta=0.3, p=p, eta1=0.3, eta2=0.5))
    states, x = rng.normal(size=(6, problem.n_params + 1)) * 0.7, rng.uniform(-2, 2, (6, problem.dim))
    H, h = dual.H(states, x), 1e-4
    for i in range(states.shape[1]):
        e = np.zeros(states.shape[1])
        e[i] = h
        far = dual.V_tilde(states + 2 * e, x) - dual.V_tilde(states - 2 * e, x)
        near = dual.V_tilde(states + e, x) - dual.V_tilde(states - e, x)
        np.testing.assert_allclose(H[:, i], (8 * near - far) / (12 * h), atol=1e-8)


@pytest.mark.parametrize("engine", ["pruned", "dense"])
@pytest.mark.parametrize("delta", [1e-4, 1e-2, 0.1, 2.0])
def test_the_sandwich(engine, delta, rng):
    """lemma:smooth_max: V^δ ≤ max ≤ V^δ + δ log N; rounding of values below 50 is 1e-14."""
    dual = rs.DualObjective(rs.SigmoidRegression(3), rs.DRO(delta=delta), engine)
    states, x = pairs(rng, 60, 3, (-3, 3))
    V, top = dual.V(states, x), dual.V_max(states, x)
    assert (top - V >= -1e-14).all()
    assert (top - V <= delta * dual.grid.log_size + 1e-14).all()


def test_the_maximum_is_the_limit(rng):
    states, x = pairs(rng, 30, 3, (-3, 3))
    gaps = []
    for delta in (1.0, 1e-2, 1e-4, 1e-8):
        dual = rs.DualObjective(rs.SigmoidRegression(3), rs.DRO(delta=delta))
        gaps.append((dual.V_max(states, x) - dual.V(states, x)).max())
        assert gaps[-1] <= delta * dual.grid.log_size + 1e-14
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-6


@pytest.mark.parametrize("engine", ["pruned", "dense"])
@pytest.mark.parametrize("maximum", [False, True])
def test_v_is_the_mean_over_the_floored_data(engine, maximum, rng):
    dro = rs.DRO(eta1=0.1, eta2=0.5, delta=0.2, ell=2, j=1, support=(-2.0, 1.5))
    dual = rs.DualObjective(rs.SigmoidRegression(2), dro, engine)
    data = rng.uniform(-2, 1.5, (300, 2))
    states = rng.normal(size=(2, 3, 3))
    xi, rows = literal.grid(2, 2, 1, dro.support), literal.floored(data, 2, 1)
    V_tilde = literal.V_tilde_max if maximum else literal.V_tilde
    want = [[np.mean([V_tilde(s, row, xi, dro) for row in rows]) for s in pair] for pair in states]
    got = (dual.v_max if maximum else dual.v)(states, data)
    assert got.shape == (2, 3)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_the_sampler_s_objective_is_v(paper, problem):
    sampler = rs.RobustSGLD(problem, rs.DRO(eta2=2.0))
    states = np.array([[-2.0, -2, -2, -2, 0], [-0.3, 0.4, 0.2, -0.1, 1.5]])
    np.testing.assert_array_equal(sampler.objective(states, paper.train), sampler.dual.v(states, paper.train))
    # Figure 1: every path starts at about 15.6
    assert sampler.objective(states[0], paper.train) == pytest.approx(15.6, abs=0.1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"eta1": 0}, "eta1 must be above 0"),
        ({"eta2": -1}, "eta2 must be above 0"),
        ({"eta2": math.nan}, "eta2 must be a finite number"),
        ({"delta": 0}, "delta must be above 0"),
        ({"delta": math.inf}, "delta must be a finite number"),
        ({"p": 0.5}, "p must be at least 1"),
        ({"p": "two"}, "p must be a number"),
        ({"support": (-3, 5)}, "support .* must lie inside"),
        ({"ell": 0}, "ell must be at least 1"),
        ({"j": -1}, "j must be at least 0"),
    ],
)
def test_parameters_that_are_refused(change, words):
    with pytest.raises(rs.InvalidInput, match=words):
        rs.DRO(**change)


def test_shapes_that_are_refused():
    dual = rs.DualObjective(rs.SigmoidRegression(3), rs.DRO())
    with pytest.raises(rs.InvalidInput, match=r"theta_bar must have shape \(any, 4\), got \(2, 3\)"):
        dual.V(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(rs.InvalidInput, match=r"x must have shape \(2, 3\), got \(5, 3\)"):
        dual.H(np.ones((2, 4)), np.ones((5, 3)))
    with pytest.raises(rs.InvalidInput, match="theta_bar has a value that is not finite"):
        dual.V(np.full((1, 4), np.nan), np.ones((1, 3)))
    with pytest.raises(rs.InvalidInput, match=r"theta_bar must have shape \(…, 4\), got \(3,\)"):
        dual.v(np.ones(3), np.ones((1, 3)))
    with pytest.raises(rs.InvalidInput, match=r"row 0, column 2 is 3\.5, outside the support"):
        dual.v(np.ones(4), np.array([[1, 2, 3.5]]))
