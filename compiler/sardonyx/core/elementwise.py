"""Elementwise core ops: result[i] is a function of operand[i]; all shapes are equal.

Each is a line of a table: the types it is defined for, its NumPy meaning, its traits, what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core import rounding
from sardonyx.core.meanings import (
    Meaning,
    divide,
    erf,
    extreme,
    integral,
    modulo,
    normal_cdf,
    plain,
    power,
    remainder,
    shift,
    sigmoid,
    sign,
    softplus,
    wide,
)
from sardonyx.core.randomness import philox
from sardonyx.core.rules import one_dtype, one_shape, tensors
from sardonyx.core.small_floats import ROUND_MODES, OutOfRange
from sardonyx.ir.declare import Trait, TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dims, dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["BINARY", "COMPARE", "UNARY", "example"]

Array = np.ndarray[Any, Any]

FLOAT = "f16 f32 f64 bf16"
INTEGER = "i8 i16 i32 i64 ui8 ui16 ui32 ui64"
NUMBER = f"{FLOAT} {INTEGER}"
COMPLEX = "complex<f32> complex<f64>"


def _dtypes(names: str) -> frozenset[DType]:
    return frozenset(dtypes.by_name(n) for n in names.split())


def _rule(kind: str, allowed: frozenset[DType], result: DType | None) -> Any:
    def infer(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
        operands = tensors(types, kind)
        one_dtype(operands, kind)
        one_shape(operands, kind)
        first = operands[0]
        if first.dtype not in allowed:
            raise TypeRuleError(f"{kind} is not defined for {first.dtype.onnx_name}")
        return [TensorType(result or first.dtype, first.shape)]

    infer.__doc__ = f"{result or 'The dtype of x'}, the shape of x; all operands are of one dtype and shape."
    return infer


EXACT = frozenset({Trait.EXACT})
ONCE = frozenset({Trait.EXACT, Trait.IDEMPOTENT})
SYMMETRIC = frozenset({Trait.EXACT, Trait.COMMUTATIVE})
FAULTS = frozenset({Trait.EXACT, Trait.CAN_FAULT})
INEXACT: frozenset[str] = frozenset()


def _inexact(fn: Callable[..., Any]) -> Meaning:
    return wide(fn, exact=False)


# kind: (allowed types, meaning, traits, what it is)
UNARY: dict[str, tuple[str, Meaning, frozenset[str], str]] = {
    "neg": (f"{NUMBER} {COMPLEX}", plain(np.negative), EXACT, "minus x; the sign bit of a float flips"),
    "abs": (NUMBER, plain(np.abs), ONCE, "x without its sign; the lowest integer stays itself"),
    "sign": (NUMBER, plain(sign), ONCE, "-1, 0 or 1; NaN for NaN"),
    "floor": (FLOAT, integral(np.floor), ONCE, "round down; NaNs keep their payload, -0 its sign"),
    "ceil": (FLOAT, integral(np.ceil), ONCE, "round up"),
    "trunc": (FLOAT, integral(np.trunc), ONCE, "round toward zero"),
    "round_even": (FLOAT, integral(np.rint), ONCE, "round half to even"),
    "sqrt": (FLOAT, wide(np.sqrt, exact=True), EXACT, "square root, correctly rounded"),
    "not": (f"i1 {INTEGER}", plain(np.invert), EXACT, "logical not of bool, all bits of an integer"),
    "exp": (FLOAT, _inexact(np.exp), INEXACT, "e to the x"),
    "expm1": (FLOAT, _inexact(np.expm1), INEXACT, "exp(x) - 1, accurate near 0"),
    "log": (FLOAT, _inexact(np.log), INEXACT, "natural logarithm"),
    "log1p": (FLOAT, _inexact(np.log1p), INEXACT, "log(1 + x), accurate near 0"),
    "sin": (FLOAT, _inexact(np.sin), INEXACT, "sine, radians"),
    "cos": (FLOAT, _inexact(np.cos), INEXACT, "cosine, radians"),
    "tan": (FLOAT, _inexact(np.tan), INEXACT, "tangent, radians"),
    "asin": (FLOAT, _inexact(np.arcsin), INEXACT, "arc sine"),
    "acos": (FLOAT, _inexact(np.arccos), INEXACT, "arc cosine"),
    "atan": (FLOAT, _inexact(np.arctan), INEXACT, "arc tangent"),
    "sinh": (FLOAT, _inexact(np.sinh), INEXACT, "hyperbolic sine"),
    "cosh": (FLOAT, _inexact(np.cosh), INEXACT, "hyperbolic cosine"),
    "tanh": (FLOAT, _inexact(np.tanh), INEXACT, "hyperbolic tangent"),
    "asinh": (FLOAT, _inexact(np.arcsinh), INEXACT, "inverse hyperbolic sine"),
    "acosh": (FLOAT, _inexact(np.arccosh), INEXACT, "inverse hyperbolic cosine"),
    "atanh": (FLOAT, _inexact(np.arctanh), INEXACT, "inverse hyperbolic tangent"),
    "erf": (FLOAT, _inexact(erf), INEXACT, "error function"),
    "normal_cdf": (
        FLOAT,
        _inexact(normal_cdf),
        INEXACT,
        "(1 + erf(x / sqrt(2))) / 2, accurate in both tails",
    ),
    "sigmoid": (FLOAT, _inexact(sigmoid), INEXACT, "1 / (1 + exp(-x)) without overflow"),
    "softplus": (FLOAT, _inexact(softplus), INEXACT, "log(1 + exp(x)) without overflow"),
}


def _object(fn: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The meaning on arrays of dims."""

    def evaluate(attributes: Mapping[str, Any], x: Array, y: Array) -> Array:
        shape = np.broadcast_shapes(x.shape, y.shape)
        return np.asarray(np.frompyfunc(fn, 2, 1)(x, y), dtype=object).reshape(shape)

    return evaluate


