"""Every yaml composes, builds and is documented; every bad value is refused with a sentence."""

import re
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

import robust_sgld as rs
from pipelines.config import CONFIG_DIR, GROUPS, Settings, choices, flatten, register_resolvers, stable_hash

TRACKING = ["tracking=off"]


def composed(*overrides: str, name: str = "config") -> DictConfig:
    register_resolvers()
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return compose(name, overrides=list(overrides))


def yaml_files() -> list[Path]:
    return sorted(CONFIG_DIR.rglob("*.yaml"))


@pytest.mark.parametrize("path", yaml_files(), ids=lambda p: str(p.relative_to(CONFIG_DIR)))
def test_every_key_has_a_comment(path):
    """A key with a value on its line explains itself there."""
    if path.parent.name in ("experiment",) or path.name == "config.yaml":
        lines = [line for line in path.read_text().splitlines() if re.match(r"^[a-z0-9_]+: \S", line)]
        lines = [line for line in lines if path.name == "config.yaml"]
    else:
        lines = [line for line in path.read_text().splitlines() if re.match(r"^[a-z][a-z0-9_]*: \S", line)]
    assert path.read_text().startswith("#")
    assert all("#" in line for line in lines), [line for line in lines if "#" not in line]


def _csv(folder: Path) -> list[str]:
    path = folder / "mine.csv"
    path.write_text("a,b,c\n" + "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(40)))
    return [f"data.path={path}", "data.target=c"]


@pytest.mark.parametrize("group", ["data", "problem", "dro", "sampler", "trial", "tracking"])
def test_every_choice_of_a_group_composes_and_builds(group, tmp_path):
    for choice in choices(group):
        extra = {"server": ["tracking.uri=http://127.0.0.1:1"], "csv": _csv(tmp_path)}.get(choice, [])
        settings = Settings.of(composed(f"{group}={choice}", f"root={tmp_path}", *extra))
        data = settings.make_data()
        sampler = settings.make_sampler(data)
        assert sampler.problem.dim == data.dim
        assert sampler.initial_state(settings.theta0).shape == (sampler.state_dim,)


@pytest.mark.parametrize("name", choices("experiment"))
def test_every_experiment_names_itself_and_sweeps(name):
    cfg = composed(f"+experiment={name}")
    assert cfg.experiment == name
    Settings.of(cfg)
    raw = yaml.safe_load((CONFIG_DIR / "experiment" / f"{name}.yaml").read_text())
    assert raw["hydra"]["mode"] == "MULTIRUN"
    assert raw["hydra"]["sweeper"]["params"]


def test_the_defaults_are_the_paper():
    settings = Settings.of(composed())
    sampler = settings.make_sampler(rs.paper_dataset())
    assert isinstance(sampler, rs.RobustSGLD)
    assert sampler.dro == rs.DRO(eta1=1e-3, eta2=1.0, delta=0.1, p=2, ell=3, j=1, support=(-3.0, 3.0))
    assert (sampler.step_size, sampler.beta) == (0.01, 1e9)
    assert sampler.initial_state(settings.theta0).tolist() == [-2, -2, -2, -2, 0]
    assert {k: settings.trial[k] for k in ("runs", "n_iter", "tolerance")} == {
        "runs": 100,
        "n_iter": 25000,
        "tolerance": 0.01,
    }


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("eta2=abc", "eta2 must be a number"),
        ("eta2=-1", "eta2 must be above 0"),
        ("eta2=nan", "eta2 must be a finite number"),
        ("seed=-1", "seed must be at least 0"),
        ("seed=1.5", "seed must be a whole number"),
        ("force=maybe", "force must be true or false"),
        ("+data.typo=1", "data.typo is not a key of"),
        ("+sampler.typo=1", "sampler.typo is not a key of"),
        ("+trial.typo=1", "trial has an unknown key 'typo'"),
        ("+tracking.typo=1", "tracking has an unknown key"),
        ("+typo=1", "the config has an unknown key 'typo'"),
        ("~data.q", None),
        ("data.q=2", "data: q must be a contamination rate between 0 and 1"),
        ("data.n_train=0", "data: n_train must be at least 1"),
        ("dro.delta=0", "dro: delta must be above 0"),
        ("dro.eta1=-1", "dro: eta1 must be above 0"),
        ("dro.p=0.5", "dro: p must be at least 1"),
        ("dro.support=[-3,5]", "ell=4 is large enough"),
        ("dro.support=[-2.7,3]", "must be a multiple of"),
        ("dro.support=3", "must be a pair"),
        ("sampler.step_size=0", "sampler: step_size must be above 0"),
        ("sampler.beta=-1", "sampler: beta must be above 0"),
        ("sampler.engine=foo", "engine must be one of"),
        ("trial.runs=0", "trial.runs must be at least 1"),
        ("trial.n_iter=1.5", "trial.n_iter must be a whole number"),
        ("trial.thin=0", "trial.thin must be at least 1"),
        ("trial.workers=0", "trial.workers must be at least 1"),
        ("tracking.children=many", "tracking.children must be one of"),
        ("tracking=server", "tracking.uri must be given"),
        ("sampler._target_=os.system", "sampler._target_ must name something below"),
        ("sampler._target_=robust_sgld.nothing.At", "does not exist"),
    ],
)
def test_bad_values_get_one_sentence(override, words, tmp_path):
    def build():
        settings = Settings.of(composed(override, f"root={tmp_path}"))
        settings.make_sampler(settings.make_data())

    if words is None:  # leaving a key out takes the default of the target
        build()
        return
    with pytest.raises(rs.InvalidInput) as caught:
        build()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "outputs").exists() or not override.startswith("data")


