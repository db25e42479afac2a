"""Finished runs on disk: continued trials are the undisturbed ones, and no damaged or foreign shard is ever used."""

from __future__ import annotations

import io
import logging
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import robust_sgld as rs
from robust_sgld import shards as shards_module
from robust_sgld.files import TEMPORARY, remove_unfinished, write_whole
from robust_sgld.npz import pack
from robust_sgld.shards import ShardStore, code_digest
from tests.models import TorchSigmoid
from tests.test_trial import assert_same_numbers, small_data

SETTING = {"runs": 6, "n_iter": 200, "seed": 5, "thin": 20}


class Stop(Exception):
    """Ends a trial in the middle, as an interrupt does."""


@pytest.fixture(autouse=True)
def _every_run_is_a_shard(monkeypatch):
    """So that a short trial has something to lose."""
    monkeypatch.setattr(shards_module, "SECONDS_BETWEEN_SHARDS", 0.0)


@pytest.fixture(scope="module")
def sampler():
    return rs.RobustSGLD(rs.SigmoidRegression(3), rs.DRO())


@pytest.fixture(scope="module")
def undisturbed(sampler):
    return rs.run_trial(sampler, small_data(3), **SETTING)


def stopped_after(done: int):
    def progress(finished: int, total: int) -> None:
        if finished >= done:
            raise Stop

    return progress


def interrupted(sampler, folder: Path, after: int = 3, **change) -> None:
    setting = {**SETTING, "progress": stopped_after(after), "workers": 1, **change}
    with pytest.raises(Stop):
        rs.run_trial(sampler, small_data(3), shards=ShardStore(folder), **setting)


def continued(sampler, folder: Path, **change) -> tuple[rs.TrialResult, list[int]]:
    """The result and the counts of finished runs that were told: what was there already is not told."""
    told: list[int] = []
    setting = {**SETTING, "progress": lambda done, _: told.append(done), **change}
    return rs.run_trial(sampler, small_data(3), shards=ShardStore(folder), **setting), told


def test_a_continued_trial_computes_only_what_is_missing_and_is_the_same(sampler, undisturbed, tmp_path):
    interrupted(sampler, tmp_path)
    assert len(list(tmp_path.glob("*.shard"))) == 3
    result, told = continued(sampler, tmp_path)
    assert told == [4, 5, 6]
    assert_same_numbers(result, undisturbed)
    again, told = continued(sampler, tmp_path)
    assert told == []
    assert_same_numbers(again, undisturbed)
    np.testing.assert_array_equal(again.seconds, result.seconds)


def test_batched_runs_are_kept_too(tmp_path):
    """The dense engine advances runs together; a part of them is a shard all the same."""
    sampler = rs.RobustSGLD(TorchSigmoid(3), rs.DRO(j=0), engine="dense")
    setting = {"runs": 12, "n_iter": 5}
    undisturbed = rs.run_trial(sampler, small_data(3), **setting, seed=5, thin=20)
    interrupted(sampler, tmp_path, after=1, **setting)
    result, told = continued(sampler, tmp_path, **setting, workers=1)
    assert told == [12]  # two blocks of six
    assert_same_numbers(result, undisturbed)


def test_the_times_of_all_attempts_are_added(sampler, tmp_path):
    interrupted(sampler, tmp_path)
    before = ShardStore(tmp_path)
    # the facts of the trial are those of `run_trial`; here only the seconds matter
    seconds = sum(float(_payload(path)["wall_seconds"]) for path in tmp_path.glob("*.shard"))
    assert before.folder == tmp_path
    assert seconds > 0
    result, _ = continued(sampler, tmp_path)
    assert result.wall_seconds > seconds


def _payload(path: Path) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(path.read_bytes().partition(b"\n")[2])) as stored:
        return {name: stored[name] for name in stored.files}


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "a bit":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif how == "header":
        path.write_bytes(b"{" + content)
    elif how == "rubbish":
        path.write_bytes(os.urandom(2000))


