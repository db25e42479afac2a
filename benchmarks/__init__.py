"""How fast and how small: ratios measured within one run. `python -m benchmarks`."""

import os

# One core means one core: NumPy's matrix products in the literal loop must not use more.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
