"""What every stage's command does alike: compose, run, and say in one sentence what was wrong."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from pipelines.config import CONFIG_DIR, register_resolvers
from pipelines.paths import check_paths
from pipelines.sweep import SweepFailed, install
from robust_sgld.checks import InvalidInput
from robust_sgld.tracking import TrackingLost

log = logging.getLogger(__name__)

USER_ERRORS = (InvalidInput, HydraException, OmegaConfBaseException)
MULTIRUN = ("-m", "--multirun")


def run_stage(
    task: Callable[[DictConfig], Any],
    config_name: str = "config",
    check: Callable[[DictConfig], None] | None = None,
) -> int:
    """Runs a stage under Hydra; `check` refuses bad points of a sweep before its first job.

    Exit code 0: done; 1: a job of a sweep failed; 2: the user's input is wrong; 3: sampled and kept on disk, but not
    recorded; 130: interrupted. Faults of ours keep their traceback.
    """
    register_resolvers()
    install()
    # Ctrl-C also where a shell has switched it off for background jobs; a scheduler's SIGTERM ends as cleanly
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that exceptions reach us, and we say them in a sentence
    logging.raiseExceptions = False  # a log file on a full disk is no reason for a traceback a line
    # Hydra takes -m only before or after all overrides; people put it anywhere
    words = [_with_home(word) for word in sys.argv[1:]]
    sys.argv[1:] = sorted(words, key=lambda word: word not in MULTIRUN)
    try:
        _check_flags()
    except InvalidInput as error:
        return _refuse(error)
    wrapped = _leaving_nothing(task)
    wrapped.check = check  # type: ignore[attr-defined]
    command = hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name=config_name)(wrapped)
    try:
        command()
    except (*USER_ERRORS, OSError) as error:
        return _refuse(error)
    except SweepFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (ValueError, TypeError, AssertionError) as error:
        if not _raised_by_hydra(error):
            raise
        return _refuse(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _raised_by_hydra(error: BaseException) -> bool:
    """Whether the error began in Hydra, which trips over some overrides, as trial=[1], where it should refuse them."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).is_relative_to(Path(hydra.__file__).parent)


def _with_home(word: str) -> str:
    """root=~/x with the home folder, which the shell does not put there and Hydra's grammar cannot read."""
    key, sign, value = word.partition("=")
    return f"{key}={os.path.expanduser(value)}" if sign and (value == "~" or value.startswith("~/")) else word


def _check_flags() -> None:
    """Flags that Hydra does not have, in a sentence instead of its two screens of usage."""
    parser = get_args_parser()

    def refuse(message: str) -> NoReturn:
        raise InvalidInput(f"{message}; --help lists what there is.")

    parser.error = refuse  # type: ignore[method-assign]
    parser.parse_args()


def one_sentence(error: BaseException) -> str:
    """What an error says, on one line, without the library's internals."""
    lines = [line.strip() for line in str(error).split("Config search path")[0].splitlines() if line.strip()]
    kept = [
        line for line in lines if not line.startswith(("full_key:", "object_type=", "reference_type=", "See https"))
    ]
    text = " ".join(kept).removeprefix("InvalidInput raised while resolving interpolation: ") or type(error).__name__
    merged = re.match(r"Error merging override (\S+)", text)
    if merged:
        return f"{merged[1]} does not fit the config: a value of another kind belongs there."
    if isinstance(error, ValueError | TypeError | AssertionError) and _raised_by_hydra(error):
        return "the overrides cannot be read: a group is chosen by the name of one of its files, as sampler=sgld."
    unknown = re.match(r"Could not override '([^']+)'\. To append to your config", text)
    return f"{unknown[1]} is not a key of the config; --cfg job lists them." if unknown else text


def _leaving_nothing(task: Callable[[DictConfig], Any]) -> Callable[[DictConfig], Any]:
    """A single job that is refused ends at once and takes its run folder along; in a sweep the other jobs go on."""

    @wraps(task)
    def wrapped(cfg: DictConfig) -> Any:
        try:
            given = HydraConfig.get()
            check_paths(cfg, Path(given.runtime.output_dir), [*given.overrides.task, *given.overrides.hydra])
            return task(cfg)
        except (*USER_ERRORS, OSError) as error:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                log.error("%s", one_sentence(error))
                raise
            _remove_with_empty_parents(Path(HydraConfig.get().runtime.output_dir))
            raise SystemExit(_refuse(error)) from None
        except TrackingLost as error:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                log.error("%s", error)
                raise
            print(f"error: {one_sentence(error)}", file=sys.stderr)
            raise SystemExit(3) from None
        except Exception:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                log.exception("this job failed")
            raise

    return wrapped


def _remove_with_empty_parents(folder: Path) -> None:
    """Removes a run folder, and the folders above it, up to outputs/, that hold nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    for parent in folder.parents:
        if parent.name not in ("runs", "outputs") and parent.parent.name != "runs":
            return
        try:
            parent.rmdir()
        except OSError:
            return


def _refuse(error: BaseException) -> int:
    print(f"error: {one_sentence(error)}", file=sys.stderr)
    return 2
