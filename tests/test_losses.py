"""Losses, certified bounds, hitting times: what few evaluations say is what evaluating every update says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robust_sgld as rs
from tests import literal
from tests.models import Curve, Parabola, TorchSigmoid, curve_grad_U, curve_U

REFERENCE = 0.005014


@pytest.fixture(scope="module")
def evaluator(paper, problem):
    return rs.LossEvaluator(problem, paper.test)


@pytest.fixture(scope="module", params=[0.01, 2.0, None], ids=["eta2=0.01", "eta2=2", "vanilla"])
def real_path(request, paper, problem):
    """θ after every update of one run of the published experiment, 6 000 updates."""
    eta2 = request.param
    sampler = rs.SGLD(problem) if eta2 is None else rs.RobustSGLD(problem, rs.DRO(eta2=eta2))
    draws = rs.draws(3, [0], 6_000, len(paper.train), sampler.state_dim)
    return sampler.theta(sampler.run(paper.train, sampler.initial_state(-2.0), *draws)[0])


def random_path(seed, n, wander, start=0.4):
    """From θ* + start·(a random direction) towards and around the minimiser, in steps of size `wander`."""
    rng = np.random.default_rng(seed)
    centre = np.array([-0.5, 0.5, 0.1, 0.0])
    pull = np.geomspace(1, 0.02, n)[:, None]
    return centre + start * pull * rng.normal(size=4) + np.cumsum(rng.normal(size=(n, 4)) * wander, axis=0)


def brute_force(losses, reference, tolerance):
    """What `along` must say, from the losses after every update."""
    hit = literal.hitting_time(losses, reference, tolerance)
    low, high = (1 - tolerance) * reference, (1 + tolerance) * reference
    after = [low < loss < high for loss in losses[hit:]] if hit else []
    return {
        "n_es": hit or 0,
        "loss_at_n_es": losses[hit - 1] if hit else math.nan,
        "closest": losses[np.argmin(np.abs(losses - reference))],
        "smallest": losses.min(),
        "final": losses[-1],
        "inside_after_hit": np.mean(after) if after else math.nan,
    }


def assert_along(found: rs.losses.PathLosses, want: dict, rel: float = 0.0) -> None:
    for name, value in want.items():
        assert getattr(found, name) == pytest.approx(value, rel=rel, abs=0, nan_ok=True), name


@pytest.mark.parametrize("m", [2, 4, 6])
def test_losses_are_the_mean_over_the_rows(m, rng):
    """A mean of 777 squares below 16 is good to a few ulps of 16."""
    rows, theta = rng.uniform(-3, 3, (777, m)), rng.normal(size=(5, 3, m)) * 3
    for problem in (rs.SigmoidRegression(m), TorchSigmoid(m)):
        losses = rs.test_losses(theta, rows, problem)
        assert losses.shape == (5, 3)
        for at in np.ndindex(5, 3):
            assert losses[at] == pytest.approx(literal.U(theta[at], rows).mean(), rel=1e-14)


def test_losses_of_a_users_problem(rng):
    rows, theta = rng.uniform(-3, 3, (50, 2)), rng.normal(size=(4, 3))
    want = [curve_U(t, rows).mean() for t in theta]
    np.testing.assert_allclose(rs.test_losses(theta, rows, Curve()), want, rtol=1e-13)
    assert rs.test_losses(theta[:0], rows, Curve()).shape == (0,)


def test_a_loss_does_not_depend_on_its_company(rng):
    """70 000 rows: enough for torch to split a sum between threads when it stands alone."""
    rows, theta = rng.uniform(-1, 1, (70_000, 2)), rng.normal(size=(40, 3))
    evaluator = rs.LossEvaluator(Curve(), rows)
    together = evaluator.losses(theta)
    np.testing.assert_array_equal([evaluator.losses(t[None])[0] for t in theta[:5]], together[:5])


def test_the_reference_is_the_loss_of_theta_star(paper, evaluator):
    assert evaluator.losses(paper.theta_star[None])[0] == pytest.approx(REFERENCE, abs=5e-7)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_state_that_is_no_number_has_no_loss(bad, paper):
    theta = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, bad, 0.0, 0.0]])
    for problem in (rs.SigmoidRegression(4), TorchSigmoid(4)):
        losses = rs.test_losses(theta, paper.test, problem)
        assert np.isfinite(losses[0])
        assert np.isnan(losses[1]) == math.isnan(bad)


@pytest.mark.parametrize("problem", [rs.SigmoidRegression(4), TorchSigmoid(4), Curve()])
def test_loss_and_gradient(problem, rng):
    rows, theta = rng.uniform(-2, 2, (300, problem.dim)), rng.normal(size=problem.n_params)
    loss, gradient = rs.LossEvaluator(problem, rows).loss_and_gradient(theta)
    U, grad_U = (curve_U, curve_grad_U) if isinstance(problem, Curve) else (literal.U, literal.grad_U)
    assert loss == pytest.approx(U(theta, rows).mean(), rel=1e-13)
    np.testing.assert_allclose(gradient, grad_U(theta, rows).mean(0), rtol=1e-11, atol=1e-13)


def test_the_minimiser_has_no_gradient_and_the_smallest_loss(paper, problem, evaluator, rng):
    """The noise has mean 0.05, which the bias can learn: the smallest test loss is about 0.0025, half the reference."""
    at = rs.minimise_risk(problem, paper.test, paper.theta_star)
    loss, gradient = evaluator.loss_and_gradient(at)
    assert np.abs(gradient).max() < 1e-8
    assert loss == pytest.approx(0.0025, abs=5e-5)
    for scale in (1e-3, 1e-1):
        assert (evaluator.losses(at + rng.normal(size=(50, 4)) * scale) > loss).all()
    np.testing.assert_allclose(rs.minimise_risk(TorchSigmoid(4), paper.test, np.zeros(4)), at, atol=1e-5)


def test_first_hit_counts_from_1_and_is_strict():
    """1.0 ± 25 %: the ends 0.75 and 1.25 are exact in binary, and outside."""
    assert rs.first_hit([1.0], 1.0, 0.25) == 1
    assert rs.first_hit([0.75, 1.25, 1.2], 1.0, 0.25) == 3
    assert rs.first_hit([0.75, 1.25], 1.0, 0.25) is None
    assert rs.first_hit([5.0, 0.9, 5.0, 1.0], 1.0, 0.25) == 2
    assert rs.first_hit([math.nan, 0.9], 1.0, 0.25) == 2
    assert rs.first_hit([0.0050, math.nan], REFERENCE) == 1
    assert rs.first_hit([0.0052], REFERENCE) is None
    np.testing.assert_array_equal(rs.in_band(np.array([0.75, 1.0, math.nan]), 1.0, 0.25), [False, True, False])


@given(st.lists(st.floats(0, 2), min_size=1, max_size=30), st.floats(0.1, 2), st.floats(0.001, 0.9))
def test_first_hit_is_the_literal_one(losses, reference, tolerance):
    assert rs.first_hit(losses, reference, tolerance) == literal.hitting_time(losses, reference, tolerance)


@pytest.mark.parametrize("tolerance", [0.01, 0.2])
def test_along_a_real_path_is_brute_force(real_path, evaluator, tolerance):
    """Against the same evaluator at every update: equal to the last bit. Against the literal mean: to rounding."""
    losses = evaluator.losses(real_path)
    found = evaluator.along(real_path, REFERENCE, tolerance)
    assert_along(found, brute_force(losses, REFERENCE, tolerance))
    assert found.evaluated < 0.5 * len(real_path)
    some = np.arange(0, len(real_path), 97)
    np.testing.assert_allclose(losses[some], literal.mean_losses(real_path[some], evaluator.rows), rtol=1e-13)


@pytest.mark.parametrize("wander", [1e-4, 3e-3, 5e-2, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_along_a_random_path_is_brute_force(wander, seed, evaluator):
    path = random_path(seed, 800, wander)
    losses = evaluator.losses(path)
    for reference, tolerance in ((REFERENCE, 0.01), (REFERENCE, 0.3), (losses.min(), 1e-9), (losses[700], 1e-12)):
        assert_along(evaluator.along(path, reference, tolerance), brute_force(losses, reference, tolerance))


def test_along_a_path_that_never_hits(evaluator):
    path = np.tile([3.0, 3.0, 3.0, 3.0], (50, 1)) + np.linspace(0, 0.1, 50)[:, None]
    losses = evaluator.losses(path)
    found = evaluator.along(path, REFERENCE)
    assert found.n_es == 0
    assert_along(found, brute_force(losses, REFERENCE, 0.01))
    # a band whose open end is a loss of the path: that update is outside
    edge = losses[20] / 1.25
    assert_along(evaluator.along(path, edge, 0.25), brute_force(losses, edge, 0.25))


def test_along_a_path_with_ties(evaluator):
    """The same state many times: equal losses, and the first of them counts."""
    path = np.repeat(random_path(2, 60, 3e-3), 7, axis=0)
    path = np.concatenate([path, path[::-1]])
    assert_along(evaluator.along(path, REFERENCE, 0.3), brute_force(evaluator.losses(path), REFERENCE, 0.3))
    still = np.tile(path[:1], (9, 1))
    loss = evaluator.losses(path[:1])[0]
    found = evaluator.along(still, loss)
    assert (found.n_es, found.smallest, found.closest, found.final) == (1, loss, loss, loss)
    assert found.inside_after_hit == 1.0


def test_along_a_single_update(evaluator, paper):
    found = evaluator.along(paper.theta_star[None], REFERENCE)
    assert found.n_es == 1
    assert math.isnan(found.inside_after_hit)


@pytest.mark.parametrize("problem", [rs.SigmoidRegression(4), TorchSigmoid(4)])
def test_along_a_path_that_diverges(problem, paper):
    """What came before counts; there is no final loss."""
    evaluator = rs.LossEvaluator(problem, paper.test)
    path = random_path(1, 300, 3e-3)
    path[200:] = np.nan
    want = brute_force(evaluator.losses(path[:200]), REFERENCE, 0.2) | {"final": math.nan}
    assert want["n_es"] > 0
    assert_along(evaluator.along(path, REFERENCE, 0.2), want, rel=1e-14)
    nothing = evaluator.along(np.full((5, 4), np.nan), REFERENCE)
    assert nothing.n_es == nothing.evaluated == 0
    assert math.isnan(nothing.closest)
    assert math.isnan(nothing.final)


def test_along_states_whose_loss_is_beyond_float64():
    """θ = 1e200 is finite and θ² is not: no loss there, and no harm to the other updates."""
    evaluator = rs.LossEvaluator(Parabola(2.0), np.zeros((3, 1)))
    found = evaluator.along(np.array([[1e200], [1.0], [2.0], [-1e200]]), reference=1.0)
    assert (found.n_es, found.smallest, found.closest) == (2, 1.0, 1.0)
    assert math.isnan(found.final)
    lost = evaluator.along(np.array([[1e200]]), reference=1.0)
    assert lost.n_es == 0
    assert math.isnan(lost.smallest)
    assert math.isnan(lost.closest)


def test_along_states_at_the_edge_of_float64(paper, evaluator):
    path = np.array([paper.theta_star, np.full(4, 1.0), [1.7e308, -1.7e308, 1.7e308, 0.0]])
    assert_along(evaluator.along(path, REFERENCE), brute_force(evaluator.losses(path), REFERENCE, 0.01))


def assert_certified(evaluator, path, tolerance):
    loss, radius = evaluator.certified(path, tolerance)
    exact = evaluator.losses(path)
    assert (np.abs(loss - exact) <= radius).all()
    # beside the tolerance only the allowance for rounding
    assert (radius <= tolerance + 1e-13 * (1 + loss)).all()


@pytest.mark.parametrize("tolerance", [1e-12, 1e-7, 1e-3, 10.0])
def test_certified_radii_hold_on_real_paths(real_path, evaluator, tolerance):
    assert_certified(evaluator, real_path[::3], tolerance)


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(2, 5),
    log_wander=st.floats(-5, 2),
    log_tolerance=st.floats(-14, 1),
    log_size=st.floats(-2, 5),
    reach=st.sampled_from([0.01, 1.0, 50.0]),
)
def test_certified_radii_hold_anywhere(seed, m, log_wander, log_tolerance, log_size, reach):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-reach, reach, (200, m))
    path = rng.normal(size=m) * 10**log_size + np.cumsum(rng.normal(size=(60, m)) * 10**log_wander, axis=0)
    assert_certified(rs.LossEvaluator(rs.SigmoidRegression(m), rows), path, 10**log_tolerance)


@pytest.mark.parametrize("wander", [0.1, 10.0, 1e3])
def test_certified_radii_hold_for_collinear_columns(wander, rng):
    """θ may travel far along a direction in which the loss does not change: large terms that cancel."""
    z = rng.uniform(-1, 1, 500)
    rows = np.column_stack([z, z, z, rng.uniform(0, 1, 500)])
    steps = rng.normal(size=(2000, 3)) * wander
    path = np.column_stack([np.cumsum(steps - steps.mean(1, keepdims=True), axis=0), np.zeros(2000)])
    assert_certified(rs.LossEvaluator(rs.SigmoidRegression(4), rows), path, 1e-6)


def test_refusals(problem, paper):
    with pytest.raises(rs.InvalidInput, match=r"theta must have shape \(…, 4\), got \(3, 5\)"):
        rs.test_losses(np.zeros((3, 5)), paper.test, problem)
    with pytest.raises(rs.InvalidInput, match=r"test must have shape \(any, 4\), got \(3, 5\)"):
        rs.test_losses(np.zeros((3, 4)), np.zeros((3, 5)), problem)
    with pytest.raises(rs.InvalidInput, match="test has a value that is not finite"):
        rs.LossEvaluator(problem, np.full((3, 4), np.nan))
    with pytest.raises(rs.InvalidInput, match=r"losses must have shape \(n_iter,\), those of one run, got \(2, 2\)"):
        rs.first_hit(np.ones((2, 2)), 1.0)
    for reference, tolerance, words in ((0, 0.01, "reference must be above 0"), (1, 0, "tolerance must be above 0")):
        with pytest.raises(rs.InvalidInput, match=words):
            rs.first_hit([1.0], reference, tolerance)
        with pytest.raises(rs.InvalidInput, match=words):
            rs.LossEvaluator(problem, paper.test).along(np.zeros((1, 4)), reference, tolerance)
    with pytest.raises(rs.InvalidInput, match=r"start must have shape \(4,\)"):
        rs.minimise_risk(problem, paper.test, np.zeros(3))
