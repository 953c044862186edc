"""Native code of the rules by which dims are bound during a run (`core/binding.py` says what they mean)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx.codegen.emitter import I64, Emitter, V

__all__ = ["reshape_target", "slice_span"]

Fail = Callable[[V, V], None]  # condition, value to show


def reshape_target(
    e: Emitter, target: Sequence[V], source: Sequence[V], *, allowzero: bool, fail: Fail
) -> list[V]:
    """The dims of a Reshape; ``fail`` ends the run where there are none."""
    zero, one, minus = e.const(I64, 0), e.const(I64, 1), e.const(I64, -1)
    wanted: list[V] = []
    opened = zero
    for i, value in enumerate(target):
        fail(e.icmp("slt", value, minus), value)
        opened = e.iadd(opened, e.zext(e.icmp("eq", value, minus), 64))
        if not allowzero:
            copies = e.icmp("eq", value, zero)
            if i < len(source):
                value = e.select(copies, source[i], value)
            else:
                fail(copies, value)
        wanted.append(value)
    fail(e.icmp("sgt", opened, one), minus)
    rest, total = one, one
    for value in wanted:
        rest = e.imul(rest, e.select(e.icmp("eq", value, minus), one, value))
    for dim in source:
        total = e.imul(total, dim)
    empty = e.icmp("eq", rest, zero)
    inferred = e.select(empty, zero, e.sdiv(total, e.select(empty, one, rest)))
    return [e.select(e.icmp("eq", v, minus), inferred, v) for v in wanted]


def slice_span(e: Emitter, start: V, end: V, extent: V, step: int) -> tuple[V, V]:
    """First index and number of elements of a Slice along one axis."""
    zero, one = e.const(I64, 0), e.const(I64, 1)
    start = e.select(e.icmp("slt", start, zero), e.iadd(start, extent), start)
    end = e.select(e.icmp("slt", end, zero), e.iadd(end, extent), end)
    if step > 0:
        start = e.smin(e.smax(start, zero), extent)
        end = e.smin(e.smax(end, zero), extent)
        span = e.smax(e.isub(end, start), zero)
        return start, e.sdiv(e.iadd(span, e.const(I64, step - 1)), e.const(I64, step))
    last = e.isub(extent, one)
    start = e.smin(e.smax(start, zero), last)
    end = e.smin(e.smax(end, e.const(I64, -1)), last)
    span = e.smax(e.isub(start, end), zero)
    return e.smax(start, zero), e.sdiv(e.iadd(span, e.const(I64, -step - 1)), e.const(I64, -step))
