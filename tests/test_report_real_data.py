"""The section on real data: scores by hand, intervals, words that follow the numbers, and the way through the store."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

import robust_sgld as rs
from pipelines.config import Settings
from pipelines.report import report
from pipelines.train import train
from robust_sgld.report import ReportTrial, real_data
from robust_sgld.report.sections import real_data_part
from tests.test_config import composed

EXPERIMENTS = {
    "diabetes": ({"q": 0.3, "outlier_shift": -3.0}, lambda dim: rs.SquaredLoss(dim, "identity")),
    "breast_cancer": ({"q": 0.3, "target_range": (-1.0, 1.0)}, rs.LogisticLoss),
}


@pytest.fixture(scope="module", params=EXPERIMENTS)
def sample(request):
    """Trials of vanilla SGLD and, where 10 features make it cheap, of robust SGLD, on three splits."""
    settings, problem = EXPERIMENTS[request.param]
    data = [rs.bundled_dataset(request.param, seed=seed, **settings) for seed in range(3)]
    trials = []
    for one in data:
        samplers: list[rs.LangevinSampler] = [rs.SGLD(problem(one.dim), step_size=0.005)]
        if one.dim < 20:
            samplers.append(rs.RobustSGLD(problem(one.dim), rs.DRO(eta2=0.5), step_size=0.005, tolerance=1e-4))
        for sampler in samplers:
            result = rs.run_trial(sampler, one, runs=2, n_iter=200, thin=10, theta0=[*[0] * one.dim, 1])
            params = {"data.q": 0.3} | ({"eta2": 0.5} if isinstance(sampler, rs.RobustSGLD) else {})
            trials.append(ReportTrial(result, params, f"{len(trials)}", "a trial", request.param, one.digest))
    return request.param, trials, {one.digest: one for one in data}


def test_scores_in_the_targets_units(rng):
    data = rs.bundled_dataset("diabetes", seed=1)
    raw = data.scaling.undo(data.test)
    model = LinearRegression().fit(raw[:, :-1], raw[:, -1])
    on_scaled = LinearRegression().fit(data.test[:, :-1], data.test[:, -1])
    theta = np.append(on_scaled.coef_, on_scaled.intercept_)
    expected = np.sqrt(np.mean((model.predict(raw[:, :-1]) - raw[:, -1]) ** 2))
    assert real_data.rmse(theta, data) == pytest.approx(expected, rel=1e-9)


def test_scores_of_labels():
    data = rs.bundled_dataset("breast_cancer", target_range=(-1, 1))
    model = LogisticRegression(max_iter=10_000).fit(data.test[:, :-1], data.test[:, -1])
    theta = np.append(model.coef_, model.intercept_)
    probability = model.predict_proba(data.test[:, :-1])[:, 1]
    y = data.test[:, -1] > 0
    assert real_data.log_loss(theta, data) == pytest.approx(-np.log(np.where(y, probability, 1 - probability)).mean())
    assert real_data.error_rate(theta, data) == (model.predict(data.test[:, :-1]) != data.test[:, -1]).mean()


def test_the_interval_is_the_corrected_resampled_t(rng):
    values = rng.normal(size=20)
    expected = stats.t.ppf(0.975, 19) * values.std(ddof=1) * np.sqrt(1 / 20 + 1 / 3)
    assert real_data.half_width(values, 1 / 3) == pytest.approx(expected)
    assert np.isnan(real_data.half_width(values[:1], 1 / 3))


def test_the_estimate_is_the_mean_of_the_second_half(sample):
    _, trials, _ = sample
    result = trials[0].result
    late = result.theta[:, result.axis > 100]
    np.testing.assert_allclose(real_data.estimate(trials[0]), late.mean(axis=(0, 1)), rtol=1e-12)


def test_every_method_is_scored_on_every_split(sample):
    experiment, trials, data = sample
    rows = real_data.records(experiment, trials, data)
    score = real_data.SCORES[experiment][0]
    assert all(len(r["scores"][score.label]) == 3 for r in rows)
    means = [r["scores"][score.label].mean() for r in rows]
    assert means == sorted(means)
    kinds = {r["kind"] for r in rows}
    assert kinds >= {"vanilla SGLD", "alternative", "oracle"}
    vanilla = next(r for r in rows if r["kind"] == "vanilla SGLD")
    expected = {t.data_digest: score.of(real_data.estimate(t), data[t.data_digest]) for t in trials if not t.has_dual}
    assert sorted(vanilla["scores"][score.label]) == sorted(expected.values())
    oracle = next(r for r in rows if r["kind"] == "oracle")
    digests = sorted(data)
    for digest, value in zip(digests, oracle["scores"][score.label], strict=True):
        clean = data[digest].train[~data[digest].outlier]
        plain = LinearRegression() if experiment == "diabetes" else LogisticRegression(max_iter=10_000)
        model = plain.fit(clean[:, :-1], clean[:, -1])
        theta = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
        assert value == pytest.approx(score.of(theta, data[digest]), rel=1e-6)


def test_a_split_that_only_some_methods_have_is_left_out(sample):
    experiment, trials, data = sample
    if experiment != "diabetes":
        pytest.skip("only one method there")
    rows = real_data.records(experiment, trials[:-1], data)  # robust SGLD lacks the last split
    assert "robust SGLD" not in {r["kind"] for r in rows}
    assert real_data_part(experiment, [], data) is None


def test_the_words_follow_the_numbers():
    def row(method, kind, values):
        return {
            "method": method, "kind": kind, "splits": 4, "ratio": 0.3, "scores": {"test RMSE": np.array(values)},
        }  # fmt: skip

    robust = row("robust SGLD, η₂ = 0.1", "robust SGLD", [5.0, 5.5, 5.0, 5.5])
    worse = row("least squares", "alternative", [9.0, 9.5, 9.0, 9.5])
    better = row("Huber", "alternative", [1.0, 1.5, 1.0, 1.5])
    same = row("vanilla SGLD", "vanilla SGLD", [4.0, 6.0, 5.5, 4.7])
    said = real_data.words("diabetes", [better, robust, same, worse])
    assert "η₂ = 0.1 (5.25)" in said[0]
    by = {line.split(" (")[0]: line for line in said[1:]}
    assert "it is better: -4 ± 0, smaller in 4 of 4" in by["Against least squares"]
    assert "it is worse: +4 ± 0, smaller in 0 of 4" in by["Against Huber"]
    assert "no difference can be told" in by["Against vanilla SGLD"]
    assert real_data.words("diabetes", [better, worse]) == []


def test_the_part_has_a_table_and_a_figure(sample):
    experiment, trials, data = sample
    part = real_data_part(experiment, trials, data)
    (table,), (drawing,) = part.tables, part.drawings
    assert "30%" in table.notes[0]
    assert len(table.rows()) == len(table.records)
    assert drawing.draw().axes


@pytest.mark.slow
def test_through_the_store(tmp_path):
    """Two splits of the experiment, tiny, then the report, which has no trial of the paper's data."""
    for seed in (0, 1):
        for sampler in ("sgld", "robust_sgld_many"):
            words = [f"data.seed={seed}", f"sampler={sampler}", "trial.n_iter=60", "trial.thin=5", "eta2=0.1"]
            train(composed("+experiment=diabetes", *words, f"root={tmp_path}"))
    html = report(composed(f"root={tmp_path}")).read_text(encoding="utf-8")
    assert "Real data: diabetes" in html
    assert "Against least squares" in html
    assert (tmp_path / "outputs" / "report" / "tables" / "real_diabetes.csv").exists()
    assert (tmp_path / "outputs" / "report" / "figures" / "real_diabetes.svg").exists()
    assert Settings.of(composed("+experiment=diabetes")).resolved["data"]["q"] == 0.3
