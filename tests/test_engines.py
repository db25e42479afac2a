"""Engines against the literal sum over the grid, and what they refuse."""

from __future__ import annotations

import logging
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robust_sgld as rs
from robust_sgld.dual import DualObjective
from robust_sgld.engines import make_engine
from tests import literal
from tests.models import Curve, TorchSigmoid, curve_grad_U, curve_U

EPS = 2.0**-52


class Expected(NamedTuple):
    """What an engine must return at one (θ̄, x), from the literal sum in long double, and by how much it may miss it."""

    value: float
    grad_U: np.ndarray
    cost: float
    maximum: float
    rounding: float
    """relative error of a term F_j in float64"""
    grad_size: float
    grad_floor: float
    cost_size: float
    cost_floor: float


def expected(theta_bar, x, xi, dro, loss=literal.U, gradient=literal.grad_U) -> Expected:
    """An exponent made of numbers of size E·δ has a rounding error of E·2^-52 in float64, whatever the algorithm.

    The numbers are (y-s)² and its parts y², 2ys, s²; ι|x-ξ|^p, with ι = |α| + … - log 2 itself good to 2^-52·max(1, ι);
    and t, of size T = Σ|w_i| max|z_i| + |b|, which enters through |dU/dt| ≤ (1 + max|ξ|)/2. Only points that carry
    weight count. The factor 8 is for the handful of operations, 32 for the sum and for a few ulps of exp. The factor
    1-s of the gradient is itself known to 2^-52 only, which is all there is where the sigmoid is saturated; and terms
    below 2^-53 of the sum may be left out, times the largest cost.
    """
    wide = np.longdouble
    theta_bar, x, xi = theta_bar.astype(wide), x.astype(wide), xi.astype(wide)
    share = literal.weights(theta_bar, x, xi, dro, loss)
    carries = share > 1e-18
    cost = np.linalg.norm(x - xi, axis=1) ** dro.p
    slopes = gradient(theta_bar[:-1], xi)
    reach = float(np.abs(xi).max())
    iota = float(literal.iota(theta_bar[-1]))
    t_size = float(np.abs(theta_bar[:-2]).sum()) * reach + abs(float(theta_bar[-2]))
    cost_size = float(cost[carries].max())
    loss_size = max((1 + reach) ** 2, float(np.abs(loss(theta_bar[:-1], xi))[carries].max()))
    size = (loss_size + (1 + iota) * cost_size + (1 + reach) / 2 * t_size) / dro.delta
    return Expected(
        float(literal.log_sum(theta_bar, x, xi, dro, loss)),
        (share @ slopes).astype(float),
        float(share @ cost),
        float(literal.values(theta_bar, x, xi, dro, loss).max()),
        EPS * (8 * size + 32),
        float(np.abs(slopes[carries]).max()),
        4 * EPS * (1 + reach) * max(1, reach),
        cost_size,
        EPS * float(cost.max()),
    )


def assert_equal(engine, theta_bar, x, want: Expected, delta: float) -> None:
    """Softmax means move by at most (relative error of the weights) · (size of what is averaged)."""
    got = engine.log_sum(theta_bar[None], x[None])
    assert got.value[0] == pytest.approx(want.value, rel=4 * EPS, abs=want.rounding)
    grad_error = 2 * want.rounding * want.grad_size + want.grad_floor
    np.testing.assert_allclose(got.grad_U[0], want.grad_U, rtol=0, atol=grad_error)
    assert got.cost[0] == pytest.approx(want.cost, rel=0, abs=2 * want.rounding * want.cost_size + want.cost_floor)
    assert engine.maximum(theta_bar[None], x[None])[0] == pytest.approx(want.maximum, abs=want.rounding * delta)


def random_pairs(rng, n, m, support, scale=1.0):
    """States and points; one point in four lies on the grid, where exponents tie."""
    states = rng.normal(size=(n, m + 1)) * scale
    x = rng.uniform(*support, size=(n, m))
    x[::4] = np.floor(x[::4])
    return states, np.clip(x, *support)


SETTINGS = [
    (4, {}),
    (4, {"delta": 0.05, "eta2": 0.1}),
    (4, {"delta": 0.3, "eta1": 0.2, "j": 0}),
    (4, {"ell": 2, "support": (-1.0, 2.0 - 2.0**-10), "j": 2, "delta": 0.2}),
    (4, {"ell": 2, "support": (-1.0, 1.5)}),
    (2, {"j": 2, "delta": 0.05}),
    (2, {"ell": 4, "j": 3, "support": (-5.0, 7.25)}),
    (3, {"delta": 0.02}),
    (3, {"ell": 3, "j": 2, "support": (0.0, 3.0), "delta": 1.0}),
    (3, {"ell": 3, "j": 0, "support": (-4.0, -1.0)}),
    (5, {"ell": 2, "support": (-1.0, 1.9), "delta": 0.3}),
]


