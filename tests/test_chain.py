"""Message passing against the literal sum: value, gradient, cost, maximum; its tolerance, its refinement, its bits."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import robust_sgld as rs
from robust_sgld.engines import Accuracy, make_engine
from robust_sgld.engines import chain as chain_module
from robust_sgld.engines.chain import ChainEngine
from robust_sgld.kernels.chain_filter import LEFT, POINTS, interpolate, slopes, transpose, weights
from tests import literal

TOLERANCE = 1e-8


class Bump(rs.LinearIndexProblem):
    """A user's loss, in torch alone: a valley along y = sin t."""

    def u(self, t, y):
        return 1 - torch.exp(-((y - t.sin()) ** 2))


SETTINGS = [
    (rs.SigmoidRegression(4), {}),
    (rs.SigmoidRegression(4), {"delta": 0.03, "eta2": 0.1}),
    (rs.SigmoidRegression(3), {"delta": 0.01}),
    (rs.SigmoidRegression(2), {"j": 3, "delta": 0.05, "support": (-1.0, 2.5)}),
    (rs.SquaredLoss(3, "identity"), {"delta": 0.3, "support": (-1.0, 1.0)}),
    (rs.SquaredLoss(3, "tanh"), {"delta": 1.0, "j": 0}),
    (rs.PseudoHuberLoss(3, "tanh", scale=0.2), {"delta": 0.05, "j": 0}),
    (rs.CauchyLoss(3, scale=0.1), {}),
    (rs.CauchyLoss(3, "identity", scale=0.5), {"ell": 2, "support": (-1.5, 1.0), "delta": 0.2}),
    (rs.QuantileLoss(3, "identity", level=0.9), {"j": 0}),
    (rs.LogisticLoss(4), {"j": 0, "delta": 0.3}),
    (Bump(3), {"delta": 0.2, "support": (0.0, 3.0)}),
]


def by_autograd(problem, theta_bar, x, dro):
    """log Σ_j F_j over every grid point, and its derivatives: δ·∂/∂θ = E[∇U], -δ·∂/∂ι = E[cost]."""
    xi = torch.tensor(literal.grid(problem.dim, dro.ell, dro.j, dro.support))
    theta = torch.tensor(theta_bar[:-1], requires_grad=True)
    iota = torch.tensor(float(rs.iota(theta_bar[-1])), dtype=torch.float64, requires_grad=True)
    value = torch.logsumexp((problem.U(theta, xi) - iota * ((torch.tensor(x) - xi) ** 2).sum(1)) / dro.delta, 0)
    slope, along_iota = torch.autograd.grad(value, (theta, iota))
    return float(value.detach()), dro.delta * slope.numpy(), -dro.delta * float(along_iota)


