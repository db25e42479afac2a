"""Checks of what comes from outside, each ending in one sentence for a person.

Everything that a user can get wrong raises `InvalidInput`, before any work is done. It is a `ValueError`, so library
users catch what they expect; the command line turns it into one line and exit code 2, while any other exception stays
a traceback, because it is our bug.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class InvalidInput(ValueError):
    """Something that the caller gave is not usable; the message says what, where, and what would be right."""


def real(name: str, value: Any, *, finite: bool = True) -> float:
    """`value` as a float; refuses what is not a real number, NaN, and (unless `finite=False`) infinities."""
    value = _scalar(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInput(f"{name} must be a number, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidInput(f"{name} must be a finite number, got one beyond the range of float64.") from None
    if math.isnan(number) or (finite and math.isinf(number)):
        raise InvalidInput(f"{name} must be a finite number, got {number}.")
    return number


def positive(name: str, value: Any, *, finite: bool = True) -> float:
    """`value` as a float above 0."""
    number = real(name, value, finite=finite)
    if number <= 0:
        raise InvalidInput(f"{name} must be above 0, got {number:g}.")
    return number


def rate(name: str, value: Any, what: str = "contamination rate") -> float:
    """`value` as a float in [0, 1]; `what` it is, for the message."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{name} must be a {what} between 0 and 1, got {number:g}.")
    return number


def integer(name: str, value: Any, *, least: int) -> int:
    """`value` as an int of at least `least`; 1e4 is accepted as 10000, 1.5 is not."""
    value = _scalar(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InvalidInput(f"{name} must be a whole number, got {value!r}.")
    if not isinstance(value, int) and (not math.isfinite(value) or value != int(value)):
        raise InvalidInput(f"{name} must be a whole number, got {value}.")
    if value < least:
        raise InvalidInput(f"{name} must be at least {least}, got {int(value)}.")
    return int(value)


def array(name: str, value: Any, *, shape: tuple[int | None, ...]) -> np.ndarray:
    """`value` as a finite, C-contiguous float64 array of the given shape; None stands for any length above 0."""
    try:
        result = np.asarray(value, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be numeric with shape {_shape(shape)}.") from None
    if result.ndim != len(shape) or any(
        (want is None and have == 0) or (want is not None and want != have)
        for want, have in zip(shape, result.shape, strict=False)
    ):
        raise InvalidInput(f"{name} must have shape {_shape(shape)}, got {result.shape}.")
    if not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise InvalidInput(f"{name} has a value that is not finite ({result[where]}) at position {where}.")
    return result


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _shape(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("any" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
