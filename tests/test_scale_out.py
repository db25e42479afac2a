"""Processes, Dask and launchers: the same bits as one process, dead workers survived, unusable clusters refused."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import robust_sgld as rs
from pipelines.config import PROJECT_ROOT
from robust_sgld.parallel import in_parallel
from robust_sgld.tracking import Store
from tests.chaos import environment, kill, wait_for
from tests.test_trial import assert_same_numbers, small_data

pytestmark = pytest.mark.slow

SETTING = {"runs": 6, "n_iter": 300, "seed": 3, "thin": 30}
has_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="Dask is not installed (extra: dask)"
)


@pytest.fixture(scope="module")
def sampler():
    return rs.RobustSGLD(rs.SigmoidRegression(3), rs.DRO())


@pytest.fixture(scope="module")
def one_process(sampler):
    return rs.run_trial(sampler, small_data(3), workers=1, **SETTING)


class DiesOnce:
    """Kills the process it runs in, the first time that it sees item 2."""

    def __init__(self, flag: Path):
        self.flag = flag

    def __call__(self, item: int) -> int:
        if item == 2 and not self.flag.exists():
            self.flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item


def test_processes_give_the_bits_of_one_process(sampler, one_process):
    assert_same_numbers(rs.run_trial(sampler, small_data(3), workers=2, backend="loky", **SETTING), one_process)


def test_a_process_killed_in_the_middle_is_survived(tmp_path):
    got = list(in_parallel(DiesOnce(tmp_path / "died"), range(6), workers=2, backend="loky"))
    assert (tmp_path / "died").exists()
    assert sorted(got) == [0, 1, 4, 9, 16, 25]


def test_threads_give_every_result_once():
    assert sorted(in_parallel(abs, [-1, 2, -3], workers=2)) == [1, 2, 3]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Dask scheduler and two workers, as processes of their own."""
    folder = tmp_path_factory.mktemp("cluster")
    address_file = folder / "scheduler.json"
    common = {"env": environment(), "cwd": PROJECT_ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(address_file)], **common,
    )  # fmt: skip
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address_file),
             "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder),
             "--host", "127.0.0.1", "--death-timeout", "120"],
            **common,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert wait_for(lambda: address_file.exists() and address_file.stat().st_size > 0, scheduler, 120)
    yield json.loads(address_file.read_text())["address"], workers
    for process in (*workers, scheduler):
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=60)


@has_dask
def test_a_dask_cluster_gives_the_bits_of_one_process(sampler, one_process, cluster):
    address, _ = cluster
    result = rs.run_trial(sampler, small_data(3), backend="dask", scheduler=address, **SETTING)
    assert_same_numbers(result, one_process)


@has_dask
def test_a_dask_worker_killed_in_the_middle_is_survived(sampler, cluster):
    """It does not come back; its runs go to the other one."""
    address, workers = cluster
    setting = {**SETTING, "runs": 40, "n_iter": 4000}
    told: list[int] = []

    def progress(done: int, _: int) -> None:
        told.append(done)
        if done == 2:
            kill(workers[0])

    result = rs.run_trial(sampler, small_data(3), backend="dask", scheduler=address, progress=progress, **setting)
    assert workers[0].returncode == -signal.SIGKILL
    assert told == list(range(1, 41))
    few = rs.run_trial(sampler, small_data(3), **{**setting, "runs": 3})
    np.testing.assert_array_equal(result.states[:3], few.states)


