"""The measured excess risk of a trial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import robust_sgld as rs
from robust_sgld.theory import LogNumber, TheoryConstants, frontier_of, measured_excess_risk, robust_value
from robust_sgld.theory.excess import ExcessRisk, Mean
from tests.theory_problems import SMALL


@pytest.fixture(scope="module")
def trial() -> tuple[rs.TrialResult, rs.RobustSGLD, rs.Dataset]:
    rng = np.random.default_rng(3)
    data = rs.Dataset(rng.uniform(-1, 1.5, (200, 2)), rng.uniform(-1, 1.5, (50, 2)))
    sampler = rs.RobustSGLD(rs.SigmoidRegression(2), SMALL, step_size=0.02, beta=1e4)
    return rs.run_trial(sampler, data, runs=8, n_iter=400, workers=1), sampler, data


@pytest.fixture(scope="module")
def risk(trial: tuple[rs.TrialResult, rs.RobustSGLD, rs.Dataset]) -> ExcessRisk:
    return measured_excess_risk(*trial)


def test_it_is_the_mean_over_runs_of_the_last_states(
    trial: tuple[rs.TrialResult, rs.RobustSGLD, rs.Dataset], risk: ExcessRisk
) -> None:
    result, sampler, data = trial
    last = result.states[:, -1]
    assert risk.v == pytest.approx(sampler.objective(last, data.train), rel=1e-12)
    frontier = frontier_of(sampler.problem, sampler.dro, data.train)
    assert risk.u == pytest.approx([robust_value(frontier, theta).value for theta in last[:, :-1]], rel=1e-12)
    assert risk.smoothed_excess.mean == pytest.approx(risk.v.mean() - risk.smoothed.value, rel=1e-12)
    assert risk.excess.mean == pytest.approx(risk.u.mean() - risk.primal.value, rel=1e-12)
    assert risk.robust_value.mean == pytest.approx(risk.u.mean(), rel=1e-12)


def test_no_run_is_below_the_minimum(risk: ExcessRisk) -> None:
    assert (risk.v >= risk.smoothed.value - 1e-9).all()
    assert (risk.u >= risk.primal.lower - 1e-9).all()
    # eqn:nesterov_ineq: the maximum lies between the smoothed one and δ log N above it
    assert risk.smoothing_bound == pytest.approx(SMALL.delta * SMALL.grid(2).log_size, rel=1e-15)
    assert (risk.v_max - risk.v >= -1e-12).all()
    assert (risk.v_max - risk.v <= risk.smoothing_bound + 1e-12).all()
    assert risk.headline()["smoothing_error"] == pytest.approx((risk.v_max - risk.v).mean(), rel=1e-12)
    assert (risk.u <= risk.v_max + 1e-12).all()
    # and links the two: u^{ℓ,j}(θ) ≤ v^{ℓ,j}(θ̄) ≤ v^{δ,ℓ,j}(θ̄) + δ log N
    assert (risk.u <= risk.v + SMALL.delta * SMALL.grid(2).log_size + 1e-12).all()


def test_headline(risk: ExcessRisk) -> None:
    numbers = risk.headline()
    assert numbers["excess_risk_low"] < numbers["excess_risk"] < numbers["excess_risk_high"]
    assert numbers["robust_value"] - numbers["smallest_robust_value"] == pytest.approx(numbers["excess_risk"], rel=1e-9)
    constants = TheoryConstants.of(rs.SigmoidRegression(2), SMALL, beta=1e4, theta0=0.0)
    assert numbers["step_size_over_max"] == pytest.approx(float(LogNumber.of(0.02) / constants.step_max), rel=1e-12)
    assert all(np.isfinite(number) for number in numbers.values())


def test_a_run_that_diverged_is_left_out(
    trial: tuple[rs.TrialResult, rs.RobustSGLD, rs.Dataset], risk: ExcessRisk
) -> None:
    result, sampler, data = trial
    states = result.states.copy()
    states[2, -1] = np.nan
    partial = measured_excess_risk(replace(result, states=states), sampler, data)
    assert np.isnan(partial.u[2])
    assert np.isnan(partial.v[2])
    assert np.isnan(partial.v_max[2])
    assert partial.excess.runs == 7
    assert partial.excess.mean == pytest.approx(np.delete(risk.u, 2).mean() - risk.primal.value, abs=1e-6)
    gone = measured_excess_risk(replace(result, states=np.full_like(states, np.nan)), sampler, data)
    assert gone.excess.runs == 0
    assert np.isnan(gone.excess.mean)


def test_the_published_problem_in_seconds(paper: rs.Dataset, problem: rs.SigmoidRegression) -> None:
    """z_{D,ℓ,j,δ} at η2=1 is found by every start; a short run is above it."""
    sampler = rs.RobustSGLD(problem, rs.DRO())
    result = rs.run_trial(sampler, paper, runs=2, n_iter=100, workers=1)
    risk = measured_excess_risk(result, sampler, paper)
    assert risk.smoothed.agreement == 1.0
    assert risk.smoothed_excess.mean > 0
    assert risk.step_ratio == pytest.approx(0.01 / 1.4767874e-20, rel=1e-7)


def test_mean_has_student_s_interval() -> None:
    values = np.array([1.0, 2.0, 4.0, np.nan, 7.0])
    mean = Mean.of(values)
    finite = values[np.isfinite(values)]
    low, high = stats.t.interval(0.95, 3, loc=finite.mean(), scale=finite.std(ddof=1) / 2)
    assert (mean.mean, mean.low, mean.high, mean.runs) == pytest.approx((3.5, low, high, 4))
    single = Mean.of(np.array([2.0]))
    assert single.mean == 2.0
    assert np.isnan(single.low)


def test_only_a_robust_trial_has_one(trial: tuple[rs.TrialResult, rs.RobustSGLD, rs.Dataset]) -> None:
    result, sampler, data = trial
    with pytest.raises(rs.InvalidInput, match="sgld"):
        measured_excess_risk(result, rs.SGLD(sampler.problem), data)
