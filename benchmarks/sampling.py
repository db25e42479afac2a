"""One chain on one core: the literal NumPy loop against the compiled one, and what a step consists of.

The literal loop's time depends on where its temporary arrays of a megabyte come from. In a process of its own, as a
user would run it, they go back to the system after every step and are new pages in the next, which is about a third of
its time; with malloc told to keep memory they are reused. Both are measured, each in fresh processes, and both ratios
are held against the target. The loop does the same work at every η2, so its fastest measurement counts for all.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

import robust_sgld as rs
from benchmarks.figure import Figure, best
from benchmarks.processes import child
from robust_sgld.kernels.elementary import EXACT, fast_exp
from robust_sgld.trial import thinned_axis
from tests import literal

ETA2 = (0.01, 0.1, 0.5, 1.0, 1.5, 2.0)
N_ITER = 25_000
LITERAL_STEPS = 150
"""The literal loop does the same work every step, so a few of them are scaled to N_ITER."""
LITERAL = """
import json, sys
import numpy as np
import robust_sgld as rs
from benchmarks.figure import best
from tests import literal

eta2, steps = float(sys.argv[1]), int(sys.argv[2])
data, dro = rs.paper_dataset(), rs.DRO(eta2=eta2)
indices, noise = rs.draws(0, 1, steps, len(data.train), 5)
grid, theta0 = literal.grid(4, dro.ell, dro.j, dro.support), np.array([-2.0, -2, -2, -2, 0])
paths = []

def run():
    paths.append(literal.robust_path(data.train, theta0, indices[0], noise[0], grid, dro, 0.01, 1e9))

seconds = best(run, 4)
print(json.dumps([seconds, paths[0][-1].tolist()]))
"""
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000"}
LITERAL_PLAIN_STEPS = 5_000


@dataclass(frozen=True)
class Chain:
    """One robust chain of N_ITER updates; counts are a step's."""

    eta2: float
    literal_seconds: float
    literal_kept_seconds: float
    """with malloc told to keep memory"""
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
    def ratio_kept(self) -> float:
        return self.literal_kept_seconds / self.seconds

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


def literal_loop(eta2: float, expected: np.ndarray, **environment: str) -> float:
    """Seconds for N_ITER updates; that it arrives where the compiled chain does is checked on the way."""
    seconds, state = json.loads(child(LITERAL, str(eta2), str(LITERAL_STEPS), **environment))
    np.testing.assert_allclose(state, expected, atol=1e-12)
    return seconds * N_ITER / LITERAL_STEPS


def robust_chains(data: rs.Dataset, per_exponential: float, say: Callable[[str], None]) -> list[Chain]:
    """The published experiment at every η2."""
    measured = []
    for eta2 in ETA2:
        say(f"robust chain, eta2={eta2:g}: literal loop and pruned engine")
        sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(eta2=eta2), engine="pruned")
        theta0 = sampler.initial_state(-2.0)
        indices, noise = rs.draws(0, 1, N_ITER, len(data.train), 5)
        counts = sampler.dual.engine.counts  # type: ignore[attr-defined]
        sampler.advance(data.train, theta0, indices[:, :10], noise[:, :10])
        counts[:] = 0
        path = sampler.advance(data.train, theta0, indices, noise)[0]
        points, sigmoids, exponentials = (float(count) / N_ITER for count in counts)
        there = path[LITERAL_STEPS - 1]
        slow, kept = literal_loop(eta2, there), literal_loop(eta2, there, **KEEP_MEMORY)
        seconds = best(functools.partial(sampler.advance, data.train, theta0, indices, noise), 6)
        share = exponentials * per_exponential * N_ITER / seconds
        losses = loss_seconds(sampler, data, path)
        measured.append(Chain(eta2, slow, kept, seconds, points, sigmoids, exponentials, share, losses))
    slow, kept = min(c.literal_seconds for c in measured), min(c.literal_kept_seconds for c in measured)
    return [replace(c, literal_seconds=slow, literal_kept_seconds=kept) for c in measured]


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