def _symbolic_divide(a: Any, b: Any) -> Any:
    """Rounded toward zero; None for a divisor that may be negative or is 0."""
    if isinstance(b, int) and b < 0:
        a, b = -a, -b
    if b == 0 or not dims.never_negative(b):
        return None
    if dims.never_negative(a):
        return dims.floordiv(a, b)
    return dims.floordiv(dims.maximum(a, 0), b) - dims.floordiv(dims.maximum(-a, 0), b)


def _symbolic_modulo(a: Any, b: Any) -> Any:
    return None if b == 0 else dims.modulo(a, b)


def _exact(fn: Callable[..., Any]) -> Meaning:
    return wide(fn, exact=True)


ADD, SUB, MUL = (_object(fn) for fn in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b))
DIV, MOD = _object(_symbolic_divide), _object(_symbolic_modulo)
MAX, MIN = _object(dims.maximum), _object(dims.minimum)

# kind: (allowed types, meaning, traits, what it is, meaning on dims)
BINARY: dict[str, tuple[str, Meaning, frozenset[str], str, Meaning | None]] = {
    "add": (f"{NUMBER} {COMPLEX}", _exact(np.add), SYMMETRIC, "x + y", ADD),
    "sub": (f"{NUMBER} {COMPLEX}", _exact(np.subtract), EXACT, "x - y", SUB),
    "mul": (f"{NUMBER} {COMPLEX}", _exact(np.multiply), SYMMETRIC, "x * y", MUL),
    "div": (
        f"{NUMBER} {COMPLEX}",
        divide,
        FAULTS,
        "x / y; integers truncate, a zero divisor is a fault",
        DIV,
    ),
    "rem": (NUMBER, remainder, FAULTS, "remainder with the sign of x (fmod)", None),
    "mod": (NUMBER, modulo, FAULTS, "remainder with the sign of y", MOD),
    "pow": (NUMBER, power, INEXACT, "x to the y; exact and wrapping for integers", None),
    "max": (NUMBER, extreme(np.maximum, largest=True), SYMMETRIC, "the larger; NaN wins, +0 above -0", MAX),
    "min": (NUMBER, extreme(np.minimum, largest=False), SYMMETRIC, "the smaller; NaN wins, -0 below +0", MIN),
    "and": (f"i1 {INTEGER}", plain(np.bitwise_and), SYMMETRIC, "bitwise and", None),
    "or": (f"i1 {INTEGER}", plain(np.bitwise_or), SYMMETRIC, "bitwise or", None),
    "xor": (f"i1 {INTEGER}", plain(np.bitwise_xor), SYMMETRIC, "bitwise exclusive or", None),
    "shl": (INTEGER, shift(left=True), EXACT, "shift left; a count of the width or more gives 0", None),
    "shr": (INTEGER, shift(left=False), EXACT, "shift right, arithmetic for signed types", None),
    "random": ("ui64", philox, EXACT, "64 random bits for the index x under the key y (Philox4x32-10)", None),
    "copysign": (FLOAT, plain(np.copysign), EXACT, "x with the sign of y", None),
}

