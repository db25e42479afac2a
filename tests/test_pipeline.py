"""The stages as people use them: real Hydra, a real SQLite store, real sampling, small."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import robust_sgld as rs
from pipelines.config import PROJECT_ROOT, Settings
from pipelines.rerun import rerun
from pipelines.train import open_store, run_name, train
from pipelines.ui import comparison_url, free_port
from robust_sgld.tracking import Store
from tests.test_config import composed

SMALL = ["trial=smoke", "trial.thin=10", "trial.runs=3", "trial.n_iter=120", "data.n_train=200", "data.n_test=100"]


def small(root: Path, *overrides: str, name: str = "config"):
    return composed(*SMALL, f"root={root}", *overrides, name=name)


def command(stage: str, *words: str, cwd: Path = PROJECT_ROOT) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", f"pipelines.{stage}", *words]
    return subprocess.run(call, capture_output=True, text=True, cwd=cwd, timeout=300)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """An empty store: making one takes seconds, copying it does not."""
    path = tmp_path_factory.mktemp("template") / "mlflow.db"
    Store(f"sqlite:///{path}", "template")
    return path


@pytest.fixture
def fresh(tmp_path, database):
    """A root with an empty store."""
    (tmp_path / "mlruns").mkdir()
    for file in database.parent.glob("mlflow.db*"):  # with its write-ahead log
        shutil.copy(file, tmp_path / "mlruns")
    return tmp_path


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A store with one robust trial (with curves on its children) and one vanilla trial."""
    folder = tmp_path_factory.mktemp("root")
    train(small(folder, "eta2=0.5", "tracking.children=curves"))
    train(small(folder, "sampler=sgld"))
    return folder


def store_of(root: Path) -> Store:
    store = open_store(Settings.of(small(root)))
    assert store is not None
    return store


def test_train_returns_the_headline_metric(root):
    value = train(small(root, "eta2=0.5"))
    trial = next(t for t in store_of(root).trials() if t.params.get("eta2") == "0.5")
    assert value == trial.metrics["final_mse_mean"] == pytest.approx(trial.result().final_loss.mean())


def test_a_trial_is_recorded_in_full(root):
    store = store_of(root)
    trials = {t.tags["sampler"]: t for t in store.trials()}
    robust, vanilla = trials["robust_sgld"], trials["sgld"]
    assert robust.name == "robust_sgld η2=0.5 q=0.3 n_train=200 n_test=100"
    assert vanilla.name == "sgld q=0.3 n_train=200 n_test=100"
    assert robust.status == "FINISHED"
    for tag in (
        "kind",
        "engine",
        "config_hash",
        "data_digest",
        "git.commit",
        "git.dirty",
        "host.cores",
        "mlflow.runColor",
    ):
        assert robust.tags[tag], tag
    assert robust.tags["mlflow.runColor"] != vanilla.tags["mlflow.runColor"]
    assert robust.params["dro.delta"] == "0.1"
    for metric in ("reached_fraction", "final_mse_mean", "final_mse_std", "seconds_per_run", "final_iota", "r_hat_max"):
        assert metric in robust.metrics, metric
    run = store.client.get_run(robust.run_id)
    assert {i.dataset.digest for i in run.inputs.dataset_inputs} == {robust.tags["data_digest"][:36]}
    files = {f.path for f in store.client.list_artifacts(robust.run_id)}
    assert {"config.yaml", "environment.txt", "trial.npz", "runs.csv"} <= files
    drawn = {f.path for f in store.client.list_artifacts(robust.run_id, "figures")}
    assert drawn == {"figures/test_loss.png", "figures/worst_case.png"}
    for metric in ("excess_risk", "robust_value", "step_size_over_max"):
        assert metric in robust.metrics, metric


def test_curves_have_the_update_as_step(root):
    store = store_of(root)
    trial = next(t for t in store.trials() if t.tags["sampler"] == "robust_sgld")
    result = trial.result()
    expected = {"mean": result.losses.mean(axis=0), "q95": np.quantile(result.losses, 0.95, axis=0)}
    for statistic, values in expected.items():
        history = sorted(store.client.get_metric_history(trial.run_id, f"test_mse/{statistic}"), key=lambda m: m.step)
        assert [m.step for m in history] == result.axis.tolist()
        np.testing.assert_allclose([m.value for m in history], values, rtol=1e-12)
    for name in ("v_objective/median", "v_iota/mean"):
        steps = [m.step for m in store.client.get_metric_history(trial.run_id, name)]
        assert sorted(steps) == result.objective_axis.tolist()


