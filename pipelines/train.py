"""Stage `train`: one trial, sampled and tracked. `python -m pipelines.train --help` lists the groups and overrides."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

import robust_sgld as rs
from pipelines.config import CONFIG_DIR, PROJECT_ROOT, Settings, Tracking, stable_hash
from pipelines.progress import progress
from pipelines.stage import run_stage
from robust_sgld.data import PAPER_Q
from robust_sgld.shards import ShardStore
from robust_sgld.tracking import Store, TrackingLost, TrialFolder, TrialRecord, TrialRecorder

log = logging.getLogger(__name__)

USUAL = {"data": "paper", "problem": "sigmoid_regression", "sampler": "robust_sgld", "dro": "paper"}
SAID_ELSEWHERE = {"data": ("q", "support"), "problem": (), "dro": ("eta2",), "sampler": ("engine",)}
SQUARED = ("SigmoidRegression", "SquaredLoss")
"""Problems whose loss is a mean squared error."""
SYMBOLS = {"delta": "δ", "eta1": "η1", "step_size": "λ", "beta": "β", "theta0": "θ0"}

_done_in_this_sweep: dict[str, float] = {}
_checked_data: dict[str, rs.Dataset] = {}
_checked_stores: set[Tracking] = set()


@dataclass(frozen=True)
class Outcome:
    """What a trial came to: its mean final test loss, and the MLflow run that has it (None for tracking=off)."""

    value: float
    run_id: str | None


def train(cfg: DictConfig) -> float:
    """Runs (or finds complete) the trial of the config; returns its mean final test loss, for a sweeper to minimise."""
    return find_or_run(Settings.of(cfg)).value


def prepared(settings: Settings, data: rs.Dataset) -> rs.LangevinSampler:
    """The sampler of the config, after every check that can be made before the first update."""
    sampler = settings.make_sampler(data)
    sampler.check_data(f"{data.name} train", data.train, data.columns)
    try:
        sampler.initial_state(settings.theta0)
    except rs.InvalidInput as error:
        raise rs.InvalidInput(f"sampler.{error}") from None
    return sampler


def check(cfg: DictConfig) -> None:
    """What can be known to be wrong with a trial before anything runs, whether its store answers included."""
    settings = Settings.of(cfg)
    key = str(settings.data_path)
    if key not in _checked_data:
        _checked_data.clear()  # points of a sweep that differ in their data follow each other
        _checked_data[key] = settings.make_data(keep=False)
    prepared(settings, _checked_data[key])
    if settings.tracking not in _checked_stores:
        open_store(settings)
        _checked_stores.add(settings.tracking)


def find_or_run(settings: Settings) -> Outcome:
    """The trial from the store where it is complete; else run, or continued where an earlier attempt stopped."""
    data = settings.make_data(keep=False)
    sampler = prepared(settings, data)
    name = run_name(settings, sampler)
    if not settings.uses_dro and _swept("eta2"):
        log.info("eta2 does nothing for sampler=%s: every value of it is the same trial.", sampler.name)
    lost: Exception | None = None
    try:
        store = open_store(settings)
    except rs.InvalidInput as error:
        if not _swept(""):  # the store of a sweep has answered before its first job: it is the store that is gone
            raise
        store, lost = None, error
    settings.keep_data(data)
    folder = TrialFolder(settings.trial_folder(data))
    with folder.held(name):
        if store is not None:
            _clear_what_is_recorded(store, folder)
        if lost is None and not settings.force:
            found = _already(settings, data, store, name)
            if found is not None:
                return found
        folder.begin(settings.text)
        _keep_config(settings)
        record = _record(settings, sampler)
        recorder = None if store is None else TrialRecorder(store, record, data, folder.journal["key"])
        try:
            result = _run(settings, data, sampler, folder, recorder, lost)
        except TrackingLost as error:
            raise TrackingLost(
                f"{name} is sampled and kept in {folder.path}, but not recorded: {error} "
                "`make sync`, or the same command again, delivers it."
            ) from None
        if store is None:
            _keep_untracked(result)
        folder.discard()
    headline = result.headline()
    _say(name, headline, settings)
    _done_in_this_sweep[settings.config_hash] = headline["final_mse_mean"]
    if recorder is not None:
        log.info("recorded as MLflow run %s", recorder.run_id)
    return Outcome(headline["final_mse_mean"], None if recorder is None else recorder.run_id)


def _run(
    settings: Settings,
    data: rs.Dataset,
    sampler: rs.LangevinSampler,
    folder: TrialFolder,
    recorder: TrialRecorder | None,
    lost: Exception | None,
) -> rs.TrialResult:
    """Samples what is missing, puts the result on disk, and records it; `lost` is why it cannot be recorded."""
    with ExitStack() as stack:
        if recorder is not None:
            try:
                stack.enter_context(recorder)
            except TrackingLost as error:
                if not _swept(""):
                    folder.discard_unless_begun()
                    raise rs.InvalidInput(str(error)) from None
                lost = error
        if lost is not None:
            log.warning("%s Sampling goes on.", lost)
        result = folder.result()
        if result is None:
            result = _sample(settings, data, sampler, folder)
            folder.keep(result)
        if lost is not None:
            raise TrackingLost(str(lost))
        if recorder is not None:
            if not folder.journal.get("delivery"):
                numbers = prediction_numbers(result, sampler, data) | theory_numbers(result, sampler, data)
                folder.delivery({**result.headline(), **numbers, **sampler.numbers()})
            numbers, at = folder.delivery({})
            figures = trial_figures(settings, result, sampler, data, recorder.record.name)
            recorder.log(result, sampler, numbers, figures, at)
    return result


def _record(settings: Settings, sampler: rs.LangevinSampler) -> TrialRecord:
    return TrialRecord(
        name=run_name(settings, sampler),
        params=settings.params,
        tags={
            "sampler": sampler.name,
            "engine": sampler.engine_name,
            "experiment": settings.experiment,
            "config_hash": settings.config_hash,
            **git_facts(),
        },
        config_text=settings.text,
        children=settings.tracking.children,
        color=run_color(settings, sampler),
    )


def _clear_what_is_recorded(store: Store, folder: TrialFolder) -> None:
    """A process killed after the store had everything leaves a folder that no trial needs."""
    key = folder.journal.get("key")
    if key and store.trials(f"tags.trial_key = '{key}'"):
        folder.discard()


def _keep_config(settings: Settings) -> None:
    folder = _run_folder()
    if folder is not None:
        (folder / "config.yaml").write_text(settings.text)


def _keep_untracked(result: rs.TrialResult) -> None:
    folder = _run_folder()
    if folder is not None:
        result.save(folder / "trial.npz")
        log.info("not tracked; the trial is in %s", folder / "trial.npz")


def open_store(settings: Settings) -> Store | None:
    """The tracking store of the config, or None for tracking=off."""
    tracking = settings.tracking
    return None if tracking.uri is None else Store(tracking.uri, tracking.experiment, tracking.artifacts)


def run_name(settings: Settings, sampler: rs.LangevinSampler) -> str:
    """What tells trials apart in a list, e.g. "robust_sgld η2=1.0 q=0.3 δ=0.05"."""
    eta2 = [f"η2={float(settings.resolved['eta2'])}"] if settings.uses_dro else []
    data = settings.resolved["data"]
    q = [f"q={float(data['q'])}"] if "q" in data else []
    return " ".join([sampler.name, *eta2, *q, *unusual(settings)])


def run_color(settings: Settings, sampler: rs.LangevinSampler) -> str:
    """The colour of a trial in MLflow: one for each sampler and η2, another for each unusual q, δ, j or p."""
    from robust_sgld.report.style import trial_color  # matplotlib: slow to import

    q = settings.resolved["data"].get("q", PAPER_Q)
    variant = " ".join([*([f"q={float(q)}"] if q != PAPER_Q else []), *unusual(settings)])
    return trial_color(sampler.name, settings.resolved["eta2"] if settings.uses_dro else None, variant)


def unusual(settings: Settings) -> list[str]:
    """What is not as in the config files, e.g. ["δ=0.05", "seed=7"], and the data where not the paper's."""
    found = [f"seed={settings.seed}"] if settings.seed else []
    for group in ("data", "problem", "sampler", *(["dro"] if settings.uses_dro else [])):
        file = _config_file(settings, group)
        found += [f"{group}={file.stem}"] if group in ("data", "problem") and file.stem != USUAL[group] else []
        usual = _values(file)
        for key, value in settings.resolved[group].items():
            if key in SAID_ELSEWHERE[group] or stable_hash(value) == stable_hash(usual.get(key)):
                continue
            found.append(f"{SYMBOLS.get(key, f'data.{key}' if key == 'seed' else key)}={_shown(value)}")
    return found


