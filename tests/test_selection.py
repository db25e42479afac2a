"""Held-out losses: every row is predicted by a fit that has not seen it; criteria that outliers do not decide."""

from __future__ import annotations

import numpy as np
import pytest

import robust_sgld as rs
from robust_sgld.selection import fold_numbers, row_losses, tail_mean


def test_folds_are_a_partition_of_equal_sizes():
    numbers = fold_numbers(23, 5, seed=3)
    assert sorted(np.bincount(numbers)) == [4, 4, 5, 5, 5]
    np.testing.assert_array_equal(numbers, fold_numbers(23, 5, seed=3))
    assert (numbers != fold_numbers(23, 5, seed=4)).any()
    with pytest.raises(rs.InvalidInput, match="folds must be at most the number of rows"):
        fold_numbers(3, 5, seed=0)
    with pytest.raises(rs.InvalidInput, match="folds must be at least 2"):
        fold_numbers(30, 1, seed=0)


def test_tail_mean_is_over_runs_and_the_second_half(rng):
    paths = rng.normal(size=(3, 10, 2))
    np.testing.assert_allclose(tail_mean(paths), paths[:, 5:].reshape(-1, 2).mean(axis=0), rtol=1e-14)


def test_held_out_losses_against_a_loop_by_hand(paper):
    """The same folds, draws and estimates, written out."""
    rows, sampler = paper.train[:60], rs.SGLD(rs.SigmoidRegression(4), step_size=0.05)
    got = rs.held_out_losses(sampler, rows, folds=3, runs=2, n_iter=80, theta0=-1.0, seed=7)
    fold = fold_numbers(60, 3, 7)
    for k in range(3):
        kept = rows[fold != k]
        stream = rs.draws(7, [2 * k, 2 * k + 1], 80, len(kept), 4)
        theta = sampler.run(kept, np.full(4, -1.0), stream.indices, stream.noise)[:, 40:].mean(axis=(0, 1))
        s = 1 / (1 + np.exp(-(rows[fold == k, :3] @ theta[:3] + theta[3])))
        np.testing.assert_allclose(got[fold == k], (rows[fold == k, 3] - s) ** 2, rtol=1e-12)


def test_a_row_does_not_decide_its_own_fit(paper):
    """Changing a row changes the fits of the other folds alone, so the other losses of its own fold stay."""
    rows, sampler = paper.train[:60].copy(), rs.SGLD(rs.SigmoidRegression(4), step_size=0.05)
    before = rs.held_out_losses(sampler, rows, folds=3, runs=1, n_iter=200)
    fold = fold_numbers(60, 3, 0)
    row = int(np.flatnonzero(fold == 1)[0])
    rows[row] = 2.5
    after = rs.held_out_losses(sampler, rows, folds=3, runs=1, n_iter=200)
    same = (fold == 1) & (np.arange(60) != row)
    np.testing.assert_array_equal(after[same], before[same])
    assert (after[fold != 1] != before[fold != 1]).any()


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_do_not_change_the_numbers(paper, workers):
    sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO())
    losses = rs.held_out_losses(sampler, paper.train[:50], folds=4, runs=1, n_iter=50, workers=workers)
    np.testing.assert_array_equal(losses, rs.held_out_losses(sampler, paper.train[:50], folds=4, runs=1, n_iter=50))


def test_criteria():
    losses = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1e6, 1e9])
    found = rs.criteria(losses, trim=0.2)
    assert found["mean"] == losses.mean()
    assert found["trimmed"] == 4.5
    assert found["median"] == 5.5
    assert rs.criteria(losses, trim=0)["trimmed"] == losses.mean()
    assert rs.criteria(losses, trim=1)["trimmed"] == 1.0
    with pytest.raises(rs.InvalidInput, match="trim must be a share between 0 and 1"):
        rs.criteria(losses, trim=1.5)


def test_outliers_decide_the_mean_and_not_the_others(paper):
    """θ fitted to the outliers against θ*: the mean of the contaminated losses prefers the former, the rest θ*.

    Half of the outliers have y near 1.55 at z near 2.25, far from what θ* predicts there; so a θ that is better there
    is easy to have, and it is worse on the clean 70 %.
    """
    problem = rs.SigmoidRegression(4)
    fitted = rs.minimise_risk(problem, paper.train, paper.theta_star)
    at_truth, at_fitted = (rs.criteria(row_losses(problem, t, paper.train), 0.3) for t in (paper.theta_star, fitted))
    assert at_fitted["mean"] < at_truth["mean"]
    assert at_fitted["trimmed"] > at_truth["trimmed"]
    assert at_fitted["median"] > at_truth["median"]