def test_children_have_their_own_numbers(root):
    store = store_of(root)
    trial = next(t for t in store.trials() if t.tags["sampler"] == "robust_sgld")
    children = store.client.search_runs([store.experiment_id], f"tags.mlflow.parentRunId = '{trial.run_id}'")
    result = trial.result()
    assert len(children) == len(result.runs)
    for child in children:
        row = int(child.data.tags["run"])
        assert child.data.metrics["final_loss"] == result.final_loss[row]
        assert child.info.status == "FINISHED"
        history = store.client.get_metric_history(child.info.run_id, "test_mse")
        assert len(history) == len(result.axis)


def test_the_fitted_model_can_be_loaded_and_predicts(root):
    import mlflow
    from pandas import DataFrame

    store = store_of(root)
    trial = store.trials()[0]
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(store.uri)
    try:
        model = mlflow.pyfunc.load_model(f"runs:/{trial.run_id}/model")
        data = Settings.of(small(root)).make_data()
        z = DataFrame(data.test[:5, :-1], columns=list(data.columns[:-1]))
        got = model.predict(z)
    finally:
        mlflow.set_tracking_uri(before)
    theta = trial.result().theta[:, -1].mean(axis=0)
    np.testing.assert_allclose(got, 1 / (1 + np.exp(-(z.to_numpy() @ theta[:-1] + theta[-1]))), rtol=1e-12)
    assert model.metadata.signature is not None


def test_a_complete_trial_is_skipped_unless_forced(root, caplog):
    count = len(store_of(root).trials())
    with caplog.at_level("INFO"):
        train(small(root, "eta2=0.5"))
    assert "skipped" in caplog.text
    assert len(store_of(root).trials()) == count
    train(small(root, "eta2=0.5", "force=true", "tracking.children=none"))
    assert len(store_of(root).trials()) == count + 1


def test_a_recorded_trial_is_rerun_exactly(root):
    trial = next(t for t in store_of(root).trials() if t.tags["sampler"] == "sgld")
    assert rerun(small(root, f"run_id={trial.run_id}", "trial.workers=1", name="rerun"))
    with pytest.raises(rs.InvalidInput, match="there is no run"):
        rerun(small(root, "run_id=0123456789abcdef", name="rerun"))


def test_tracking_off_writes_no_store(tmp_path):
    value = train(small(tmp_path, "tracking=off"))
    assert np.isfinite(value)
    assert not (tmp_path / "mlruns").exists()


def test_a_failed_trial_ends_as_failed_with_its_reason(fresh, monkeypatch):
    def explode(*args, **kwargs):
        raise RuntimeError("the machine is on fire")

    monkeypatch.setattr(rs, "run_trial", explode)
    with pytest.raises(RuntimeError):
        train(small(fresh))
    (trial,) = store_of(fresh).trials(finished=False)
    assert trial.status == "FAILED"
    assert "the machine is on fire" in trial.tags["failure"]


def test_trials_that_differ_have_names_that_differ(root):
    variants = [
        "sampler.beta=inf",
        "sampler.step_size=0.02",
        "seed=3",
        "data=contaminated",
        "dro.delta=0.05",
        "dro.p=1",
    ]
    names = [_name(small(root, *([] if v is None else [v]))) for v in (None, *variants)]
    assert len(set(names)) == len(names)
    assert names[0] == "robust_sgld η2=1.0 q=0.3 n_train=200 n_test=100"


def _name(cfg) -> str:
    settings = Settings.of(cfg)
    return run_name(settings, settings.make_sampler(settings.make_data()))


def test_a_trial_whose_runs_all_diverge_fails(fresh):
    with pytest.warns(rs.DivergenceWarning), pytest.raises(rs.InvalidInput, match="every run diverged"):
        train(small(fresh, "sampler=sgld", "sampler.step_size=1e300", "sampler.beta=1e-300"))
    (trial,) = store_of(fresh).trials(finished=False)
    assert trial.status == "FAILED"


