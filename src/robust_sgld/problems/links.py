"""Links t ↦ s(t) from the linear index to the prediction, with what the constants of a loss need to know of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from robust_sgld.checks import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor

LinkName = Literal["sigmoid", "identity", "tanh"]


@dataclass(frozen=True)
class Link:
    """One link; the bounds hold over all of R."""

    name: str
    code: int
    """what `kernels.index_loss` calls it"""
    value: Callable[[Tensor], Tensor]
    """s(t)"""
    slope: Callable[[Tensor], Tensor]
    """s'(t), as a function of s"""
    at_zero: float
    """s(0)"""
    low: float
    high: float
    """s lies between these"""
    slope_max: float
    """sup |s'|"""
    curvature_max: float
    """sup |s''|"""


LINKS = {
    link.name: link
    for link in (
        # σ' = σ(1-σ) ≤ 1/4; σ'' = σ(1-σ)(1-2σ) is largest where (1-2σ)² = 1/3
        Link(
            "sigmoid",
            0,
            lambda t: t.sigmoid(),
            lambda s: s * (1 - s),
            0.5,
            0.0,
            1.0,
            0.25,
            1 / (6 * math.sqrt(3)),
        ),
        Link("identity", 1, lambda t: t, lambda s: 0 * s + 1, 0.0, -math.inf, math.inf, 1.0, 0.0),
        # tanh' = 1-tanh² ≤ 1; tanh'' = -2 tanh (1-tanh²) is largest where tanh² = 1/3
        Link("tanh", 2, lambda t: t.tanh(), lambda s: 1 - s * s, 0.0, -1.0, 1.0, 1.0, 4 / (3 * math.sqrt(3))),
    )
}


def link_of(name: str) -> Link:
    """The link of that name."""
    if name not in LINKS:
        raise InvalidInput(f"link must be one of {', '.join(LINKS)}, got {name!r}.")
    return LINKS[name]