@pytest.mark.parametrize("name", ["pruned", "dense"])
@pytest.mark.parametrize(("m", "setting"), SETTINGS)
def test_engines_equal_the_literal_sum(name, m, setting, rng):
    dro = rs.DRO(**setting)
    xi = literal.grid(m, dro.ell, dro.j, dro.support)
    engine = make_engine(name, rs.SigmoidRegression(m), dro)
    for scale in (0.3, 2.0):
        for theta_bar, x in zip(*random_pairs(rng, 8, m, dro.support, scale), strict=True):
            assert_equal(engine, theta_bar, x, expected(theta_bar, x, xi, dro), dro.delta)


@pytest.mark.parametrize("p", [1, 1.5, 3])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_dense_takes_any_p(p, delta, rng):
    dro = rs.DRO(p=p, delta=delta, ell=2, support=(-2.0, 1.0))
    xi = literal.grid(3, dro.ell, dro.j, dro.support)
    engine = make_engine("dense", rs.SigmoidRegression(3), dro)
    for theta_bar, x in zip(*random_pairs(rng, 12, 3, dro.support), strict=True):
        assert_equal(engine, theta_bar, x, expected(theta_bar, x, xi, dro), delta)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_dense_takes_a_users_problem_with_d_not_m(p, rng):
    dro = rs.DRO(p=p, delta=0.2, support=(-2.5, 3.0))
    xi = literal.grid(2, dro.ell, dro.j, dro.support)
    engine = make_engine("dense", Curve(), dro)
    states = rng.normal(size=(12, 4))
    for theta_bar, x in zip(states, rng.uniform(-2.5, 3.0, (12, 2)), strict=True):
        assert_equal(engine, theta_bar, x, expected(theta_bar, x, xi, dro, curve_U, curve_grad_U), dro.delta)


def alpha_of(iota: float) -> float:
    return math.acosh(math.exp(iota))


EXTREME_ALPHAS = {
    "zero": 0.0,
    "tiny": 1e-9,
    "below 1": alpha_of(1 - 1e-12),
    "one": alpha_of(1.0),
    "above 1": alpha_of(1 + 1e-12),
    "a little above 1": alpha_of(1 + 1e-4),
    "large": -40.0,
    "huge": 1e4,
}


@pytest.mark.parametrize("delta", [1e-8, 1e-4, 1e-2, 30.0])
@pytest.mark.parametrize("alpha", EXTREME_ALPHAS.values(), ids=EXTREME_ALPHAS)
@pytest.mark.parametrize("size", [0.0, 1.0, 60.0, 1e3, 1e6])
def test_pruned_at_the_extremes(delta, alpha, size, rng):
    """Where exponents reach 1e9 and more, e^{-t} leaves float64 and the vertex in y goes to infinity."""
    dro = rs.DRO(delta=delta, ell=3, j=1, support=(-3.0, 2.0))
    xi = literal.grid(3, dro.ell, dro.j, dro.support)
    engine = make_engine("pruned", rs.SigmoidRegression(3), dro)
    for signs in ((1, -1, 1), (-1, 0.01, 0.3)):
        theta_bar = np.append(size * np.array(signs), alpha)
        for x in (rng.uniform(-3, 2, 3), np.array([-3.0, 2.0, 0.5]), np.array([0.25, -0.75, 1.75])):
            assert_equal(engine, theta_bar, x, expected(theta_bar, x, xi, dro), delta)


@settings(max_examples=300)
@given(
    m=st.sampled_from([2, 3]),
    j=st.integers(0, 2),
    support=st.sampled_from([(-3.0, 3.0), (-1.0, 2.0), (0.0, 3.5), (-4.0, -2.0)]),
    log_delta=st.floats(-9, 1.5),
    log_size=st.floats(-3, 4),
    log_alpha=st.floats(-4, 3),
    seed=st.integers(0, 10**6),
)
def test_pruned_equals_the_literal_sum_anywhere(m, j, support, log_delta, log_size, log_alpha, seed):
    rng = np.random.default_rng(seed)
    dro = rs.DRO(delta=10**log_delta, j=j, support=support)
    theta_bar = rng.normal(size=m + 1) * 10**log_size
    theta_bar[-1] = rng.normal() * 10**log_alpha
    x = rng.uniform(*support, size=m)
    if seed % 3 == 0:
        x = np.round(x * 4) / 4  # on the grid or half-way between its points
    xi = literal.grid(m, dro.ell, dro.j, dro.support)
    want = expected(theta_bar, x, xi, dro)
    assert_equal(make_engine("pruned", rs.SigmoidRegression(m), dro), theta_bar, x, want, dro.delta)


