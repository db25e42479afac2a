"""The published data set, the general generator, and data sets as files."""

from __future__ import annotations

import numpy as np
import pytest

import robust_sgld as rs
from robust_sgld.npz import read_arrays, write_arrays
from tests import literal


def test_the_published_data_set_bit_for_bit(paper):
    """Sample by sample from the legacy stream of seed 42, the test rows after the training rows."""
    np_random = np.random.RandomState(42)
    w, b = np.array([-0.5, 0.5, 0.1]), -0.2
    rows = []
    for n in range(15_000):
        z = np_random.uniform(-1, 1, 3)
        y = 1 / (1 + np.exp(-(np.dot(w, z) + b))) + 0.1 * np_random.binomial(1, 0.5)
        if n < 10_000 and np_random.rand() >= 1 - 0.3:
            z = np_random.uniform(2, 2.5, 3)
            y = y + np_random.binomial(1, 0.5)
        rows.append([*z, y])
    np.testing.assert_array_equal(paper.train, rows[:10_000])
    np.testing.assert_array_equal(paper.test, rows[10_000:])


def test_the_printed_reference_loss(paper):
    assert round(literal.U(paper.theta_star, paper.test).mean(), 6) == 0.005014


def test_the_published_outliers(paper):
    """A Binomial(10 000, 0.3) count has standard deviation 45.8; the bound is four of them."""
    z, outlier = paper.train[:, :3], paper.outlier
    assert abs(outlier.sum() - 3000) < 4 * 45.8
    assert ((z[outlier] >= 2) & (z[outlier] <= 2.5)).all()
    assert (np.abs(z[~outlier]) <= 1).all()
    assert (np.abs(paper.test[:, :3]) <= 1).all()


def test_a_shorter_paper_data_set_begins_like_the_published_one(paper):
    short = rs.paper_dataset(n_train=50, n_test=10)
    np.testing.assert_array_equal(short.train, paper.train[:50])
    assert not rs.paper_dataset(q=0, n_train=50, n_test=10).outlier.any()


def test_q_0_is_clean():
    """y - σ(⟨w,z⟩+b) is 0 or the noise, half and half: a Binomial(4000, 1/2) count has standard deviation 31.6."""
    data = rs.contaminated_dataset(q=0, n_train=4000, n_test=500, noise=0.25)
    assert not data.outlier.any()
    for rows in (data.train, data.test):
        assert (np.abs(rows[:, :-1]) <= 1).all()
        residual = rows[:, -1] - literal.sigmoid(rows[:, :-1] @ data.theta_star[:-1] + data.theta_star[-1])
        assert (np.isclose(residual, 0, atol=1e-15) | np.isclose(residual, 0.25, atol=1e-15)).all()
    noisy = data.train[:, -1] - literal.sigmoid(data.train[:, :-1] @ data.theta_star[:-1] + data.theta_star[-1]) > 0.1
    assert abs(noisy.sum() - 2000) < 4 * 31.6


def test_changing_q_replaces_rows_and_leaves_the_others():
    clean, some, more = (rs.contaminated_dataset(q=q, n_train=1000, n_test=50) for q in (0, 0.2, 0.6))
    np.testing.assert_array_equal(some.train[~some.outlier], clean.train[~some.outlier])
    np.testing.assert_array_equal(more.train[some.outlier], some.train[some.outlier])
    assert (more.outlier | ~some.outlier).all()
    for data in (some, more):
        np.testing.assert_array_equal(data.test, clean.test)
    # ȳ is the clean y plus a fresh Bernoulli
    rise = some.train[some.outlier, -1] - clean.train[some.outlier, -1]
    assert set(np.round(rise, 12)) == {0.0, 1.0}


def test_changing_n_test_leaves_the_training_rows():
    few, many = (rs.contaminated_dataset(n_train=100, n_test=n) for n in (10, 1000))
    np.testing.assert_array_equal(few.train, many.train)


def test_q_is_the_share_of_outliers():
    """Standard deviation of the count: sqrt(20 000·q(1-q)) ≤ 71."""
    for q in (0.05, 0.5):
        count = rs.contaminated_dataset(q=q, n_train=20_000, n_test=1).outlier.sum()
        assert abs(count - 20_000 * q) < 4 * np.sqrt(20_000 * q * (1 - q))
    assert rs.contaminated_dataset(q=1, n_train=100, n_test=1).outlier.all()


@pytest.mark.parametrize("theta_star", [(0.7, -0.1), (-0.5, 0.5, 0.1, -0.2), (1, 2, 3, 4, 5, 6, 0)])
def test_any_dimension_and_any_outlier_law(theta_star):
    data = rs.contaminated_dataset(
        q=0.5, n_train=300, n_test=20, theta_star=theta_star, z_range=(-0.5, 0.25), outlier_range=(-3, -2),
        outlier_shift=-2.0, seed=5,
    )  # fmt: skip
    z, y = data.train[:, :-1], data.train[:, -1]
    assert data.dim == len(theta_star)
    assert data.columns == (*(f"z{i}" for i in range(1, data.dim)), "y")
    assert ((z[data.outlier] >= -3) & (z[data.outlier] <= -2)).all()
    assert ((z[~data.outlier] >= -0.5) & (z[~data.outlier] <= 0.25)).all()
    assert (y[~data.outlier] >= 0).all()
    assert (y[data.outlier] < -0.8).any()


