"""Stage `tune`: chooses η2 and δ without a clean test set. python -m pipelines.tune [data=… tune.trials=20 …]

Every trial of the search is a tracked trial on all training rows, with the losses of held-out rows (`cv_mean`,
`cv_trimmed`, `cv_median`) beside its other numbers. The study is an Optuna study in outputs/tune, which goes on
where it stopped.
"""

from __future__ import annotations

import csv
import logging
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf, open_dict

from pipelines.config import Settings, stable_hash
from pipelines.stage import run_stage
from pipelines.train import open_store, train
from robust_sgld.checks import InvalidInput, integer, positive, rate
from robust_sgld.selection import CRITERIA, criteria, held_out_losses

if TYPE_CHECKING:
    import optuna

log = logging.getLogger(__name__)

KEYS = ("trials", "eta2", "delta", "folds", "runs", "criterion", "trim", "study")


@dataclass(frozen=True)
class Search:
    """The checked `tune` node."""

    trials: int
    eta2: tuple[float, float]
    delta: tuple[float, float]
    folds: int
    runs: int
    criterion: str
    trim: float
    study: str | None

    @classmethod
    def of(cls, node: Any) -> Search:
        """Types and ranges, one sentence for the first thing that is wrong."""
        given = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        if not isinstance(given, dict) or set(given) != set(KEYS):
            raise InvalidInput(f"tune must have the keys {', '.join(KEYS)} and no others.")
        if given["criterion"] not in CRITERIA:
            raise InvalidInput(f"tune.criterion must be one of {', '.join(CRITERIA)}, got {given['criterion']!r}.")
        study = given["study"]
        if study is not None and (not isinstance(study, str) or not study.strip() or "/" in study):
            raise InvalidInput(f"tune.study must be a name without '/', got {study!r}.")
        return cls(
            trials=integer("tune.trials", given["trials"], least=1),
            eta2=_bounds("tune.eta2", given["eta2"]),
            delta=_bounds("tune.delta", given["delta"]),
            folds=integer("tune.folds", given["folds"], least=2),
            runs=integer("tune.runs", given["runs"], least=1),
            criterion=given["criterion"],
            trim=rate("tune.trim", given["trim"], "share"),
            study=study,
        )


def tune(cfg: DictConfig) -> dict[str, float]:
    """Runs the study of the config up to tune.trials trials; returns the eta2 and delta that it chooses."""
    search = Search.of(cfg.tune)
    try:
        import optuna
    except ImportError:
        raise InvalidInput("the stage needs the extra: pip install 'robust-sgld[tune]'.") from None
    with open_dict(cfg):
        del cfg["tune"]
    settings = Settings.of(cfg)
    if not settings.uses_dro:
        raise InvalidInput("there is nothing to tune: sampler=sgld has neither eta2 nor delta.")
    study = open_study(settings, search)
    missing = search.trials - len(finished(study))
    log.info("study %s: %d of %d trials are done.", study.study_name, search.trials - max(missing, 0), search.trials)
    for _ in range(missing):
        trial = study.ask()
        try:
            value = evaluate(cfg, search, trial)
        except BaseException:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            raise
        study.tell(trial, value)
    found = choices_of(study)
    path = settings.root / "outputs" / "tune" / f"{study.study_name}.csv"
    _write(path, study)
    log.info("%d trials in %s; chosen by", len(finished(study)), path)
    for name, row in found.items():
        log.info("  %-18s eta2=%-8.4g dro.delta=%-8.4g test loss %.6g", name, *row.values())
    return found[search.criterion]


