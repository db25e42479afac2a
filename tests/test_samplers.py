"""Samplers: an update is algebra, a run does not depend on its company, SGLD has the law it must have."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import robust_sgld as rs
from tests import literal
from tests.models import Curve, Explosive, Parabola, TorchSigmoid

ROBUST = [
    # engine, m, n_iter, DRO, step size, beta
    ("pruned", 4, 30, {}, 0.01, 1e9),
    ("dense", 4, 15, {"eta2": 0.5}, 0.01, 1e9),
    ("pruned", 3, 60, {"eta1": 0.3, "eta2": 0.05, "delta": 0.3, "j": 0}, 0.1, 50.0),
    ("dense", 3, 60, {"eta1": 0.3, "eta2": 0.05, "delta": 0.3, "j": 0}, 0.1, 50.0),
    ("pruned", 2, 200, {"delta": 0.05, "j": 2, "ell": 2, "support": (-1.0, 1.9)}, 0.03, 1e3),
    ("pruned", 5, 10, {"eta2": 2.0, "delta": 0.05, "ell": 2, "support": (-2.0, 1.0)}, 0.02, 1e4),
    ("dense", 3, 40, {"p": 1, "eta2": 0.2}, 0.02, 1e4),
    ("dense", 3, 40, {"p": 1.5, "delta": 0.05}, 0.02, 1e4),
    ("dense", 2, 60, {"p": 3, "j": 2, "delta": 0.3}, 0.02, 1e4),
]


def rows(rng, n, m, support):
    return rng.uniform(*support, (n, m))


@pytest.mark.parametrize(("engine", "m", "n_iter", "setting", "step_size", "beta"), ROBUST)
def test_robust_sgld_equals_the_literal_recursion(engine, m, n_iter, setting, step_size, beta, rng):
    """A step moves the state by λ·H with an error of λ·1e-12; λ·n ≤ 6, and the recursion does not amplify it much."""
    dro = rs.DRO(**setting)
    train, theta0 = rows(rng, 40, m, dro.support), rng.normal(size=m + 1)
    draws = rs.draws(5, 2, n_iter, len(train), m + 1)
    sampler = rs.RobustSGLD(rs.SigmoidRegression(m), dro, step_size, beta, engine)
    paths = sampler.run(train, theta0, draws.indices, draws.noise)
    assert paths.shape == (2, n_iter, m + 1)
    assert paths.dtype == np.float64
    xi = literal.grid(m, dro.ell, dro.j, dro.support)
    for r in range(2):
        want = literal.robust_path(train, theta0, draws.indices[r], draws.noise[r], xi, dro, step_size, beta)
        np.testing.assert_allclose(paths[r], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("problem", [rs.SigmoidRegression(4), TorchSigmoid(4)])
@pytest.mark.parametrize(("step_size", "beta"), [(0.01, 1e9), (0.5, 20.0)])
def test_sgld_equals_the_literal_recursion(problem, step_size, beta, paper):
    theta0 = np.array([-2.0, 1.0, 0.3, 0.0])
    draws = rs.draws(1, 3, 200, len(paper.train), 4)
    paths = rs.SGLD(problem, step_size, beta).run(paper.train, theta0, draws.indices, draws.noise)
    for r in range(3):
        want = literal.plain_path(paper.train, theta0, draws.indices[r], draws.noise[r], step_size, beta)
        np.testing.assert_allclose(paths[r], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["pruned", "dense"])
def test_without_noise_alpha_0_stays_0(engine, paper):
    """ι'(0) = 0: the drift alone never moves α away from 0."""
    draws = rs.draws(0, 1, 20, len(paper.train), 5)
    sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(), 0.1, math.inf, engine)
    path = sampler.run(paper.train, np.array([-2.0, -2, -2, -2, 0]), draws.indices, draws.noise)[0]
    assert (path[:, -1] == 0).all()
    assert np.abs(path[-1, :-1] + 2).max() > 1e-3


