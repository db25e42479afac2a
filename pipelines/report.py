"""Stage `report`: reads finished trials out of MLflow, writes tables, figures and one HTML file; never samples.

python -m pipelines.report [trial=smoke] [tracking.experiment=…]

It takes the trials whose runs have trial.n_iter updates.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

import yaml
from omegaconf import DictConfig, OmegaConf

from pipelines.config import Settings
from pipelines.stage import run_stage
from pipelines.train import git_facts, open_store
from robust_sgld.checks import InvalidInput
from robust_sgld.data import Dataset
from robust_sgld.report import ReportTrial, build_report
from robust_sgld.report.real_data import SCORES
from robust_sgld.report.sections import Part, real_data_part
from robust_sgld.tracking import RecordedTrial, Store

log = logging.getLogger(__name__)


def report(cfg: DictConfig) -> Path:
    """Builds outputs/report from the store of the config and logs it there; returns the HTML file."""
    settings = Settings.of(cfg)
    store = open_store(settings)
    if store is None:
        raise InvalidInput("the report reads MLflow; tracking=off has nothing to read.")
    newest: dict[tuple[str, str], RecordedTrial] = {}
    for trial in store.trials(f"params.`trial.n_iter` = '{settings.trial['n_iter']}'"):
        newest.setdefault((trial.tags.get("config_hash", trial.run_id), trial.tags["data_digest"]), trial)
    further = [part for name in SCORES if (part := real_data_section(store, settings, name)) is not None]
    if not newest and not further:
        raise InvalidInput(
            f"there is no finished trial of {settings.trial['n_iter']} updates in experiment "
            f"{settings.tracking.experiment!r} yet; python -m pipelines.train makes one."
        )
    logging.getLogger("robust_sgld.engines").setLevel(logging.WARNING)  # which engine sums a figure is no news
    began = time.perf_counter()
    trials = [as_report_trial(trial) for trial in newest.values()]
    out = settings.root / "outputs" / "report"
    files = build_report(trials, settings.make_data(), out, further=further)
    run_id = store.log_folder("report", "report", out, {"trials": str(len(trials)), **git_facts()})
    store.client.log_metric(run_id, "report_seconds", time.perf_counter() - began)
    log.info("report on %d trials: %s (also MLflow run %s)", len(trials), files.html, run_id)
    return files.html


def real_data_section(store: Store, settings: Settings, experiment: str) -> Part | None:
    """The section on the trials of `+experiment=<a real data set>`, with the data of their splits; None without any."""
    recorded = store.trials(f"tags.experiment = '{experiment}'")
    data: dict[str, Dataset] = {}
    for trial in recorded:
        if (digest := trial.tags["data_digest"]) not in data:
            config = {**settings.resolved, "data": yaml.safe_load(trial.config_text())["data"]}
            made = Settings.of(OmegaConf.create(config)).make_data()
            data |= {made.digest: made} if made.digest == digest else {}
    trials = [as_report_trial(trial) for trial in recorded if trial.tags["data_digest"] in data]
    return real_data_part(experiment, trials, data)


def as_report_trial(trial: RecordedTrial) -> ReportTrial:
    """With its parameters as numbers again."""
    return ReportTrial(
        result=trial.result(),
        params={key: yaml.safe_load(value) for key, value in trial.params.items()},
        run_id=trial.run_id,
        run_name=trial.name,
        experiment=trial.tags.get("experiment", ""),
        data_digest=trial.tags["data_digest"],
        metrics=trial.metrics,
    )


if __name__ == "__main__":
    sys.exit(run_stage(report))