def pairs(rng, problem, support, n=10):
    states = rng.normal(size=(n, problem.n_params + 1)) * np.repeat([0.4, 2.0], n // 2)[:, None]
    states[0, -1] = 0.0
    x = rng.uniform(*support, size=(n, problem.dim))
    x[::3] = np.clip(np.floor(x[::3]), *support)
    return states, x


@pytest.mark.parametrize(("problem", "setting"), SETTINGS, ids=lambda v: repr(v) if isinstance(v, rs.Problem) else "")
def test_it_is_the_literal_sum_within_the_tolerance(problem, setting, rng):
    """The log-sum within 1e-8. Its derivative in t is that of polynomials of degree 9 through nodes h apart: the error
    grows by 4!·5!/Π(k-½)²/h = 3.3/h, by |z| ≤ 3 and by δ; for h ≥ 2^-7, where 1e-8 is just met, by about 1e3·δ.
    """
    dro = rs.DRO(**setting)
    engine = make_engine("chain", problem, dro)
    states, x = pairs(rng, problem, dro.support)
    got = engine.log_sum(states, x)
    for i in range(len(x)):
        value, slope, cost = by_autograd(problem, states[i], x[i], dro)
        assert got.value[i] == pytest.approx(value, abs=TOLERANCE, rel=0)
        np.testing.assert_allclose(got.grad_U[i], slope, atol=1e3 * dro.delta * TOLERANCE, rtol=0)
        assert got.cost[i] == pytest.approx(cost, abs=1e3 * TOLERANCE, rel=0)


@pytest.mark.parametrize(
    ("problem", "setting"), SETTINGS[3:8], ids=lambda v: repr(v) if isinstance(v, rs.Problem) else ""
)
def test_the_maximum_is_attained_and_bounded(problem, setting, rng):
    """The lower bound is the value at a grid point; rounding of sums of a few tens."""
    dro = rs.DRO(**setting)
    xi = torch.tensor(literal.grid(problem.dim, dro.ell, dro.j, dro.support))
    engine = make_engine("chain", problem, dro)
    states, x = pairs(rng, problem, dro.support, 6)
    lower, upper = engine.maximum_bounds(states, x)
    for i in range(len(x)):
        cost = ((torch.tensor(x[i]) - xi) ** 2).sum(1)
        exact = float((problem.U(torch.tensor(states[i, :-1]), xi) - rs.iota(states[i, -1]) * cost).max())
        assert lower[i] == pytest.approx(exact, abs=1e-12)
        assert upper[i] >= exact - 1e-12
        assert upper[i] - lower[i] < 1e-2
    np.testing.assert_array_equal(engine.maximum(states, x), lower)


@pytest.mark.parametrize(("eta2", "delta"), [(0.1, 0.1), (1.0, 0.03), (2.0, 0.1)])
def test_trajectories_are_those_of_the_pruned_engine(eta2, delta, paper):
    """1 000 updates of 0.01·(gradient within 1e3·δ·1e-8): at most 1e-5 apart."""
    draws = rs.draws(7, 2, 1000, len(paper.train), 5)
    paths = [
        rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(eta2=eta2, delta=delta), engine=engine).run(
            paper.train, np.array([-2.0, -2, -2, -2, 0]), draws.indices, draws.noise
        )
        for engine in ("pruned", "chain")
    ]
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-5, rtol=0)


def test_thirty_one_features_against_a_finer_table(rng):
    """13^32 points: the sum with the spacing that the tolerance asks for, and with a finer one and wider windows."""
    problem = rs.SigmoidRegression(32)
    states = rng.normal(size=(6, 33)) * 0.3
    states[:, -1] = [0.5, 1.0, 1.5, 2.0, 3.0, 0.0]
    x = rng.uniform(-2, 2, (6, 32))
    got = make_engine("chain", problem, rs.DRO()).log_sum(states, x)
    finer = make_engine("chain", problem, rs.DRO(), Accuracy(1e-12)).log_sum(states, x)
    np.testing.assert_allclose(got.value, finer.value, atol=TOLERANCE, rtol=0)
    np.testing.assert_allclose(got.grad_U, finer.grad_U, atol=1e2 * TOLERANCE)
    np.testing.assert_allclose(got.cost, finer.cost, atol=1e3 * TOLERANCE)


def test_a_useless_axis_only_multiplies_the_sum(rng):
    """With w_i = 0 the axis adds log Σ_z e^{-ι(x_i-z)²/δ}, and the rest is the sum without it."""
    dro, n = rs.DRO(delta=0.2), 5
    theta_bar, x = np.array([0.7, -0.4, 0.2, 1.3]), rng.uniform(-3, 3, 3)
    small = make_engine("chain", rs.CauchyLoss(3), dro).log_sum(theta_bar[None], x[None])
    idle = rng.uniform(-3, 3, n)
    wide_theta = np.concatenate([theta_bar[:2], np.zeros(n), theta_bar[2:]])
    wide_x = np.concatenate([x[:2], idle, x[2:]])
    wide = make_engine("chain", rs.CauchyLoss(3 + n), dro).log_sum(wide_theta[None], wide_x[None])
    rate = float(rs.iota(1.3)) / 0.2
    exponents = -rate * (idle[:, None] - dro.grid(1).axis) ** 2
    extra = np.log(np.exp(exponents).sum(1)).sum()
    assert wide.value[0] == pytest.approx(small.value[0] + extra, abs=2 * TOLERANCE)
    np.testing.assert_allclose(wide.grad_U[0][[0, 1, -1]], small.grad_U[0], atol=1e-6)


