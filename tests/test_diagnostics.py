"""R-hat and effective sample sizes against ArviZ, and against what is known of iid and AR(1) draws."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import robust_sgld as rs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces its next version on import
    import arviz


def ar1(rng, runs, n, rho):
    noise = rng.normal(size=(runs, n))
    draws = np.empty((runs, n))
    draws[:, 0] = noise[:, 0]
    for i in range(1, n):
        draws[:, i] = rho * draws[:, i - 1] + np.sqrt(1 - rho**2) * noise[:, i]
    return draws


CHAINS = {
    "iid": lambda rng: rng.normal(size=(4, 500)),
    "iid, odd length": lambda rng: rng.normal(size=(5, 333)),
    "many short runs": lambda rng: rng.normal(size=(100, 9)),
    "heavy tails": lambda rng: rng.standard_cauchy(size=(4, 300)),
    "positively correlated": lambda rng: ar1(rng, 4, 1000, 0.9),
    "negatively correlated": lambda rng: ar1(rng, 4, 1000, -0.7),
    "hardly mixing": lambda rng: ar1(rng, 4, 200, 0.999),
    "shifted": lambda rng: rng.normal(size=(4, 400)) + np.arange(4)[:, None],
    "scaled": lambda rng: rng.normal(size=(4, 400)) * np.array([1, 1, 1, 10])[:, None],
    "drifting": lambda rng: rng.normal(size=(4, 400)) + np.linspace(0, 3, 400),
    "ties": lambda rng: rng.integers(0, 3, size=(4, 400)).astype(float),
}


@pytest.mark.parametrize("make", CHAINS.values(), ids=CHAINS)
def test_equal_to_arviz(make, rng):
    """Both compute the same formulas in float64; sums of 1e4 terms agree to 1e-10."""
    draws = make(rng)
    assert rs.r_hat(draws) == pytest.approx(float(arviz.rhat(draws, method="rank")), rel=1e-10)
    assert rs.ess_bulk(draws) == pytest.approx(float(arviz.ess(draws, method="bulk")), rel=1e-10)
    assert rs.ess_mean(draws) == pytest.approx(float(arviz.ess(draws, method="mean")), rel=1e-10)


@pytest.mark.parametrize("n", range(4, 14))
def test_equal_to_arviz_on_few_draws(n, rng):
    for _ in range(20):
        draws = rng.normal(size=(3, n)).cumsum(axis=1)
        assert rs.r_hat(draws) == pytest.approx(float(arviz.rhat(draws, method="rank")), rel=1e-10)
        assert rs.ess_bulk(draws) == pytest.approx(float(arviz.ess(draws, method="bulk")), rel=1e-10)
        assert rs.ess_mean(draws) == pytest.approx(float(arviz.ess(draws, method="mean")), rel=1e-10)


def test_one_run_is_compared_with_itself(rng):
    """ArviZ gives no R-hat for one run; its halves can disagree all the same."""
    draws = rng.normal(size=(1, 400))
    assert rs.ess_bulk(draws) == pytest.approx(float(arviz.ess(draws, method="bulk")), rel=1e-10)
    assert rs.r_hat(draws) == pytest.approx(1, abs=0.05)
    assert rs.r_hat(draws + np.linspace(0, 5, 400)) > 1.5


def test_iid_draws_are_worth_their_number_and_runs_agree(rng):
    """The estimate of an ESS of 40 000 scatters by a few per cent over 10 runs of 4 000."""
    draws = rng.normal(size=(10, 4000))
    assert rs.r_hat(draws) == pytest.approx(1, abs=2e-3)
    assert rs.ess_mean(draws) == pytest.approx(draws.size, rel=0.1)


def test_ar1_draws_are_worth_less(rng):
    """n(1-ρ)/(1+ρ) = 40 000/9 at ρ = 0.8."""
    draws = ar1(rng, 10, 4000, 0.8)
    assert rs.ess_mean(draws) == pytest.approx(draws.size / 9, rel=0.15)


def test_runs_that_disagree_are_seen(rng):
    """In place, and, by the folded draws, in scale alone."""
    assert rs.r_hat(CHAINS["shifted"](rng)) > 1.2
    assert rs.r_hat(CHAINS["scaled"](rng)) > 1.2


def test_draws_that_do_not_vary_have_no_diagnostics():
    still = np.ones((3, 50))
    assert np.isnan([rs.r_hat(still), rs.ess_bulk(still), rs.ess_mean(still)]).all()


def test_refusals(rng):
    for f in (rs.r_hat, rs.ess_bulk, rs.ess_mean):
        with pytest.raises(rs.InvalidInput, match="at least 4 draws a run, got 3"):
            f(rng.normal(size=(5, 3)))
        with pytest.raises(rs.InvalidInput, match="draws must have shape"):
            f(rng.normal(size=5))
        with pytest.raises(rs.InvalidInput, match="not finite"):
            f(np.full((2, 8), np.nan))