def _shown(value: Any) -> str:
    """A value as part of a name: a long list by its ends."""
    return f"[{value[0]}, …, {value[-1]}]" if isinstance(value, list) and len(value) > 6 else str(value)


def _config_file(settings: Settings, group: str) -> Path:
    """The yaml of the group that the config is nearest to: of the same target, with the most values in common."""
    node = settings.resolved[group]
    files = [f for f in sorted((CONFIG_DIR / group).glob("*.yaml")) if _values(f).get("_target_") == node["_target_"]]
    alike = {file: sum(_values(file).get(key) == value for key, value in node.items()) for file in files}
    return max(alike, key=alike.__getitem__, default=CONFIG_DIR / group / f"{USUAL[group]}.yaml")


def _values(file: Path) -> dict[str, Any]:
    values = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def prediction_numbers(result: rs.TrialResult, sampler: rs.LangevinSampler, data: rs.Dataset) -> dict[str, float]:
    """The mean squared error of the final predictions, which trials of different losses can be compared by."""
    final = result.theta[:, -1]
    errors = rs.LossEvaluator(sampler.problem, data.test).prediction_errors(final[np.isfinite(final).all(axis=1)])
    return {"final_prediction_mse": float(errors.mean())} if np.isfinite(errors).any() else {}


def theory_numbers(result: rs.TrialResult, sampler: rs.LangevinSampler, data: rs.Dataset) -> dict[str, float]:
    """Measured excess risk, robust value, λ/λ_max and error of the grid; none where the grid is too large for them."""
    from robust_sgld.theory import measured_excess_risk, quadrature_numbers, trial_quadrature

    if not isinstance(sampler, rs.RobustSGLD):
        return {}
    began = time.perf_counter()
    try:
        numbers = measured_excess_risk(result, sampler, data).headline()
    except rs.InvalidInput as error:
        log.info("no excess risk is measured: %s", error)
        return {}
    numbers |= quadrature_numbers(trial_quadrature(result, sampler, data.train), sampler.dro.j)
    return {**numbers, "theory_seconds": time.perf_counter() - began}