def test_the_spacing_is_refined_until_the_tolerance_is_met(rng):
    """At δ = 0.01 the first spacing, 2^-4, is far too wide: its own estimate says so, and the answer is right."""
    problem, dro = rs.SigmoidRegression(3), rs.DRO(delta=0.01)
    states, x = rng.normal(size=(5, 4)) * [2, 2, 1, 0.7], rng.uniform(-2, 2, (5, 3))
    engine = make_engine("chain", problem, dro)
    scratch = chain_module._Scratch(engine)
    exact = np.array([by_autograd(problem, states[i], x[i], dro)[0] for i in range(5)])
    first = [engine._settle(states[i], x[i], 4, 40.0, math.inf, scratch)[1] for i in range(5)]
    wrong = np.abs(first - exact) > TOLERANCE
    assert wrong.any()
    levels = np.array([engine._settle(states[i], x[i], 4, 40.0, TOLERANCE, scratch)[0] for i in range(5)])
    assert (levels[wrong] > 4).all()
    np.testing.assert_allclose(engine.log_sum(states, x).value, exact, atol=TOLERANCE, rtol=0)


def test_a_failed_comparison_sends_the_run_back(paper, monkeypatch):
    """With the estimate switched off only the comparison with half the spacing is left, and it must carry the run."""
    draws = rs.draws(1, 1, 600, len(paper.train), 5)
    run = paper.train, np.array([-2.0, -2, -2, -2, 1.0]), draws.indices, draws.noise
    right = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(delta=0.02), engine="pruned").run(*run)
    sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(delta=0.02), engine="chain")
    engine, real, settle = sampler.dual.engine, chain_module.loop.robust_chain, ChainEngine._settle

    def without_estimate(*arguments):
        blind = list(arguments)
        blind[15] = math.inf  # the tolerance
        blind[-1][1] = 0  # no calm: the spacing stays
        return real(*blind)

    monkeypatch.setattr(chain_module.loop, "robust_chain", without_estimate)
    monkeypatch.setattr(
        ChainEngine, "_settle", lambda self, state, x, first, cut, _, scratch: settle(
            self, state, x, first, cut, math.inf, scratch
        )
    )  # fmt: skip
    got = sampler.run(*run)
    assert engine.sent_back > 0
    np.testing.assert_allclose(got, right, atol=1e-4)


def test_a_pair_does_not_depend_on_its_company(rng):
    engine = make_engine("chain", rs.CauchyLoss(5), rs.DRO())
    states, x = rng.normal(size=(12, 6)), rng.uniform(-3, 3, (12, 5))
    together = engine.log_sum(states, x)
    again = make_engine("chain", rs.CauchyLoss(5), rs.DRO())
    for part in (slice(11, 12), slice(3, 6), slice(0, 1)):
        for alone, all_ in zip(again.log_sum(states[part], x[part]), together, strict=True):
            np.testing.assert_array_equal(alone, all_[part])


def wide_data(m: int) -> rs.Dataset:
    stream = np.random.default_rng(5)
    train, test = stream.uniform(-1, 1, (200, m)), stream.uniform(-1, 1, (100, m))
    return rs.Dataset(train, test)


def test_workers_do_not_change_a_trial():
    sampler = rs.RobustSGLD(rs.PseudoHuberLoss(7), rs.DRO(eta2=0.5), engine="chain")
    one, two = (rs.run_trial(sampler, wide_data(7), runs=3, n_iter=120, theta0=-0.5, workers=w) for w in (1, 2))
    np.testing.assert_array_equal(one.states, two.states)
    np.testing.assert_array_equal(one.objective, two.objective)


