"""The loss, its gradient and its constants against the paper; autograd and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import robust_sgld as rs
from tests import literal
from tests.models import Curve, curve_grad_U, curve_U


def cases(rng, m, n=50):
    return rng.normal(size=(n, m)) * 2, rng.uniform(-3, 3, (n, m))


@pytest.mark.parametrize("m", [2, 4, 7])
def test_sigmoid_regression_is_the_papers_loss(m, rng):
    """Rounding: (y-s)² ≤ 16 is made of a few operations, so 1e-14 is above 16·2^-52·4."""
    theta, x = cases(rng, m)
    problem = rs.SigmoidRegression(m)
    assert problem.n_params == problem.dim == m
    u = problem.U(torch.tensor(theta), torch.tensor(x)).numpy()
    grad = problem.grad(torch.tensor(theta), torch.tensor(x)).numpy()
    for i in range(len(theta)):
        assert u[i] == pytest.approx(literal.U(theta[i], x[i]), abs=2e-14)
        np.testing.assert_allclose(grad[i], literal.grad_U(theta[i], x[i]), atol=2e-14)


def test_given_gradient_equals_autograd(rng):
    theta, x = (torch.tensor(a) for a in cases(rng, 4))
    problem = rs.SigmoidRegression(4)
    np.testing.assert_allclose(problem.grad(theta, x), rs.Problem.grad(problem, theta, x), atol=2e-14)


def test_autograd_is_the_default_for_a_users_problem(rng):
    theta, x = rng.normal(size=(20, 3)), rng.uniform(-3, 3, (20, 2))
    problem = Curve()
    u, grad = problem.U(torch.tensor(theta), torch.tensor(x)), problem.grad(torch.tensor(theta), torch.tensor(x))
    for i in range(20):
        assert float(u[i]) == pytest.approx(curve_U(theta[i], x[i]), rel=1e-13)
        np.testing.assert_allclose(grad[i], curve_grad_U(theta[i], x[i]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("problem", [rs.SigmoidRegression(3), Curve()])
def test_gradient_by_finite_differences(problem, rng):
    """Central differences with h = 1e-5: truncation h²|U'''|/6, |U'''| < 40; rounding 2^-52·|U|/h, |U| < 1e3."""
    theta = torch.tensor(rng.normal(size=(10, problem.n_params)))
    x = torch.tensor(rng.uniform(-3, 3, (10, problem.dim)))
    grad, h = problem.grad(theta, x), 1e-5
    for i in range(problem.n_params):
        shift = torch.zeros(problem.n_params, dtype=torch.float64)
        shift[i] = h
        slope = (problem.U(theta + shift, x) - problem.U(theta - shift, x)) / (2 * h)
        np.testing.assert_allclose(grad[:, i], slope, atol=5e-8)


def test_U_and_grad_broadcast(rng):
    theta, x = torch.tensor(rng.normal(size=(3, 1, 4))), torch.tensor(rng.uniform(-1, 1, (5, 4)))
    problem = rs.SigmoidRegression(4)
    assert problem.U(theta, x).shape == (3, 5)
    for grad in (problem.grad(theta, x), rs.Problem.grad(problem, theta, x)):
        assert grad.shape == (3, 5, 4)


def test_the_published_constants():
    """m = 4, Ξ = [-3,3]^4: M_Ξ = 6, K_∇ = 392, L_∇ = 8232, J_U = 28, max|U(0,x)| = 12.25."""
    assert rs.SigmoidRegression(4).constants((-3.0, 3.0)) == rs.Constants(
        L_nabla=8232.0, K_nabla=392.0, J_U=28.0, M_Xi=6.0, U0_max=12.25
    )


@pytest.mark.parametrize(("m", "support"), [(2, (-1.0, 2.0)), (5, (-4.0, 0.5))])
def test_the_constants_bound_what_they_say(m, support, rng):
    problem = rs.SigmoidRegression(m)
    c = problem.constants(support)
    n = 2000
    theta, other = rng.normal(size=(n, m)) * 3, rng.normal(size=(n, m)) * 3
    x, x_other = rng.uniform(*support, (n, m)), rng.uniform(*support, (n, m))
    x[:200] = rng.choice(support, (200, m))
    for i in range(n):
        gap = literal.grad_U(theta[i], x[i]) - literal.grad_U(other[i], x[i])
        assert np.linalg.norm(gap) <= c.L_nabla * np.linalg.norm(theta[i] - other[i])
        assert np.linalg.norm(literal.grad_U(theta[i], x[i])) <= c.K_nabla
        rise = abs(literal.U(theta[i], x[i]) - literal.U(theta[i], x_other[i]))
        assert rise <= c.J_U * (1 + np.linalg.norm(theta[i])) * np.linalg.norm(x[i] - x_other[i])
    assert c.M_Xi == pytest.approx(np.linalg.norm(np.full(m, np.abs(support).max())))
    assert c.U0_max == max((end - 0.5) ** 2 for end in support)


def test_refusals():
    with pytest.raises(rs.InvalidInput, match="must be at least 2, got 1"):
        rs.SigmoidRegression(1)
    with pytest.raises(rs.InvalidInput, match=r"dim .* must be a whole number"):
        rs.SigmoidRegression(2.5)
    with pytest.raises(rs.InvalidInput, match="Curve does not declare its constants"):
        Curve().constants((-3.0, 3.0))
