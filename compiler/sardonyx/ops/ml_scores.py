"""Scores of classifiers and regressors of ai.onnx.ml: their transforms, the second of two classes, the labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx_runtime import dtypes

__all__ = ["best_class", "class_labels", "post_transform", "second_class"]

Array = np.ndarray[Any, Any]


def post_transform(b: Builder, score: Value, name: str) -> Value:
    """A transform of the attribute ``post_transform`` on scores [rows, targets]."""
    if name not in _TRANSFORMS:
        raise CompileError(f"post_transform is {name!r}; known are {', '.join(_TRANSFORMS)}")
    return _TRANSFORMS[name](b, score)


def _row(b: Builder, kind: str, x: Value) -> Value:
    """A reduction of each row, spread over it again."""
    return b.broadcast_to(b.reduce(kind, x, (1,), keepdims=True), x.type.shape)


def _softmax(b: Builder, x: Value) -> Value:
    grown = b.exp(b.sub(x, _row(b, "max", x)))
    return b.div(grown, _row(b, "sum", grown))


def _softmax_zero(b: Builder, x: Value) -> Value:
    """Softmax that leaves zeros (what is at most 1e-7 in size) at zero; rows of zeros alone are halves."""
    most = _row(b, "max", x)
    zero = b.le(b.abs(x), b.full(1e-7, x))
    grown = b.select(zero, b.mul(x, b.exp(b.neg(most))), b.exp(b.sub(x, most)))
    total = _row(b, "sum", grown)
    nothing = b.eq(total, b.full(0, x))
    return b.select(nothing, b.full(0.5, x), b.div(grown, total))


# M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988; PPND7:
# numerator and denominator, lowest power first, in the middle and in the near and far tail.
_MIDDLE = (
    (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
    (1.0, 17.895169469, 78.757757664, 67.187563600),
)
_NEAR = ((1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103), (1.0, 0.73700164250, 0.12021132975))
_FAR = ((6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997), (1.0, 0.24197894225, 0.012258202635))


def _probit(b: Builder, p: Value) -> Value:
    """The inverse of the normal distribution function, to about 1e-7; infinite at 0 and 1, NaN beyond."""

    def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
        result = b.full(coefficients[-1], x)
        for coefficient in coefficients[-2::-1]:
            result = b.add(b.mul(result, x), b.full(coefficient, x))
        return result

    def ratio(x: Value, pair: tuple[Sequence[float], Sequence[float]]) -> Value:
        return b.div(polynomial(x, pair[0]), polynomial(x, pair[1]))

    q = b.sub(p, b.full(0.5, p))
    middle = b.mul(q, ratio(b.sub(b.full(0.180625, q), b.mul(q, q)), _MIDDLE))
    tail = b.min(p, b.sub(b.full(1.0, p), p))
    r = b.sqrt(b.neg(b.log(tail)))
    near, far = ratio(b.sub(r, b.full(1.6, r)), _NEAR), ratio(b.sub(r, b.full(5.0, r)), _FAR)
    outer = b.select(b.le(r, b.full(5.0, r)), near, far)
    outer = b.select(b.eq(tail, b.full(0.0, tail)), b.full(np.inf, tail), outer)
    return b.select(b.le(b.abs(q), b.full(0.425, q)), middle, b.copysign(outer, q))


_TRANSFORMS: dict[str, Callable[[Builder, Value], Value]] = {
    "NONE": lambda b, x: x,
    "SOFTMAX": _softmax,
    "LOGISTIC": lambda b, x: b.sigmoid(x),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def second_class(
    b: Builder, s: Value, column: int, base: Array, positive: bool, transform: str
) -> tuple[Value, Value]:
    """(index of the class, scores) of two classes of which only that of ``column`` has weights.

    ``s`` [rows, 1], in float64, is their sum.  What the specification leaves open is done as onnxruntime
    does it.  The second class wins above a bound: 0.5 if no weight is negative, else 0.  Weights of the first
    column are taken for the score s of the *second* class; that of the first is 1 - s if no weight is
    negative, else -s, and after LOGISTIC the complement in any case; SOFTMAX changes nothing.  Weights of the
    second column leave the first class the score 0, or its base value.
    """
    if len(base):
        s = b.add(s, b.full(float(base[-1]), s))
    s = b.convert(s, dtypes.f32)
    wins = b.gt(s, b.full(0.5 if positive else 0.0, s))
    label = b.reshape(b.convert(wins, dtypes.i64), s.type.shape[:1])
    if column == 1:
        first = b.full(float(base[0]) if len(base) == 2 else 0.0, s)
        return label, post_transform(b, b.op("core.concat", first, s, axis=1), transform)
    if transform == "LOGISTIC":
        return label, post_transform(b, b.op("core.concat", b.neg(s), s, axis=1), transform)
    other = b.sub(b.full(1.0, s), s) if positive else b.neg(s)
    scores = b.op("core.concat", other, s, axis=1)
    return label, post_transform(b, scores, transform if transform == "PROBIT" else "NONE")


def best_class(b: Builder, scores: Value) -> Value:
    """The index of the greatest score of each row, the first of equal ones; a NaN is the greatest."""
    rows, count = scores.type.shape
    index = b.op("core.iota", shape=(rows, count), axis=1, dtype=dtypes.i64)
    hit = b.or_(b.eq(scores, _row(b, "max", scores)), b.is_nan(scores))
    return b.reduce("min", b.select(hit, index, b.full(count, index)), (1,))


def class_labels(b: Builder, index: Value, labels: Sequence[int] | Sequence[str]) -> Value:
    """The label of a class by its index."""
    if not labels:
        raise CompileError("the classifier has no class labels")
    if list(labels) == list(range(len(labels))):
        return index
    dtype = dtypes.string if isinstance(labels[0], (str, bytes)) else dtypes.i64
    return b.op("core.gather", b.constant(np.array(labels, dtype.numpy), dtype), index, axis=0, trusted=True)
