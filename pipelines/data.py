"""Stage `data`: makes the data set of the config, says what it is, keeps it under outputs/data."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from omegaconf import DictConfig

import robust_sgld as rs
from pipelines.config import Settings
from pipelines.stage import run_stage
from robust_sgld.trial import known_truth

log = logging.getLogger(__name__)


def make_data(cfg: DictConfig) -> dict[str, Any]:
    """Makes (or finds) the data set; returns the facts that identify it, which also stand beside it as JSON."""
    settings = Settings.of(cfg)
    data = settings.make_data(keep=False)
    sampler = settings.make_sampler(data)
    sampler.check_data(f"{data.name} train", data.train, data.columns)
    settings.keep_data(data)
    facts: dict[str, Any] = {
        "name": data.name,
        "digest": data.digest,
        "columns": list(data.columns),
        "n_train": len(data.train),
        "n_test": len(data.test),
    }
    if data.outlier is not None:
        facts["outlier_rows"] = int(data.outlier.sum())
    truth = known_truth(data, sampler.problem)
    if truth is not None:
        facts["reference_mse"] = float(rs.test_losses(truth, data.test, sampler.problem))
    path = settings.data_path
    path.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")
    log.info("%s: %s", path, ", ".join(f"{k} {v}" for k, v in facts.items() if k != "columns"))
    return facts


if __name__ == "__main__":
    sys.exit(run_stage(make_data))
