"""From a composed config to checked objects: the only place that knows what the yaml keys mean."""

from __future__ import annotations

import functools
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import robust_sgld as rs
from pipelines.targets import call_target, check_keys, checked_allow, find_target, parameters
from robust_sgld.checks import InvalidInput, integer, positive, real
from robust_sgld.parallel import check_backend
from robust_sgld.rng import checked_seed
from robust_sgld.tracking import without_password

PROJECT_ROOT = Path(__file__).resolve().parents[1]
CONFIG_DIR = PROJECT_ROOT / "conf"

GROUPS = ("data", "problem", "dro", "sampler", "trial", "tracking")
TOP_LEVEL = ("eta2", "seed", "force", "experiment", "root", "allow")
TRIAL_KEYS = ("runs", "n_iter", "thin", "tolerance", "workers", "backend", "scheduler")
WHERE_IT_RUNS = ("workers", "backend", "scheduler")
"""Keys of a trial that decide no number."""
TRACKING_KEYS = ("uri", "artifacts", "experiment", "children")
CHILDREN = ("headline", "curves", "none")
MAX_N_ITER = 10**8
"""A run's path is held in memory."""
MAX_RUNS = 10**7
MAX_WORKERS = 4096


@functools.cache
def register_resolvers() -> None:
    """${project_root:}, ${folder:…} and ${unique:}, which keeps jobs of the same second apart."""
    OmegaConf.register_new_resolver("project_root", lambda: str(PROJECT_ROOT))
    OmegaConf.register_new_resolver("folder", absolute_folder)
    OmegaConf.register_new_resolver("unique", lambda: uuid.uuid4().hex[:6], use_cache=True)


def absolute_folder(path: Any) -> str:
    """A folder that the user named, from wherever the command was started."""
    if not isinstance(path, str) or not path.strip():
        raise InvalidInput(f"root must be the path of a folder, got {path!r}.")
    return str(Path(path).expanduser().resolve())


@dataclass(frozen=True)
class Tracking:
    """Where a trial is recorded; `uri` None is nowhere."""

    uri: str | None
    artifacts: Path | None
    experiment: str
    children: str


