"""Killed, disturbed and twin trials end as the undisturbed one does, on disk and in MLflow (see tests/chaos.py)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import robust_sgld as rs
from pipelines import train as stage
from pipelines.config import Settings
from pipelines.train import find_or_run, train
from robust_sgld.tracking import Store, TrialFolder
from tests import chaos
from tests.test_pipeline import small, store_of


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return chaos.Laboratory(tmp_path_factory.mktemp("laboratory"))


@pytest.fixture
def fresh(lab):
    return lab.root()


def folder_of(root: Path, *overrides: str) -> TrialFolder:
    settings = Settings.of(small(root, *overrides))
    return TrialFolder(settings.trial_folder(settings.make_data()))


@pytest.mark.slow
def test_a_trial_killed_in_each_phase_ends_as_if_nothing_had_been(lab):
    chaos.kills_in_each_phase(lab)


@pytest.mark.slow
def test_twin_commands_make_one_trial(lab):
    chaos.twins(lab)


@pytest.mark.slow
def test_a_clock_that_goes_backwards_changes_nothing(lab):
    chaos.backward_clock(lab)


@pytest.mark.slow
@pytest.mark.skipif(not chaos.can_mount(), reason="this system gives no mounts of one's own (unshare -rm)")
def test_a_full_disk_costs_no_finished_run(lab):
    chaos.full_disk(lab)


@pytest.mark.slow
@pytest.mark.skipif(not chaos.can_mount(), reason="this system gives no mounts of one's own (unshare -rm)")
def test_a_read_only_store_is_refused_before_sampling(lab):
    chaos.read_only_store(lab)


def test_the_comparison_sees_what_differs(lab, fresh):
    """Another seed, one child lost, one metric twice: each is seen."""
    chaos.finish(chaos.start(fresh, "seed=1"))
    with pytest.raises(chaos.Chaos, match="differs"):
        lab.same(fresh, "another seed")
    root = lab.root()
    shutil.copytree(fresh, root, dirs_exist_ok=True)
    store = Store(f"sqlite:///{root}/mlruns/mlflow.db", "robust-sgld")
    (trial,) = store.trials()
    was = chaos.left_in(root)
    store.client.log_metric(trial.run_id, "final_mse_mean", 0.5)
    child = store.runs(f"tags.mlflow.parentRunId = '{trial.run_id}'")[3]
    store.client.delete_run(child.info.run_id)
    now = chaos.left_in(root)
    different = {key for key in was if was[key] != now.get(key)}
    assert {"children", "run metric final_mse_mean", "runs in the store"} <= different


def stop(*args, **kwargs):
    raise KeyboardInterrupt


def stopped_at(monkeypatch, root: Path, name: str, calls: int = 0, *overrides: str) -> None:
    """Runs a trial whose process ends within that call of MLflow's client, after so many that went well."""
    from mlflow import MlflowClient

    real, count = getattr(MlflowClient, name), iter(range(10**6))

    def counted(self, *args, **kwargs):
        return real(self, *args, **kwargs) if next(count) < calls else stop()

    stopped_by(monkeypatch, root, [(MlflowClient, name, counted)], *overrides)


def stopped_by(monkeypatch, root: Path, changes: list, *overrides: str) -> None:
    with monkeypatch.context() as patch:
        for change in changes:
            patch.setattr(*change)
        with pytest.raises(KeyboardInterrupt):
            train(small(root, *overrides))


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("create_run", 0),
        ("create_run", 2),
        ("log_batch", 1),
        ("log_artifacts", 0),
        ("set_terminated", 1),
        ("set_terminated", 3),
    ],
)
def test_a_trial_stopped_between_any_two_writes_is_recorded_once(name, calls, fresh, monkeypatch):
    stopped_at(monkeypatch, fresh, name, calls)
    found = store_of(fresh).trials(finished=False)
    assert len(found) <= 1
    assert all(trial.status != "FINISHED" for trial in found)
    train(small(fresh))
    store = store_of(fresh)
    (trial,) = store.trials(finished=False)
    assert trial.status == "FINISHED"
    assert "failure" not in trial.tags
    children = store.runs(f"tags.mlflow.parentRunId = '{trial.run_id}'")
    assert sorted((c.data.tags["run"], c.info.status) for c in children) == [(str(k), "FINISHED") for k in range(3)]
    assert len(store.runs("")) == 4
    run = store.client.get_run(trial.run_id)
    assert len(run.inputs.dataset_inputs) == 1
    assert len(run.outputs.model_outputs) == 1
    assert len(store.client.search_logged_models([store.experiment_id])) == 1
    for key in ("final_mse_mean", "wall_seconds", "theory_seconds"):
        assert len(store.client.get_metric_history(trial.run_id, key)) == 1
    assert not folder_of(fresh).path.exists()


