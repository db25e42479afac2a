"""A tracking server that goes away during a trial, and comes back: nothing is lost, nothing is there twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import robust_sgld as rs
from pipelines import train as stage
from pipelines.config import Settings
from pipelines.sync import sync
from pipelines.train import open_store, train
from robust_sgld.tracking import Store, TrackingLost, TrialRecord, TrialRecorder, waiting
from tests.servers import MlflowServer, mlflow_server
from tests.test_pipeline import small

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with mlflow_server(tmp_path_factory.mktemp("server")) as server:
        yield server


def config(root: Path, server: MlflowServer, *overrides: str):
    return small(root, "tracking=server", f"tracking.uri={server.uri}", *overrides)


def recorded_once(server: MlflowServer, root: Path, *overrides: str) -> None:
    settings = Settings.of(config(root, server, *overrides))
    store = open_store(settings)
    assert store is not None
    (trial,) = store.trials(f"tags.config_hash = '{settings.config_hash}'", finished=False)
    assert trial.status == "FINISHED"
    assert trial.result().runs.tolist() == [0, 1, 2]
    children = store.runs(f"tags.mlflow.parentRunId = '{trial.run_id}'")
    assert sorted((c.data.tags["run"], c.info.status) for c in children) == [(str(k), "FINISHED") for k in range(3)]
    for key in ("final_mse_mean", "wall_seconds", "theory_seconds"):
        assert len(store.client.get_metric_history(trial.run_id, key)) == 1
    assert len(store.client.get_run(trial.run_id).outputs.model_outputs) == 1


def stopped_when(monkeypatch, server: MlflowServer, owner: object, name: str, calls: int) -> None:
    """Really stops the server, just before that call of a function, after so many that went well."""
    real, count = getattr(owner, name), iter(range(10**6))

    def counted(*args, **kwargs):
        if next(count) == calls:
            server.stop()
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)


def test_a_server_gone_while_sampling_gets_the_trial_from_sync(server, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stopped_when(patch, server, rs, "run_trial", 0)
        with pytest.raises(TrackingLost, match=r"is sampled and kept in .*make sync"):
            train(config(tmp_path, server))
    finished, unfinished = waiting(tmp_path / "outputs" / "trials")
    assert (len(finished), unfinished) == (1, 0)
    result = finished[0].result()
    assert result is not None
    assert np.isfinite(result.final_loss).all()
    with pytest.raises(TrackingLost, match="cannot be used"):
        sync(config(tmp_path, server))
    assert waiting(tmp_path / "outputs" / "trials")[0]
    server.start()
    assert sync(config(tmp_path, server)) == 1
    recorded_once(server, tmp_path)
    assert waiting(tmp_path / "outputs" / "trials") == ([], 0)
    assert sync(config(tmp_path, server)) == 0


def test_a_server_gone_in_the_middle_of_recording_gets_the_rest_from_the_next_start(server, tmp_path, monkeypatch):
    from mlflow import MlflowClient

    with monkeypatch.context() as patch:
        stopped_when(patch, server, MlflowClient, "create_run", 2)  # the second of three nested runs
        with pytest.raises(TrackingLost, match="but not recorded"):
            train(config(tmp_path, server, "seed=1"))
    server.start()
    train(config(tmp_path, server, "seed=1"))
    recorded_once(server, tmp_path, "seed=1")


def test_a_server_that_is_not_there_is_refused_before_sampling(tmp_path, server):
    settings = ["tracking=server", "tracking.uri=http://127.0.0.1:1"]
    with pytest.raises(rs.InvalidInput, match="cannot be used"):
        train(small(tmp_path, *settings))
    assert not (tmp_path / "outputs" / "trials").exists()


def test_a_later_job_of_a_sweep_is_sampled_although_the_server_is_gone(server, tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "_swept", lambda key: key == "")
    server.stop()
    with pytest.raises(TrackingLost, match="is sampled and kept in"):
        train(config(tmp_path, server, "seed=2"))
    server.start()
    assert sync(config(tmp_path, server)) == 1
    recorded_once(server, tmp_path, "seed=2")


def test_a_password_is_not_kept_and_is_asked_for_again(server, tmp_path, monkeypatch):
    secret = server.uri.replace("http://", "http://me:secret@")
    with monkeypatch.context() as patch:
        stopped_when(patch, server, rs, "run_trial", 0)
        with pytest.raises(TrackingLost) as caught:
            train(small(tmp_path, "tracking=server", f"tracking.uri={secret}", "seed=3"))
    assert "secret" not in str(caught.value)
    files = [path for path in (tmp_path / "outputs").rglob("*") if path.is_file()]
    assert files
    assert not any(b"secret" in path.read_bytes() for path in files)
    server.start()
    with pytest.raises(TrackingLost, match=r"the password of .* is not kept"):
        sync(config(tmp_path, server))
    assert sync(small(tmp_path, "tracking=server", f"tracking.uri={secret}")) == 1


def test_a_run_that_a_repeated_request_made_twice_is_there_once(tmp_path, paper):
    """An answer that is lost on its way makes the client ask again, and the server create again."""
    store = Store(f"sqlite:///{tmp_path}/mlflow.db", "twice", tmp_path / "artifacts")
    tags = {"kind": "trial", "trial_key": "k"}
    first, second = (store.client.create_run(store.experiment_id, tags=tags).info.run_id for _ in range(2))
    with TrialRecorder(store, TrialRecord("name", {}, {}, "{}"), paper, "k") as recorder:
        assert recorder.run_id in (first, second)
    assert [(t.run_id, t.status) for t in store.trials(finished=False)] == [(recorder.run_id, "FINISHED")]