@has_dask
def test_a_cluster_that_is_not_there_or_cannot_import_is_refused(sampler, tmp_path, monkeypatch):
    monkeypatch.setattr("robust_sgld.parallel.SECONDS_FOR_A_CLUSTER", 3)
    with pytest.raises(rs.InvalidInput, match="does not answer"):
        rs.run_trial(sampler, small_data(3), backend="dask", scheduler="tcp://127.0.0.1:1", **SETTING)
    address_file = tmp_path / "scheduler.json"
    bare = {**os.environ, "PYTHONPATH": ""}
    bare.pop("VIRTUAL_ENV", None)
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(address_file)],
        env=bare, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert wait_for(lambda: address_file.exists() and address_file.stat().st_size > 0, scheduler, 120)
        time.sleep(0.5)
        address = json.loads(address_file.read_text())["address"]
        with pytest.raises(rs.InvalidInput, match="has no worker"):
            rs.run_trial(sampler, small_data(3), backend="dask", scheduler=address, **SETTING)
    finally:
        scheduler.terminate()
        scheduler.wait(timeout=60)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"backend": "mpi"}, "backend must be one of threads, loky, dask"),
        ({"backend": "dask"}, "needs a scheduler"),
        ({"scheduler": "tcp://127.0.0.1:8786"}, "only backend=dask takes one"),
        ({"backend": "dask", "scheduler": "localhost"}, "must be the address of a Dask scheduler"),
    ],
)
def test_backends_that_are_refused(arguments, words, sampler):
    with pytest.raises(rs.InvalidInput, match=words):
        rs.run_trial(sampler, small_data(3), **SETTING, **arguments)


SMALL = ["sampler=sgld", "trial.runs=3", "trial.n_iter=60", "trial.thin=10", "trial.workers=1"]
SMALL += ["data.n_train=50", "data.n_test=30", "tracking.children=none"]


def swept(root: Path, *words: str) -> dict[str, np.ndarray]:
    """The states of two seeds, by seed, of a real sweep with that launcher."""
    call = [sys.executable, "-m", "pipelines.train", "-m", "seed=1,2", *SMALL, f"root={root}", *words]
    paths = os.pathsep.join([environment()["PYTHONPATH"], str(root)])
    env = {**environment(), "PYTHONPATH": paths}
    done = subprocess.run(call, cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    trials = Store(f"sqlite:///{root}/mlruns/mlflow.db", "robust-sgld").trials()
    assert len(trials) == 2
    return {trial.params["seed"]: trial.result().states for trial in trials}


@pytest.mark.parametrize(
    ("launcher", "package"), [("processes", "hydra_joblib_launcher"), ("slurm_local", "hydra_submitit_launcher")]
)
def test_a_launcher_gives_the_bits_of_one_process(launcher, package, tmp_path):
    if importlib.util.find_spec(f"hydra_plugins.{package}") is None:
        pytest.skip(f"{package} is not installed (extras: joblib, slurm)")
    alone = rs.run_trial(
        rs.SGLD(rs.SigmoidRegression(4)),
        rs.paper_dataset(n_train=50, n_test=30),
        runs=3, n_iter=60, thin=10, workers=1, seed=2, theta0=-2.0,
    )  # fmt: skip
    found = swept(tmp_path, f"hydra/launcher={launcher}")
    assert sorted(found) == ["1", "2"]
    np.testing.assert_array_equal(found["2"], alone.states)


@pytest.mark.skipif(
    importlib.util.find_spec("hydra_plugins.hydra_joblib_launcher") is None, reason="no launcher here (extra: joblib)"
)
def test_a_sweep_outlives_a_process_that_is_killed(tmp_path):
    """The data of seed 2 kill the worker process that first asks for them."""
    (tmp_path / "deadly.py").write_text(
        "import multiprocessing, os, signal\n"
        "from pathlib import Path\n"
        "import robust_sgld as rs\n"
        "def load(n_train, n_test, seed, flag) -> rs.Dataset:\n"
        "    if multiprocessing.current_process().name.startswith('Loky') and not Path(flag).exists():\n"
        "        Path(flag).touch()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return rs.paper_dataset(n_train=n_train, n_test=n_test, seed=seed)\n"
    )
    flag = tmp_path / "died"
    words = ["allow=[deadly]", "data._target_=deadly.load", "~data.q", f"+data.flag={flag}"]
    found = swept(tmp_path, "hydra/launcher=processes", *words)
    assert flag.exists()
    assert sorted(found) == ["1", "2"]
