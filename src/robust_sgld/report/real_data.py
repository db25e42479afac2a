"""Real data, corrupted training rows, clean test rows: samplers and alternatives over the same splits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robust_sgld.data import Dataset, sigmoid
from robust_sgld.report.formats import Column, Record, Table, sort_last
from robust_sgld.report.trials import ReportTrial, method_label

KINDS = ("robust SGLD", "vanilla SGLD", "alternative", "oracle")


@dataclass(frozen=True, eq=False)
class Score:
    """What is compared on one data set, for parameters θ = (w, b) of a linear index of standardised features."""

    label: str
    of: Callable[[np.ndarray, Dataset], float]


def rmse(theta: np.ndarray, data: Dataset) -> float:
    """Root mean squared error of ⟨w,z⟩+b on the test rows, in the target's own units."""
    error = data.test[:, -1] - (data.test[:, :-1] @ theta[:-1] + theta[-1])
    return float(np.sqrt((error**2).mean()) * (1.0 if data.scaling is None else data.scaling.scale[-1]))


def log_loss(theta: np.ndarray, data: Dataset) -> float:
    """Mean of log(1+e^{-yt}) on the test rows, labels -1 and +1."""
    margin = data.test[:, -1] * (data.test[:, :-1] @ theta[:-1] + theta[-1])
    return float(np.logaddexp(0.0, -margin).mean())


def error_rate(theta: np.ndarray, data: Dataset) -> float:
    """Share of test rows whose label is not the sign of the index."""
    t = data.test[:, :-1] @ theta[:-1] + theta[-1]
    return float((np.sign(data.test[:, -1]) != np.where(sigmoid(t) > 0.5, 1.0, -1.0)).mean())


SCORES = {
    "diabetes": (Score("test RMSE", rmse),),
    "breast_cancer": (Score("test error rate", error_rate), Score("test log loss", log_loss)),
}
"""by experiment; the first decides the order of the table and what is said"""


def estimate(trial: ReportTrial) -> np.ndarray:
    """(d,) the mean of the second half of all runs' kept states: the sampler's estimate."""
    late = trial.result.theta[:, trial.result.axis > trial.result.n_iter / 2]
    return np.nanmean(late, axis=(0, 1))


def alternatives(experiment: str, data: Dataset) -> dict[str, np.ndarray]:
    """θ of what else a user could have picked, fitted to the same standardised training rows with default settings.

    The oracle is the plain fit on the rows that are no outliers, which no user knows.
    """
    found = _regressions(data.train) if experiment == "diabetes" else _classifications(data.train)
    if data.outlier is not None and data.outlier.any():
        clean = data.train[~data.outlier]
        plain = next(iter(found))
        again = _regressions(clean) if experiment == "diabetes" else _classifications(clean)
        found[f"oracle: {plain} on the clean rows"] = again[plain]
    return found


def _regressions(rows: np.ndarray) -> dict[str, np.ndarray]:
    from sklearn.linear_model import HuberRegressor, LinearRegression

    models = {"least squares": LinearRegression(), "Huber": HuberRegressor(max_iter=10_000)}
    return {name: _theta(model.fit(rows[:, :-1], rows[:, -1])) for name, model in models.items()}


def _classifications(rows: np.ndarray) -> dict[str, np.ndarray]:
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    models = {
        "logistic regression": LogisticRegression(max_iter=10_000),
        "modified Huber": SGDClassifier(loss="modified_huber", random_state=0, max_iter=10_000),
    }
    return {name: _theta(model.fit(rows[:, :-1], np.sign(rows[:, -1]))) for name, model in models.items()}


def _theta(model: object) -> np.ndarray:
    return np.append(np.ravel(model.coef_), np.ravel(model.intercept_))  # type: ignore[attr-defined]


def records(experiment: str, trials: Sequence[ReportTrial], data: Mapping[str, Dataset]) -> list[Record]:
    """A record a method, best first: scores on every split that all methods have.

    `data` maps the digest of a trial's data to the data. A method's `scores` are (splits,) arrays by label, in the same
    order of splits for all.
    """
    thetas: dict[str, dict[str, np.ndarray]] = {}
    kinds: dict[str, str] = {}
    for trial in reversed(trials):  # of the same method and split the newest is taken
        if trial.data_digest in data:
            label = method_label(*trial.method)
            thetas.setdefault(label, {})[trial.data_digest] = estimate(trial)
            kinds[label] = "robust SGLD" if trial.has_dual else "vanilla SGLD"
    most = max((len(by) for by in thetas.values()), default=0)
    thetas = {label: by for label, by in thetas.items() if len(by) == most}  # a sweep that is not complete yet
    digests = sorted(set.intersection(*(set(by) for by in thetas.values()))) if thetas else []
    for digest in digests:
        for label, theta in alternatives(experiment, data[digest]).items():
            thetas.setdefault(label, {})[digest] = theta
            kinds[label] = "oracle" if label.startswith("oracle") else "alternative"
    ratio = float(np.mean([len(data[d].test) / len(data[d].train) for d in digests])) if digests else math.nan
    found: list[Record] = []
    for label, by in thetas.items():
        scores = {s.label: np.array([s.of(by[d], data[d]) for d in digests]) for s in SCORES[experiment]}
        found.append({"method": label, "kind": kinds[label], "splits": len(digests), "ratio": ratio, "scores": scores})
    first = SCORES[experiment][0].label
    return sorted(found, key=lambda r: sort_last(float(np.mean(r["scores"][first]))))


