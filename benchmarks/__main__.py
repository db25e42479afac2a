"""All benchmarks: progress while it runs, two tables, and outputs/bench.json."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict
from pathlib import Path

import numba
import numpy as np

import robust_sgld as rs
from benchmarks.dimension import PICTURE, cost_against_dimension
from benchmarks.figure import Figure, figure_table, table
from benchmarks.processes import ROOT, start_up
from benchmarks.reproduction import shares
from benchmarks.sampling import N_ITER, Chain, plain_chain, robust_chains, seconds_per_exponential
from benchmarks.trials import peak_memory, two_workers

OUTPUT = ROOT / "outputs" / "bench.json"
GRID_POINTS = 28_561


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def machine() -> dict[str, object]:
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def chain_figures(chains: list[Chain]) -> list[Figure]:
    """The targets, at every η2."""
    figures = []
    for against, ratio in (("literal", "ratio"), ("literal with memory kept", "ratio_kept")):
        for c in chains:
            name = f"pruned against {against}, eta2={c.eta2:g}"
            figures.append(Figure(name, getattr(c, ratio), "times", least=500, aim="1 000 to 2 000"))
    worst = max(chains, key=lambda c: c.loss_share)
    name = f"hitting time and losses against sampling, eta2={worst.eta2:g} (worst)"
    return [*figures, Figure(name, worst.loss_share, "", most=1.0)]


def chain_table(chains: list[Chain]) -> str:
    header = (
        "eta2", "seconds", "µs a step", "ratio", "(memory kept)", "points", "of grid", "sigmoids", "exponentials",
        "their share", "losses s",
    )  # fmt: skip
    rows = [
        (
            f"{c.eta2:g}", f"{c.seconds:.4f}", f"{c.seconds / N_ITER * 1e6:.2f}", f"{c.ratio:.0f}",
            f"{c.ratio_kept:.0f}", f"{c.points:.0f}", f"{c.points / GRID_POINTS:.1%}", f"{c.sigmoids:.0f}",
            f"{c.exponentials:.0f}", f"{c.exponential_share:.0%}", f"{c.loss_seconds:.4f}",
        )
        for c in chains
    ]  # fmt: skip
    return table(header, rows)


def main() -> None:
    began = time.perf_counter()

    def say(what: str) -> None:
        print(f"[{time.perf_counter() - began:5.1f} s] {what}", flush=True)

    described = machine()
    say(f"{described['processor']}, {described['cores']} cores, load {described['load_before']:.2f} before the start")
    data = rs.paper_dataset()
    per_exponential = seconds_per_exponential()
    chains = robust_chains(data, per_exponential, say)
    figures = [
        Figure("literal loop, 25 000 updates", chains[0].literal_seconds, "s"),
        Figure("literal loop with memory kept", chains[0].literal_kept_seconds, "s"),
        *chain_figures(chains),
    ]
    say("vanilla chain")
    figures += plain_chain(data)
    say("100 chains on 1 and on 2 workers")
    figures += two_workers(data)
    say("peak memory in a fresh process")
    figures.append(peak_memory())
    say("start-up of fresh processes")
    figures += start_up()
    dimension, targets = cost_against_dimension(say)
    figures += targets
    figures.append(Figure("one exponential (fast_exp, vectorised)", per_exponential * 1e9, "ns"))
    figures += shares()
    say("done")

    print(
        f"\nOne chain, one core, {N_ITER} updates. Counts are a step's, of {GRID_POINTS} grid points; the share of its"
    )
    print("exponentials is what they would take at the measured throughput, the limit that the engine approaches.\n")
    print(chain_table(chains))
    print(f"\n{figure_table(figures)}\n")
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "machine": described,
        "chains": [
            asdict(c) | {"ratio": c.ratio, "ratio_kept": c.ratio_kept, "loss_share": c.loss_share} for c in chains
        ],
        "microseconds_by_dimension": dimension,
        "figures": [asdict(f) | {"target": f.target, "met": f.met} for f in figures],
    }
    OUTPUT.write_text(json.dumps(result, indent=2) + "\n")
    print(f"Written to {OUTPUT} and {PICTURE}")


if __name__ == "__main__":
    main()
