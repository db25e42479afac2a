"""Files and bundled data as data sets: what is read, how it is split and corrupted, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import robust_sgld as rs
from pipelines.config import Settings
from pipelines.train import open_store, train
from robust_sgld import tables
from robust_sgld.tables import read_table
from tests.test_config import composed


@pytest.fixture
def frame(rng) -> pd.DataFrame:
    n = 60
    table = pd.DataFrame({"size": rng.normal(80, 20, n), "rooms": rng.integers(1, 7, n), "sold": rng.random(n) < 0.5})
    table["price"] = 1000 * table["size"] + 5e3 * table["rooms"] + rng.normal(0, 5e3, n)
    return table


@pytest.fixture
def path(tmp_path, frame):
    frame.to_csv(tmp_path / "houses.csv", index=False)
    return tmp_path / "houses.csv"


def test_csv_and_parquet_give_the_same_rows(path, frame, tmp_path):
    frame.to_parquet(tmp_path / "houses.parquet")
    rows, columns = read_table(path, "price")
    assert columns == ("size", "rooms", "sold", "price")
    np.testing.assert_array_equal(rows, frame.to_numpy(dtype=np.float64))
    again, same = read_table(tmp_path / "houses.parquet", "price")
    np.testing.assert_array_equal(again, rows)
    assert same == columns


def test_columns_by_name_and_another_separator(frame, tmp_path):
    frame.to_csv(tmp_path / "semi.csv", index=False, sep=";")
    rows, columns = read_table(tmp_path / "semi.csv", "size", ["price", "rooms"], ";")
    assert columns == ("price", "rooms", "size")
    np.testing.assert_array_equal(rows, frame[["price", "rooms", "size"]])


def test_a_text_column_that_is_not_used_does_no_harm(path, tmp_path):
    (tmp_path / "text.csv").write_text("city,a,b\n" + "".join(f"Ulm,{i},{i % 3}\n" for i in range(20)))
    rows, _ = read_table(tmp_path / "text.csv", "b", ["a"])
    assert rows.shape == (20, 2)


ROWS = "".join(f"{i},{i % 7},{i % 5}\n" for i in range(30))


@pytest.mark.parametrize(
    ("content", "target", "words"),
    [
        (b"", "c", "is empty"),
        (b"a,b,c\n", "c", "has a header and no rows"),
        (b"a,b,c\n" + ROWS.encode(), "price", "has no column 'price': its columns are 'a', 'b', 'c'."),
        (b"a,b,prices\n" + ROWS.encode(), "price", "did you mean 'prices'?"),
        (b"a,a,c\n" + ROWS.encode(), "c", "has more than one column 'a'"),
        (b"a,,c\n" + ROWS.encode(), "c", "column 2 has no name"),
        (b"a,b,c\n1,,2\n" + ROWS.encode(), "c", "column 'b' has 1 missing value, the first in row 1"),
        (b"a,b,c\n1,2,2\n1,NA,2\n,NA,3\n" + ROWS.encode(), "c", "column 'a' has 1 missing value, the first in row 3"),
        (b"a,b,c\n1,x y,2\n" + ROWS.encode(), "c", "column 'b' is not numeric (row 1 is 'x y')"),
        (b"a,b,c\n1,2,low\n" + ROWS.encode(), "c", "column 'c' is not numeric"),
        (b"a,b,c\n1,inf,2\n" + ROWS.encode(), "c", "column 'b' has a value that is not finite (inf) in row 1"),
        (b"a,b,c\n" + b"".join(b"%d,4,%d\n" % (i, i) for i in range(20)), "c", "column 'b' is constant (4)"),
        (b"a;b;c\n1;2;3\n", "c", "where a target and a feature are needed; separator=';' may be right"),
        (b"a,b,c\n1,2,3,4\n" + ROWS.encode(), "c", "is not a CSV file with one header line"),
        (b"a,b,c\n" + ROWS.encode() + b"1,2,3,4,5\n", "c", "Expected 3 fields in line 32, saw 5"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe" * 9, "c", "is not a CSV file: it is not text"),
        (b"a,b,c\n1,2,3\n4,1,5\n6,3,2\n", "c", "mine has too few rows: 3 leave 2 for training"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_by_name(content, target, words, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(rs.InvalidInput) as caught:
        rs.file_dataset(str(path), target)
    assert words in str(caught.value)
    assert "mine" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_refusals_of_files(tmp_path, path, frame, monkeypatch):
    with pytest.raises(rs.InvalidInput, match="there is no file"):
        read_table(tmp_path / "none.csv", "c")
    with pytest.raises(rs.InvalidInput, match="is a folder"):
        read_table(tmp_path, "c")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(rs.InvalidInput, match="is not a Parquet file"):
        read_table(tmp_path / "bad.parquet", "c")
    frame.assign(day=pd.Timestamp("2024-01-01")).to_parquet(tmp_path / "days.parquet")
    with pytest.raises(rs.InvalidInput, match=r"column 'day' is not numeric \(row 1 is '2024"):
        read_table(tmp_path / "days.parquet", "price")
    with pytest.raises(rs.InvalidInput, match="cannot be a feature too"):
        read_table(path, "price", ["price", "size"])
    with pytest.raises(rs.InvalidInput, match="features names 'size' twice"):
        read_table(path, "price", ["size", "size"])
    with pytest.raises(rs.InvalidInput, match="at least one feature"):
        read_table(path, "price", [])
    with pytest.raises(rs.InvalidInput, match="features must be a list"):
        read_table(path, "price", "size")
    with pytest.raises(rs.InvalidInput, match="separator must be one character"):
        read_table(path, "price", separator="--")
    monkeypatch.setattr(tables, "MAX_BYTES", 100)
    with pytest.raises(rs.InvalidInput, match=r"houses\.csv has .* GiB and is read into memory"):
        read_table(path, "price")


def test_the_split_is_a_partition_by_seed(path, frame):
    data = rs.file_dataset(str(path), "price", reach=None)
    assert (len(data.train), len(data.test)) == (45, 15)
    assert (data.columns, data.name) == (tuple(frame.columns), "houses")
    assert data.scaling is not None
    both = data.scaling.undo(np.concatenate([data.train, data.test]))
    whole = frame.to_numpy(dtype=np.float64)
    np.testing.assert_allclose(both[np.argsort(both[:, 0])], whole[np.argsort(whole[:, 0])], rtol=1e-9, atol=1e-9)
    other = rs.file_dataset(str(path), "price", reach=None, seed=1)
    assert other.digest != data.digest == rs.file_dataset(str(path), "price", reach=None).digest
    few = rs.file_dataset(str(path), "price", n_train=20, n_test=30)
    assert (len(few.train), len(few.test)) == (20, 30)


def test_the_map_is_of_the_training_rows_and_test_rows_are_not_clipped(rng):
    raw = rng.normal(size=(400, 3))
    raw[::4] *= 30
    data = rs.tabular_dataset(raw, ["a", "b", "c"], n_test=100)
    assert np.abs(data.train).max() == 3
    assert np.abs(data.test).max() > 10
    assert data.scaling.clipped.sum() > 0
    # the training rows as they came: undoing and redoing the map changes nothing that was not clipped
    np.testing.assert_allclose(data.scaling.apply(data.scaling.undo(data.test)), data.test, rtol=1e-12, atol=1e-12)
    order = np.random.default_rng(np.random.SeedSequence(0).spawn(3)[0]).permutation(400)
    scaled, scaling = rs.standardise(raw[order[100:]])
    np.testing.assert_array_equal(data.train, scaled)
    np.testing.assert_array_equal(data.test, scaling.apply(raw[order[:100]]))


def test_corruption_replaces_training_rows_alone(path):
    clean, some, more = (rs.file_dataset(str(path), "price", q=q, target_range=(0, 1)) for q in (0, 0.2, 0.6))
    assert clean.outlier is None
    for data in (some, more):
        np.testing.assert_array_equal(data.test, clean.test)
        np.testing.assert_array_equal(data.train[~data.outlier], clean.train[~data.outlier])
        z = data.train[data.outlier, :-1]
        assert ((z >= 2) & (z <= 2.5)).all()
        rise = data.train[data.outlier, -1] - clean.train[data.outlier, -1]
        assert set(np.round(rise, 9)) == {0.0, 1.0}
    assert some.outlier.any()
    assert (more.outlier | ~some.outlier).all()
    np.testing.assert_array_equal(more.train[some.outlier], some.train[some.outlier])


def test_the_labels_of_outliers_are_swapped_with_probability_one_half():
    clean = rs.bundled_dataset("breast_cancer", target_range=(-1, 1))
    bad = rs.bundled_dataset("breast_cancer", target_range=(-1, 1), q=1.0)
    assert set(clean.train[:, -1]) == set(bad.train[:, -1]) == {-1.0, 1.0}
    swapped = (clean.train[:, -1] != bad.train[:, -1]).mean()
    assert abs(swapped - 0.5) < 4 * 0.5 / np.sqrt(len(bad.train))


@pytest.mark.parametrize(("name", "shape"), [("diabetes", (442, 11)), ("breast_cancer", (569, 31))])
def test_bundled_data(name, shape):
    data = rs.bundled_dataset(name)
    assert (len(data.train) + len(data.test), data.dim) == shape
    assert len(set(data.columns)) == shape[1]
    assert np.abs(data.train).max() <= 3
    with pytest.raises(rs.InvalidInput, match="name must be one of"):
        rs.bundled_dataset("iris")


def test_the_map_is_stored_with_the_data(path, tmp_path):
    data = rs.file_dataset(str(path), "price", q=0.1)
    data.save(tmp_path / "data.npz")
    back = rs.Dataset.load(tmp_path / "data.npz")
    for name in ("centre", "scale", "clipped"):
        np.testing.assert_array_equal(getattr(back.scaling, name), getattr(data.scaling, name))
    assert rs.Dataset(np.ones((2, 2)), np.ones((2, 2))).scaling is None
    with pytest.raises(rs.InvalidInput, match="a scaling of 4 columns for 2"):
        rs.Dataset(np.ones((2, 2)), np.ones((2, 2)), scaling=data.scaling)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"q": 2}, "q must be a contamination rate"),
        ({"n_train": 50, "n_test": 50}, "has 60 rows, too few for n_train=50 and n_test=50"),
        ({"n_train": 5}, "too few rows"),
        ({"n_test": 0}, "n_test must be at least 1"),
        ({"seed": -1}, "data seed must be at least 0"),
        ({"outlier_range": 2}, "outlier_range must be a pair"),
    ],
)
def test_refusals_of_settings(change, words, path):
    with pytest.raises(rs.InvalidInput, match=words):
        rs.file_dataset(str(path), "price", **change)


def test_a_column_that_is_constant_in_the_training_rows_alone():
    raw = np.column_stack([np.arange(40.0), np.zeros(40), np.arange(40.0) % 3])
    order = np.random.default_rng(np.random.SeedSequence(0).spawn(3)[0]).permutation(40)
    raw[order[0], 1] = 1.0  # a test row
    with pytest.raises(rs.InvalidInput, match=r"column 'b' is constant \(0\) in the 30 training rows of seed 0"):
        rs.tabular_dataset(raw, ["a", "b", "c"])


def test_a_changed_file_is_another_data_set(path, frame, tmp_path):
    settings = Settings.of(composed("data=csv", f"data.path={path}", "data.target=price", f"root={tmp_path}"))
    first = settings.make_data()
    frame.assign(size=frame["size"] + frame["rooms"]).to_csv(path, index=False)
    assert settings.make_data().digest != first.digest


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["data=csv"], "data.path must be given on the command line"),
        (["data=csv", "data.path=x.csv"], "data.target must be given"),
        (["data=csv", "data.path=x.csv", "data.target=y"], "data: there is no file x.csv"),
        (["data=diabetes", "data.name=iris"], "data: name must be one of diabetes, breast_cancer"),
    ],
)
def test_the_command_line_refuses(overrides, words, tmp_path):
    with pytest.raises(rs.InvalidInput) as caught:
        Settings.of(composed(*overrides, f"root={tmp_path}")).make_data()
    assert words in str(caught.value)


def test_clipped_values_are_said(path, caplog):
    with caplog.at_level("INFO", logger="robust_sgld.tabular"):
        rs.file_dataset(str(path), "price", reach=1.0)
    assert "moved to its edge" in caplog.text
    assert "size " in caplog.text


def test_the_recorded_model_takes_the_columns_of_the_file(path, frame, tmp_path):
    """It predicts in the target's units: the link of the standardised index, brought back."""
    import mlflow

    overrides = ["data=csv", f"data.path={path}", "data.target=price", f"root={tmp_path}", "sampler=sgld"]
    cfg = composed(*overrides, "trial=smoke", "tracking.children=none")
    train(cfg)
    settings = Settings.of(cfg)
    store, data = open_store(settings), settings.make_data()
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(store.uri)
    try:
        trial = store.trials()[0]
        got = mlflow.pyfunc.load_model(f"runs:/{trial.run_id}/model").predict(frame.drop(columns="price").astype(float))
    finally:
        mlflow.set_tracking_uri(before)
    theta = trial.result().theta[:, -1].mean(axis=0)
    z = data.scaling.features(frame.drop(columns="price").to_numpy(dtype=np.float64))
    expected = data.scaling.target(1 / (1 + np.exp(-(z @ theta[:-1] + theta[-1]))))
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    assert trial.params["data.target"] == "price"