DIGEST = """
import hashlib, robust_sgld as rs
from tests.test_chain import wide_data
sampler = rs.RobustSGLD(rs.CauchyLoss(6), rs.DRO(eta2=0.5), engine="chain")
result = rs.run_trial(sampler, wide_data(6), runs=2, n_iter=300, theta0=-0.5, workers=2)
print(hashlib.sha256(result.states.tobytes() + result.objective.tobytes() + result.losses.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_compiled_and_cached_code_give_the_same_bits(tmp_path):
    digests = []
    for _ in range(2):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], capture_output=True, text=True, env=environment, timeout=600
        )
        assert done.returncode == 0, done.stderr
        digests.append(done.stdout.strip())
    assert any(tmp_path.rglob("*.nbc")), "the second process had no cache to read"
    assert digests[0] == digests[1]


@pytest.mark.parametrize("f", [0.0, 0.25, 0.7, 1.0])
def test_filters_reproduce_polynomials_of_degree_nine(f, rng):
    """Exact but for rounding: coefficients below 1 in size, values below 10."""
    filters, nodes = np.empty((1, 1, POINTS)), (np.arange(POINTS) - LEFT) / POINTS
    weights(f, filters, 0, 0)
    c = filters[0, 0]
    polynomial = np.polynomial.Polynomial(rng.normal(size=POINTS))
    assert c @ polynomial(nodes) == pytest.approx(polynomial(f / POINTS), abs=1e-12)


@pytest.mark.parametrize("n", [11, 12, 40])
def test_slopes_are_those_of_polynomials_of_degree_ten(n, rng):
    """Coefficients of the one-sided differences reach 1e3, values 10: 1e4·2^-52 and some."""
    t, polynomial = np.linspace(-1, 1, n), np.polynomial.Polynomial(rng.normal(size=POINTS + 1))
    got = np.empty(n)
    slopes(polynomial(t), 0, n, got)
    np.testing.assert_allclose(got, polynomial.deriv()(t) * (t[1] - t[0]), atol=1e-10)


def test_the_adjoint_is_the_transpose(rng):
    """⟨g, Ca⟩ = ⟨Cᵀg, a⟩."""
    n = 23
    c, a, g = rng.normal(size=POINTS), rng.normal(size=n + POINTS - 1), rng.normal(size=n)
    forward, top, back = np.empty(n), np.full(n, 0.5), np.empty(n + POINTS - 1)
    filters = c[None, None]
    interpolate(a, 0, filters, 0, 0, 0.25, n, forward, 0, top)
    np.testing.assert_array_equal(top, np.maximum(forward, 0.5))
    padded = np.concatenate([np.zeros(POINTS - 1), g, np.zeros(POINTS)])
    transpose(padded, filters, 0, 0, n + POINTS - 1, back)
    assert g @ (forward + 0.25) == pytest.approx(back @ a, rel=1e-12)


def test_the_variance_bound_of_the_windows():
    """A Gaussian of variance s on the points of a lattice of step 1, wherever its centre: at most s + 1/4."""
    lattice = np.arange(-60, 61)
    for s in np.geomspace(1e-3, 30, 60):
        for centre in np.linspace(0, 1, 41):
            share = np.exp(-((lattice - centre) ** 2) / (2 * s) + ((lattice - centre) ** 2).min() / (2 * s))
            share /= share.sum()
            mean = share @ lattice
            assert share @ (lattice - mean) ** 2 <= s + 0.25


@pytest.mark.parametrize(
    ("problem", "setting", "words"),
    [
        (rs.SigmoidRegression(4), {"p": 1}, ["p=2", "engine=dense can do it"]),
        (rs.SigmoidRegression(30), {"p": 3}, ["p=2", "no other engine can"]),
    ],
)
def test_refusals_name_what_can(problem, setting, words):
    with pytest.raises(rs.InvalidInput) as refusal:
        make_engine("chain", problem, rs.DRO(**setting))
    for word in words:
        assert word in str(refusal.value)


def test_what_it_cannot_reach_is_said(rng):
    with pytest.raises(rs.InvalidInput, match="tolerance must be above 0"):
        make_engine("chain", rs.SigmoidRegression(3), rs.DRO(), Accuracy(0.0))
    engine = make_engine("chain", rs.SigmoidRegression(3), rs.DRO(delta=1e-3), Accuracy(1e-14))
    with pytest.raises(rs.InvalidInput, match=r"cannot reach tolerance=1e-14 .* a larger tolerance or delta"):
        engine.log_sum(np.array([[2.0, -1.0, 0.3, 0.9]]), np.zeros((1, 3)))
    engine = make_engine("chain", rs.SigmoidRegression(3), rs.DRO())
    with pytest.raises(rs.InvalidInput, match="smaller step_size"):
        engine.log_sum(np.array([[1e9, 1.0, 0.0, 1.0]]), np.zeros((1, 3)))


def test_auto_takes_it_where_it_is_the_cheapest():
    assert make_engine("auto", rs.SigmoidRegression(4), rs.DRO()).name == "pruned"
    for problem in (rs.SigmoidRegression(11), rs.CauchyLoss(4), rs.LogisticLoss(31), Bump(6)):
        engine = make_engine("auto", problem, rs.DRO())
        assert isinstance(engine, ChainEngine)
