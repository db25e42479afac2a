"""A whole trial: one worker against two, and its peak memory."""

from __future__ import annotations

import robust_sgld as rs
from benchmarks.figure import Figure
from benchmarks.processes import child

RUNS, N_ITER = 100, 25_000

TRIAL = f"""
import resource, sys
import robust_sgld as rs
sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO())
rs.run_trial(sampler, rs.paper_dataset(), runs={RUNS}, n_iter={N_ITER}, workers=2)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak if sys.platform == "darwin" else peak * 1024)
"""


def two_workers(data: rs.Dataset) -> list[Figure]:
    """Each twice, in turns; the faster of each counts."""
    sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(), engine="pruned")
    trials = [rs.run_trial(sampler, data, runs=RUNS, n_iter=N_ITER, workers=workers) for workers in (1, 2, 1, 2)]
    one, two = (min(trial.wall_seconds for trial in trials if trial.workers == workers) for workers in (1, 2))
    alone = trials[0]
    return [
        Figure("100 chains x 25 000 on 1 worker, with losses and objective", one, "s"),
        Figure("100 chains x 25 000 on 2 workers", two, "s"),
        Figure("2 workers against 1", one / two, "times", least=1.8),
        Figure("share of a trial that is sampling (1 worker)", float(alone.seconds.sum()) / alone.wall_seconds, ""),
    ]


def peak_memory() -> Figure:
    """Of a fresh process with warm caches."""
    return Figure("peak memory of 100 x 25 000", float(child(TRIAL)) / 1e6, "MB", most=500)
