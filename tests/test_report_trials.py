"""Which trial stands for a method, where a trial is not the paper's protocol, and what makes a sweep."""

from __future__ import annotations

import pytest

import robust_sgld as rs
from robust_sgld.report import ReportTrial, published
from robust_sgld.report.trials import best_of, canonical, departures, main_trials, sweep
from tests.report_samples import made_up

HUNDRED = tuple(range(1, 101))


def test_the_published_digest_and_reference_are_those_of_the_published_data_set(paper: rs.Dataset) -> None:
    assert paper.digest == published.DATA_DIGEST
    at_truth = rs.test_losses(paper.theta_star, paper.test, rs.SigmoidRegression(4))
    assert round(float(at_truth), 6) == published.REFERENCE


def test_the_published_settings_are_the_defaults_of_the_library() -> None:
    dro = rs.DRO()
    for name in ("eta1", "delta", "p", "ell", "j", "support"):
        assert published.SETTINGS[f"dro.{name}"] == getattr(dro, name)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("eta2", "0.5", 0.5),
        ("eta2", 1, 1.0),
        ("dro.support", "[-3.0, 3.0]", (-3.0, 3.0)),
        ("dro.support", [-3, 3], (-3.0, 3.0)),
        ("sampler.theta0", [-2.0], -2.0),
        ("sampler.theta0", [-2, -2, -2, -2, 0], -2.0),
        ("sampler.theta0", [-2, -1, -2, -2], (-2.0, -1.0, -2.0, -2.0)),
        ("problem.name", "SigmoidRegression", "SigmoidRegression"),
        ("data.path", None, None),
    ],
)
def test_parameters_compare_whatever_form_they_come_in(key: str, value: object, wanted: object) -> None:
    assert canonical(key, value) == wanted


def test_the_papers_protocol_has_no_departures() -> None:
    settings = {key: list(v) if isinstance(v, tuple) else v for key, v in published.SETTINGS.items()}
    assert departures(made_up(HUNDRED, params=settings)) == []
    assert departures(made_up(range(1, 151))) == []  # more runs than the paper's


def test_departures_are_named() -> None:
    trial = made_up((1, 2, 0), n_iter=200, digest="other", params={"dro.delta": 0.05, "sampler.step_size": "0.02"})
    assert departures(trial) == [
        "another data set",
        "3 runs instead of 100",
        "200 updates instead of 25000",
        "dro.delta = 0.05 instead of 0.1",
        "sampler.step_size = 0.02 instead of 0.01",
    ]


def test_vanilla_is_not_judged_by_settings_that_it_does_not_have() -> None:
    trial = made_up(HUNDRED, eta2=None, params={"eta2": 3.0, "dro.delta": 7.0})
    assert departures(trial) == []
    assert trial.eta2 is None


def test_a_robust_trial_without_eta2_is_refused() -> None:
    with pytest.raises(rs.InvalidInput, match="no number eta2"):
        _ = made_up(params={"eta2": "many"}).method


def test_newest_wins_but_not_over_a_trial_that_is_closer_to_the_protocol() -> None:
    smoke = made_up((1, 2), n_iter=200, run_id="smoke")
    newer, older = made_up(HUNDRED, run_id="newer"), made_up(HUNDRED, run_id="older")
    assert best_of([newer, older]).run_id == "newer"
    assert best_of([smoke, newer, older]).run_id == "newer"


def test_main_trials_are_in_the_papers_order_and_of_one_data_set_and_setting() -> None:
    trials = [
        made_up(HUNDRED, eta2=None),
        made_up(HUNDRED, eta2=6.0),
        made_up(HUNDRED, eta2=2.0),
        made_up(HUNDRED, eta2=3.0),
        made_up(HUNDRED, eta2=0.01),
        made_up(HUNDRED, eta2=1.0, digest="other"),
        made_up(HUNDRED, eta2=1.5, params={"dro.delta": 0.3}),
    ]
    assert [trial.eta2 for trial in main_trials(trials, published.DATA_DIGEST)] == [0.01, 2.0, None, 3.0, 6.0]


def test_without_the_published_settings_the_newest_trial_sets_them() -> None:
    other = {"dro.delta": 0.3, "sampler.step_size": 0.01}
    trials = [
        made_up(eta2=1.0, params=other),
        made_up(eta2=2.0, params=other),
        made_up(eta2=0.5, params={"dro.delta": 9}),
    ]
    assert [trial.eta2 for trial in main_trials(trials, published.DATA_DIGEST)] == [1.0, 2.0]


def test_a_sweep_holds_everything_else_and_takes_the_newest_of_a_value() -> None:
    trials = [
        made_up(eta2=2.0, params={"dro.delta": 0.3}, run_id="new"),
        made_up(eta2=2.0, params={"dro.delta": 0.3}, run_id="old"),
        made_up(eta2=2.0, params={"dro.delta": "0.1"}, run_id="middle"),
        made_up(eta2=2.0, params={"dro.delta": 0.05, "dro.j": 2}, run_id="another j"),
        made_up(eta2=1.0, params={"dro.delta": 0.1}, run_id="alone"),
        made_up(eta2=None, params={"dro.delta": 0.7}, run_id="vanilla has no delta"),
    ]
    (series,) = sweep(trials, "dro.delta")
    assert series.method == ("robust_sgld", 2.0)
    assert series.values == [0.1, 0.3]
    assert [trial.run_id for trial in series.trials] == ["middle", "new"]


def test_a_sweep_over_q_spans_data_sets_of_one_kind() -> None:
    def at(q: float, eta2: float | None, kind: str = "paper_dataset") -> ReportTrial:
        return made_up(eta2=eta2, digest=f"{kind}{q}", params={"data.q": q, "data.name": kind, "data.seed": 42})

    trials = [
        at(0.5, None),
        at(0.0, None),
        at(0.1, 2.0),
        at(0.3, 2.0),
        at(0.0, 2.0),
        at(0.2, 2.0, "contaminated_dataset"),
    ]
    robust, vanilla = sweep(trials, "data.q")
    assert (robust.method, robust.values) == (("robust_sgld", 2.0), [0.0, 0.1, 0.3])
    assert (vanilla.method, vanilla.values) == (("sgld", None), [0.0, 0.5])
    assert sweep(trials, "dro.j") == []
