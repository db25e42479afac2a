"""A sweep whose points are all checked before the first job, and of which one failing job stops no other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from robust_sgld.checks import InvalidInput

log = logging.getLogger(__name__)

LAUNCHES = 3
"""Times that a batch is launched when worker processes die; trials that are complete by then are skipped."""


class SweepFailed(Exception):
    """Some points of a sweep failed; the others are done. One line a point."""


class CheckedSweeper(BasicSweeper):
    """Hydra's own sweeper, with the two differences of this module."""

    def __init__(self, max_batch_size: int | None, params: dict[str, str] | None = None):
        # not through super(): Hydra loads its plugins twice, and the base's own super() then names another class
        self.overrides = None
        self.batch_index = 0
        self.max_batch_size = max_batch_size
        self.params = params or {}

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Every job's return by batch; raises `SweepFailed` at the end if a job failed."""
        assert self.config is not None
        assert self.launcher is not None
        assert self.hydra_context is not None
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        overrides = parser.parse_overrides([*self._parse_config(), *arguments])
        batches = self.split_arguments(overrides, self.max_batch_size)
        points = [point for batch in batches for point in batch]
        common = set.intersection(*(set(point) for point in points)) if len(points) > 1 else set()
        self._check(points, common)
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self.config, folder / "multirun.yaml")
        returns: list[Sequence[JobReturn]] = []
        for batch in batches:
            returns.append(self._launch(batch, sum(map(len, returns))))
        jobs = [job for batch_of_jobs in returns for job in batch_of_jobs]
        failed = [job for job in jobs if job.status == JobStatus.FAILED]
        if failed:
            lines = [f"  {_swept(job.overrides or [], common)}: {_reason(job)}" for job in failed]
            raise SweepFailed("\n".join([f"{len(failed)} of {len(jobs)} jobs of the sweep failed:", *lines]))
        return returns

    def _check(self, points: Sequence[Sequence[str]], common: set[str]) -> None:
        """Composes every point and lets the stage check it: a bad one is refused before anything runs."""
        check: Callable[[DictConfig], None] | None = getattr(self.launcher.task_function, "check", None)  # type: ignore[union-attr]
        for number, point in enumerate(points):
            config = self.hydra_context.config_loader.load_sweep_config(self.config, list(point))  # type: ignore[union-attr, arg-type]
            if check is None:
                continue
            with open_dict(config):
                del config["hydra"]
            try:
                check(config)
            except (InvalidInput, OmegaConfBaseException) as error:
                raise InvalidInput(f"point {number} of the sweep ({_swept(point, common)}): {error}") from None

    def _launch(self, batch: Sequence[Sequence[str]], first: int) -> Sequence[JobReturn]:
        assert self.launcher is not None
        for left in reversed(range(LAUNCHES)):
            try:
                return self.launcher.launch(batch, initial_job_idx=first)
            except _died() as error:
                if not left:
                    raise
                log.warning("a job's process died (%s): what is not complete is started again.", type(error).__name__)
        raise AssertionError("unreachable")


def install() -> None:
    """Puts `CheckedSweeper` in the place of Hydra's default sweeper; another one can still be chosen."""
    name = f"{BasicSweeper.__module__}.{BasicSweeper.__name__}"
    Plugins.instance().class_name_to_class[name] = CheckedSweeper


def _died() -> tuple[type[Exception], ...]:
    """What launchers raise when a job's process is killed under them."""
    try:
        from submitit.core.utils import UncompletedJobError
    except ImportError:
        return (BrokenProcessPool,)
    return (BrokenProcessPool, UncompletedJobError)


def _swept(point: Sequence[str], common: set[str]) -> str:
    """What a point has of its own."""
    return " ".join(word for word in point if word not in common)


def _reason(job: JobReturn) -> str:
    error: Any = job._return_value
    lines = str(error).splitlines()
    said = lines[0] if lines else ""
    return said if isinstance(error, InvalidInput) else f"{type(error).__name__}: {said}"