COMPARE: dict[str, tuple[Callable[..., Any], str]] = {
    "eq": (np.equal, "x == y; false for NaN"),
    "ne": (np.not_equal, "x != y; true for NaN"),
    "lt": (np.less, "x < y; false for NaN"),
    "le": (np.less_equal, "x <= y; false for NaN"),
    "gt": (np.greater, "x > y; false for NaN"),
    "ge": (np.greater_equal, "x >= y; false for NaN"),
}


def example(kind: str, operands: str, allowed: str, result: str = "", type: str = "tensor<4x{}>") -> str:
    """An op of a level's name in text: of f32 if that is allowed, else of the first type that is."""
    names = allowed.split()
    dtype = "f32" if "f32" in names else names[0]
    taken = ", ".join([type.format(dtype)] * len(operands.split()))
    values = ", ".join(f"%{name}" for name in operands.split())
    return f"%r = {kind} {values} : ({taken}) -> {type.format(result or dtype)}"


for _kind, (_allowed, _fn, _traits, _doc) in UNARY.items():
    declare(
        f"core.{_kind}",
        "x",
        infer=_rule(_kind, _dtypes(_allowed), None),
        evaluate=_fn,
        symbolic=(lambda attributes, x: -x) if _kind == "neg" else None,
        traits=[Trait.ELEMENTWISE, *_traits],
        doc=_doc,
        example=example(f"core.{_kind}", "x", _allowed),
    )
for _kind, (_allowed, _fn, _traits, _doc, _symbolic) in BINARY.items():
    declare(
        f"core.{_kind}",
        "x y",
        infer=_rule(_kind, _dtypes(_allowed), None),
        evaluate=_fn,
        symbolic=_symbolic,
        traits=[Trait.ELEMENTWISE, *_traits],
        doc=_doc,
        example=example(f"core.{_kind}", "x y", _allowed),
    )


def _decide(kind: str) -> Callable[[Any, Any], bool | None]:
    """A comparison of dims, where it holds for all values of the symbols; else None."""

    def decide(a: Any, b: Any) -> bool | None:
        difference = a - b
        if isinstance(difference, int):
            return bool(COMPARE[kind][0](difference, 0))
        positive, negative = dims.never_negative(difference - 1), dims.never_negative(-difference - 1)
        at_least, at_most = dims.never_negative(difference), dims.never_negative(-difference)
        yes, no = {
            "eq": (False, positive or negative),
            "ne": (positive or negative, False),
            "lt": (negative, at_least),
            "le": (at_most, positive),
            "gt": (positive, at_most),
            "ge": (at_least, negative),
        }[kind]
        return True if yes else False if no else None

    return decide


for _kind, (_ufunc, _doc) in COMPARE.items():
    _allowed = f"i1 {NUMBER} {COMPLEX}" if _kind in ("eq", "ne") else f"i1 {NUMBER}"
    declare(
        f"core.{_kind}",
        "x y",
        infer=_rule(_kind, _dtypes(_allowed), dtypes.boolean),
        evaluate=plain(_ufunc),
        symbolic=_object(_decide(_kind)),
        traits=[Trait.ELEMENTWISE, *(SYMMETRIC if _kind in ("eq", "ne") else EXACT)],
        doc=_doc,
        example=example(f"core.{_kind}", "x y", _allowed, "i1"),
    )

for _kind, _test, _doc in (
    ("is_nan", np.isnan, "whether x is a NaN"),
    ("is_inf", np.isinf, "whether x is an infinity of either sign"),
):
    declare(
        f"core.{_kind}",
        "x",
        infer=_rule(_kind, _dtypes(FLOAT), dtypes.boolean),
        evaluate=plain(_test),
        traits=[Trait.ELEMENTWISE, *EXACT],
        doc=_doc,
        example=example(f"core.{_kind}", "x", FLOAT, "i1"),
    )