@pytest.mark.parametrize("name", ["create_logged_model", "log_model_artifacts", "finalize_logged_model", "log_outputs"])
def test_a_model_that_was_half_logged_is_finished(name, fresh, monkeypatch):
    stopped_at(monkeypatch, fresh, name)
    train(small(fresh))
    store = store_of(fresh)
    (model,) = store.client.search_logged_models([store.experiment_id])
    (trial,) = store.trials()
    assert model.status == "READY"
    outputs = store.client.get_run(trial.run_id).outputs.model_outputs
    assert [output.model_id for output in outputs] == [model.model_id]


def test_numbers_written_otherwise_continue_the_same_trial(fresh, monkeypatch):
    """eta2=1 and eta2=1.0 are one config; MLflow would refuse to change the text of the parameter."""
    stopped_at(monkeypatch, fresh, "log_artifacts", 0, "eta2=1")
    train(small(fresh, "eta2=1.0"))
    (trial,) = store_of(fresh).trials(finished=False)
    assert (trial.status, trial.params["eta2"]) == ("FINISHED", "1")


def test_force_continues_a_repetition_and_begins_one(fresh, monkeypatch):
    train(small(fresh))
    stopped_at(monkeypatch, fresh, "log_artifacts", 0, "force=true")
    statuses = [t.status for t in store_of(fresh).trials(finished=False)]
    assert sorted(statuses) == ["FINISHED", "KILLED"]
    second = find_or_run(Settings.of(small(fresh, "force=true")))
    third = find_or_run(Settings.of(small(fresh, "force=true")))
    assert second.run_id != third.run_id
    assert [t.status for t in store_of(fresh).trials(finished=False)] == ["FINISHED"] * 3


def test_a_process_killed_after_the_last_write_leaves_nothing_to_do(fresh, monkeypatch):
    stopped_by(monkeypatch, fresh, [(TrialFolder, "discard", stop)])
    assert folder_of(fresh).path.exists()
    train(small(fresh))
    assert not folder_of(fresh).path.exists()
    assert len(store_of(fresh).trials(finished=False)) == 1


def test_a_damaged_result_is_set_aside_and_made_again(fresh, monkeypatch, caplog):
    stopped_at(monkeypatch, fresh, "log_artifacts")
    (folder_of(fresh).path / "trial.npz").write_bytes(b"PK rubbish")
    train(small(fresh))
    assert "set aside and made again" in caplog.text
    (trial,) = store_of(fresh).trials()
    assert np.isfinite(trial.result().final_loss).all()


def test_without_a_store_a_trial_continues_too(tmp_path, monkeypatch):
    stopped_by(monkeypatch, tmp_path, [(stage, "_keep_untracked", stop)], "tracking=off")
    folder = folder_of(tmp_path, "tracking=off")
    assert folder.result() is not None
    assert np.isfinite(train(small(tmp_path, "tracking=off")))
    assert not folder.path.exists()


def test_data_that_are_refused_are_not_kept(tmp_path):
    with pytest.raises(rs.InvalidInput, match="outside the support"):
        train(small(tmp_path, "dro.support=[-2,2]"))
    assert not (tmp_path / "outputs").exists()
