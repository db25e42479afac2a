"""Losses of one linear index: formulas by hand, gradients, constants, and the compiled copies of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import robust_sgld as rs
from robust_sgld.kernels import index_loss
from robust_sgld.kernels.logarithm import fast_log
from robust_sgld.theory import check_assumptions
from tests.literal import sigmoid
from tests.models import Curve

LINKS = {"sigmoid": sigmoid, "identity": lambda t: t, "tanh": np.tanh}

RHO = {
    "squared": (rs.SquaredLoss, {}, lambda r: r**2),
    "pseudo_huber": (rs.PseudoHuberLoss, {"scale": 0.3}, lambda r: np.sqrt(r**2 + 0.3**2) - 0.3),
    "cauchy": (rs.CauchyLoss, {"scale": 0.2}, lambda r: np.log(1 + (r / 0.2) ** 2)),
    "quantile": (
        rs.QuantileLoss,
        {"level": 0.8, "scale": 0.1},
        lambda r: 0.8 * r + 0.1 * np.logaddexp(0, -r / 0.1),
    ),
}

PROBLEMS = [make(dim=3, link=link, **numbers) for make, numbers, _ in RHO.values() for link in LINKS]
PROBLEMS += [rs.LogisticLoss(dim=3), rs.SigmoidRegression(dim=3)]


def cases(rng, n=200):
    return torch.tensor(rng.normal(size=(n, 3)) * 2), torch.tensor(rng.uniform(-3, 3, (n, 3)))


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", RHO)
def test_residual_losses_are_rho_of_the_residual(name, link, rng):
    """|U| is below 500 (identity, squared), so a few roundings stay below 500·2^-50."""
    make, numbers, rho = RHO[name]
    problem = make(dim=3, link=link, **numbers)
    theta, x = cases(rng)
    t = (x.numpy()[:, :2] * theta.numpy()[:, :2]).sum(1) + theta.numpy()[:, 2]
    np.testing.assert_allclose(problem.predict(theta, x), LINKS[link](t), atol=1e-13)
    np.testing.assert_allclose(problem.U(theta, x), rho(x.numpy()[:, 2] - LINKS[link](t)), atol=5e-13, rtol=1e-13)


def test_the_logistic_loss_is_minus_the_log_likelihood_of_a_label(rng):
    problem, (theta, x) = rs.LogisticLoss(dim=3), cases(rng)
    x[:, 2] = torch.tensor(rng.choice([-1.0, 1.0], len(x)))
    chance = problem.predict(theta, x)
    likelihood = torch.where(x[:, 2] > 0, chance, 1 - chance)
    np.testing.assert_allclose(problem.U(theta, x), -likelihood.log(), rtol=1e-9, atol=1e-12)
    assert problem.target(torch.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]


def test_the_smoothed_losses_approach_what_they_smooth(rng):
    """sqrt(r²+c²)-c lies within c of |r|, the smoothed pinball loss at most c log 2 above max(τr, (τ-1)r)."""
    r = torch.linspace(-3, 3, 1001, dtype=torch.float64)
    gap = r.abs() - rs.PseudoHuberLoss(scale=1e-3).rho(r)
    assert gap.min() >= 0
    assert gap.max() <= 1e-3
    above = rs.QuantileLoss(level=0.3, scale=1e-3).rho(r) - torch.maximum(0.3 * r, -0.7 * r)
    assert above.min() >= -1e-15
    assert above.max() <= 1e-3 * np.log(2) + 1e-15


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_given_slopes_equal_autograd(problem, rng):
    """The slope is at most 2·|r| ≤ 40 (identity link); 1e-11 leaves room for cancellation in y - s(t)."""
    theta, x = cases(rng)
    np.testing.assert_allclose(problem.grad(theta, x), rs.Problem.grad(problem, theta, x), atol=1e-11)
    value, slope = problem.u_and_slope(problem.index(theta, x), x[:, -1])
    value_by_default, slope_by_default = rs.LinearIndexProblem.u_and_slope(problem, problem.index(theta, x), x[:, -1])
    np.testing.assert_array_equal(value, value_by_default)
    np.testing.assert_allclose(slope, slope_by_default, atol=1e-11)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if repr(p) != "SquaredLoss(dim=3, link='identity')"], ids=repr)
@pytest.mark.parametrize("support", [(-3.0, 3.0), (-1.0, 0.5)])
def test_no_sample_contradicts_the_constants(problem, support):
    check_assumptions(problem, rs.DRO(support=support), samples=5000)


def test_the_constants_of_a_sharp_case_are_reached():
    """Cauchy, identity link: K_∇ = Z/c at r = c and z at a corner; L_∇ = 2Z²/c² at r = 0."""
    problem = rs.CauchyLoss(dim=3, link="identity", scale=0.5)
    constants, z = problem.constants((-3.0, 3.0)), np.sqrt(1 + 2 * 9)
    corner = torch.tensor([[3.0, 3.0, 0.5], [3.0, 3.0, 0.0]], dtype=torch.float64)
    gradient = problem.grad(torch.zeros(3, dtype=torch.float64), corner)
    assert float(gradient[0].norm()) == pytest.approx(constants.K_nabla) == pytest.approx(z / 0.5)
    step = 1e-6 * corner[1].clone()
    step[2] = 1e-6
    moved = problem.grad(step, corner[1]) - gradient[1]
    assert float(moved.norm() / step.norm()) == pytest.approx(constants.L_nabla, rel=1e-4)


def test_squares_without_a_bound_have_no_constants():
    with pytest.raises(rs.InvalidInput, match=r"SquaredLoss.* does not meet assumption:3: .* not bounded.*tanh"):
        rs.SquaredLoss(link="identity").constants((-3.0, 3.0))
    with pytest.raises(rs.InvalidInput, match="not bounded"):
        check_assumptions(rs.SquaredLoss(link="identity"), rs.DRO())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.SquaredLoss(link="probit"), "link must be one of sigmoid, identity, tanh, got 'probit'"),
        (lambda: rs.CauchyLoss(scale=0), "scale must be above 0"),
        (lambda: rs.PseudoHuberLoss(scale="wide"), "scale must be a number"),
        (lambda: rs.QuantileLoss(level=1.0), "level must lie between 0 and 1"),
        (lambda: rs.LogisticLoss(dim=1), "must be at least 2"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(rs.InvalidInput, match=words):
        make()


def test_fast_log_in_ulps(rng):
    """Of max(|log x|, 1): near x = 1 the result is small and absolute accuracy is what a sum of logs needs."""
    x = np.concatenate([10 ** rng.uniform(-300, 300, 50_000), rng.uniform(0.5, 2, 50_000), [1.0, 2.0, 0.5**0.5]])
    got, exact = np.array([fast_log(v) for v in x]), np.log(x.astype(np.longdouble))
    assert np.max(np.abs(got - exact) / np.spacing(np.maximum(np.abs(exact), 1).astype(float))) < 1.5
    assert fast_log(1.0) == 0.0


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_compiled_losses_and_slopes_equal_torch(problem, rng):
    """Each is a handful of operations on numbers up to 600 (squared, identity): 600·2^-52·8 < 2e-12."""
    theta, x = cases(rng)
    code = problem.kernel_code
    slopes = problem.u_and_slope(problem.index(theta, x), x[:, -1])[1].numpy()
    t = problem.index(theta, x).numpy()
    got = [index_loss.slope(*code, t[i], x[i, -1].item()) for i in range(len(t))]
    np.testing.assert_allclose(got, slopes, atol=1e-12)
    expected = problem.U(theta[:, None, :], x).mean(1).numpy()
    means = np.empty(len(theta))
    index_loss.mean_losses(*code, theta.numpy(), np.ascontiguousarray(x.numpy().T), means)
    np.testing.assert_allclose(means, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(rs.test_losses(theta.numpy(), x.numpy(), problem), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_compiled_sgld_is_the_torch_loop(problem, rng):
    """400 updates of size 0.002·slope, slope ≤ 1e2: differences of rounding grow at most by e^{400·0.002·L}, L ~ 10."""
    rows = rng.uniform(-1, 1, (50, 3))
    draws = rs.draws(3, 2, 400, 50, 3)
    sampler = rs.SGLD(problem, step_size=0.002, beta=1e6)
    assert sampler.compiled
    slow = sampler._loop(rows, np.array([0.5, -0.3, 0.1]), draws.indices, draws.noise)
    fast = sampler.run(rows, np.array([0.5, -0.3, 0.1]), draws.indices, draws.noise)
    np.testing.assert_allclose(fast, slow, atol=1e-11)


class Quartic(rs.CauchyLoss):
    """A user's own formula on top of one of ours: no compiled loop may claim it."""

    def rho(self, r):
        return r**4

    def rho_prime(self, r):
        return 4 * r**3


