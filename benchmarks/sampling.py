"""One chain on one core: the literal NumPy loop against the compiled one, and what a step consists of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

import robust_sgld as rs
from benchmarks.figure import Figure, best
from robust_sgld.kernels.elementary import EXACT, fast_exp
from robust_sgld.trial import thinned_axis
from tests import literal

ETA2 = (0.01, 0.1, 0.5, 1.0, 1.5, 2.0)
N_ITER = 25_000
LITERAL_STEPS = 150
"""The literal loop does the same work every step, so a few of them are scaled to N_ITER."""
LITERAL_PLAIN_STEPS = 5_000


@dataclass(frozen=True)
class Chain:
    """One robust chain of N_ITER updates; counts are a step's."""

    eta2: float
    literal_seconds: float
    seconds: float
    points: float
    sigmoids: float
    exponentials: float
    exponential_share: float
    """of the step, at the measured throughput of `fast_exp`: the part that no cleverness around it can remove"""
    loss_seconds: float
    """exact hitting time, extremes and thinned loss path"""

    @property
    def ratio(self) -> float:
        return self.literal_seconds / self.seconds

    @property
    def loss_share(self) -> float:
        return self.loss_seconds / self.seconds


@njit(**EXACT)
def _exponentials(x: np.ndarray, out: np.ndarray, times: int) -> None:
    for _ in range(times):
        for i in range(x.size):
            out[i] = fast_exp(x[i])


def seconds_per_exponential() -> float:
    """Of `fast_exp` over arrays that stay in the first-level cache."""
    x, times = np.linspace(-40.0, 0.0, 1024), 20_000
    out = np.empty_like(x)
    _exponentials(x, out, 1)
    return best(lambda: _exponentials(x, out, times), 5) / (times * x.size)


def loss_seconds(sampler: rs.LangevinSampler, data: rs.Dataset, path: np.ndarray) -> float:
    """What a trial computes from the losses of one run, from the evaluator's making on."""
    theta, axis = sampler.theta(path), thinned_axis(len(path), 50)
    reference = float(rs.test_losses(data.theta_star, data.test, sampler.problem))

    def measure() -> None:
        evaluator = rs.LossEvaluator(sampler.problem, data.test)
        evaluator.along(theta, reference)
        evaluator.losses(theta[axis - 1])

    measure()
    return best(measure, 3)


def robust_chain(data: rs.Dataset, eta2: float, per_exponential: float) -> Chain:
    """The published experiment at one η2."""
    problem, dro = rs.SigmoidRegression(4), rs.DRO(eta2=eta2)
    sampler = rs.RobustSGLD(problem, dro, engine="pruned")
    theta0 = sampler.initial_state(-2.0)
    indices, noise = rs.draws(0, 1, N_ITER, len(data.train), 5)
    counts = sampler.dual.engine.counts  # type: ignore[attr-defined]
    sampler.advance(data.train, theta0, indices[:, :10], noise[:, :10])
    counts[:] = 0
    path = sampler.advance(data.train, theta0, indices, noise)[0]
    points, sigmoids, exponentials = counts / N_ITER
    xi, first = sampler.dual.grid.points(), slice(0, LITERAL_STEPS)

    def by_the_letter() -> np.ndarray:
        steps = indices[0, first], noise[0, first]
        return literal.robust_path(data.train, theta0, *steps, xi, dro, sampler.step_size, sampler.beta)

    # in turns, so that a slow spell of the machine meets both
    slow, fast = [], []
    for _ in range(3):
        slow.append(best(by_the_letter, 1))
        fast.append(best(lambda: sampler.advance(data.train, theta0, indices, noise), 2))
    np.testing.assert_allclose(by_the_letter(), path[first], atol=1e-12)
    seconds = min(fast)
    return Chain(
        eta2,
        min(slow) * N_ITER / LITERAL_STEPS,
        seconds,
        points,
        sigmoids,
        exponentials,
        exponentials * per_exponential * N_ITER / seconds,
        loss_seconds(sampler, data, path),
    )


def plain_chain(data: rs.Dataset) -> list[Figure]:
    """Vanilla SGLD, and what the losses cost beside it."""
    sampler = rs.SGLD(rs.SigmoidRegression(4))
    theta0 = sampler.initial_state(-2.0)
    indices, noise = rs.draws(0, 1, N_ITER, len(data.train), 4)
    path = sampler.advance(data.train, theta0, indices, noise)[0]
    few = slice(0, LITERAL_PLAIN_STEPS)

    def by_the_letter() -> np.ndarray:
        steps = indices[0, few], noise[0, few]
        return literal.plain_path(data.train, theta0, *steps, sampler.step_size, sampler.beta)

    slow = best(by_the_letter, 3) * N_ITER / LITERAL_PLAIN_STEPS
    fast = best(lambda: sampler.advance(data.train, theta0, indices, noise), 10)
    return [
        Figure("vanilla: literal loop, 25 000 updates", slow, "s"),
        Figure("vanilla: compiled, 25 000 updates", fast, "s"),
        Figure("vanilla: compiled against literal", slow / fast, "times", least=50),
        Figure("vanilla: hitting time and losses of one run", loss_seconds(sampler, data, path), "s"),
    ]
