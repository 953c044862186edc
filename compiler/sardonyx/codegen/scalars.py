"""The table from elementwise kinds to LLVM: one emitter per kind, for every element type and width.

Guards against LLVM's poison stand here: division by zero and of the lowest value, shifts by the width
or more.  Comparisons look at the element type, so uint64 is never compared as signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sardonyx.codegen.emitter import Emitter, LType, V, ltype
from sardonyx.codegen.math import MATH
from sardonyx.codegen.philox import philox
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["SCALARS", "llvm_type"]

Emit = Callable[[Emitter, DType, list[V]], V]


def llvm_type(dtype: DType, lanes: int = 1) -> LType:
    """The LLVM type of a machine value: bool is i1, what LLVM has no float type for travels as its bits."""
    if dtype is dtypes.boolean:
        return ltype("i", 1, lanes)
    if dtype.kind == "float" and dtype.bits >= 16 and dtype is not dtypes.bf16:
        return ltype("f", dtype.bits, lanes)
    return ltype("i", max(8, dtype.bits), lanes)


def _by_kind(
    floating: Callable[..., V], signed: Callable[..., V], unsigned: Callable[..., V] | None = None
) -> Emit:
    def emit(e: Emitter, dtype: DType, xs: list[V]) -> V:
        if dtype.kind == "float":
            return floating(e, *xs)
        return (signed if dtype.kind == "signed" else unsigned or signed)(e, *xs)

    return emit


def _abs_int(e: Emitter, x: V) -> V:
    return e.smax(x, e.isub(e.const(x.type, 0), x))


def _sign_int(e: Emitter, x: V) -> V:
    zero, one = e.const(x.type, 0), e.const(x.type, 1)
    positive = e.select(e.icmp("sgt", x, zero), one, zero)
    return e.select(e.icmp("slt", x, zero), e.const(x.type, -1), positive)


def _sign_float(e: Emitter, x: V) -> V:
    one = e.copysign(e.const(x.type, 1.0), x)
    return e.select(e.fcmp("one", x, e.const(x.type, 0.0)), one, x)  # zeros and NaNs stay


def _sign_unsigned(e: Emitter, x: V) -> V:
    return e.umin(x, e.const(x.type, 1))


def _extreme(greater: bool) -> Callable[..., V]:
    """NaN wins on either side, and +0 is above -0: llvm.maximum and llvm.minimum, spelled out."""

    def emit(e: Emitter, x: V, y: V) -> V:
        bits = x.type.as_int
        # Of equal values (zeros of either sign) the bits decide: and for max, or for min.
        merge = e.and_ if greater else e.or_
        tie = e.bitcast(merge(e.bitcast(x, bits), e.bitcast(y, bits)), x.type)
        ordered = e.select(e.fcmp("ogt" if greater else "olt", x, y), x, y)
        ordered = e.select(e.fcmp("oeq", x, y), tie, ordered)
        ordered = e.select(e.fcmp("uno", y, y), y, ordered)
        return e.select(e.fcmp("uno", x, x), x, ordered)

    return emit


def _divide(signed: bool, remainder: bool) -> Callable[..., V]:
    def emit(e: Emitter, x: V, y: V) -> V:
        zero, one = e.const(y.type, 0), e.const(y.type, 1)
        safe = e.select(e.icmp("eq", y, zero), one, y)
        if not signed:
            return e._binary("urem" if remainder else "udiv", x, safe)
        minus = e.icmp("eq", y, e.const(y.type, -1))
        safe = e.select(minus, one, safe)
        result = e._binary("srem" if remainder else "sdiv", x, safe)
        # x / -1 wraps, x % -1 is 0.
        return e.select(minus, zero if remainder else e.isub(zero, x), result)

    return emit


def _modulo_signed(e: Emitter, x: V, y: V) -> V:
    rest = _divide(True, True)(e, x, y)
    zero = e.const(x.type, 0)
    differs = e.and_(e.icmp("ne", rest, zero), e.icmp("slt", e.xor(rest, y), zero))
    return e.select(differs, e.iadd(rest, y), rest)


def _modulo_float(e: Emitter, x: V, y: V) -> V:
    rest = e.rem(x, y)
    zero = e.const(x.type, 0.0)
    bits = x.type.as_int
    opposite = e.icmp("slt", e.xor(e.bitcast(rest, bits), e.bitcast(y, bits)), e.const(bits, 0))
    moved = e.select(opposite, e.add(rest, y), rest)
    return e.select(e.fcmp("oeq", rest, zero), e.copysign(rest, y), moved)


def _shift(opcode: str) -> Callable[..., V]:
    def emit(e: Emitter, x: V, count: V) -> V:
        bits = e.const(x.type, x.type.bits)
        over = e.icmp("uge", count, bits)
        if opcode == "ashr":
            return e.ashr(x, e.select(over, e.const(x.type, x.type.bits - 1), count))
        shifted = e._binary(opcode, x, e.select(over, e.const(x.type, 0), count))
        return e.select(over, e.const(x.type, 0), shifted)

    return emit


def _power_integer(signed: bool) -> Callable[..., V]:
    """Square and multiply, one pass per bit of the exponent; a negative exponent gives 1 / x**n truncated."""

    def emit(e: Emitter, x: V, y: V) -> V:
        zero, one = e.const(x.type, 0), e.const(x.type, 1)
        result, base = one, x
        for bit in range(x.type.bits - (1 if signed else 0)):
            mask = e.const(y.type, 1 << bit)
            taken = e.icmp("ne", e.and_(y, mask), zero)
            result = e.select(taken, e.imul(result, base), result)
            base = e.imul(base, base)
        if not signed:
            return result
        minus_one = e.const(x.type, -1)
        odd = e.icmp("ne", e.and_(y, one), zero)
        of_minus_one = e.select(odd, minus_one, one)
        inverse = e.select(
            e.icmp("eq", x, one), one, e.select(e.icmp("eq", x, minus_one), of_minus_one, zero)
        )
        return e.select(e.icmp("slt", y, zero), inverse, result)

    return emit


_PREDICATES = {
    "eq": ("oeq", "eq", "eq"),
    "ne": ("une", "ne", "ne"),
    "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"),
    "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"),
}


def _compare(kind: str) -> Emit:
    floating, signed, unsigned = _PREDICATES[kind]

    def emit(e: Emitter, dtype: DType, xs: list[V]) -> V:
        if dtype.kind == "float":
            return e.fcmp(floating, *xs)
        return e.icmp(signed if dtype.kind == "signed" else unsigned, *xs)

    return emit


def _is_inf(e: Emitter, dtype: DType, xs: list[V]) -> V:
    return e.fcmp("oeq", e.abs(xs[0]), e.const(xs[0].type, float("inf")))


def _select(e: Emitter, dtype: DType, xs: list[V]) -> V:
    return e.select(*xs)


def _plain(method: Callable[..., V]) -> Emit:
    return lambda e, dtype, xs: method(e, *xs)


SCALARS: Mapping[str, Emit] = {
    "neg": _by_kind(Emitter.neg, lambda e, x: e.isub(e.const(x.type, 0), x)),
    "abs": _by_kind(Emitter.abs, _abs_int, lambda e, x: x),
    "sign": _by_kind(_sign_float, _sign_int, _sign_unsigned),
    "floor": _plain(Emitter.floor),
    "ceil": _plain(Emitter.ceil),
    "trunc": _plain(Emitter.trunc),
    "round_even": _plain(Emitter.rint),
    "sqrt": _plain(Emitter.sqrt),
    "not": _plain(Emitter.not_),
    "add": _by_kind(Emitter.add, Emitter.iadd),
    "sub": _by_kind(Emitter.sub, Emitter.isub),
    "mul": _by_kind(Emitter.mul, Emitter.imul),
    "div": _by_kind(Emitter.div, _divide(True, False), _divide(False, False)),
    "rem": _by_kind(Emitter.rem, _divide(True, True), _divide(False, True)),
    "mod": _by_kind(_modulo_float, _modulo_signed, _divide(False, True)),
    "max": _by_kind(_extreme(True), Emitter.smax, Emitter.umax),
    "min": _by_kind(_extreme(False), Emitter.smin, Emitter.umin),
    "and": _plain(Emitter.and_),
    "or": _plain(Emitter.or_),
    "xor": _plain(Emitter.xor),
    "shl": _plain(_shift("shl")),
    "shr": _by_kind(_shift("lshr"), _shift("ashr"), _shift("lshr")),
    "copysign": _plain(Emitter.copysign),
    "select": _select,
    "is_nan": lambda e, dtype, xs: e.fcmp("uno", xs[0], xs[0]),
    "is_inf": _is_inf,
    "fma": _plain(Emitter.fma),
    "random": _plain(philox),
    "trailing_zeros": _plain(Emitter.count_trailing_zeros),
    "pow": _by_kind(MATH["pow"], _power_integer(True), _power_integer(False)),
    **{kind: _compare(kind) for kind in _PREDICATES},
    **{kind: _plain(MATH[kind]) for kind in MATH if kind != "pow"},
}
