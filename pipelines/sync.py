"""Stage `sync`: delivers finished trials that could not be recorded, because their store was gone; samples nothing.

python -m pipelines.sync [root=…] [tracking=server tracking.uri=…]

Each goes to the store that it was meant for. A password is never kept: where that store's address has one, it is given
again as tracking.uri.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import yaml
from omegaconf import DictConfig, OmegaConf

from pipelines.config import Settings
from pipelines.stage import run_stage
from pipelines.train import find_or_run
from robust_sgld.checks import InvalidInput
from robust_sgld.tracking import CONFIG_FILE, TrackingLost, waiting, without_password

log = logging.getLogger(__name__)


def sync(cfg: DictConfig) -> int:
    """Delivers what waits below root/outputs/trials; returns how many trials are recorded now."""
    given = Settings.of(cfg)
    finished, unfinished = waiting(given.root / "outputs" / "trials")
    kept: list[str] = []
    delivered = 0
    for folder in finished:
        try:
            settings = _settings(folder.path, given)
            if settings.trial_folder(settings.make_data()) != folder.path:
                raise InvalidInput("its data or the version of robust_sgld have changed since it was sampled.")
            delivered += find_or_run(settings).run_id is not None
        except (InvalidInput, TrackingLost) as error:
            kept.append(f"{folder.path.name}: {error}")
    log.info("%d of %d waiting trials are recorded.", delivered, len(finished))
    if unfinished:
        log.info("%d unfinished trials are continued by the commands that began them.", unfinished)
    if kept:
        raise TrackingLost("; ".join(kept))
    return delivered


def _settings(folder: Path, given: Settings) -> Settings:
    """The config that the trial was begun with, below the root of this command."""
    try:
        config = yaml.safe_load((folder / CONFIG_FILE).read_text())
        uri = config["tracking"]["uri"]
        config |= {"root": str(given.root), "force": True, "allow": given.resolved["allow"]}
    except (yaml.YAMLError, OSError, KeyError, TypeError, UnicodeDecodeError):
        raise InvalidInput(
            f"{folder / CONFIG_FILE} is damaged; the command that began the trial continues it."
        ) from None
    if given.tracking.uri is not None and without_password(given.tracking.uri) == uri:
        config["tracking"]["uri"] = given.tracking.uri
    elif uri is not None and "***" in uri:
        raise InvalidInput(
            f"the password of {uri} is not kept; give the address again: tracking=server tracking.uri=…."
        )
    return Settings.of(OmegaConf.create(config))


if __name__ == "__main__":
    sys.exit(run_stage(sync))
