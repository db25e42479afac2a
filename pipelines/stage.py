"""What every stage's command does alike: compose, run, and say in one sentence what was wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from pipelines.config import CONFIG_DIR, register_resolvers
from robust_sgld.checks import InvalidInput

USER_ERRORS = (InvalidInput, HydraException, OmegaConfBaseException)
MULTIRUN = ("-m", "--multirun")


def run_stage(task: Callable[[DictConfig], Any], config_name: str = "config") -> int:
    """Runs a stage under Hydra. Exit code 0: done; 2: the user's input is wrong; 130: interrupted.

    Faults of ours keep their traceback.
    """
    register_resolvers()
    # Ctrl-C also where a shell has switched it off for background jobs; a scheduler's SIGTERM ends as cleanly
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that exceptions reach us, and we say them in a sentence
    # Hydra takes -m only before or after all overrides; people put it anywhere
    sys.argv[1:] = sorted(sys.argv[1:], key=lambda word: word not in MULTIRUN)
    command = hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name=config_name)(
        _leaving_nothing(task)
    )
    try:
        command()
    except (*USER_ERRORS, OSError) as error:
        return _refuse(error)
    except ValueError as error:
        if "Config group override" not in str(error):  # Hydra's word for group=null
            raise
        return _refuse(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def one_sentence(error: BaseException) -> str:
    """What an error says, on one line, without the library's internals."""
    lines = [line.strip() for line in str(error).split("Config search path")[0].splitlines() if line.strip()]
    kept = [
        line for line in lines if not line.startswith(("full_key:", "object_type=", "reference_type=", "See https"))
    ]
    text = " ".join(kept).removeprefix("InvalidInput raised while resolving interpolation: ") or type(error).__name__
    unknown = re.match(r"Could not override '([^']+)'\. To append to your config", text)
    return f"{unknown[1]} is not a key of the config; --cfg job lists them." if unknown else text


def _leaving_nothing(task: Callable[[DictConfig], Any]) -> Callable[[DictConfig], Any]:
    """A single job that is refused ends at once and takes its run folder along; in a sweep the other jobs go on."""

    @wraps(task)
    def wrapped(cfg: DictConfig) -> Any:
        try:
            return task(cfg)
        except (*USER_ERRORS, OSError) as error:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                raise
            folder = Path(HydraConfig.get().runtime.output_dir)
            shutil.rmtree(folder, ignore_errors=True)
            if folder.parent.is_dir() and not any(folder.parent.iterdir()):
                folder.parent.rmdir()
            raise SystemExit(_refuse(error)) from None

    return wrapped


def _refuse(error: BaseException) -> int:
    print(f"error: {one_sentence(error)}", file=sys.stderr)
    return 2
