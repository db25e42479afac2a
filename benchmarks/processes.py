"""What a fresh process costs: the import, and the way to the first update with the compiled code in its cache."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

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


ROOT = Path(__file__).parents[1]


def child(code: str, *arguments: str, **environment: str) -> str:
    """What a new Python prints, started in the project's folder."""
    words = [sys.executable, "-c", code, *arguments]
    variables = os.environ | environment
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT, env=variables).stdout


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
