"""LogNumber against mpmath, and at sizes that nothing else holds."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from operator import add, mul, truediv

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_sgld.theory.lognumber import LogNumber, decayed, exponential

SIZES = st.floats(min_value=1e-300, max_value=1e300)
mpmath.mp.dps = 90


def ln(x: LogNumber) -> mpmath.mpf:
    return mpmath.mpf(str(x.ln))


def close(x: LogNumber, reference: mpmath.mpf) -> bool:
    # a sum of a few terms, each rounded at the 60th digit of a logarithm of size below 2000
    return abs(ln(x) - reference) <= mpmath.mpf("1e-50") * max(1, abs(reference))


@given(SIZES, SIZES)
def test_arithmetic_is_that_of_the_numbers(x: float, y: float) -> None:
    for operation in (add, mul, truediv):
        assert close(operation(LogNumber.of(x), LogNumber.of(y)), mpmath.log(operation(mpmath.mpf(x), mpmath.mpf(y))))


@given(SIZES, st.floats(min_value=1e-3, max_value=50), st.integers(1, 9))
def test_powers_and_roots(x: float, power: float, degree: int) -> None:
    assert close(LogNumber.of(x) ** power, power * mpmath.log(x))
    assert close(LogNumber.of(x).root(degree), mpmath.log(x) / degree)


@given(SIZES, SIZES)
def test_order_is_that_of_the_numbers(x: float, y: float) -> None:
    assert (LogNumber.of(x) < LogNumber.of(y)) is (x < y)
    assert (LogNumber.of(x) >= y) is (x >= y)
    assert LogNumber.of(x) == x
    assert max(LogNumber.of(x), LogNumber.of(y)) == max(x, y)


def test_plain_numbers_stand_on_either_side() -> None:
    x = LogNumber.of(8)
    assert float(2 * x) == pytest.approx(16, rel=1e-15)
    assert float(2 + x) == pytest.approx(10, rel=1e-15)
    assert float(2 / x) == pytest.approx(0.25, rel=1e-15)


def test_one_plus_a_tiny_number_keeps_the_tiny_number() -> None:
    """log(1+β/(d+1)) of C3 for a tiny β."""
    assert float((LogNumber.of(1e-300) + 1).ln) == pytest.approx(1e-300, rel=1e-15, abs=0)


def test_logarithms_of_size_1e29_cancel_exactly() -> None:
    large = exponential(LogNumber.of(Decimal("1.6e29")))
    assert float(large * 3 / large) == pytest.approx(3, rel=1e-15)
    assert str(large) == "10^(6.949e+28)"
    assert float(large) == math.inf
    assert float(1 / large) == 0.0


def test_decay() -> None:
    assert float(decayed(LogNumber.of(5), LogNumber.of(2))) == pytest.approx(5 * math.exp(-2), rel=1e-15)
    beyond = exponential(LogNumber.of(Decimal("1e20")))
    assert decayed(exponential(LogNumber.of(Decimal("1e29"))), beyond).is_zero


def test_zero() -> None:
    zero = LogNumber.of(0)
    assert zero.is_zero
    assert zero + 2 == 2
    assert (zero * 5).is_zero
    assert zero < 1e-300
    assert float(zero) == 0.0
    assert str(zero) == "0"
    with pytest.raises(ZeroDivisionError):
        LogNumber.of(1) / zero


@pytest.mark.parametrize("x", [-1.0, math.inf, math.nan])
def test_what_is_no_finite_positive_number_is_refused(x: float) -> None:
    with pytest.raises(ValueError, match="LogNumber"):
        LogNumber.of(x)


def test_json_holds_whatever_fits() -> None:
    assert LogNumber.of(1000).to_dict() == {
        "value": pytest.approx(1000),
        "log10": pytest.approx(3),
        "log10_log10": pytest.approx(math.log10(3)),
    }
    huge = exponential(exponential(LogNumber.of(5000)))  # log10 of it is about 10^2171
    tiny = 1 / huge
    for number in (huge, tiny):
        assert number.to_dict() == {"value": None, "log10": None, "log10_log10": pytest.approx(2171.11, abs=0.01)}
    for number in (huge, tiny, LogNumber.of(0), LogNumber.of(1)):
        json.dumps(number.to_dict(), allow_nan=False)