def open_study(settings: Settings, search: Search) -> optuna.Study:
    """The study of this question in outputs/tune; trials that an interruption left open are closed as failed."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder = settings.root / "outputs" / "tune"
    folder.mkdir(parents=True, exist_ok=True)
    name = search.study or _question(settings, search)
    # after an interruption the search goes on with numbers that it has not drawn yet
    study = optuna.create_study(
        study_name=name, storage=f"sqlite:///{folder / 'studies.db'}", direction="minimize", load_if_exists=True
    )
    study.sampler = optuna.samplers.TPESampler(seed=settings.seed + len(study.trials))
    for trial in study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def finished(study: optuna.Study) -> list[Any]:
    """The trials that have a value."""
    import optuna

    return study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])


def choices_of(study: optuna.Study) -> dict[str, dict[str, float]]:
    """What each criterion would choose of the study's trials, and the test loss there; `oracle` looks at the test loss.

    The oracle is for comparison: where the test rows are clean it knows what no user does.
    """
    found = {}
    for name in (*CRITERIA, "oracle"):
        key = "test_loss" if name == "oracle" else name
        best = min(finished(study), key=lambda trial: _rank(trial.user_attrs[key]))
        eta2, delta = parameters(best)
        found[name] = {"eta2": eta2, "delta": delta, "test_loss": best.user_attrs["test_loss"]}
    return found


def parameters(trial: Any) -> tuple[float, float]:
    """η2 and δ of a trial, to three digits: more would be noise in every name and table."""
    eta2, delta = (float(f"{trial.params[name]:.3g}") for name in ("eta2", "delta"))
    return eta2, delta


def evaluate(cfg: DictConfig, search: Search, trial: optuna.Trial) -> float:
    """One η2 and δ: the tracked trial, the held-out losses beside it, the criterion's value."""
    trial.suggest_float("eta2", *search.eta2, log=True)
    trial.suggest_float("delta", *search.delta, log=True)
    eta2, delta = parameters(trial)
    chosen = OmegaConf.merge(cfg, {"eta2": eta2, "dro": {"delta": delta, "eta2": eta2}})
    assert isinstance(chosen, DictConfig)
    settings = Settings.of(chosen)
    data = settings.make_data()
    losses = held_out_losses(
        settings.make_sampler(data),
        data.train,
        folds=search.folds,
        runs=search.runs,
        n_iter=settings.trial["n_iter"],
        theta0=settings.theta0,
        seed=settings.seed,
        workers=settings.trial["workers"],
    )
    scores = criteria(losses, search.trim)
    trial.set_user_attr("test_loss", train(chosen))
    store = open_store(settings)
    recorded = None if store is None else store.complete(settings.config_hash, data.digest)
    if store is not None and recorded is not None:
        for name, value in scores.items():
            store.client.log_metric(recorded.run_id, f"cv_{name}", value)
        store.client.set_tag(recorded.run_id, "study", trial.study.study_name)
        trial.set_user_attr("run_id", recorded.run_id)
    for name, value in scores.items():
        trial.set_user_attr(name, value)
    log.info("trial %d: eta2=%.4g delta=%.4g, held-out %s", trial.number, eta2, delta, scores)
    return scores[search.criterion]


def _question(settings: Settings, search: Search) -> str:
    """A name for everything that decides the study but η2, δ and how many trials it has."""
    identity = {**settings.identity, "dro": {**settings.identity["dro"], "eta2": None, "delta": None}}
    question = {"identity": identity, "ranges": [search.eta2, search.delta], "folds": search.folds}
    question |= {"runs": search.runs, "criterion": search.criterion, "trim": search.trim}
    return f"{settings.resolved['data'].get('name', 'study')}-{stable_hash(question)}"


def _rank(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _write(path: Path, study: optuna.Study) -> None:
    names = (*CRITERIA, "test_loss", "run_id")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["trial", "eta2", "delta", *names])
        for trial in finished(study):
            values = [trial.user_attrs.get(name, "") for name in names]
            writer.writerow([trial.number, *parameters(trial), *values])


def _bounds(name: str, value: Any) -> tuple[float, float]:
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a pair [low, high], got {value!r}.") from None
    low, high = positive(name, low), positive(name, high)
    if low > high:
        raise InvalidInput(f"{name} must have low <= high, got [{low:g}, {high:g}].")
    return low, high


if __name__ == "__main__":
    sys.exit(run_stage(tune, config_name="tune"))