def test_seeds():
    first, again, other = (rs.contaminated_dataset(n_train=50, n_test=50, seed=s) for s in (1, 1, 2))
    assert first.digest == again.digest
    assert first.digest != other.digest
    # the streams of one seed differ from each other too: training and test rows share no value of z
    assert not np.isin(first.train[:, :3], first.test[:, :3]).any()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"q": -0.1}, "q must be a contamination rate between 0 and 1, got -0.1"),
        ({"q": 1.5}, "q must be a contamination rate"),
        ({"q": float("nan")}, "q must be a finite number"),
        ({"n_train": 0}, "n_train must be at least 1"),
        ({"n_test": 2.5}, "n_test must be a whole number"),
        ({"theta_star": [1.0]}, "theta_star must hold at least one weight and the bias"),
        ({"theta_star": [1.0, np.inf]}, "theta_star has a value that is not finite"),
        ({"noise": "much"}, "noise must be a number"),
        ({"z_range": (1, -1)}, "z_range must have low <= high"),
        ({"outlier_range": 2}, "outlier_range must be a pair"),
        ({"outlier_shift": float("inf")}, "outlier_shift must be a finite number"),
        ({"seed": -1}, "data seed must be at least 0"),
    ],
)
def test_the_generator_refuses(change, words):
    with pytest.raises(rs.InvalidInput, match=words):
        rs.contaminated_dataset(**change)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_data_that_are_not_finite_are_refused(bad):
    rows = np.ones((4, 3))
    rows[2, 1] = bad
    with pytest.raises(rs.InvalidInput, match=r"mine train has a value that is not finite .* \(2, 1\)"):
        rs.Dataset(rows, np.ones((4, 3)), name="mine")
    with pytest.raises(rs.InvalidInput, match=r"mine test has a value that is not finite"):
        rs.Dataset(np.ones((4, 3)), rows, name="mine")


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(rs.InvalidInput, match=r"test must have shape \(any, 3\), got \(4, 2\)"):
        rs.Dataset(np.ones((4, 3)), np.ones((4, 2)))
    with pytest.raises(rs.InvalidInput, match=r"train must have shape"):
        rs.Dataset(np.ones(4), np.ones((4, 2)))
    with pytest.raises(rs.InvalidInput, match=r"2 column names for 3 columns"):
        rs.Dataset(np.ones((4, 3)), np.ones((4, 3)), columns=("a", "b"))


def test_a_data_set_is_frozen_and_its_source_is_not():
    mine = np.ones((4, 3))
    data = rs.Dataset(mine, mine)
    mine[0, 0] = 7
    assert data.train[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        data.train[0, 0] = 2


def test_the_digest_is_the_identity_of_the_rows(paper):
    nudged = paper.train.copy()
    nudged[17, 2] = np.nextafter(nudged[17, 2], 9)
    assert rs.Dataset(paper.train, paper.test).digest == paper.digest
    assert rs.Dataset(nudged, paper.test).digest != paper.digest
    assert rs.Dataset(paper.test, paper.train).digest != paper.digest


@pytest.mark.parametrize("name", ["data.npz", "data"])
def test_save_and_load(tmp_path, name):
    for data in (rs.contaminated_dataset(n_train=20, n_test=10), rs.Dataset(np.ones((2, 2)), np.ones((1, 2)))):
        data.save(tmp_path / name)
        back = rs.Dataset.load(tmp_path / name)
        assert back.digest == data.digest
        assert (back.columns, back.name) == (data.columns, data.name)
        for field in ("theta_star", "outlier"):
            np.testing.assert_array_equal(getattr(back, field), getattr(data, field))


def test_a_file_that_is_no_data_set_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    with pytest.raises(rs.InvalidInput, match="cannot be read as a stored data set: No such file"):
        rs.Dataset.load(path)
    rs.contaminated_dataset(n_train=200, n_test=10).save(path)
    whole = path.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :] for at in (60, 200, 2000)]
    for damaged in (b"", b"text", whole[:500], *flipped):
        path.write_bytes(damaged)
        with pytest.raises(rs.InvalidInput, match="is not a stored data set, or it is damaged"):
            rs.Dataset.load(path)
    write_arrays(path, {"other": np.ones(3)})
    with pytest.raises(rs.InvalidInput, match="is not a stored data set"):
        rs.Dataset.load(path)


def test_rows_that_do_not_match_their_digest_are_refused(tmp_path):
    path = tmp_path / "data.npz"
    rs.contaminated_dataset(n_train=20, n_test=10).save(path)
    names = ("train", "test", "theta_star", "outlier", "scaling", "columns", "name", "digest")
    stored = read_arrays(path, names, "a stored data set")
    stored["train"][3, 1] += 1e-9
    write_arrays(path, stored)
    with pytest.raises(rs.InvalidInput, match="do not match its digest"):
        rs.Dataset.load(path)
