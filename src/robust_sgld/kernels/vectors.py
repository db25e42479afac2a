"""Eight numbers at a time, written as vector instructions; sums in fixed lanes; arrays that nobody counts.

A compiler may only reorder a sum if it is told that the order does not matter, and then a freshly compiled and a cached
copy of the same function differ in their last bits. Here the order is part of the code: the same on every machine.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 8
WIDE = 4 * LANES
"""Lanes of the main loop of a sum: four independent vectors, because one addition waits for the one before it."""

_double = ir.DoubleType()


def _check(dimensions: int, *arrays: Any) -> None:
    """Only what the pointer arithmetic below is right for."""
    for kind in arrays:
        contiguous = isinstance(kind, types.Array) and kind.layout == "C" and kind.dtype == types.float64
        if not contiguous or kind.ndim != dimensions:
            raise TypingError(f"needs a contiguous array of float64 with {dimensions} dimension(s), got {kind}.")


def _vector(lanes: int) -> ir.Type:
    return ir.VectorType(_double, lanes)


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    return context.make_array(array_type)(context, builder, array).data


def _at(builder: Any, pointer: Any, index: Any, kind: ir.Type) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer())


def _halved(builder: Any, vector: Any, lanes: int) -> Any:
    """The upper half of the lanes added to the lower half, until one is left."""
    while lanes > 1:
        lanes //= 2
        lower, upper = (
            builder.shuffle_vector(
                vector,
                ir.Constant(vector.type, ir.Undefined),
                ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(start, start + lanes))),
            )
            for start in (0, lanes)
        )
        vector = builder.fadd(lower, upper)
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def _lanes_sum(context: Any, builder: Any, array_types: Any, arrays: Any, n: Any) -> Any:
    """Σ over i < n of the product of the arrays at i: 32 lanes, then 8, then one by one."""
    pointers = [_data(context, builder, t, a) for t, a in zip(array_types, arrays, strict=True)]
    start: Any = ir.Constant(n.type, 0)
    parts = []
    for lanes in (WIDE, LANES, 1):
        kind = _vector(lanes) if lanes > 1 else _double
        zero = ir.Constant(kind, [0.0] * lanes if lanes > 1 else 0.0)
        total = cgutils.alloca_once_value(builder, zero)
        builder.store(zero, total)
        stop = builder.and_(n, ir.Constant(n.type, -lanes))
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(n.type, lanes), n.type) as (i, _):
            term, *other = [builder.load(_at(builder, p, i, kind), align=8) for p in pointers]
            for factor in other:
                term = builder.fmul(term, factor)
            builder.store(builder.fadd(builder.load(total), term), total)
        parts.append(_halved(builder, builder.load(total), lanes) if lanes > 1 else builder.load(total))
        start = stop
    return builder.fadd(builder.fadd(parts[0], parts[1]), parts[2])


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = [
            _uncounted(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(kind.types)
        ]
        return context.make_tuple(builder, kind, parts)
    array = context.make_array(kind)(context, builder, value)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


@intrinsic
def borrowed(typingctx, value):  # type: ignore[no-untyped-def]
    """The same array, or tuple of arrays, without a count of its references; the caller must keep it alive.

    Every view of an array adds and drops a reference, an atomic operation each: a third of the time of a short step.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _uncounted(context, builder, signature.args[0], args[0])

    return value(value), generate


@intrinsic
def lane_sum(typingctx, values, n):  # type: ignore[no-untyped-def]
    """Σ values[:n]."""
    _check(1, values)

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _lanes_sum(context, builder, signature.args[:1], args[:1], args[1])

    return types.float64(values, types.intp), generate


@intrinsic
def lane_dot(typingctx, x, y, n):  # type: ignore[no-untyped-def]
    """Σ x[i] y[i] for i < n."""
    _check(1, x, y)

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _lanes_sum(context, builder, signature.args[:2], args[:2], args[2])

    return types.float64(x, y, types.intp), generate


def _eight(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    """Where the eight numbers of a two-dimensional array begin."""
    struct = context.make_array(array_type)(context, builder, array)
    pointer = cgutils.get_item_pointer(context, builder, array_type, struct, [row, column], wraparound=False)
    return builder.bitcast(pointer, _vector(LANES).as_pointer())


def _spread(builder: Any, value: Any) -> Any:
    """Eight copies of a number."""
    kind = _vector(LANES)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), mask)


def _put(combine: str):  # type: ignore[no-untyped-def]
    def typed(typingctx, to, row, at, source, source_row, start, number):  # type: ignore[no-untyped-def]
        _check(2, to, source)

        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            kinds = signature.args
            origin = _eight(context, builder, kinds[3], args[3], args[4], args[5])
            result = getattr(builder, combine)(builder.load(origin, align=8), _spread(builder, args[6]))
            builder.store(result, _eight(context, builder, kinds[0], *args[:3]), align=8)
            return context.get_dummy_value()

        whole = types.intp
        return types.none(to, whole, whole, source, whole, whole, types.float64), generate

    return typed


# Rows are named by number because a view of a row would be counted as a reference, which costs more than the copy.
put_scaled = intrinsic(_put("fmul"))
"""put_scaled(to, row, at, source, i, start, c): to[row, at:at+8] = c · source[i, start:start+8]."""
put_shifted = intrinsic(_put("fadd"))
"""put_shifted(to, row, at, source, i, start, c): to[row, at:at+8] = c + source[i, start:start+8]."""


@intrinsic
def put_constant(typingctx, to, row, at, number):  # type: ignore[no-untyped-def]
    """to[row, at:at+8] = number; bounds are not checked."""
    _check(2, to)

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        target = _eight(context, builder, signature.args[0], *args[:3])
        builder.store(_spread(builder, args[3]), target, align=8)
        return context.get_dummy_value()

    return types.none(to, types.intp, types.intp, types.float64), generate