def test_a_store_that_takes_nothing_is_a_sentence(fresh):
    (fresh / "mlruns" / "mlflow.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(rs.InvalidInput, match=r"tracking\.uri .* cannot be used"):
        train(small(fresh))


def test_a_run_that_cannot_be_begun_does_not_stay_running(fresh):
    with pytest.raises(rs.InvalidInput, match="cannot be used"):
        train(small(fresh, "tracking.artifacts=/proc/nothing", "tracking.experiment=other"))
    store = Store(f"sqlite:///{fresh}/mlruns/mlflow.db", "other")
    assert [trial.status for trial in store.trials(finished=False)] == ["FAILED"]


def test_data_outside_the_support_are_refused_before_anything_is_recorded(fresh):
    with pytest.raises(rs.InvalidInput, match=r"row \d+, column z\d is .* outside the support"):
        train(small(fresh, "dro.support=[-2,2]"))
    assert store_of(fresh).trials(finished=False) == []


@pytest.mark.slow
def test_sweep_and_report_as_typed_from_another_folder(fresh):
    """Two jobs into a real store, started elsewhere; the vanilla sweep that says what eta2 does; the report."""
    words = [*SMALL, f"root={fresh}"]
    done = command("train", *words, "-m", "eta2=0.5,2", cwd=fresh)
    assert done.returncode == 0, done.stderr
    assert sorted(t.params["eta2"] for t in store_of(fresh).trials()) == ["0.5", "2"]
    vanilla = command("train", *words, "-m", "sampler=sgld", "eta2=0.5,2")
    assert vanilla.returncode == 0, vanilla.stderr
    assert "eta2 does nothing for sampler=sgld" in vanilla.stdout
    assert len(store_of(fresh).trials()) == 3
    configs = list((fresh / "outputs" / "sweeps").rglob("config.yaml"))
    assert any("${" not in path.read_text() for path in configs)
    report = command("report", *words)
    assert report.returncode == 0, report.stderr
    html = (fresh / "outputs" / "report" / "index.html").read_text()
    assert "<table" in html
    reports = store_of(fresh).client.search_runs([store_of(fresh).experiment_id], "tags.kind = 'report'")
    assert [r.info.status for r in reports] == ["FINISHED"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "words", "said"),
    [
        ("train", ["eta2=abc"], "error: eta2 must be a number, got 'abc'."),
        ("train", ["data.typo=1"], "error: data.typo is not a key of the config"),
        (
            "train",
            ["sampler=nothing"],
            "Could not find 'sampler/nothing' Available options in 'sampler': robust_sgld",
        ),
        ("train", ["eta2=[1"], "error: "),
        ("data", ["data.q=7"], "error: data: q must be a contamination rate"),
        ("report", [], "error: there is no finished trial"),
        ("rerun", [], "error: run_id must be given"),
    ],
)
def test_user_errors_are_one_sentence_and_exit_code_2(stage, words, said, fresh):
    done = command(stage, *words, f"root={fresh}")
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert said in line
    assert not list((fresh / "outputs").rglob("*.log"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_trial_ends_as_killed(fresh, number):
    call = [sys.executable, "-m", "pipelines.train", f"root={fresh}", "trial.n_iter=300000", "trial.runs=50"]
    process = subprocess.Popen(call, cwd=PROJECT_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list((fresh / "mlruns").rglob("config.yaml")):
        time.sleep(0.2)
    time.sleep(2)
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    (trial,) = store_of(fresh).trials(finished=False)
    assert (trial.status, trial.tags["failure"]) == ("KILLED", "interrupted")


def test_help_explains_groups_and_overrides():
    done = command("train", "--help")
    assert done.returncode == 0
    for words in ("sampler: robust_sgld", "trial: paper, smoke", "-m eta2=0.01,0.1,0.5,1,1.5,2", "tracking=off"):
        assert words in done.stdout


def test_the_comparison_address_lands_on_trials():
    url = comparison_url("http://127.0.0.1:5000", "7")
    assert url.startswith("http://127.0.0.1:5000/#/experiments/7/runs?")
    for part in ("workflowType=machine_learning", "compareRunsMode=CHART", "tags.kind%20%3D%20%27trial%27"):
        assert part in url
    assert free_port(0) > 0


@pytest.mark.slow
def test_plan_prints_words_and_json(tmp_path):
    words = command("plan", f"root={tmp_path}", "epsilon=0.1")
    assert words.returncode == 0, words.stderr
    assert "too large by 17 orders of magnitude" in words.stdout
    assert "no machine can run it" in words.stdout
    facts = json.loads(command("plan", f"root={tmp_path}", "format=json").stdout)
    assert facts["constants"]["K_tilde"]["value"] == 392
