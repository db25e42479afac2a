"""The Monte-Carlo engine against the exact grid: within its standard error, seeded, and honest when it collapses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import robust_sgld as rs
from robust_sgld.checks import InvalidInput
from robust_sgld.engines import Accuracy, Engine, make_engine


def monte_carlo(problem: rs.Problem, dro: rs.DRO, **settings: int) -> Engine:
    return make_engine("monte_carlo", problem, dro, Accuracy(**settings))


def pairs(problem, alpha, count, seed):
    rng = np.random.default_rng(seed)
    theta_bar = np.column_stack([rng.normal(size=(count, problem.n_params)), np.full(count, alpha)])
    return theta_bar, rng.uniform(-1.5, 1.5, (count, problem.dim))


@pytest.mark.parametrize(
    ("alpha", "delta", "j"), [(0.0, 0.5, 1), (2.0, 0.5, 1), (3.0, 0.1, 1), (1.0, 0.2, 0), (5.0, 0.05, 1)]
)
def test_a_network_on_three_columns_agrees_with_the_exact_grid(alpha, delta, j):
    """Each log-sum within 5 of its standard errors sqrt(1/ESS - 1/S), and their mean square near 1 (20 pairs)."""
    problem, dro, samples = rs.TwoLayerNetwork(dim=3, hidden=3), rs.DRO(delta=delta, j=j), 2000
    theta_bar, x = pairs(problem, alpha, 20, seed=4)
    exact = make_engine("dense", problem, dro).log_sum(theta_bar, x)
    standard = []
    for t, row, value in zip(theta_bar, x, exact.value, strict=True):
        engine = monte_carlo(problem, dro, samples=samples)
        estimate = engine.log_sum(t[None], row[None])
        error = math.sqrt(max(1 / engine.numbers()["effective_samples_min"] - 1 / samples, 1e-12))
        standard.append((estimate.value[0] - value) / error)
    standard = np.array(standard)
    assert np.abs(standard).max() < 5
    # the mean of 20 squares has standard deviation sqrt(2/20) = 0.32; strata make it smaller than 1
    assert (standard**2).mean() < 1 + 4 * 0.32


def test_the_error_falls_with_the_samples():
    """Root mean square over 12 pairs, gradient and cost too: 64 times the samples, about 8 times less; at least 3."""
    problem, dro = rs.TwoLayerNetwork(dim=3, hidden=2), rs.DRO(delta=0.3)
    theta_bar, x = pairs(problem, 1.5, 12, seed=5)
    exact = make_engine("dense", problem, dro).log_sum(theta_bar, x)
    few, many = (monte_carlo(problem, dro, samples=s).log_sum(theta_bar, x) for s in (500, 32_000))
    for name in ("value", "grad_U", "cost"):
        off = [np.sqrt(np.mean((getattr(e, name) - getattr(exact, name)) ** 2)) for e in (few, many)]
        assert off[1] < off[0] / 3, name


def test_an_estimate_is_the_same_alone_and_in_a_batch_and_another_with_another_seed():
    problem, dro = rs.SigmoidRegression(3), rs.DRO(delta=0.5)
    theta_bar, x = pairs(problem, 2.0, 4, seed=6)
    together = monte_carlo(problem, dro, samples=200).log_sum(theta_bar, x)
    alone = monte_carlo(problem, dro, samples=200).log_sum(theta_bar[2:3], x[2:3])
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a[2], b[0])
    other = monte_carlo(problem, dro, samples=200, seed=1).log_sum(theta_bar, x)
    assert (other.value != together.value).all()


def test_many_columns_are_no_obstacle():
    """m = 12: the linear loss on a product grid factorises, so the exact log-sum is a sum over the axes."""

    class Linear(rs.Problem):
        def U(self, theta, x):
            return (theta * x).sum(-1)

    problem, dro = Linear(12, 12), rs.DRO(delta=1.0)
    rng = np.random.default_rng(7)
    theta, x, alpha = rng.normal(size=12) * 0.5, rng.uniform(-1, 1, 12), 2.0
    axis = dro.grid(12).axis
    exponents = theta[:, None] * axis - rs.iota(alpha) * (x[:, None] - axis) ** 2
    exact = np.log(np.exp(exponents).sum(axis=1)).sum()
    engine = monte_carlo(problem, dro, samples=20_000)
    estimate = engine.log_sum(np.append(theta, alpha)[None], x[None])
    error = math.sqrt(1 / engine.numbers()["effective_samples_min"])
    assert abs(estimate.value[0] - exact) < 5 * error
    assert error < 0.05


def test_a_collapse_is_refused_with_its_number():
    problem, dro = rs.SigmoidRegression(8), rs.DRO(delta=1e-3)
    theta_bar, x = pairs(problem, 0.0, 1, seed=8)
    with pytest.raises(InvalidInput, match=r"only \d+\.\d of 100 samples are effective"):
        monte_carlo(problem, dro, samples=100).log_sum(0.3 * theta_bar, x)


def test_what_it_cannot_do_is_refused():
    problem = rs.SigmoidRegression(3)
    with pytest.raises(InvalidInput, match="p=2"):
        rs.RobustSGLD(problem, rs.DRO(p=1), engine="monte_carlo")
    theta_bar, x = pairs(problem, 1.0, 1, seed=9)
    with pytest.raises(InvalidInput, match="engine=dense can"):
        monte_carlo(problem, rs.DRO()).maximum(theta_bar, x)


def test_auto_does_not_choose_an_estimate():
    network = rs.TwoLayerNetwork(dim=9)
    with pytest.raises(InvalidInput, match="engine=monte_carlo"):
        rs.RobustSGLD(network, rs.DRO())
    assert rs.RobustSGLD(network, rs.DRO(), engine="monte_carlo").engine_name == "monte_carlo"
