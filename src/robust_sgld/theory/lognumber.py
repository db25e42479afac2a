"""Positive numbers of any size, kept by their logarithm.

The theorem's constants run from 1e-20 to e^(1e29). A `LogNumber` holds ln x as a decimal of 60 digits, so that formulas
read as printed, nothing overflows, and what is left after two logarithms of size 1e29 cancel is still exact.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from functools import total_ordering
from typing import Union

CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])
_LN10 = CONTEXT.ln(Decimal(10))
_LN2 = CONTEXT.ln(Decimal(2))
_ZERO = Decimal("-Infinity")
_SERIES = Decimal("1e-30")

Real = Union["LogNumber", Decimal, float, int]


@total_ordering
class LogNumber:
    """x ≥ 0 as ln x; supports + * / ** and comparison with each other and with plain numbers."""

    __slots__ = ("ln",)

    def __init__(self, ln: Decimal):
        self.ln = ln
        """ln x; -Infinity for 0"""

    @classmethod
    def of(cls, x: Real) -> LogNumber:
        """A plain number, or what already is a `LogNumber`."""
        if isinstance(x, LogNumber):
            return x
        exact = x if isinstance(x, Decimal) else Decimal(x)
        if not exact.is_finite() or exact < 0:
            raise ValueError(f"a LogNumber is a finite number that is not negative, got {x}")
        return cls(CONTEXT.ln(exact) if exact else _ZERO)

    def __mul__(self, other: Real) -> LogNumber:
        return LogNumber(CONTEXT.add(self.ln, LogNumber.of(other).ln))

    def __truediv__(self, other: Real) -> LogNumber:
        divisor = LogNumber.of(other)
        if divisor.is_zero:
            raise ZeroDivisionError("division by a LogNumber that is 0")
        return LogNumber(CONTEXT.subtract(self.ln, divisor.ln))

    def __rtruediv__(self, other: Real) -> LogNumber:
        return LogNumber.of(other) / self

    def __pow__(self, power: float | Decimal) -> LogNumber:
        """x^power for a power above 0."""
        return LogNumber(CONTEXT.multiply(self.ln, Decimal(power)))

    def root(self, degree: int) -> LogNumber:
        """x^{1/degree}."""
        return LogNumber(CONTEXT.divide(self.ln, Decimal(degree)))

    def __add__(self, other: Real) -> LogNumber:
        other = LogNumber.of(other)
        high, low = (self, other) if self.ln >= other.ln else (other, self)
        if low.is_zero:
            return high
        gap = CONTEXT.subtract(low.ln, high.ln)
        return LogNumber(CONTEXT.add(high.ln, _ln1p_exp(gap)))

    __rmul__ = __mul__
    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogNumber | Decimal | float | int):
            return NotImplemented
        return self.ln == LogNumber.of(other).ln

    def __lt__(self, other: Real) -> bool:
        return self.ln < LogNumber.of(other).ln

    def __hash__(self) -> int:
        return hash(self.ln)

    def __repr__(self) -> str:
        return f"LogNumber({self})"

    @property
    def is_zero(self) -> bool:
        return self.ln.is_infinite()

    @property
    def log10(self) -> Decimal:
        """log10 x."""
        return CONTEXT.divide(self.ln, _LN10)

    @property
    def log2(self) -> Decimal:
        """log2 x."""
        return CONTEXT.divide(self.ln, _LN2)

    @property
    def decimal(self) -> Decimal:
        """x itself; exact to 60 digits, and 10^(10^18) is the largest."""
        return Decimal(0) if self.is_zero else CONTEXT.exp(self.ln)

    def __float__(self) -> float:
        """x, 0 where it is too small for a float and inf where it is too large."""
        if self.is_zero or self.ln < -800:
            return 0.0
        return math.inf if self.ln > 800 else float(self.decimal)

    def __str__(self) -> str:
        """Seven digits; as a power of ten where a float would not do."""
        if self.is_zero:
            return "0"
        if self.log10.copy_abs() < 300:
            return f"{float(self):.7g}"
        return f"10^({self.log10:.4g})"

    def to_dict(self) -> dict[str, float | None]:
        """For JSON: x and log10 x where they fit a float, and log10 |log10 x|, which always does (None at x = 0, 1)."""
        value = float(self)
        log10 = -math.inf if self.is_zero else float(self.log10)
        log10_log10 = None
        if not self.is_zero and self.ln:
            log10_log10 = float(CONTEXT.log10(self.log10.copy_abs()))
        return {
            "value": value if math.isfinite(value) and (value > 0 or self.is_zero) else None,
            "log10": log10 if math.isfinite(log10) else None,
            "log10_log10": log10_log10,
        }


def exponential(x: LogNumber) -> LogNumber:
    """e^x."""
    return LogNumber(x.decimal)


def decayed(x: LogNumber, rate: LogNumber) -> LogNumber:
    """x e^{-rate}; 0 where the rate is beyond 10^(10^17), whatever x."""
    if rate.log10 > Decimal(10) ** 17:
        return LogNumber(_ZERO)
    return LogNumber(CONTEXT.subtract(x.ln, rate.decimal))


def _ln1p_exp(t: Decimal) -> Decimal:
    """ln(1 + e^t) for t ≤ 0, with the relative accuracy that a later logarithm of it needs."""
    if t < -(Decimal(10) ** 18):
        return Decimal(0)
    e = CONTEXT.exp(t)
    if e < _SERIES:
        # the next term of the series is below 1e-60 of the first
        return CONTEXT.subtract(e, CONTEXT.divide(CONTEXT.multiply(e, e), Decimal(2)))
    return CONTEXT.ln(CONTEXT.add(Decimal(1), e))
