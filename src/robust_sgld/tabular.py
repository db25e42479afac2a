"""Data sets out of tables: a user's file, or data that scikit-learn brings along.

Real rows, standardised into Ξ, split into training and test rows by a seed; on top, where it is asked for, the paper's
kind of outliers in the training rows, so that robustness can be studied on real features.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robust_sgld.checks import InvalidInput, integer, rate, real
from robust_sgld.data import Dataset, interval
from robust_sgld.scaling import Scaling, centre_and_spread, standardise
from robust_sgld.tables import read_table

log = logging.getLogger(__name__)

LEAST_TRAIN = 10
"""training rows below which a median and a spread of a column mean nothing"""
BUNDLED = ("diabetes", "breast_cancer")


def file_dataset(
    path: str,
    target: str,
    *,
    features: Sequence[str] | None = None,
    separator: str = ",",
    n_train: int | None = None,
    n_test: int | None = None,
    seed: int = 0,
    q: float = 0.0,
    outlier_range: tuple[float, float] = (2.0, 2.5),
    outlier_shift: float = 1.0,
    support: tuple[float, float] = (-3.0, 3.0),
    reach: float | None = 4.0,
    target_range: tuple[float, float] | None = None,
) -> Dataset:
    """The numeric columns of a CSV or Parquet file; see `read_table` for what it takes and `tabular_dataset`."""
    raw, columns = read_table(path, target, features, separator)
    return tabular_dataset(
        raw, columns, name=Path(path).stem, n_train=n_train, n_test=n_test, seed=seed, q=q, outlier_range=outlier_range,
        outlier_shift=outlier_shift, support=support, reach=reach, target_range=target_range,
    )  # fmt: skip


def bundled_dataset(
    name: str,
    *,
    n_train: int | None = None,
    n_test: int | None = None,
    seed: int = 0,
    q: float = 0.0,
    outlier_range: tuple[float, float] = (2.0, 2.5),
    outlier_shift: float = 1.0,
    support: tuple[float, float] = (-3.0, 3.0),
    reach: float | None = 4.0,
    target_range: tuple[float, float] | None = None,
) -> Dataset:
    """Data that scikit-learn brings along, in their own units: nothing is fetched.

    diabetes: 442 patients, 10 features, progression of the disease after a year (regression). breast_cancer: 569
    tumours, 30 features, malignant (0) or benign (1).
    """
    if name not in BUNDLED:
        raise InvalidInput(f"name must be one of {', '.join(BUNDLED)}, got {name!r}.")
    raw, columns = bundled_table(name)
    return tabular_dataset(
        raw, columns, name=name, n_train=n_train, n_test=n_test, seed=seed, q=q, outlier_range=outlier_range,
        outlier_shift=outlier_shift, support=support, reach=reach, target_range=target_range,
    )  # fmt: skip


def bundled_table(name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Rows (n, m), the target last, and the names of the columns."""
    from sklearn import datasets

    bunch = datasets.load_diabetes(scaled=False) if name == "diabetes" else datasets.load_breast_cancer()
    columns = tuple(str(column).replace(" ", "_") for column in bunch.feature_names)
    return np.column_stack([bunch.data, bunch.target.astype(np.float64)]), (*columns, "target")


def tabular_dataset(
    raw: np.ndarray,
    columns: Sequence[str],
    *,
    name: str = "table",
    n_train: int | None = None,
    n_test: int | None = None,
    seed: int = 0,
    q: float = 0.0,
    outlier_range: tuple[float, float] = (2.0, 2.5),
    outlier_shift: float = 1.0,
    support: tuple[float, float] = (-3.0, 3.0),
    reach: float | None = 4.0,
    target_range: tuple[float, float] | None = None,
) -> Dataset:
    """Rows (n, m) in any units, the target last, as a `Dataset` in Ξ = [support]^m.

    The rows are shuffled by `seed`; `n_test` of them (a quarter unless given) are the test rows and `n_train` of the
    others (all unless given) the training rows. The map into Ξ is that of `standardise` on the training rows alone. The
    test rows go through the same map and are not clipped: their losses are those of the rows as they are.

    With probability q a training row is then replaced by z̄ uniform on outlier_range^{m-1} and ȳ = y + outlier_shift·ε̃
    with ε̃ ~ Bernoulli(1/2), both in standardised units and kept inside Ξ; for a target of two values ε̃ swaps the label
    instead. Split, choice of outliers and outliers have a stream each, so that rows which are replaced at one q are
    replaced by the same values at every larger q.
    """
    q, outlier_shift = rate("q", q), real("outlier_shift", outlier_shift)
    low, high = interval("outlier_range", outlier_range)
    n_train, n_test = _sizes(name, len(raw), n_train, n_test)
    streams = [np.random.default_rng(s) for s in np.random.SeedSequence(integer("data seed", seed, least=0)).spawn(3)]
    order = streams[0].permutation(len(raw))
    test, chosen = raw[order[:n_test]], raw[order[n_test : n_test + n_train]]
    for column, values in zip(columns, chosen.T, strict=True):
        if values.min() == values.max():
            raise InvalidInput(
                f"{name}: column {column!r} is constant ({values[0]:g}) in the {n_train} training rows of seed {seed}; "
                "leave it out or use more rows."
            )
    train, scaling = standardise(chosen, support, reach, target_range)
    _say_clipped(name, columns, scaling, n_train)
    outlier = None
    if q > 0:
        outlier = streams[1].random(n_train) < q
        z_bar = streams[2].uniform(low, high, (n_train, raw.shape[1] - 1))
        moved = streams[2].integers(0, 2, n_train).astype(bool)
        y = train[:, -1]
        swapped = y.min() + y.max() - y if centre_and_spread(chosen[:, -1])[2] else y + outlier_shift
        replaced = np.column_stack([z_bar, np.where(moved, swapped, y)])
        train = np.where(outlier[:, None], np.clip(replaced, *support), train)
    return Dataset(train, scaling.apply(test), None, outlier, tuple(columns), name, scaling)


def _sizes(name: str, rows: int, n_train: int | None, n_test: int | None) -> tuple[int, int]:
    n_test = max(1, rows // 4) if n_test is None else integer("n_test", n_test, least=1)
    n_train = rows - n_test if n_train is None else integer("n_train", n_train, least=1)
    if n_train + n_test > rows:
        raise InvalidInput(f"{name} has {rows} rows, too few for n_train={n_train} and n_test={n_test}.")
    if n_train < LEAST_TRAIN:
        raise InvalidInput(
            f"{name} has too few rows: {rows} leave {n_train} for training after {n_test} for testing, and at least "
            f"{LEAST_TRAIN} are needed."
        )
    return n_train, n_test


def _say_clipped(name: str, columns: Sequence[str], scaling: Scaling, n_train: int) -> None:
    if scaling.clipped.any():
        counts = ", ".join(f"{c} {n}" for c, n in zip(columns, scaling.clipped, strict=True) if n)
        log.info(
            "%s: of %d training values a column, these lay outside the support and were moved to its edge: %s.",
            name,
            n_train,
            counts,
        )
