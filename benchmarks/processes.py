"""What a fresh process costs: the import, and the way to the first update with the compiled code in its cache."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.figure import Figure, typical

IMPORT = """
import time
began = time.perf_counter()
import robust_sgld
print(time.perf_counter() - began)
"""
FIRST_UPDATE = """
import time
import numpy as np
import robust_sgld as rs
sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO())
sampler.run(np.zeros((1, 4)), np.zeros(5), np.zeros((1, 1), dtype=int), np.zeros((1, 1, 5)))
print(time.time())
"""


def child(code: str) -> str:
    """What a new Python prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def start_up() -> list[Figure]:
    """Medians of five; the time to the first update counts from before the interpreter starts."""

    def first_update() -> float:
        began = time.time()
        return float(child(FIRST_UPDATE)) - began

    first_update()  # compiles, should the cache be cold
    return [
        Figure("import robust_sgld", typical(lambda: float(child(IMPORT)), 5), "s", most=1.5),
        Figure("a new process to its first update", typical(first_update, 5), "s", most=2.0),
    ]