@pytest.mark.parametrize("how", ["cut", "empty", "a bit", "header", "rubbish"])
def test_a_damaged_shard_is_named_set_aside_and_computed_again(how, sampler, undisturbed, tmp_path, caplog):
    interrupted(sampler, tmp_path)
    victim = sorted(tmp_path.glob("*.shard"))[1]
    damage(victim, how)
    with caplog.at_level(logging.WARNING):
        result, told = continued(sampler, tmp_path)
    assert f"{victim.name} is damaged" in caplog.text
    assert (tmp_path / "set-aside" / victim.name).exists()
    assert told == [3, 4, 5, 6]
    assert_same_numbers(result, undisturbed)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 6}, "seed"),
        ({"n_iter": 201}, "n_iter"),
        ({"thin": 10}, "axes"),
        ({"theta0": -1.0}, "theta0"),
        ({"tolerance": 0.02}, "band"),
    ],
)
def test_shards_of_another_trial_are_set_aside(change, named, sampler, tmp_path, caplog):
    interrupted(sampler, tmp_path, **change)
    with caplog.at_level(logging.WARNING):
        _, told = continued(sampler, tmp_path)
    assert told == [1, 2, 3, 4, 5, 6]
    assert "belongs to another trial" in caplog.text
    assert named in caplog.text


def test_shards_of_another_sampler_data_config_or_code_are_set_aside(sampler, tmp_path, monkeypatch):
    others = {
        "sampler": rs.RobustSGLD(rs.SigmoidRegression(3), rs.DRO(), step_size=0.02),
        "dro": rs.RobustSGLD(rs.SigmoidRegression(3), rs.DRO(eta2=2.0)),
    }
    for name, other in others.items():
        interrupted(other, tmp_path / name)
        assert continued(sampler, tmp_path / name)[1] == [1, 2, 3, 4, 5, 6]
    store = ShardStore(tmp_path / "config", {"config_hash": "a"})
    with pytest.raises(Stop):
        rs.run_trial(sampler, small_data(3), **SETTING, workers=1, shards=store, progress=stopped_after(3))
    assert continued(sampler, tmp_path / "config")[1] == [1, 2, 3, 4, 5, 6]
    interrupted(sampler, tmp_path / "code")
    monkeypatch.setattr(shards_module, "code_digest", lambda: "other code")
    assert continued(sampler, tmp_path / "code")[1] == [1, 2, 3, 4, 5, 6]


def test_more_runs_continue_a_smaller_trial(sampler, tmp_path):
    """Run k does not depend on its company, so that 6 runs are the first 6 of 8."""
    continued(sampler, tmp_path)
    result, told = continued(sampler, tmp_path, runs=8)
    assert told == [7, 8]
    assert_same_numbers(result, rs.run_trial(sampler, small_data(3), **{**SETTING, "runs": 8}))
    fewer, _ = continued(sampler, tmp_path, runs=4)
    assert fewer.runs.tolist() == [0, 1, 2, 3]


def test_runs_that_finish_together_share_a_shard(sampler, tmp_path, monkeypatch):
    monkeypatch.setattr(shards_module, "SECONDS_BETWEEN_SHARDS", 1e9)
    continued(sampler, tmp_path)
    assert len(list(tmp_path.glob("*.shard"))) == 1


def test_a_file_is_old_or_new_and_nothing_between(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, object())  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / f"{TEMPORARY}left").write_bytes(b"half")
    remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_arrays_are_the_same_bytes(monkeypatch):
    arrays = {"a": np.arange(5.0), "b": "words"}
    first = pack(arrays)
    monkeypatch.setattr("time.time", lambda: 0.0)
    monkeypatch.setattr("time.localtime", lambda *_: (1999, 1, 1, 0, 0, 0, 0, 0, 0))
    assert pack(arrays) == first
    assert {info.date_time for info in zipfile.ZipFile(io.BytesIO(first)).infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_code_digest_is_of_what_decides_numbers():
    assert len(code_digest()) == 64
    assert "kernels" not in shards_module.NOT_NUMBERS
