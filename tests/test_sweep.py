"""Sweeps: all points are checked before the first job, and one failing job stops no other."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import robust_sgld as rs
from pipelines.config import PROJECT_ROOT
from robust_sgld.tracking import Store
from tests.chaos import environment

pytestmark = pytest.mark.slow

SMALL = ["trial.runs=2", "trial.n_iter=40", "trial.thin=10", "data.n_train=50", "data.n_test=30"]
SMALL += ["tracking.children=none", "sampler=sgld"]


def sweep(root: Path, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """A real sweep; `before` is code that the process runs first."""
    code = f"{before}\nimport runpy; runpy.run_module('pipelines.train', run_name='__main__', alter_sys=True)"
    call = [sys.executable, "-c", code, "-m", *SMALL, f"root={root}", *words]
    return subprocess.run(call, cwd=PROJECT_ROOT, env=environment(), capture_output=True, text=True, timeout=600)


def trials(root: Path) -> dict[str, tuple[str, str]]:
    store = Store(f"sqlite:///{root}/mlruns/mlflow.db", "robust-sgld")
    found = store.trials(finished=False)
    return {trial.params["seed"]: (trial.status, trial.tags.get("failure", "")) for trial in found}


def test_a_failing_job_stops_no_other_and_is_named_at_the_end(tmp_path):
    """Seed 1 fails inside its trial; then the same sweep, without the fault, runs that one only."""
    fault = (
        "import robust_sgld as rs\n"
        "real = rs.run_trial\n"
        "def run_trial(*args, seed, **rest):\n"
        "    if seed == 1: raise RuntimeError('the machine is on fire')\n"
        "    return real(*args, seed=seed, **rest)\n"
        "rs.run_trial = run_trial\n"
    )
    done = sweep(tmp_path, "seed=0,1,2", before=fault)
    assert done.returncode == 1, done.stdout + done.stderr
    said = done.stderr.splitlines()
    assert "error: 1 of 3 jobs of the sweep failed:" in said
    assert any("seed=1" in line and "RuntimeError: the machine is on fire" in line for line in said)
    found = trials(tmp_path)
    assert found["0"][0] == found["2"][0] == "FINISHED"
    assert found["1"] == ("FAILED", "RuntimeError: the machine is on fire")
    again = sweep(tmp_path, "seed=0,1,2")
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("skipped") == 2
    assert trials(tmp_path) == dict.fromkeys("012", ("FINISHED", ""))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["seed=0,-1"], "point 1 of the sweep (seed=-1): seed must be at least 0"),
        (["data.q=0.1,7"], "q must be a contamination rate"),
        (["sampler.theta0=[1],[1,2,3]"], "theta0 must be one number"),
        (["sampler=sgld,robust_sgld", "dro.support=[-1,1]"], "outside the support"),
    ],
)
def test_a_bad_point_is_refused_before_the_first_job(words, said, tmp_path):
    done = sweep(tmp_path, "tracking=off", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: point")
    assert said in line
    assert list(tmp_path.iterdir()) == []


def test_a_trial_says_how_much_of_it_is_there_already(tmp_path, caplog):
    from robust_sgld.shards import ShardStore

    data, sampler = rs.paper_dataset(n_train=50, n_test=30), rs.SGLD(rs.SigmoidRegression(4))
    with caplog.at_level(logging.INFO):
        rs.run_trial(sampler, data, runs=3, n_iter=20, shards=ShardStore(tmp_path))
        rs.run_trial(sampler, data, runs=5, n_iter=20, shards=ShardStore(tmp_path))
    assert "3 of 5 runs are finished already." in caplog.text