def half_width(values: np.ndarray, ratio: float) -> float:
    """Half of a 95 % interval for a mean over k random splits: t_{k-1} s sqrt(1/k + n_test/n_train).

    The splits share rows, so 1/k alone would be far too narrow; this is the corrected resampled t of Nadeau and Bengio
    (Machine Learning 52, 2003).
    """
    from scipy.stats import t

    k = len(values)
    if k < 2:
        return math.nan
    return float(t.ppf(0.975, k - 1) * values.std(ddof=1) * math.sqrt(1 / k + ratio))


def plain(rows: Sequence[Record]) -> Record:
    """The alternative that everybody begins with: least squares or logistic regression."""
    return next(r for r in rows if r["method"] in ("least squares", "logistic regression"))


def table(experiment: str, rows: Sequence[Record], trials: Sequence[ReportTrial]) -> Table:
    """Mean and interval of every score, and the difference to the plain fit on the same splits."""
    base = plain(rows)
    flat: list[Record] = []
    for row in rows:
        one: Record = {key: row[key] for key in ("method", "kind", "splits")}
        for label, values in row["scores"].items():
            difference = values - base["scores"][label]
            one |= {
                label: float(values.mean()),
                f"{label} half width": half_width(values, row["ratio"]),
                f"{label} difference": float(difference.mean()),
                f"{label} difference half width": half_width(difference, row["ratio"]),
                f"{label} better": int((difference < 0).sum()),
            }
        flat.append(one)
    columns = [
        Column("method", lambda r: r["method"], numeric=False),
        Column("kind", lambda r: r["kind"], numeric=False),
    ]
    for score in SCORES[experiment]:
        columns += _score_columns(score.label, base["method"])
    name, trial = experiment.replace("_", " "), trials[0]
    notes = [
        f"Means over {rows[0]['splits']} random splits with 95 % intervals that allow for the rows which the splits "
        f"share; {trial.setting('data.q'):.0%} of the training rows are outliers. The samplers' estimate is the mean "
        f"of the second half of {trial.runs} runs of {trial.result.n_iter} updates. The alternatives are "
        "scikit-learn's with their defaults, on the same standardised rows. The oracle is told which rows are outliers."
    ]
    if experiment == "breast_cancer":
        notes.append("The index of modified Huber is not meant as log-odds: of its scores only the error rate counts.")
    return Table(
        f"real_{experiment}", f"{name.capitalize()}: corrupted training rows, clean test rows", columns, flat, notes
    )


def _score_columns(label: str, base: str) -> list[Column]:
    def mean(r: Record) -> str:
        return f"{r[label]:.4g} ± {r[f'{label} half width']:.2g}"

    def difference(r: Record) -> str:
        if r["method"] == base:
            return "–"
        return f"{r[f'{label} difference']:+.3g} ± {r[f'{label} difference half width']:.2g}"

    return [
        Column(label, mean, lambda r: sort_last(r[label])),
        Column(f"{label}: difference to {base}", difference, lambda r: sort_last(r[f"{label} difference"])),
        Column(
            f"{label}: splits better",
            lambda r: "–" if r["method"] == base else f"{r[f'{label} better']}/{r['splits']}",
            lambda r: r[f"{label} better"],
        ),
    ]


def words(experiment: str, rows: Sequence[Record]) -> list[str]:
    """What came out, computed: the best η₂ against the plain fit, the robust alternative, vanilla SGLD, the oracle."""
    label = SCORES[experiment][0].label
    robust = [r for r in rows if r["kind"] == "robust SGLD"]
    if not robust:
        return []
    best = robust[0]
    said = [
        f"{label[0].upper() + label[1:]} over {best['splits']} splits: the best robust SGLD is "
        f"{best['method'].split(', ')[-1]} ({best['scores'][label].mean():.4g}), chosen with the test rows in sight, "
        "so in its favour."
    ]
    for other in rows:
        if other["kind"] == "robust SGLD":
            continue
        difference = best["scores"][label] - other["scores"][label]
        mean, half = round(float(difference.mean()), 12), half_width(difference, best["ratio"])
        won = int((difference < 0).sum())
        verdict = "no difference can be told" if abs(mean) <= half else "it is better" if mean < 0 else "it is worse"
        said.append(
            f"Against {other['method']} ({other['scores'][label].mean():.4g}) {verdict}: {mean:+.3g} ± {half:.2g}, "
            f"smaller in {won} of {best['splits']} splits."
        )
    return said
