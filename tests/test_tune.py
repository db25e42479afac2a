"""Stage tune: a resumable study, each trial tracked with its held-out losses, and what is refused."""

from __future__ import annotations

import csv
import logging

import optuna
import pytest
from omegaconf import DictConfig, open_dict

import robust_sgld as rs
from pipelines.config import Settings
from pipelines.train import open_store
from pipelines.tune import Search, choices_of, finished, open_study, parameters, tune
from tests.test_config import composed

SMALL = ["trial.runs=2", "trial.n_iter=200", "data.n_train=100", "data.n_test=50", "tracking.children=none"]


def small(root, *overrides: str) -> DictConfig:
    words = [*SMALL, "tune.folds=2", "tune.runs=1", "tune.delta=[0.1,0.1]", f"root={root}", *overrides]
    return composed(*words, name="tune")


def study_of(cfg: DictConfig) -> optuna.Study:
    search = Search.of(cfg.tune)
    with open_dict(cfg):
        del cfg["tune"]
    return open_study(Settings.of(cfg), search)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    tune(small(folder, "tune.trials=2"))
    return folder


def test_every_trial_is_tracked_with_its_held_out_losses(root):
    study, settings = study_of(small(root)), Settings.of(composed(*SMALL, f"root={root}"))
    store = open_store(settings)
    data = settings.make_data()
    assert len(finished(study)) == 2
    for trial in finished(study):
        recorded = store.trial(trial.user_attrs["run_id"])
        eta2, delta = parameters(trial)
        assert (float(recorded.params["eta2"]), float(recorded.params["dro.delta"])) == (eta2, delta)
        sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(eta2=eta2, delta=delta))
        losses = rs.held_out_losses(sampler, data.train, folds=2, runs=1, n_iter=200, theta0=-2.0)
        for name, value in rs.criteria(losses, 0.3).items():
            assert recorded.metrics[f"cv_{name}"] == trial.user_attrs[name] == pytest.approx(value, rel=1e-9)
        assert trial.value == trial.user_attrs["trimmed"]
        assert trial.user_attrs["test_loss"] == recorded.metrics["final_mse_mean"]


def test_a_study_goes_on_where_it_stopped(root, caplog):
    with caplog.at_level(logging.INFO):
        chosen = tune(small(root, "tune.trials=3"))
        tune(small(root, "tune.trials=3"))
    assert "2 of 3 trials are done" in caplog.text
    assert "3 of 3 trials are done" in caplog.text
    study = study_of(small(root))
    assert len(finished(study)) == 3
    assert len({parameters(trial) for trial in finished(study)}) == 3
    assert chosen == choices_of(study)["trimmed"]
    with next((root / "outputs" / "tune").glob("*.csv")).open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["trimmed"]) for row in rows] == [trial.value for trial in finished(study)]


def test_what_each_criterion_chooses(root):
    study = study_of(small(root))
    found = choices_of(study)
    assert set(found) == {"mean", "trimmed", "median", "oracle"}
    assert found["oracle"]["test_loss"] == min(t.user_attrs["test_loss"] for t in finished(study))
    best = min(finished(study), key=lambda t: t.user_attrs["median"])
    assert (found["median"]["eta2"], found["median"]["delta"]) == parameters(best)


def test_a_trial_that_was_left_open_is_closed_and_done_again(root):
    study = study_of(small(root))
    study.ask()
    again = study_of(small(root))
    assert not again.get_trials(states=[optuna.trial.TrialState.RUNNING])
    assert len(finished(again)) == len(finished(study))


def test_another_question_is_another_study(root):
    names = [study_of(small(root, *o)).study_name for o in ([], ["data.q=0.1"], ["tune.trim=0.2"], ["eta2=7"])]
    assert len(set(names[:3])) == 3
    assert names[3] == names[0]  # the study chooses eta2
    assert study_of(small(root, "tune.study=mine")).study_name == "mine"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("tune.criterion=best", "tune.criterion must be one of mean, trimmed, median"),
        ("tune.trials=0", "tune.trials must be at least 1"),
        ("tune.folds=1", "tune.folds must be at least 2"),
        ("tune.eta2=3", "tune.eta2 must be a pair"),
        ("tune.eta2=[2,1]", "tune.eta2 must have low <= high"),
        ("tune.delta=[0,1]", "tune.delta must be above 0"),
        ("tune.trim=2", "tune.trim must be a share between 0 and 1"),
        ("tune.study=a/b", "tune.study must be a name without '/'"),
        ("+tune.typo=1", "tune must have the keys"),
        ("sampler=sgld", "there is nothing to tune"),
    ],
)
def test_refusals(override, words, tmp_path):
    with pytest.raises(rs.InvalidInput) as caught:
        tune(small(tmp_path, override))
    assert words in str(caught.value)
