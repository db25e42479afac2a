"""Engines: ways to sum one grid, equal to each other to rounding."""

from __future__ import annotations

import logging
from typing import Literal

from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO
from robust_sgld.engines.base import Engine, LogSum
from robust_sgld.problems import Problem

log = logging.getLogger(__name__)

EngineName = Literal["auto", "dense", "pruned"]


def _engines() -> dict[str, type[Engine]]:
    """By name, cheapest first; imported here because numba and torch take a second each."""
    from robust_sgld.engines.dense import DenseEngine
    from robust_sgld.engines.pruned import PrunedEngine

    return {"pruned": PrunedEngine, "dense": DenseEngine}


def make_engine(name: str, problem: Problem, dro: DRO) -> Engine:
    """The engine of that name; `auto` takes the cheapest valid one and says in the log which and why."""
    engines = _engines()
    if name != "auto" and name not in engines:
        raise InvalidInput(f"engine must be one of auto, {', '.join(sorted(engines))}, got {name!r}.")
    reasons = {n: e.refusal(problem, dro) for n, e in engines.items()}
    valid = [n for n, reason in reasons.items() if reason is None]
    if name == "auto":
        if not valid:
            raise InvalidInput("No engine can do this: " + " ".join(f"{n}: {reasons[n]}" for n in engines))
        chosen = valid[0]
        passed = [f"{n} cannot: {reasons[n]}" for n in engines if reasons[n] and n != chosen]
        log.info("engine auto: %s (%s)", chosen, "; ".join(passed) or "the cheapest that is exact for this problem")
        return engines[chosen](problem, dro)
    if reasons[name]:
        can = f"; engine={valid[0]} can do it" if valid else ", and no other engine can"
        raise InvalidInput(f"engine={name} cannot do this: {(reasons[name] or '').rstrip('.')}{can}.")
    return engines[name](problem, dro)


__all__ = ["Engine", "EngineName", "LogSum", "make_engine"]
