"""Engines: ways to sum one grid, equal to each other to rounding or to a stated tolerance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

from robust_sgld.checks import InvalidInput
from robust_sgld.dro import DRO
from robust_sgld.engines.base import Accuracy, Engine, LogSum
from robust_sgld.problems import Problem

log = logging.getLogger(__name__)

EngineName = Literal["auto", "dense", "pruned", "chain", "monte_carlo"]


def _pruned() -> type[Engine]:
    from robust_sgld.engines.pruned import PrunedEngine

    return PrunedEngine


def _chain() -> type[Engine]:
    from robust_sgld.engines.chain import ChainEngine

    return ChainEngine


def _dense() -> type[Engine]:
    from robust_sgld.engines.dense import DenseEngine

    return DenseEngine


def _monte_carlo() -> type[Engine]:
    from robust_sgld.engines.monte_carlo import MonteCarloEngine

    return MonteCarloEngine


ENGINES: dict[str, Callable[[], type[Engine]]] = {
    "pruned": _pruned,
    "chain": _chain,
    "dense": _dense,
    "monte_carlo": _monte_carlo,
}
"""By name; imported when asked for, because torch takes a second."""


def make_engine(name: str, problem: Problem, dro: DRO, accuracy: Accuracy | None = None) -> Engine:
    """The engine of that name; `auto` takes the cheapest valid one and says in the log which and why.

    Cheapest is by `Engine.microseconds`, a rule from benchmarks and not a timing: which engine runs decides the last
    bits of a trial, and they must not depend on how busy the machine is. An estimate is never taken unasked.
    """
    accuracy = accuracy or Accuracy()
    if name != "auto" and name not in ENGINES:
        raise InvalidInput(f"engine must be one of auto, {', '.join(sorted(ENGINES))}, got {name!r}.")
    if name == "auto":
        return _cheapest(problem, dro, accuracy)
    engine = ENGINES[name]()
    reason = engine.refusal(problem, dro)
    if reason is None:
        return engine(problem, dro, accuracy)
    can = _what_can(problem, dro)
    other = f"; {can}" if can else ", and no other engine can"
    raise InvalidInput(f"engine={name} cannot do this: {reason.rstrip('.')}{other}.")


def _what_can(problem: Problem, dro: DRO) -> str:
    """Which engine can sum this grid, or else estimate it; nothing if none can."""
    valid = [load() for load in ENGINES.values() if load().refusal(problem, dro) is None]
    for engine in sorted(valid, key=lambda known: not known.exact):
        return f"engine={engine.name} can {'do' if engine.exact else 'estimate'} it"
    return ""


def _cheapest(problem: Problem, dro: DRO, accuracy: Accuracy) -> Engine:
    reasons, costs = [], {}
    for name, load in ENGINES.items():
        if not load().exact:
            continue
        reason = load().refusal(problem, dro)
        if reason is None:
            costs[name] = load().microseconds(problem, dro)
        else:
            reasons.append(f"{name} cannot: {reason}")
    if not costs:
        can = _what_can(problem, dro)
        raise InvalidInput(f"No engine can do this: {' '.join(reasons)}{f' But {can}.' if can else ''}")
    name = min(costs, key=lambda known: costs[known])
    estimates = ", ".join(f"{known} {cost:.3g} µs" for known, cost in costs.items())
    log.info(
        "engine auto: %s, the cheapest by benchmark (a sum takes about: %s). %s", name, estimates, " ".join(reasons)
    )
    return ENGINES[name]()(problem, dro, accuracy)


__all__ = ["Accuracy", "Engine", "EngineName", "LogSum", "make_engine"]