def test_sgld_on_a_parabola_is_ar1():
    """θ_{n+1} = (1-λa)θ_n + sqrt(2λ/β)Z has the stationary variance 2/(βa(2-λa)), not the diffusion's 1/(βa).

    At a=2, λ=0.1, β=4 that is 0.1389 and not 0.125. 25 000 chains of 4 coordinates: the variance of 1e5 Gaussians has a
    relative standard error of sqrt(2/1e5) = 0.45 %, a mean sqrt(0.1389/1e5), a correlation (1-0.8²)/sqrt(1e5). Bounds
    are 4 of them; 0.125 is 22 away. From 0, the variance after 50 updates is 1-0.64^50 = 1-2e-10 of the stationary one.
    """
    a, step_size, beta, n = 2.0, 0.1, 4.0, 10**5
    sampler = rs.SGLD(Parabola(a, n_params=4), step_size, beta)
    noise = np.random.default_rng(11).standard_normal((n // 4, 52, 4))
    indices = np.zeros(noise.shape[:2], dtype=np.int64)
    paths = sampler.run(np.zeros((1, 1)), np.zeros(4), indices, noise)
    variance = 2 / (beta * a * (2 - step_size * a))
    assert variance == pytest.approx(0.1389, abs=1e-4)
    last, before = paths[:, -1].ravel(), paths[:, -2].ravel()
    assert last.var() == pytest.approx(variance, rel=4 * math.sqrt(2 / n))
    assert np.corrcoef(before, last)[0, 1] == pytest.approx(1 - step_size * a, abs=4 * 0.36 / math.sqrt(n))
    started_at_3 = sampler.run(np.zeros((1, 1)), np.full(4, 3.0), indices[:, :5], noise[:, :5])[:, -1]
    assert started_at_3.mean() == pytest.approx(3 * 0.8**5, abs=4 * math.sqrt(variance / n))


SAMPLERS = {
    "pruned": lambda: rs.RobustSGLD(rs.SigmoidRegression(3), rs.DRO(), 0.05, 1e3, "pruned"),
    "dense": lambda: rs.RobustSGLD(rs.SigmoidRegression(3), rs.DRO(p=1.5), 0.05, 1e3, "dense"),
    "dense, a user's problem": lambda: rs.RobustSGLD(Curve(), rs.DRO(), 0.01, 1e3),
    "sgld": lambda: rs.SGLD(rs.SigmoidRegression(3), 0.05, 1e3),
    "sgld in torch": lambda: rs.SGLD(TorchSigmoid(3), 0.05, 1e3),
}


@pytest.fixture(params=SAMPLERS.values(), ids=SAMPLERS)
def sampler(request):
    return request.param()


def test_run_k_is_the_same_alone_in_a_batch_and_shorter(sampler, rng):
    train = rows(rng, 30, sampler.problem.dim, (-2, 2))
    theta0 = rng.normal(size=sampler.state_dim) * 0.3
    n_iter = 40

    def run(numbers, n_iter=n_iter):
        return sampler.run(train, theta0, *rs.draws(9, numbers, n_iter, len(train), sampler.state_dim))

    batch = run(range(7))
    for k in (0, 4):
        np.testing.assert_array_equal(run([k])[0], batch[k])
        np.testing.assert_array_equal(run([k], 10)[0], batch[k, :10])
    np.testing.assert_array_equal(run([6, 2]), batch[[6, 2]])


def test_the_arguments_are_left_as_they_are(sampler, rng):
    train, theta0 = rows(rng, 30, sampler.problem.dim, (-2, 2)), np.zeros(sampler.state_dim)
    draws = rs.draws(0, 2, 5, 30, sampler.state_dim)
    copies = [a.copy() for a in (train, theta0, *draws)]
    sampler.run(train, theta0, *draws)
    for now, before in zip((train, theta0, *draws), copies, strict=True):
        np.testing.assert_array_equal(now, before)


def test_a_run_that_diverges_is_reported_and_does_not_spoil_the_others(sampler, rng):
    """Run 1 gets a kick beyond float64 in update 4; with sqrt(2λ/β) > 1 it lands at infinity."""
    sampler.beta = 1e-3
    train, theta0 = rows(rng, 30, sampler.problem.dim, (-2, 2)), np.zeros(sampler.state_dim)
    draws = rs.draws(0, 3, 8, 30, sampler.state_dim)
    noise = draws.noise * 1e-2
    calm = sampler.run(train, theta0, draws.indices, noise)
    noise[1, 3, 0] = 1.7e308
    with pytest.warns(rs.DivergenceWarning, match="run 1 diverged at update 4 of 8"):
        paths = sampler.run(train, theta0, draws.indices, noise)
    np.testing.assert_array_equal(paths[[0, 2]], calm[[0, 2]])
    np.testing.assert_array_equal(paths[1, :3], calm[1, :3])
    assert np.isnan(paths[1, 3:]).all()


def test_all_runs_may_diverge():
    sampler = rs.SGLD(Explosive(), step_size=0.1)
    indices, noise = np.array([[0, 0, 1, 0], [0, 1, 0, 0]]), np.zeros((2, 4, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        paths = sampler.run(np.array([[1.0], [1e200]]), np.ones(1), indices, noise)
    assert [str(w.message) for w in caught] == ["run 0 diverged at update 3 of 4.", "run 1 diverged at update 2 of 4."]
    np.testing.assert_array_equal(np.isfinite(paths[..., 0]), [[True, True, False, False], [True, False, False, False]])


def test_names_of_what_does_the_work(problem):
    assert rs.RobustSGLD(problem, rs.DRO()).engine_name == "pruned"
    assert rs.RobustSGLD(problem, rs.DRO(p=1)).engine_name == "dense"
    assert rs.SGLD(problem).engine_name == "compiled"
    assert rs.SGLD(Curve()).engine_name == "torch"


def test_initial_states(problem):
    robust, plain = rs.RobustSGLD(problem, rs.DRO()), rs.SGLD(problem)
    np.testing.assert_array_equal(robust.initial_state(-2), [-2, -2, -2, -2, 0])
    np.testing.assert_array_equal(robust.initial_state([1, 2, 3, 4]), [1, 2, 3, 4, 0])
    np.testing.assert_array_equal(robust.initial_state([1, 2, 3, 4, 5]), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(plain.initial_state(0.5), [0.5] * 4)
    np.testing.assert_array_equal(plain.initial_state([1, 2, 3, 4, 5]), [1, 2, 3, 4])
    for bad, words in (([1, 2, 3], "one number, 4 numbers, or 5 with alpha, got 3"), (math.nan, "not finite")):
        with pytest.raises(rs.InvalidInput, match=words):
            robust.initial_state(bad)
    with pytest.raises(rs.InvalidInput, match="theta0 must be numbers, or guess"):
        robust.initial_state("somewhere")


@pytest.mark.parametrize("make", [rs.SGLD, lambda problem, **kw: rs.RobustSGLD(problem, rs.DRO(), **kw)])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step_size": 0}, "step_size must be above 0"),
        ({"step_size": -0.1}, "step_size must be above 0"),
        ({"step_size": math.inf}, "step_size must be a finite number"),
        ({"step_size": math.nan}, "step_size must be a finite number"),
        ({"beta": 0}, "beta must be above 0"),
        ({"beta": -1}, "beta must be above 0"),
        ({"beta": math.nan}, "beta must be a finite number"),
        ({"beta": "cold"}, "beta must be a number"),
    ],
)
def test_parameters_that_are_refused(make, change, words, problem):
    with pytest.raises(rs.InvalidInput, match=words):
        make(problem, **change)


def test_beta_may_be_infinite(problem):
    assert rs.SGLD(problem, beta=math.inf).noise_scale == 0


GOOD = {
    "train": np.zeros((6, 4)),
    "theta0": np.zeros(5),
    "indices": np.zeros((2, 3), dtype=int),
    "noise": np.zeros((2, 3, 5)),
}
BAD_ROW = np.zeros((6, 4))
BAD_ROW[4, 3] = 3.2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train": np.zeros((6, 3))}, r"train must have shape \(any, 4\), got \(6, 3\)"),
        ({"train": np.full((6, 4), np.nan)}, r"train has a value that is not finite .* \(0, 0\)"),
        ({"train": np.full((6, 4), np.inf)}, r"train has a value that is not finite"),
        ({"train": BAD_ROW}, r"train: row 4, column 3 is 3\.2, outside the support \[-3, 3\] \(1 of 6 rows"),
        ({"theta0": np.zeros(4)}, r"theta0 must have shape \(5,\), got \(4,\)"),
        ({"theta0": np.full(5, np.nan)}, "theta0 has a value that is not finite"),
        ({"indices": np.zeros(3, dtype=int)}, r"indices must be whole numbers of shape \(runs, n_iter\)"),
        ({"indices": np.zeros((2, 3))}, r"indices must be whole numbers"),
        ({"indices": np.full((2, 3), 6)}, r"indices must lie in 0 … 5"),
        ({"indices": np.full((2, 3), -1)}, r"indices must lie in 0 … 5"),
        ({"indices": np.zeros((2, 0), dtype=int)}, r"not be empty"),
        ({"noise": np.zeros((2, 3, 4))}, r"noise must have shape \(2, 3, 5\), got \(2, 3, 4\)"),
        ({"noise": np.full((2, 3, 5), np.inf)}, "noise has a value that is not finite"),
    ],
)
def test_runs_that_are_refused(change, words, problem):
    with pytest.raises(rs.InvalidInput, match=words):
        rs.RobustSGLD(problem, rs.DRO()).run(**GOOD | change)


def test_vanilla_has_no_support_but_wants_finite_rows(problem):
    sampler = rs.SGLD(problem)
    far = np.full((6, 4), 50.0)
    assert np.isfinite(sampler.run(far, np.zeros(4), GOOD["indices"], np.zeros((2, 3, 4)))).all()
    with pytest.raises(rs.InvalidInput, match="train has a value that is not finite"):
        sampler.run(far * np.nan, np.zeros(4), GOOD["indices"], np.zeros((2, 3, 4)))
