"""Four processes that record trials of 100 nested runs into one store at the same time."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.config import PROJECT_ROOT
from robust_sgld.tracking import Store
from tests.chaos import environment
from tests.servers import mlflow_server, postgres, postgres_tools

pytestmark = pytest.mark.slow

WRITERS, RUNS = 4, 100
TINY = ["sampler=sgld", f"trial.runs={RUNS}", "trial.n_iter=5", "trial.thin=5", "data.n_train=50", "data.n_test=20"]


def write_at_once(root: Path, *words: str) -> None:
    call = [sys.executable, "-m", "pipelines.train", f"root={root}", *TINY, *words]
    writers = [
        subprocess.Popen(
            [*call, f"seed={seed}"],
            cwd=PROJECT_ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in range(WRITERS)
    ]
    for writer in writers:
        said, _ = writer.communicate(timeout=900)
        assert writer.returncode == 0, said
        assert "locked" not in said


def everything_is_there(store: Store) -> None:
    trials = store.trials()
    assert sorted(trial.params["seed"] for trial in trials) == [str(seed) for seed in range(WRITERS)]
    for trial in trials:
        children = store.runs(f"tags.mlflow.parentRunId = '{trial.run_id}'")
        assert sorted(int(child.data.tags["run"]) for child in children) == list(range(RUNS))
        assert {child.info.status for child in children} == {"FINISHED"}
        assert all("final_loss" in child.data.metrics for child in children)


def test_four_processes_write_into_one_new_sqlite_store(tmp_path):
    """The database does not exist when they start: one makes it, the others wait."""
    write_at_once(tmp_path)
    everything_is_there(Store(f"sqlite:///{tmp_path}/mlruns/mlflow.db", "robust-sgld"))


@pytest.mark.skipif(postgres_tools() is None, reason="PostgreSQL is not installed (Debian: apt-get install postgresql)")
@pytest.mark.skipif(importlib.util.find_spec("psycopg") is None, reason="psycopg is not installed (extra: postgres)")
def test_four_processes_write_into_one_server_on_postgresql(tmp_path):
    with postgres() as database, mlflow_server(tmp_path, database, workers=2) as server:
        write_at_once(tmp_path, "tracking=server", f"tracking.uri={server.uri}")
        everything_is_there(Store(server.uri, "robust-sgld"))