def test_beyond_every_range_the_nearest_point_is_left(rng):
    """ι = 1e12 at δ = 1e-8: the weight sits on the grid point nearest to x, and nothing overflows."""
    dro = rs.DRO(delta=1e-8, support=(-3.0, 3.0))
    engine = make_engine("pruned", rs.SigmoidRegression(4), dro)
    theta_bar, x = np.array([1e8, -1e8, 3.0, 0.2, 1e12]), np.array([0.1, -1.2, 2.9, 0.6])
    nearest = np.array([0.0, -1.0, 3.0, 0.5])
    got = engine.log_sum(theta_bar[None], x[None])
    assert got.cost[0] == pytest.approx(((x - nearest) ** 2).sum(), rel=1e-12)
    np.testing.assert_allclose(got.grad_U[0], literal.grad_U(theta_bar[:-1], nearest), atol=1e-12)
    assert np.isfinite(got.value).all()


@pytest.mark.parametrize(
    ("name", "problem", "setting"),
    [
        ("pruned", rs.SigmoidRegression(4), {}),
        ("dense", rs.SigmoidRegression(4), {}),
        ("dense", rs.SigmoidRegression(2), {"j": 5}),  # 37 249 points: torch would split one sum between threads
        ("dense", Curve(), {"p": 1.5}),
        ("dense", TorchSigmoid(3), {}),
    ],
)
def test_a_pair_does_not_depend_on_its_company(name, problem, setting, rng):
    dro = rs.DRO(**setting)
    engine = make_engine(name, problem, dro)
    # more than one block of the dense engine at 28 561 points
    states, x = rng.normal(size=(120, problem.n_params + 1)), rng.uniform(-3, 3, (120, problem.dim))
    together = engine.log_sum(states, x)
    for part in (slice(0, 1), slice(1, 3), slice(3, 8), slice(119, 120)):
        for alone, all_ in zip(engine.log_sum(states[part], x[part]), together, strict=True):
            np.testing.assert_array_equal(alone, all_[part])


def test_pruned_counts_what_it_touches(paper, problem):
    """At the published state of affairs it sums a small part of the 28 561 points; the counts say how small."""
    engine = make_engine("pruned", problem, rs.DRO())
    states = np.tile([-0.3, 0.5, 0.2, -0.1, 1.8], (200, 1))
    engine.log_sum(states, paper.train[:200])
    points, sigmoids, exponentials = engine.counts / 200
    assert 1 <= sigmoids <= 13**3
    assert sigmoids <= points < engine.grid.size / 4
    assert sigmoids <= exponentials < engine.grid.size / 4


def test_auto_takes_the_cheapest_valid_engine_and_says_why(problem, caplog):
    with caplog.at_level(logging.INFO, logger="robust_sgld"):
        assert make_engine("auto", problem, rs.DRO()).name == "pruned"
        assert "pruned" in caplog.text
        caplog.clear()
        assert make_engine("auto", problem, rs.DRO(p=1)).name == "dense"
        assert "dense" in caplog.text
        assert "p=2" in caplog.text
        caplog.clear()
        assert make_engine("auto", Curve(), rs.DRO()).name == "dense"
        assert "Curve" in caplog.text


class AnotherU(rs.SigmoidRegression):
    """Still called a loss of a linear index, but it is not."""

    def U(self, theta, x):
        return super().U(theta, x) + x[..., 0] ** 2


@pytest.mark.parametrize(
    ("name", "problem", "setting", "words"),
    [
        ("pruned", rs.SigmoidRegression(4), {"p": 1}, ["p=2", "engine=dense can do it"]),
        ("pruned", Curve(), {}, ["SigmoidRegression", "Curve", "engine=dense can do it"]),
        ("pruned", TorchSigmoid(4), {}, ["TorchSigmoid", "engine=chain can do it"]),
        ("pruned", rs.SigmoidRegression(4), {"j": 0, "support": (0.0, 0.5)}, ["two grid points", "engine=chain"]),
        ("dense", rs.SigmoidRegression(4), {"j": 4}, ["97^4 points", "GiB", "engine=pruned can do it"]),
        ("dense", rs.SigmoidRegression(400), {}, ["13^400 points", "GiB"]),
        ("chain", AnotherU(4), {}, ["U of its own", "engine=dense can do it"]),
        ("dense", Curve(), {"j": 20}, ["GiB", "no other engine can"]),
        ("dense", Curve(), {"j": 37}, ["GiB"]),
        ("auto", Curve(), {"j": 20}, ["No engine can", "dense", "GiB", "pruned"]),
        ("sparse", Curve(), {}, ["engine must be one of", "auto", "dense", "pruned", "'sparse'"]),
    ],
)  # fmt: skip
def test_an_engine_refuses_what_it_cannot_do_and_names_what_can(name, problem, setting, words):
    with pytest.raises(rs.InvalidInput) as refusal:
        DualObjective(problem, rs.DRO(**setting), name)
    for word in words:
        assert word in str(refusal.value)


def test_a_U_of_the_wrong_shape_is_refused():
    class Column(Curve):
        def U(self, theta, x):
            return super().U(theta, x)[..., None]

    with pytest.raises(rs.InvalidInput, match=r"U must return one number a pair, .* got \(2, 1, 1\)"):
        DualObjective(Column(), rs.DRO())
