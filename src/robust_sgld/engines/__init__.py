"""Engines: ways to sum one grid, equal to each other to rounding."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO
from robust_sgld.engines.base import Engine, LogSum
from robust_sgld.problems import Problem

log = logging.getLogger(__name__)

EngineName = Literal["auto", "dense", "pruned"]


def _pruned() -> type[Engine]:
    from robust_sgld.engines.pruned import PrunedEngine

    return PrunedEngine


def _dense() -> type[Engine]:
    from robust_sgld.engines.dense import DenseEngine

    return DenseEngine


def _monte_carlo() -> type[Engine]:
    from robust_sgld.engines.monte_carlo import MonteCarloEngine

    return MonteCarloEngine


ENGINES: dict[str, Callable[[], type[Engine]]] = {"pruned": _pruned, "dense": _dense, "monte_carlo": _monte_carlo}
"""By name, cheapest first; imported when asked for, because torch takes a second."""


def make_engine(name: str, problem: Problem, dro: DRO) -> Engine:
    """The engine of that name; `auto` takes the cheapest valid one and says in the log which and why."""
    if name != "auto" and name not in ENGINES:
        raise InvalidInput(f"engine must be one of auto, {', '.join(sorted(ENGINES))}, got {name!r}.")
    if name == "auto":
        return _cheapest(problem, dro)
    engine = ENGINES[name]()
    reason = engine.refusal(problem, dro)
    if reason is None:
        return engine(problem, dro)
    valid = [other for other in ENGINES if ENGINES[other]().refusal(problem, dro) is None]
    can = f"; engine={valid[0]} can do it" if valid else ", and no other engine can"
    raise InvalidInput(f"engine={name} cannot do this: {reason.rstrip('.')}{can}.")


def _cheapest(problem: Problem, dro: DRO) -> Engine:
    reasons: list[str] = []
    for name, load in ENGINES.items():
        engine = load()
        if not engine.exact:
            continue
        reason = engine.refusal(problem, dro)
        if reason is None:
            log.info("engine auto: %s (%s)", name, " ".join(reasons) or "the cheapest that is exact for this problem")
            return engine(problem, dro)
        reasons.append(f"{name} cannot: {reason}")
    estimates = [n for n, load in ENGINES.items() if not load().exact and load().refusal(problem, dro) is None]
    instead = f" engine={estimates[0]} can estimate it." if estimates else ""
    raise InvalidInput(f"No engine can do this: {' '.join(reasons)}{instead}")


__all__ = ["Engine", "EngineName", "LogSum", "make_engine"]
