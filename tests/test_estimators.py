"""The scikit-learn estimators: scikit-learn's own checks, the user's units, chains that say when they disagree."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import robust_sgld as rs

QUICK = {"n_iter": 400, "r_hat_limit": np.inf, "random_state": 0}
"""for tests of the interface, which need no good estimate"""


@parametrize_with_checks(
    [
        rs.RobustSGLDRegressor(n_iter=400, n_chains=2, r_hat_limit=np.inf),
        rs.RobustSGLDClassifier(n_iter=400, n_chains=2, r_hat_limit=np.inf),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def line():
    """y = 50 + 3 a - 20 b + 5 ε in units far from 1, with a uniform on 0 … 100 and b normal of size 0.1."""
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.uniform(0, 100, 500), rng.normal(7, 0.1, 500)])
    return X, 50 + 3 * X[:, 0] - 20 * X[:, 1] + 5 * rng.normal(size=500)


@pytest.fixture(scope="module")
def fitted(line):
    return rs.RobustSGLDRegressor(eta2=0.01, n_iter=4000, random_state=0).fit(*line)


def test_a_clean_line_is_found(line, fitted):
    """A weak adversary: predictions differ from least squares by less than the noise of a row, which is 5."""
    X, y = line
    plain = LinearRegression().fit(X, y)
    assert np.sqrt(np.mean((fitted.predict(X) - plain.predict(X)) ** 2)) < 5
    assert fitted.score(X, y) > 0.99


def test_coefficients_and_predictions_are_in_the_users_units(line, fitted):
    X, _ = line
    np.testing.assert_allclose(fitted.predict(X), X @ fitted.coef_ + fitted.intercept_, rtol=1e-12)
    assert fitted.coef_[0] == pytest.approx(3, rel=0.1)


def test_other_units_are_the_same_fit(line, fitted):
    """The standardised rows are the same to rounding, which 4 000 updates enlarge to 1e-6 at most on this problem."""
    X, y = line
    other = clone(fitted).fit(X * [1e3, 1e-4] + [7, -3], y / 1e5 - 2)
    np.testing.assert_allclose(other.coef_ * [1e3, 1e-4] * 1e5, fitted.coef_, rtol=1e-5)
    np.testing.assert_allclose(other.predict(X * [1e3, 1e-4] + [7, -3]), fitted.predict(X) / 1e5 - 2, rtol=1e-6)


def test_fitted_attributes(fitted):
    assert fitted.coef_.shape == (2,)
    assert isinstance(fitted.intercept_, float)
    assert (fitted.n_iter_, fitted.n_features_in_) == (4000, 2)
    assert fitted.paths_.shape == (4, 200, 4)
    assert fitted.r_hat_.shape == (3,)
    assert fitted.alpha_ > 0
    assert fitted.engine_ in ("dense", "pruned", "chain")
    # the estimate is the mean of the second half of the chains; every 20th state of it is a noisier one
    weights, intercept = fitted.scaling_.index(fitted.paths_[:, 100:, :3].mean(axis=(0, 1)))
    scale = fitted.scaling_.scale[-1]
    np.testing.assert_allclose(weights * scale, fitted.coef_, rtol=0.05)
    np.testing.assert_allclose(fitted.scaling_.target(intercept), fitted.intercept_, rtol=0.05)


def test_outliers_move_it_less_than_least_squares(line):
    """A tenth of the targets at 10 000 instead of around 60: the robust map puts them on the edge of the support."""
    X, y = line
    bad = y.copy()
    bad[::10] = 1e4
    model = rs.RobustSGLDRegressor(loss="pseudo_huber", n_iter=4000, random_state=0, r_hat_limit=np.inf).fit(X, bad)
    plain = LinearRegression().fit(X, bad)
    error, plain_error = (np.sqrt(np.mean((m.predict(X) - y) ** 2)) for m in (model, plain))
    assert error < 0.1 * plain_error


@pytest.mark.parametrize("link", ["identity", "sigmoid", "tanh"])
@pytest.mark.parametrize("loss", ["squared", "pseudo_huber", "cauchy", "quantile"])
def test_every_loss_and_link_predicts_in_the_targets_range(line, loss, link):
    X, y = line
    model = rs.RobustSGLDRegressor(loss=loss, link=link, **QUICK).fit(X[:100], y[:100])
    got = model.predict(X)
    assert np.isfinite(got).all()
    if link != "identity":
        low, high = (model.scaling_.target(end) for end in ((0, 1) if link == "sigmoid" else (-1, 1)))
        assert ((got > low) & (got < high)).all()


def test_the_level_of_a_quantile_orders_the_predictions(line):
    X, y = line
    low, high = (
        rs.RobustSGLDRegressor(**{**QUICK, "n_iter": 3000}, loss="quantile", level=level, loss_scale=0.1).fit(X, y)
        for level in (0.1, 0.9)
    )
    assert (low.predict(X) < high.predict(X)).all()


def test_the_same_seed_is_the_same_fit_with_any_number_of_jobs(line):
    first, again, jobs, other = (
        rs.RobustSGLDRegressor(**{**QUICK, **change}).fit(*line).coef_
        for change in ({}, {}, {"n_jobs": 2}, {"random_state": 1})
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, jobs)
    assert (first != other).all()


def test_clone_and_pickle(line, fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    back = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(back.predict(line[0]), fitted.predict(line[0]))
    with pytest.raises(NotFittedError):
        clone(fitted).predict(line[0])


def test_in_a_pipeline_and_a_grid_search(line):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), rs.RobustSGLDRegressor(**QUICK)),
        {"robustsgldregressor__eta2": [0.01, 1.0]},
        scoring="neg_median_absolute_error",
        cv=2,
    )
    search.fit(line[0][:120], line[1][:120])
    assert search.best_params_["robustsgldregressor__eta2"] in (0.01, 1.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_names_of_columns(line):
    X, y = line
    frame = pd.DataFrame(X, columns=["area", "age"])
    model = rs.RobustSGLDRegressor(**QUICK).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["area", "age"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["age", "area"]])


def test_chains_that_disagree_say_so_and_chains_that_agree_do_not(line):
    X, y = line
    frame = pd.DataFrame(X, columns=["area", "age"])
    with pytest.warns(ConvergenceWarning, match=r"R-hat is \d+\.\d+ for (area|age|the intercept) .* raise n_iter"):
        rs.RobustSGLDRegressor(n_iter=30, step_size=1e-5, random_state=0).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = rs.RobustSGLDRegressor(eta2=0.01, n_iter=4000, random_state=0).fit(frame, y)
    assert model.r_hat_.max() < 1.1


def test_verbose_says_when_a_chain_is_done(line, capsys):
    rs.RobustSGLDRegressor(**QUICK, verbose=1, n_chains=2).fit(*line)
    assert capsys.readouterr().out.count("[RobustSGLDRegressor] chain") == 2


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(9)
    X = np.concatenate([rng.normal([0, 0], 1, (150, 2)), rng.normal([2, 2], 1, (150, 2))])
    return X * [10, 0.1], np.repeat(["no", "yes"], 150)


def test_classes_and_probabilities(blobs):
    X, y = blobs
    model = rs.RobustSGLDClassifier(n_iter=3000, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 2), (1,))
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-12)
    t = model.decision_function(X)
    np.testing.assert_allclose(t, X @ model.coef_[0] + model.intercept_[0], rtol=1e-12)
    np.testing.assert_allclose(probability[:, 1], 1 / (1 + np.exp(-t)), rtol=1e-12)
    assert (model.predict(X) == np.where(probability[:, 1] > 0.5, "yes", "no")).all()
    # the best line between the two normal laws errs with probability Φ(-√2) = 0.079
    assert model.score(X, y) > 0.88


def test_more_than_two_classes_by_one_against_the_rest(blobs):
    X, _ = blobs
    y = np.repeat([0, 1, 2], 100)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        rs.RobustSGLDClassifier(**QUICK).fit(X, y)
    model = OneVsRestClassifier(rs.RobustSGLDClassifier(**QUICK)).fit(X, y)
    assert set(model.predict(X)) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": "absolute"}, "loss must be one of squared, pseudo_huber"),
        ({"link": "probit"}, "link must be one of identity, sigmoid, tanh"),
        ({"eta2": -1}, "eta2 must be above 0"),
        ({"n_iter": 3}, "n_iter must be at least 8"),
        ({"n_chains": 1}, "n_chains must be at least 2"),
        ({"step_size": 0}, "step_size must be above 0"),
        ({"step_size": 1e300}, "a smaller step_size keeps theta smaller"),
        (
            {"step_size": 1e300, "link": "sigmoid", "engine": "pruned"},
            r"of 4 chains diverged, the first at update \d+; a step_size below 1e\+300 may help",
        ),
        ({"engine": "none"}, "engine must be one of"),
        ({"support": (3, -3)}, "support must have low < high"),
        ({"reach": 0}, "reach must be above 0"),
        ({"loss_scale": 0}, "loss_scale must be above 0"),
    ],
)
def test_refusals(line, change, words):
    X, y = line
    with pytest.raises(ValueError, match=words):
        rs.RobustSGLDRegressor(**{**QUICK, **change}).fit(X[:50], y[:50])


def test_one_class_is_refused(blobs):
    with pytest.raises(ValueError, match="one class only"):
        rs.RobustSGLDClassifier(**QUICK).fit(blobs[0][:50], blobs[1][:50])


def test_the_estimators_are_there_when_asked_for_and_not_before():
    code = "import sys, robust_sgld as rs; print('sklearn' in sys.modules, rs.RobustSGLDRegressor.__name__)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "RobustSGLDRegressor"]
    with pytest.raises(AttributeError, match="no attribute 'RobustSGLDTransformer'"):
        _ = rs.RobustSGLDTransformer
