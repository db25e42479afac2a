"""Whatever is typed or put into a file: one sentence and exit code 2, no traceback, nothing written."""

from __future__ import annotations

import contextlib
import io
import logging
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig

import robust_sgld as rs
from pipelines.config import Settings
from pipelines.rerun import command as rerun_command
from pipelines.stage import run_stage
from pipelines.train import check, find_or_run, open_store
from robust_sgld.npz import write_arrays
from tests.test_pipeline import small

QUICK = ["data.n_train=30", "data.n_test=20", "tracking=off"]


def said(task: Callable[[DictConfig], Any], *words: str, config_name: str = "config") -> tuple[int, str]:
    """Exit code and what a stage prints on the error output, in this process: a start of Python takes a second."""
    errors = io.StringIO()
    before = sys.argv, {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    sys.argv = ["stage", *words]
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            try:
                code = run_stage(task, config_name)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.argv = before[0]
        for number, handler in before[1].items():
            signal.signal(number, handler)
        for made in {*root.handlers} - {*handlers}:
            made.close()
        root.handlers[:], root.level = handlers, level
        HydraConfig.instance().cfg = None
        GlobalHydra.instance().clear()
    return code, errors.getvalue()


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def refused(folder: Path, task: Callable[[DictConfig], Any], *words: str, config_name: str = "config") -> str:
    """The sentence; fails unless there is exactly one, exit code 2 and an untouched folder."""
    before = files_in(folder)
    code, errors = said(task, *words, config_name=config_name)
    assert code == 2, errors
    assert "Traceback" not in errors
    (line,) = [line for line in errors.splitlines() if line.strip()]
    assert line.startswith("error: ")
    assert len(line) < 600
    assert files_in(folder) == before
    return line.removeprefix("error: ")


TYPED = [
    ("sampler.theta0=null", "sampler.theta0 must be"),
    ("sampler.theta0={a:1}", "sampler.theta0={a:1} does not fit the config"),
    ("sampler.theta0=[]", "theta0"),
    ("sampler.theta0=[[1,2],[3,4]]", "theta0"),
    ("sampler.theta0=abc", "sampler.theta0 must be"),
    ("sampler.theta0=[1,null]", "sampler.theta0 must be"),
    ("sampler.theta0=true", "sampler.theta0 must be"),
    ("sampler.theta0=1e400", "theta0"),
    ("sampler.theta0=[1,2,3,4,5,6]", "theta0 must be one number"),
    ("sampler=null", "sampler"),
    ("~sampler", "sampler"),
    ("~trial.runs", "trial lacks the key 'runs'"),
    ("~eta2", "eta2"),
    ("eta2", "eta2"),
    ("=1", ""),
    ("eta2=", ""),
    ("eta2==1", ""),
    ("eta2=${nothing}", "'nothing' not found"),
    ("eta2=${eta2}", ""),
    ("eta2=${oc.env:NO_SUCH_VARIABLE}", ""),
    ("eta2=1,2", ""),
    ("eta2=choice(1,2)", ""),
    ("eta2=range(1,3)", ""),
    ("++eta2.x=1", "eta2"),
    ("data.q={a:[1}", ""),
    ("data._target_=robust_sgld.npz.write_arrays", "data._target_ must name a function that returns a Dataset"),
    ("data._target_=robust_sgld.files.write_whole", "data._target_ must name a function that returns a Dataset"),
    ("data._target_=robust_sgld.data.Path", "data._target_ must name"),
    ("data._target_=os.system", "data._target_ must name something below robust_sgld"),
    ("data._target_=robust_sgld_evil.x", "data._target_ must name something below robust_sgld"),
    ("data._target_=robust_sgld", "data._target_ must name something below robust_sgld"),
    ("data._target_=robust_sgld..data", "does not exist"),
    ("sampler._target_=robust_sgld.samplers.LangevinSampler", "sampler._target_ must name a LangevinSampler"),
    ("sampler._target_=robust_sgld.dro.DRO", "sampler._target_ must name a LangevinSampler"),
    ("problem._target_=robust_sgld.data.paper_dataset", "problem._target_ must name a Problem"),
    ("sampler._target_=5", "sampler._target_ must name something below"),
    ("allow=os", "allow must be a list of package names"),
    ("allow=[a.b]", "allow must be a list of package names"),
    ("allow=[5]", "allow must be a list of package names"),
    ("tracking.experiment=..", "tracking.experiment must be a name"),
    ("tracking.experiment=''", "tracking.experiment must be a name"),
    ("tracking.uri=5", "tracking.uri must be the address"),
    ("tracking.uri=[a]", "tracking.uri must be the address"),
    ("tracking.uri=nosuch://x", "cannot be used"),
    ("tracking.uri=sqlite:////proc/no/such/mlflow.db", "cannot be used"),
    ("trial.backend=mpi", "backend must be one of threads, loky, dask"),
    ("trial.backend=dask", "needs a scheduler"),
    ("trial.scheduler=tcp://127.0.0.1:1", "only backend=dask"),
    ("backend=dask", "trial.scheduler must be given"),
    ("backend=nothing", "Could not find 'backend/nothing'"),
    ("trial.workers=1e9", "trial.workers must be at most"),
    ("trial.runs=1e12", "trial.runs must be at most"),
    ("trial.runs=1e400", "trial.runs"),
    ("trial.n_iter=true", "trial.n_iter must be a whole number"),
    ("trial=[1]", "the overrides cannot be read"),
    ("+trial.x={y:1}", "unknown key"),
    ("seed=null", "seed"),
    ("seed=[0]", "seed"),
    ("force=1", "force must be true or false"),
    ("++experiment=[1]", ""),
    ("dro.support=[3,-3]", "support"),
    ("dro.support=null", "support"),
    ("dro.support=[a,b]", "support"),
    ("dro.j=-1", "j"),
    ("dro.j=1e9", ""),
    ("dro.ell=1e9", ""),
    ("dro.p=inf", "p must be"),
    ("dro.delta=inf", "delta"),
    ("dro.eta1=1e400", "eta1"),
    ("sampler.beta=nan", "beta"),
    ("sampler.beta=0", "beta"),
    ("sampler.step_size=inf", "step_size"),
    ("data.n_train=2.5", "n_train"),
    ("data.seed=-1", "seed"),
    ("data.seed=4294967296", "below 2^32"),
    ("data=contaminated data.theta_star=[1]", "theta_star"),
    ("data=contaminated data.z_range=[1]", "z_range"),
    ("data=contaminated data.noise=nan", "noise"),
    ("data=csv data.path=/no/such/file.csv data.target=y", "/no/such/file.csv"),
    ("data=csv data.target=y", "data.path must be given"),
    ("data=csv data.path=/proc data.target=y", "/proc"),
    ("+experiment=nothing", "Could not find 'experiment/nothing'"),
    ("--nosuch", "--nosuch"),
    ("--config-name=nothing", "nothing"),
    ("hydra/launcher=nothing", "Could not find"),
    ("root=", "root must be the path of a folder"),
    ("root=[1]", "root must be the path of a folder"),
    ("root=5", "root must be the path of a folder"),
]


@pytest.mark.parametrize(("typed", "words"), TYPED, ids=[typed for typed, _ in TYPED])
def test_what_can_be_typed_wrong(typed, words, tmp_path):
    store = [] if "tracking." in typed else ["tracking=off"]
    root = [] if typed.startswith("root") else [f"root={tmp_path}"]
    data = [] if "data=csv" in typed else QUICK[:2]
    sentence = refused(tmp_path, check, *store, *root, *data, *typed.split(" "))
    assert words in sentence


NUMBERS = [
    "eta2", "seed", "dro.eta1", "dro.delta", "dro.p", "dro.ell", "dro.j", "sampler.step_size", "sampler.beta",
    "trial.runs", "trial.n_iter", "trial.thin", "trial.tolerance", "trial.workers", "data.q", "data.n_train",
    "data.n_test", "data.seed",
]  # fmt: skip
OTHERS = [
    "dro.support",
    "sampler.theta0",
    "sampler.engine",
    "tracking.children",
    "tracking.experiment",
    "force",
    "allow",
]
ODD = st.one_of(
    st.sampled_from(
        ["", "nan", "-inf", "-1", "-0.5", "abc", "[]", "[1,[2]]", "{}", "{a:1}", "null", "1e999", "true", "''", "0x1",
         "1_0", "1e-400", "[", "}", "$", "${", "${eta2", "!!python/object:os.system", "%s", "\\", "'", '"', "a=b",
         "2026-01-01", "∞", "１", "1 2", ".5.", "--", "~", "~/x", "*", "&a", "|", "@", "`ls`", "$(ls)", "../..", "a/b",
         "\t", "é", "\U0001f600"]
    ),
    st.floats().map(repr),
    st.integers(-(10**30), -1).map(str),
    st.text(max_size=12),
)  # fmt: skip


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(key=st.sampled_from(NUMBERS + OTHERS), value=ODD)
def test_whatever_is_typed_is_done_or_refused_in_a_sentence(key, value, tmp_path_factory):
    """Accepted, or refused as everything else is: nothing between."""
    if "\x00" in value:
        return  # no shell can pass it
    folder = tmp_path_factory.mktemp("root")
    code, errors = said(check, *QUICK, f"root={folder}", f"{key}={value}")
    assert code in (0, 2), errors
    assert "Traceback" not in errors
    if code == 2:
        assert [line.startswith("error: ") for line in errors.splitlines() if line.strip()] == [True], errors
        assert files_in(folder) == []


@settings(max_examples=30)
@given(content=st.binary(max_size=200))
def test_bytes_that_are_no_npz(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "file.npz"
    for head in (b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00"):
        path.write_bytes(head + content)
        for load in (rs.Dataset.load, rs.TrialResult.load):
            with pytest.raises(rs.InvalidInput, match="is not a stored"):
                load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"train": 5.0},
        {"train": np.zeros((3, 4, 5))},
        {"train": np.zeros((0, 4))},
        {"train": np.array([["a"]])},
        {"test": np.zeros((3, 2))},
        {"columns": 5},
        {"columns": np.array(["a"])},
        {"theta_star": np.zeros((2, 2))},
        {"name": np.zeros(3)},
        {"outlier": np.zeros(3)},
        {"digest": "0"},
    ],
    ids=lambda change: "-".join(f"{k}={np.shape(v)}" for k, v in change.items()),
)
def test_a_stored_data_set_of_the_wrong_shape(change, tmp_path):
    path = tmp_path / "data.npz"
    rs.contaminated_dataset(n_train=5, n_test=4).save(path)
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    write_arrays(path, arrays | change)
    with pytest.raises(rs.InvalidInput) as caught:
        rs.Dataset.load(path)
    assert "\n" not in str(caught.value)


