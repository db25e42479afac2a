"""Runs a recorded trial again from its MLflow run id, and says whether the numbers are the same.

python -m pipelines.rerun run_id=<MLflow run id> [tracking=… tracking.uri=… root=… trial.workers=… backend=…]
"""

from __future__ import annotations

import logging
import sys

import numpy as np
import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict

from pipelines.config import WHERE_IT_RUNS, Settings
from pipelines.stage import run_stage
from pipelines.train import find_or_run, open_store
from robust_sgld.checks import InvalidInput

log = logging.getLogger(__name__)

REPEATED = ("data", "problem", "dro", "sampler", "trial", "eta2", "seed", "experiment")
"""What is taken from the recorded config; where things are written comes from the command."""
COMPARED = ("states", "losses", "objective", "n_es", "loss_at_n_es", "final_loss")


def rerun(cfg: DictConfig) -> bool:
    """The same trial once more, as a run of its own; True if every number is identical to the recorded one."""
    if OmegaConf.is_missing(cfg, "run_id") or cfg.run_id is None:
        raise InvalidInput("run_id must be given: run_id=<MLflow run id of a trial>.")
    _refuse_changes()
    run_id = str(cfg.run_id)
    with open_dict(cfg):
        del cfg["run_id"]
    store = open_store(Settings.of(cfg))
    if store is None:
        raise InvalidInput("rerun needs a tracking store to find the run in; tracking=off has none.")
    recorded = store.trial(run_id)
    try:
        config = yaml.safe_load(recorded.config_text())
        repeated = {key: config[key] for key in REPEATED}
        repeated["trial"] = {**repeated["trial"], **{key: cfg.trial[key] for key in WHERE_IT_RUNS}}
    except (yaml.YAMLError, KeyError, TypeError):
        raise InvalidInput(f"run {run_id} has no config that can be run again.") from None
    again = OmegaConf.create({**OmegaConf.to_container(cfg, resolve=True), **repeated, "force": True})  # type: ignore[dict-item]
    settings = Settings.of(again)
    if recorded.tags.get("data_digest") != settings.make_data().digest:
        raise InvalidInput(f"run {run_id} was made from other data (digest {recorded.tags.get('data_digest')}).")
    new_id = find_or_run(settings).run_id
    assert new_id is not None  # there is a store
    old, new = recorded.result(), store.trial(new_id).result()
    different = [key for key in COMPARED if not np.array_equal(getattr(old, key), getattr(new, key), equal_nan=True)]
    if different:
        log.warning("run %s is not reproduced by %s: %s differ.", run_id, new_id, ", ".join(different))
    else:
        log.info("run %s is reproduced exactly by run %s.", run_id, new_id)
    return not different


def _refuse_changes() -> None:
    """A rerun repeats the recorded config: what would change it is an error, not ignored."""
    if not HydraConfig.initialized():
        return
    for override in HydraConfig.get().overrides.task:
        key = override.lstrip("+~").split("=")[0]
        if key.split(".")[0] in REPEATED and key not in [f"trial.{name}" for name in WHERE_IT_RUNS]:
            raise InvalidInput(f"{key} comes from the recorded run; a rerun takes no {key}=….")


def command(cfg: DictConfig) -> None:
    """`rerun` with an exit code: 1 if the numbers differ."""
    if not rerun(cfg):
        raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(run_stage(command, config_name="rerun"))
