"""Where a config may write: below outputs/ and mlruns/ of its root, and elsewhere only if the command line says so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from pipelines.config import PROJECT_ROOT, absolute_folder
from robust_sgld.checks import InvalidInput


def check_paths(cfg: DictConfig, run_folder: Path, overrides: Iterable[str]) -> None:
    """Refuses a yaml that points elsewhere; what is typed is asked for."""
    asked = {override.lstrip("+").split("=")[0] for override in overrides}
    root = Path(absolute_folder(OmegaConf.select(cfg, "root")))
    if "root" not in asked and not root.is_relative_to(PROJECT_ROOT):
        raise InvalidInput(f"root is set to {root} by a config file; give root={root} on the command line to allow it.")
    uri = str(OmegaConf.select(cfg, "tracking.uri", default=None, throw_on_missing=False) or "")
    database = uri.removeprefix("sqlite:///") if uri.startswith("sqlite:///") else None
    artifacts = OmegaConf.select(cfg, "tracking.artifacts", default=None, throw_on_missing=False)
    written = {"tracking.uri": database, "tracking.artifacts": artifacts, "hydra.run.dir": str(run_folder)}
    written["hydra.sweep.dir"] = written["hydra.run.dir"]  # only one of the two decides the run's folder
    if asked & {"hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir"}:
        del written["hydra.run.dir"], written["hydra.sweep.dir"]
    for key, place in written.items():
        if key in asked or not isinstance(place, str):
            continue
        path = Path(place).expanduser().resolve()
        if not any(path.is_relative_to(root / folder) for folder in ("outputs", "mlruns")):
            raise InvalidInput(
                f"{key} is set to {place} by a config file, outside outputs/ and mlruns/ of {root}; "
                f"give {key}=… on the command line to allow it."
            )