def test_an_npz_that_would_unpickle_is_refused(tmp_path):
    path = tmp_path / "data.npz"
    with open(path, "wb") as file:
        np.savez(file, train=np.array([{"a": print}], dtype=object))  # type: ignore[arg-type]
    with pytest.raises(rs.InvalidInput, match="is not a stored data set, or it is damaged"):
        rs.Dataset.load(path)


@pytest.fixture(scope="module")
def root_with_store(tmp_path_factory):
    root = tmp_path_factory.mktemp("store")
    open_store(Settings.of(small(root)))
    return root


@pytest.mark.parametrize(
    "run_id", ["0", "a" * 32, "'", '"', "../../x", "null", "[1]", "{a:1}", "x' or '1'='1", "é", "%", ""]
)
def test_run_ids_that_are_none(run_id, root_with_store):
    tmp_path = root_with_store
    code, errors = said(rerun_command, f"root={tmp_path}", f'run_id="{run_id}"', config_name="rerun")
    assert code == 2, errors
    assert "Traceback" not in errors
    assert not (tmp_path / "outputs").exists()


EXTREMES = [
    ["dro.delta=1e-8"],
    ["sampler.beta=inf"],
    ["eta2=1e-12"],
    ["eta2=1e12"],
    ["sampler.theta0=1e6"],
    ["sampler.theta0=1e150"],
    ["sampler.theta0=-1e300"],
    ["sampler.step_size=1e6"],
    ["sampler.step_size=1e-300"],
    ["dro.eta1=1e300"],
    ["dro.p=50", "sampler.engine=dense", "dro.j=0"],
    ["dro.delta=1e300"],
    ["sampler.beta=1e-300"],
]


@pytest.mark.parametrize("overrides", EXTREMES, ids=" ".join)
@pytest.mark.parametrize("sampler", ["robust_sgld", "sgld"])
def test_extreme_numbers_are_finite_or_refused(overrides, sampler, tmp_path):
    if sampler == "sgld" and any(o.startswith(("dro", "eta2", "sampler.engine")) for o in overrides):
        pytest.skip("vanilla SGLD has no such key")
    cfg = small(tmp_path, f"sampler={sampler}", "tracking=off", "trial.runs=2", "trial.n_iter=20", *overrides)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.DivergenceWarning)
        try:
            value = find_or_run(Settings.of(cfg)).value
        except rs.InvalidInput:
            return
    assert np.isfinite(value)


def test_the_home_folder_may_be_typed(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    code, errors = said(lambda cfg: (Settings.of(cfg).root / "mark").touch(), *QUICK, "root=~/there")
    assert code == 0, errors
    assert (tmp_path / "there" / "mark").exists()
