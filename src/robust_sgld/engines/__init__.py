"""Engines: ways to sum one grid, equal to each other to rounding or to a stated tolerance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from robust_sgld.checks import InvalidInput, positive
from robust_sgld.dro import DRO
from robust_sgld.engines.base import Engine, LogSum
from robust_sgld.problems import Problem

log = logging.getLogger(__name__)

EngineName = Literal["auto", "dense", "pruned", "chain"]


def _pruned() -> type[Engine]:
    from robust_sgld.engines.pruned import PrunedEngine

    return PrunedEngine


def _chain() -> type[Engine]:
    from robust_sgld.engines.chain import ChainEngine

    return ChainEngine


def _dense() -> type[Engine]:
    from robust_sgld.engines.dense import DenseEngine

    return DenseEngine


ENGINES: dict[str, Callable[[], type[Engine]]] = {"pruned": _pruned, "chain": _chain, "dense": _dense}
"""By name; imported when asked for, because torch takes a second."""
TOLERANCE = 1e-8
"""The error of the log-sum that an engine which is not exact may have, by default."""


def make_engine(name: str, problem: Problem, dro: DRO, tolerance: float = TOLERANCE) -> Engine:
    """The engine of that name; `auto` takes the cheapest valid one and says in the log which and why.

    Cheapest is by `Engine.microseconds`, a rule from benchmarks and not a timing: which engine runs decides the last
    bits of a trial, and they must not depend on how busy the machine is.
    """
    tolerance = positive("tolerance", tolerance)
    if name != "auto" and name not in ENGINES:
        raise InvalidInput(f"engine must be one of auto, {', '.join(sorted(ENGINES))}, got {name!r}.")
    if name == "auto":
        return _cheapest(problem, dro, tolerance)
    engine = ENGINES[name]()
    reason = engine.refusal(problem, dro)
    if reason is None:
        return engine(problem, dro, tolerance)
    valid = [other for other in ENGINES if ENGINES[other]().refusal(problem, dro) is None]
    can = f"; engine={valid[0]} can do it" if valid else ", and no other engine can"
    raise InvalidInput(f"engine={name} cannot do this: {reason.rstrip('.')}{can}.")


def _cheapest(problem: Problem, dro: DRO, tolerance: float) -> Engine:
    reasons, costs = [], {}
    for name, load in ENGINES.items():
        reason = load().refusal(problem, dro)
        if reason is None:
            costs[name] = load().microseconds(problem, dro)
        else:
            reasons.append(f"{name} cannot: {reason}")
    if not costs:
        raise InvalidInput(f"No engine can do this: {' '.join(reasons)}")
    name = min(costs, key=lambda known: costs[known])
    estimates = ", ".join(f"{known} {cost:.3g} µs" for known, cost in costs.items())
    log.info(
        "engine auto: %s, the cheapest by benchmark (a sum takes about: %s). %s", name, estimates, " ".join(reasons)
    )
    return ENGINES[name]()(problem, dro, tolerance)


__all__ = ["TOLERANCE", "Engine", "EngineName", "LogSum", "make_engine"]