def test_a_subclass_is_not_taken_for_its_parent(rng):
    theta, x = cases(rng)
    problem = Quartic(3)
    assert problem.kernel_code is None
    assert not rs.SGLD(problem).compiled
    t = problem.index(theta, x).numpy()
    expected = ((x.numpy()[:, 2] - sigmoid(t)) ** 4)[0]
    assert rs.test_losses(theta.numpy()[0], x.numpy()[:1], problem) == pytest.approx(expected, rel=1e-12)


def test_the_minimiser_of_a_robust_loss_resists_outliers(paper):
    """On the contaminated rows themselves; 0.0025 is the least that any θ has on the clean ones."""
    start = np.zeros(4)
    mse = {}
    for problem in (rs.SquaredLoss(), rs.CauchyLoss(scale=0.1), rs.PseudoHuberLoss(scale=0.1)):
        theta = rs.minimise_risk(problem, paper.train, start)
        mse[type(problem).__name__] = float(rs.test_losses(theta, paper.test, rs.SigmoidRegression(4)))
    assert mse["CauchyLoss"] < 0.003 < mse["SquaredLoss"]


def test_prediction_errors_are_squared_whatever_the_loss(rng):
    theta, x = cases(rng)
    for problem in (rs.CauchyLoss(3), rs.QuantileLoss(3, "tanh"), rs.PseudoHuberLoss(3, "identity"), Quartic(3)):
        expected = ((x[:, 2] - problem.predict(theta[:, None], x)) ** 2).mean(1)
        got = rs.LossEvaluator(problem, x.numpy()).prediction_errors(theta.numpy())
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    x[:, 2] = x[:, 2].sign()
    problem = rs.LogisticLoss(3)
    brier = (((x[:, 2] > 0).double() - problem.predict(theta[:, None], x)) ** 2).mean(1)
    np.testing.assert_allclose(rs.LossEvaluator(problem, x.numpy()).prediction_errors(theta.numpy()), brier, rtol=1e-12)
    assert np.isnan(rs.LossEvaluator(Curve(), x.numpy()[:, :2]).prediction_errors(theta.numpy())).all()


@pytest.mark.parametrize("problem", [rs.CauchyLoss(), rs.QuantileLoss(level=0.3), Quartic()], ids=repr)
@pytest.mark.parametrize("sampler", ["robust", "plain"])
def test_trials_run_on_them(problem, sampler, paper):
    data = rs.Dataset(paper.train[:100], paper.test[:100], theta_star=paper.theta_star)
    made = rs.RobustSGLD(problem, rs.DRO(j=0)) if sampler == "robust" else rs.SGLD(problem)
    result = rs.run_trial(made, data, runs=2, n_iter=20, workers=1)
    expected = rs.test_losses(result.theta[:, -1], data.test, problem)
    np.testing.assert_allclose(result.final_loss, expected, rtol=1e-12)
    assert np.isfinite(result.headline()["final_mse_mean"])