def _select_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The type of x; x and y have one dtype, all three one shape, the condition is i1."""
    condition, x, y = tensors(types, "select")
    if condition.dtype is not dtypes.boolean:
        raise TypeRuleError(f"select: the condition is {condition.dtype.onnx_name}, bool is needed")
    one_dtype([x, y], "select")
    one_shape([condition, x, y], "select")
    return [x]


def _select(attributes: Mapping[str, Any], condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y).astype(x.dtype)


declare(
    "core.select",
    "condition x y",
    infer=_select_rule,
    evaluate=_select,
    symbolic=lambda attributes, condition, x, y: np.where(condition.astype(bool), x, y),
    traits=[Trait.ELEMENTWISE, *EXACT],
    doc="x where the condition holds, else y; bits are passed on unchanged",
    example="%z = core.select %condition, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
)


def _convert_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype `to`, the shape of x."""
    (x,) = tensors(types, "convert")
    to: DType = attributes["to"]
    if (x.dtype is dtypes.string) != (to is dtypes.string):
        raise TypeRuleError(f"convert from {x.dtype.onnx_name} to {to.onnx_name}: text has no number")
    infinity, round_mode = attributes.get("infinity", "saturate"), attributes.get("round_mode", "up")
    if infinity not in ("saturate", "nan") or round_mode not in ROUND_MODES:
        raise TypeRuleError(f"convert: infinity {infinity!r} or round_mode {round_mode!r} is unknown")
    return [TensorType(to, x.shape)]


def _convert(attributes: Mapping[str, Any], x: Array) -> Array:
    rule = {k: attributes[k] for k in ("saturate", "infinity", "round_mode") if k in attributes}
    return rounding.convert(x, attributes["to"], OutOfRange(**rule))


def _symbolic_convert(attributes: Mapping[str, Any], x: Array) -> Array | None:
    return x if attributes["to"].is_integer and attributes["to"].bits >= 32 else None


declare(
    "core.convert",
    "x",
    "to saturate? round_mode? infinity?",
    infer=_convert_rule,
    evaluate=_convert,
    symbolic=_symbolic_convert,
    traits=[Trait.ELEMENTWISE, *EXACT],
    doc=(
        "the value in another element type, by the conversion table of docs/numerics.md; for small floats "
        "`saturate` (true) and what that makes of an `infinity` (`saturate` or `nan`), for E8M0 also the "
        "`round_mode` (`up`, `down` or `nearest`)"
    ),
    example="%y = core.convert %x {to = i32} : (tensor<4xf32>) -> tensor<4xi32>",
)


def _bitcast_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype `to`, which is as wide as that of x; the shape of x."""
    (x,) = tensors(types, "bitcast")
    to = attributes["to"]
    if to.bits != x.dtype.bits or "string" in (to.kind, x.dtype.kind):
        raise TypeRuleError(f"bitcast from {x.dtype.onnx_name} to {to.onnx_name}: the widths differ")
    return [TensorType(to, x.shape)]


def _bitcast(attributes: Mapping[str, Any], x: Array) -> Array:
    to: DType = attributes["to"]
    if to.bits < 8:
        bits = x.astype(np.int8) if x.dtype in (dtypes.i4.numpy, dtypes.i2.numpy) else x.view(np.uint8)
        bits = bits.astype(np.uint8) & ((1 << to.bits) - 1)
        if to.kind == "signed":
            sign = 1 << (to.bits - 1)
            return ((bits ^ sign).astype(np.int8) - sign).astype(to.numpy)
        return bits.astype(to.numpy) if to.kind == "unsigned" else bits.view(to.numpy)
    return np.asarray(x, order="C").view(to.numpy)


declare(
    "core.bitcast",
    "x",
    "to",
    infer=_bitcast_rule,
    evaluate=_bitcast,
    traits=[Trait.ELEMENTWISE, *EXACT],
    doc="the same bits as another element type of the same width",
    example="%y = core.bitcast %x {to = i32} : (tensor<4xf32>) -> tensor<4xi32>",
)