@dataclass(frozen=True)
class Settings:
    """A config that has passed every check which needs no data."""

    resolved: dict[str, Any]
    root: Path
    seed: int
    force: bool
    experiment: str
    trial: dict[str, Any]
    tracking: Tracking
    allow: tuple[str, ...]
    """packages that a `_target_` may name"""

    @classmethod
    def of(cls, cfg: DictConfig) -> Settings:
        """Types, ranges and unknown keys of the whole config, one sentence for the first thing that is wrong."""
        resolved = _resolve(cfg)
        _known("the config", resolved, (*GROUPS, *TOP_LEVEL))
        for group in GROUPS:
            if not isinstance(resolved.get(group), dict):
                raise InvalidInput(f"{group} must be chosen: {group}={' or '.join(choices(group))}.")
        _known("trial", resolved["trial"], TRIAL_KEYS)
        _known("tracking", resolved["tracking"], TRACKING_KEYS)
        trial = dict(resolved["trial"])
        for key in ("runs", "n_iter", "thin"):
            trial[key] = integer(f"trial.{key}", trial[key], least=1)
        trial["tolerance"] = positive("trial.tolerance", trial["tolerance"])
        if trial["workers"] is not None:
            trial["workers"] = _at_most(
                MAX_WORKERS, "trial.workers", integer("trial.workers", trial["workers"], least=1)
            )
        _at_most(MAX_RUNS, "trial.runs", trial["runs"])
        check_backend(trial["backend"], trial["scheduler"])
        tracking = resolved["tracking"]
        if tracking["children"] not in CHILDREN:
            raise InvalidInput(f"tracking.children must be one of {', '.join(CHILDREN)}, got {tracking['children']!r}.")
        if not isinstance(resolved["force"], bool):
            raise InvalidInput(f"force must be true or false, got {resolved['force']!r}.")
        positive("eta2", resolved["eta2"])
        if resolved["dro"].get("eta2", resolved["eta2"]) != resolved["eta2"]:
            raise InvalidInput("eta2 is set at the top level: eta2=… instead of dro.eta2=…")
        _at_most(MAX_N_ITER, "trial.n_iter", trial["n_iter"])
        _check_tracking(tracking)
        allow = checked_allow(resolved["allow"])
        for group in ("data", "problem", "dro", "sampler"):
            check_keys(group, resolved[group], allow)
        _check_theta0(resolved["sampler"].get("theta0"))
        if not isinstance(resolved["experiment"], str):
            raise InvalidInput(f"experiment must be a name, got {resolved['experiment']!r}.")
        return cls(
            resolved=resolved,
            root=Path(absolute_folder(resolved["root"])),
            seed=checked_seed(resolved["seed"]),
            force=resolved["force"],
            experiment=str(resolved["experiment"]),
            trial=trial,
            tracking=Tracking(
                uri=tracking["uri"],
                artifacts=Path(tracking["artifacts"]).resolve() if tracking["artifacts"] else None,
                experiment=str(tracking["experiment"]),
                children=tracking["children"],
            ),
            allow=allow,
        )

    @property
    def uses_dro(self) -> bool:
        """Whether the sampler takes a DRO at all; vanilla SGLD does not."""
        return "dro" in parameters(find_target("sampler", self.resolved["sampler"], self.allow))

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the numbers of a trial, and nothing else (not the workers, not where it is recorded)."""
        kept = ["data", "problem", "sampler", *(["dro"] if self.uses_dro else [])]
        trial = {k: v for k, v in self.trial.items() if k not in WHERE_IT_RUNS}
        return {**{g: self.resolved[g] for g in kept}, "trial": trial, "seed": self.seed, "version": rs.__version__}

    @property
    def config_hash(self) -> str:
        """Two configs with the same hash give the same numbers."""
        return stable_hash(self.identity)

    @property
    def params(self) -> dict[str, Any]:
        """Flat and comparable, as MLflow lists them; eta2 at the top, as it is typed."""
        named = {"eta2": self.resolved["eta2"], "seed": self.seed} if self.uses_dro else {"seed": self.seed}
        flat = flatten({k: v for k, v in self.identity.items() if k not in ("seed", "version")})
        flat = {key.replace("_target_", "name"): value for key, value in flat.items() if key != "dro._target_"}
        return named | {k: str(v).rsplit(".", 1)[-1] if k.endswith(".name") else v for k, v in flat.items()}

    def make_data(self, *, keep: bool = True) -> rs.Dataset:
        """The data set: from outputs/data where a stage has put it, else made and (unless `keep=False`) put there."""
        if self.data_path.exists():
            return rs.Dataset.load(self.data_path)
        data: rs.Dataset = call_target("data", self.resolved["data"], self.allow)
        if keep:
            self.keep_data(data)
        return data

    def keep_data(self, data: rs.Dataset) -> None:
        """Puts the data set of this config where `make_data` finds it."""
        if not self.data_path.exists():
            self.data_path.parent.mkdir(parents=True, exist_ok=True)
            data.save(self.data_path)

    @property
    def data_path(self) -> Path:
        """Where the data set of this config lives."""
        key = {**self.resolved["data"], "version": rs.__version__}
        if isinstance(file := key.get("path"), str) and Path(file).expanduser().is_file():
            # a file that has changed is another data set
            with Path(file).expanduser().open("rb") as content:
                key["content"] = hashlib.file_digest(content, "sha256").hexdigest()
        return self.root / "outputs" / "data" / f"{stable_hash(key)}.npz"

    def trial_folder(self, data: rs.Dataset) -> Path:
        """Where the trial of this config on these data lives until the store has it; another store, another folder."""
        target = stable_hash([data.digest, without_password(self.tracking.uri or ""), self.tracking.experiment])
        return self.root / "outputs" / "trials" / f"{self.config_hash}-{target}"

    @property
    def text(self) -> str:
        """The resolved config as yaml, fit to be shown: without passwords."""
        tracking = self.resolved["tracking"]
        if tracking["uri"] is not None:
            tracking = {**tracking, "uri": without_password(tracking["uri"])}
        return OmegaConf.to_yaml(OmegaConf.create({**self.resolved, "tracking": tracking}))

    def make_sampler(self, data: rs.Dataset) -> rs.LangevinSampler:
        """The sampler, on its problem and, where it takes one, its DRO."""
        problem = call_target("problem", self.resolved["problem"], self.allow, dim=data.dim)
        settings = {k: v for k, v in self.resolved["sampler"].items() if k != "theta0"}
        extra = {"dro": call_target("dro", self.resolved["dro"], self.allow)} if self.uses_dro else {}
        sampler: rs.LangevinSampler = call_target("sampler", settings, self.allow, problem=problem, **extra)
        return sampler

    @property
    def theta0(self) -> Any:
        """The start, as `LangevinSampler.initial_state` takes it."""
        return self.resolved["sampler"]["theta0"]


def choices(group: str) -> list[str]:
    """The names that can be typed for a group."""
    return sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))


def stable_hash(value: Any) -> str:
    """12 hexadecimal digits of a nested value; 1 and 1.0 are the same number."""
    return hashlib.sha256(json.dumps(_canonical(value), sort_keys=True).encode()).hexdigest()[:12]


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} to {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _canonical(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(v) for v in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    return value


def _resolve(cfg: DictConfig) -> dict[str, Any]:
    try:
        resolved = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        key = getattr(error, "full_key", None) or "a key"
        if "Missing mandatory value" in str(error):
            raise InvalidInput(f"{key} must be given on the command line: {key}=…") from None
        raise InvalidInput(f"{key}: {str(error).splitlines()[0]}") from None
    assert isinstance(resolved, dict)
    return {str(k): v for k, v in resolved.items()}


def _check_tracking(tracking: Mapping[str, Any]) -> None:
    uri, artifacts, experiment = tracking["uri"], tracking["artifacts"], tracking["experiment"]
    if uri is not None and (not isinstance(uri, str) or not uri.strip() or uri.rstrip("/") == "sqlite:"):
        raise InvalidInput(f"tracking.uri must be the address of a store, or tracking=off for none, got {uri!r}.")
    if artifacts is not None and (not isinstance(artifacts, str) or not artifacts.strip()):
        raise InvalidInput(f"tracking.artifacts must be the path of a folder, got {artifacts!r}.")
    if not isinstance(experiment, str) or not experiment.strip(" .") or "/" in experiment:
        raise InvalidInput(f"tracking.experiment must be a name without '/', got {experiment!r}.")


def _at_most(largest: int, name: str, value: int) -> int:
    if value > largest:
        raise InvalidInput(f"{name} must be at most {largest}, got {value}.")
    return value


def _check_theta0(theta0: Any) -> None:
    numbers = theta0 if isinstance(theta0, list) and theta0 else [theta0]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise InvalidInput(f"sampler.theta0 must be a number or a list of numbers, got {theta0!r}.")
        real("sampler.theta0", number)


def _known(where: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        raise InvalidInput(f"{where} has an unknown key {unknown[0]!r}; known are {', '.join(known)}.")
    missing = [key for key in known if key not in given]
    if missing:
        raise InvalidInput(f"{where} lacks the key {missing[0]!r}.")