def git_facts() -> dict[str, str]:
    """The commit that made a trial, and whether the tree differed from it; empty outside a checkout."""
    try:
        call = ["git", "-C", str(PROJECT_ROOT)]
        commit = subprocess.run([*call, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*call, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"git.commit": commit, "git.dirty": str(bool(changed.strip())).lower()}


def trial_figures(
    settings: Settings, result: rs.TrialResult, sampler: rs.LangevinSampler, data: rs.Dataset, name: str
) -> dict[str, Any]:
    """The pictures that a trial has of its own; the report compares trials."""
    from robust_sgld.report import ReportTrial, figures
    from robust_sgld.report.theory_page import trial_worst_case

    trial = ReportTrial(result, settings.params, "", name, settings.experiment, data.digest)
    drawn = {"figures/test_loss.png": figures.trial_losses(trial)}
    try:
        drawn["figures/worst_case.png"] = trial_worst_case(result, sampler, data)
    except rs.InvalidInput as error:
        log.debug("no worst case is drawn: %s", error)
    return drawn


def _already(settings: Settings, data: rs.Dataset, store: Store | None, name: str) -> Outcome | None:
    if store is not None:
        complete = store.complete(settings.config_hash, data.digest)
        if complete is not None:
            log.info("%s is complete as MLflow run %s: skipped (force=true runs it again).", name, complete.run_id)
            return Outcome(complete.metrics.get("final_mse_mean", float("nan")), complete.run_id)
    elif _swept("") and settings.config_hash in _done_in_this_sweep:
        log.info("%s was done in this sweep: skipped.", name)
        return Outcome(_done_in_this_sweep[settings.config_hash], None)
    return None


def _sample(settings: Settings, data: rs.Dataset, sampler: rs.LangevinSampler, folder: TrialFolder) -> rs.TrialResult:
    trial, name = settings.trial, run_name(settings, sampler)
    log.info("%s: %d runs of %d updates, engine %s", name, trial["runs"], trial["n_iter"], sampler.engine_name)
    shards = ShardStore(folder.shards, {"config_hash": settings.config_hash, "version": rs.__version__})
    with progress(name, trial["runs"]) as report:
        result = rs.run_trial(
            sampler, data, seed=settings.seed, theta0=settings.theta0, progress=report, shards=shards, **trial
        )
    if (result.diverged_at > 0).all():
        first = int(result.diverged_at.min())
        raise rs.InvalidInput(f"every run diverged, the first at update {first}; a smaller sampler.step_size may help.")
    return result


def _say(name: str, headline: dict[str, float], settings: Settings) -> None:
    reached = round(headline["reached_fraction"] * settings.trial["runs"])
    n_es = headline["n_es"]
    log.info(
        "%s: reached the band in %d/%d runs, n_es %s, final %s %.6f ± %.6f, %.3f s a run",
        name,
        reached,
        settings.trial["runs"],
        "NA" if n_es != n_es else int(n_es),
        "MSE" if settings.resolved["problem"]["_target_"].endswith(SQUARED) else "loss",
        headline["final_mse_mean"],
        headline["final_mse_std"],
        headline["seconds_per_run"],
    )
    if headline["diverged"]:
        log.warning("%s: %d runs diverged; runs.csv says which and where.", name, int(headline["diverged"]))


def _swept(key: str) -> bool:
    """Whether this is a job of a sweep in which that key is overridden (any key for "")."""
    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return False
    return any(
        override.lstrip("+").startswith(f"{key}=" if key else "") for override in HydraConfig.get().overrides.task
    )


def _run_folder() -> Path | None:
    return Path(HydraConfig.get().runtime.output_dir) if HydraConfig.initialized() else None


if __name__ == "__main__":
    sys.exit(run_stage(train, check=check))
