"""Cost against m: robust SGLD on a sigmoid neuron of 2 to 32 features, by every engine that can sum its grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robust_sgld as rs
from benchmarks.figure import Figure, best
from benchmarks.processes import ROOT
from robust_sgld.engines import ENGINES

DIMENSIONS = (3, 4, 5, 6, 8, 11, 16, 22, 32, 33)
UPDATES = {"dense": 5, "pruned": 400, "chain": 400}
LEAST_MICROSECONDS = 2e5
"""An engine whose update takes longer than this is left out at larger m."""
PICTURE = ROOT / "outputs" / "bench_dimension.png"


def late_update(engine: str, m: int) -> float:
    """Microseconds of an update where a run at η2 = 1 ends: |w| = 0.75 spread over all axes, ι(α) = 1.4."""
    stream = np.random.default_rng(m)
    star = stream.normal(size=m)
    star *= 0.75 / np.linalg.norm(star)
    data = rs.contaminated_dataset(theta_star=star.tolist(), n_train=1000, n_test=10)
    sampler = rs.RobustSGLD(rs.SigmoidRegression(m), rs.DRO(eta2=1.0), engine=engine)
    n = UPDATES[engine]
    indices, noise = rs.draws(0, 1, n, len(data.train), m + 1)
    start = np.append(star, 2.08)
    sampler.advance(data.train, start, indices[:, :2], noise[:, :2])
    return best(lambda: sampler.advance(data.train, start, indices, noise), 3) / n * 1e6


def cost_against_dimension(say: Callable[[str], None]) -> tuple[dict[str, list[tuple[int, float]]], list[Figure]]:
    """(m, microseconds) by engine, the targets, and the picture in outputs/."""
    from robust_sgld.report import figures

    measured: dict[str, list[tuple[int, float]]] = {engine: [] for engine in UPDATES}
    for m in DIMENSIONS:
        for engine, pairs in measured.items():
            valid = ENGINES[engine]().refusal(rs.SigmoidRegression(m), rs.DRO()) is None
            if valid and not (pairs and pairs[-1][1] > LEAST_MICROSECONDS):
                say(f"m={m}: engine {engine}")
                pairs.append((m, late_update(engine, m)))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figures.cost_against_dimension(measured, rs.DRO().grid(1).points_per_axis).savefig(PICTURE, dpi=150)
    chain, pruned = dict(measured["chain"]), dict(measured["pruned"])
    targets = [
        Figure("chain: cost at m=32 against m=16", chain[32] / chain[16], "times", most=2.3),
        Figure("chain at m=11 against pruned at m=4", chain[11] / pruned[4], "times", most=60, aim="10"),
        *(Figure(f"{e}: an update at m={m}", cost, "µs") for e, pairs in measured.items() for m, cost in pairs),
    ]
    return measured, targets
