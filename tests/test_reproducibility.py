"""The same numbers, bit for bit: from a fresh compilation, from the compiler's cache, with one worker and with two."""

import os
import subprocess
import sys

import numpy as np
import pytest

import robust_sgld as rs

DIGEST = """
import hashlib, robust_sgld as rs
data = rs.paper_dataset()
result = rs.run_trial(rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(eta2=0.5)), data, runs=2, n_iter=1500, workers=1)
sha = hashlib.sha256()
for name in ("states", "losses", "objective", "n_es", "smallest_loss", "closest_loss"):
    sha.update(getattr(result, name).tobytes())
print(sha.hexdigest())
"""


@pytest.mark.slow
def test_compiled_and_cached_code_give_the_same_bits(tmp_path):
    digests = []
    for _ in range(2):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], capture_output=True, text=True, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        digests.append(done.stdout.strip())
    assert any(tmp_path.rglob("*.nbc")), "the second process had no cache to read"
    assert digests[0] == digests[1]


def test_one_worker_and_two_give_the_same_table(tmp_path):
    data = rs.paper_dataset()
    sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(eta2=1.0))
    one, two = (rs.run_trial(sampler, data, runs=4, n_iter=500, workers=w) for w in (1, 2))
    timeless = {k: v for k, v in one.headline().items() if "seconds" not in k}
    again = {k: v for k, v in two.headline().items() if "seconds" not in k}
    np.testing.assert_equal(timeless, again)
    np.testing.assert_array_equal(one.states, two.states)