def test_whole_numbers_may_be_written_as_floats():
    assert Settings.of(composed("trial.n_iter=1e4")).trial["n_iter"] == 10_000


def test_the_identity_of_a_trial_is_what_decides_its_numbers():
    base = Settings.of(composed()).config_hash
    same = ["trial.workers=1", "tracking=off", "force=true", "eta2=1", "+experiment=figure1", "root=/elsewhere"]
    other = ["eta2=2", "seed=1", "data.q=0.1", "trial.runs=10", "dro.delta=0.2", "sampler=sgld", "sampler.beta=1"]
    assert all(Settings.of(composed(o)).config_hash == base for o in same)
    hashes = {Settings.of(composed(o)).config_hash for o in other}
    assert base not in hashes
    assert len(hashes) == len(other)


def test_vanilla_does_not_depend_on_the_dro():
    hashes = {Settings.of(composed("sampler=sgld", o)).config_hash for o in ("eta2=1", "eta2=2", "dro.delta=0.3")}
    assert len(hashes) == 1
    assert "eta2" not in Settings.of(composed("sampler=sgld")).params


def test_params_are_flat_and_comparable():
    params = Settings.of(composed("eta2=2")).params
    assert params["eta2"] == 2
    assert params["sampler.name"] == "RobustSGLD"
    assert params["data.q"] == 0.3
    assert not any(isinstance(value, dict) for value in params.values())


def test_data_are_made_once_and_checked_when_read(tmp_path):
    settings = Settings.of(composed(f"root={tmp_path}", "data.n_train=20", "data.n_test=10"))
    first = settings.make_data()
    assert settings.data_path.exists()
    assert settings.make_data().digest == first.digest
    settings.data_path.write_bytes(b"not an npz")
    with pytest.raises(rs.InvalidInput, match="is not a stored data set"):
        settings.make_data()


def test_stable_hash_and_flatten():
    assert stable_hash({"a": 1, "b": [2.0]}) == stable_hash({"b": [2], "a": 1.0})
    assert stable_hash({"a": 1}) != stable_hash({"a": True})
    assert flatten({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a.b": 1, "a.c.d": 2, "e": 3}


def test_groups_are_folders_of_conf():
    folders = {path.name for path in CONFIG_DIR.iterdir() if path.is_dir()}
    assert folders == {*GROUPS, "backend", "experiment", "hydra"}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("dro.eta2=3", "eta2 is set at the top level"),
        ("root=''", "root must be the path of a folder"),
        ("root=null", "root must be the path of a folder"),
        ("seed=9223372036854775808", "seed must be below 2^63"),
        ("trial.n_iter=1e30", "trial.n_iter must be at most"),
        ("data.n_train=1e13", "n_train must be at most"),
        ("tracking.uri=''", "tracking.uri must be the address"),
        ("tracking.uri=sqlite://", "tracking.uri must be the address"),
        ("tracking.experiment=null", "tracking.experiment must be a name"),
        ("tracking.experiment=a/../b", "tracking.experiment must be a name"),
        ("tracking.artifacts=5", "tracking.artifacts must be the path"),
        ("+problem.dim=3", "problem.dim is not a key"),
        ("dro.support=[-1e308,1e308]", "must lie inside"),
    ],
)
def test_values_that_look_usable_but_are_not(override, words, tmp_path):
    root = [] if override.startswith("root") else [f"root={tmp_path}"]
    with pytest.raises(rs.InvalidInput) as caught:
        _build(composed(override, *root))
    assert words in str(caught.value)


def _build(cfg: DictConfig) -> rs.LangevinSampler:
    settings = Settings.of(cfg)
    return settings.make_sampler(settings.make_data())


def test_neighbouring_large_seeds_are_different_trials():
    hashes = {Settings.of(composed(f"seed={2**53 + i}")).config_hash for i in range(2)}
    assert len(hashes) == 2
