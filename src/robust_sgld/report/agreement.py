"""Does a printed n_es agree with ours, given how far the largest of 100 hitting times spreads?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robust_sgld.report import published

REPLICATES = 4_000
TAIL_SHARE = 0.1
"""the share of the runs that the tail is fitted to"""
LEVEL = 0.95

RULE = (
    "How the verdict is computed. A repetition of the paper's experiment is simulated 4 000 times from our runs: "
    "our runs are drawn again with replacement; 100 new runs are drawn from them, where a draw that missed the band "
    "makes the repetition print NA, and a draw from the latest tenth of the hitting times is replaced by one from a "
    "Pareto tail fitted to that tenth (Hill's estimator), because a plain bootstrap of a maximum can never exceed "
    "the largest value seen and would make the interval too short; a largest hitting time beyond the last update is "
    "NA too. This gives the probability P(NA) that a repetition prints NA (0 % says that no run of ours points to "
    "it, not that it cannot be) and a 95 % interval for the printed n_es, NA counting as later than every number. "
    "“agrees”: the paper's entry lies inside that interval. “differs”: it lies outside. “open”: outside, but the "
    "paper prints NA and none of our runs missed; one miss among their 100 is enough for that, and no run of ours "
    "says how likely it is. “not judged”: the trial is not the paper's protocol. Only n_es is judged: the loss at "
    "n_es lies within the band by definition, and times are of different machines."
)


@dataclass(frozen=True)
class Agreement:
    """A verdict and what it rests on; infinity stands for NA."""

    verdict: str
    """agrees, differs, open or not judged"""
    low: float
    high: float
    """the interval for the printed n_es of a repetition; NaN where it is not known"""
    na_probability: float
    """that a repetition prints NA, by drawing our runs again"""


def repetitions(n_es: np.ndarray, n_iter: int, *, runs: int = published.RUNS, seed: int = 0) -> np.ndarray:
    """(REPLICATES,) what repetitions of a trial with hitting times n_es (R,), 0 for a miss, would print; inf for NA.

    In each, R runs are drawn with replacement from ours; of them, k missed and h = R - k hit. The new trial misses with
    probability 1 - (1 - k/R)^runs. Else its maximum is that of `runs` draws from the h hitting times, whose largest
    t = ⌈h·TAIL_SHARE⌉ are replaced by u·e^{γE}, E standard exponential, u the largest hitting time below them and
    γ the mean of log(x/u) over them (Hill). The maximum of N such E has the law of -log(1 - V^{1/N}), V uniform.

    Simulated with 100 runs against 100, a 95 % interval made of these holds the other maximum in 92 to 99 % of the
    cases (normal, exponential, log-normal, uniform, Pareto with γ = 0.4, and a mixture like that at η₂ = 0.5).
    """
    stream = np.random.default_rng(seed)
    everyone, row = len(n_es), np.arange(REPLICATES)
    drawn = np.sort(stream.choice(n_es, (REPLICATES, everyone)), axis=1)[:, ::-1]  # latest first, misses last
    hits = (drawn > 0).sum(axis=1)
    tail = np.clip(np.ceil(TAIL_SHARE * hits), 0, np.maximum(hits - 1, 0)).astype(int)
    log_time = np.log(np.maximum(drawn, 1))
    log_u = log_time[row, tail]
    sums = np.cumsum(log_time, axis=1)
    gamma = np.where(tail > 0, sums[row, tail - 1] / np.maximum(tail, 1) - log_u, 0.0)
    in_tail = stream.binomial(runs, tail / np.maximum(hits, 1))
    # without a draw from the tail (3 in 100 000) the maximum is about u
    latest = -np.log1p(-(stream.random(REPLICATES) ** (1 / np.maximum(in_tail, 1)))) * (in_tail > 0)
    printed = np.exp(log_u + gamma * latest)
    na = (stream.random(REPLICATES) >= (hits / everyone) ** runs) | (printed > n_iter * (1 + 1e-12))
    return np.where(na, np.inf, printed)


def judge(n_es: np.ndarray, n_iter: int, printed: int | None, *, comparable: bool) -> Agreement:
    """The verdict on a printed n_es (None for NA) given ours; `comparable` says whether the protocol is the paper's."""
    if not comparable:
        return Agreement("not judged", math.nan, math.nan, math.nan)
    simulated = repetitions(n_es, n_iter)
    edge = (1 - LEVEL) / 2
    # an order statistic, not an interpolated one: between a number and NA there is nothing
    low, high = np.quantile(simulated, [edge, 1 - edge], method="inverted_cdf")
    entry = math.inf if printed is None else float(printed)
    outside = "open" if printed is None and (n_es > 0).all() else "differs"
    verdict = "agrees" if low <= entry <= high else outside
    return Agreement(verdict, float(low), float(high), float(np.isinf(simulated).mean()))
