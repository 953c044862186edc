"""Preparing features, and linear models, of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.matmul import matrix_product
from sardonyx.ops.ml_scores import best_class, class_labels
from sardonyx.ops.ml_scores import post_transform as transform
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, product
from sardonyx_runtime.dtypes import DType

__all__: list[str] = []

ML = "ai.onnx.ml"


def _wide(dtype: DType) -> DType:
    """The type to compute in: float64 for what float32 does not hold."""
    return dtypes.f32 if dtype is dtypes.f32 else dtypes.f64


def _per_feature(b: Builder, x: Value, values: Sequence[float], what: str) -> Value:
    """One value for all features or one for each (the last axis), spread over x."""
    extent = x.type.shape[-1] if x.type.rank else 1
    if len(values) == 1:
        return b.full(values[0], x)
    if isinstance(extent, Dim):
        b.require(
            "equal", extent, len(values), f"{what} has {len(values)} values, one per feature of {x.name}"
        )
        return b.broadcast_to(b.assume_shape(b.constant(values, x.type.dtype), (extent,)), x.type.shape)
    if len(values) != extent:
        raise CompileError(
            f"{what} has {len(values)} values for {x.type.describe()}; 1 or {extent} are needed"
        )
    return b.broadcast_to(b.constant(values, x.type.dtype), x.type.shape)


@onnx_op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(b: Builder, x: Value, indices: Value) -> Value:
    count = product(indices.type.shape)
    picked = b.op("core.gather", x, b.reshape(indices, (count,)), axis=x.type.rank - 1)
    return b.reshape(picked, (1, count)) if x.type.rank == 1 else picked


@onnx_op("Binarizer", domain=ML)
def binarizer(b: Builder, x: Value, *, threshold: float) -> Value:
    wide = b.convert(x, _wide(x.type.dtype))
    return b.convert(b.gt(wide, b.full(threshold, wide)), x.type.dtype)


@onnx_op("Scaler", domain=ML)
def scaler(
    b: Builder, x: Value, *, offset: Sequence[float] = (0.0,), scale: Sequence[float] = (1.0,)
) -> Value:
    wide = b.convert(x, _wide(x.type.dtype))
    moved = b.sub(wide, _per_feature(b, wide, offset, "offset"))
    return b.convert(b.mul(moved, _per_feature(b, wide, scale, "scale")), dtypes.f32)


@onnx_op("Normalizer", domain=ML)
def normalizer(b: Builder, x: Value, *, norm: str) -> Value:
    """L1 divides by the sum of the absolute values, as all engines do, though the text has no bars."""
    if x.type.rank not in (1, 2):
        raise CompileError(f"Normalizer takes rank 1 or 2, not {x.type.describe()}")
    wide = b.convert(x, _wide(x.type.dtype))
    axis = (x.type.rank - 1,)
    if norm == "MAX":
        divisor = b.reduce("max", wide, axis, keepdims=True)
    elif norm == "L1":
        divisor = b.reduce("sum", b.abs(wide), axis, keepdims=True)
    elif norm == "L2":
        divisor = b.sqrt(b.reduce("sum", b.mul(wide, wide), axis, keepdims=True))
    else:
        raise CompileError(f"norm is {norm!r}; known are MAX, L1, L2")
    spread = b.broadcast_to(divisor, wide.type.shape)
    safe = b.select(b.eq(spread, b.full(0, spread)), b.full(1, spread), spread)
    return b.convert(b.div(wide, safe), dtypes.f32)


@onnx_op("Imputer", domain=ML)
def imputer(
    b: Builder,
    x: Value,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float,
    replaced_value_int64: int,
) -> Value:
    """A NaN to be replaced is any NaN."""
    is_float = x.type.dtype.is_float
    new = imputed_value_floats if is_float else imputed_value_int64s
    if not new:
        raise CompileError(
            f"Imputer of {x.type.describe()} needs imputed_value_{'floats' if is_float else 'int64s'}"
        )
    old = replaced_value_float if is_float else replaced_value_int64
    found = b.is_nan(x) if is_float and np.isnan(old) else b.eq(x, b.full(old, x))
    return b.select(found, _per_feature(b, x, new, "imputed_value"), x)


@onnx_op("FeatureVectorizer", domain=ML)
def feature_vectorizer(b: Builder, *parts: Value, inputdimensions: Sequence[int] | None = None) -> Value:
    rows = []
    for part in parts:
        if part.type.rank not in (1, 2):
            raise CompileError(f"FeatureVectorizer takes rank 1 or 2, not {part.type.describe()}")
        two = part if part.type.rank == 2 else b.reshape(part, (1, *part.type.shape))
        rows.append(b.convert(two, dtypes.f32))
    if inputdimensions is not None:
        for part, wanted in zip(rows, inputdimensions, strict=True):
            if isinstance(part.type.shape[1], int) and part.type.shape[1] != wanted:
                raise CompileError(f"inputdimensions has {wanted} for {part.type.describe()}")
    return b.op("core.concat", *rows, axis=1)


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(
    b: Builder,
    x: Value,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int,
) -> Value:
    """A new last axis with a 1 at the category.  Without ``zeros``, a value of no category is a fault."""
    of_text = x.type.dtype is dtypes.string
    categories = cats_strings if of_text else cats_int64s
    if not categories:
        raise CompileError(
            f"OneHotEncoder of {x.type.describe()} needs cats_{'strings' if of_text else 'int64s'}"
        )
    keys = b.constant(list(categories), dtypes.string if of_text else dtypes.i64)
    shape = (*x.type.shape, len(categories))
    values = b.broadcast_to(b.reshape(x if of_text else b.convert(x, dtypes.i64), (*x.type.shape, 1)), shape)
    hit = (b.string_equal if of_text else b.eq)(values, b.broadcast_to(keys, shape))
    if not zeros:
        raise CompileError("OneHotEncoder with zeros=0 is not supported", hint="with zeros=1 it is")
    return b.convert(hit, dtypes.f32)


def _linear(
    b: Builder, x: Value, coefficients: Sequence[float], intercepts: Sequence[float] | None, targets: int
) -> Value:
    """x W + intercepts [rows, targets], in float32 (float64 for wider x)."""
    if x.type.rank == 1:
        x = b.reshape(x, (1, *x.type.shape))
    if x.type.rank != 2 or targets < 1 or len(coefficients) % targets:
        raise CompileError(
            f"{len(coefficients)} coefficients for {targets} targets do not fit {x.type.describe()}"
        )
    wide = b.convert(x, _wide(x.type.dtype))
    weights = np.asarray(coefficients, wide.type.dtype.numpy).reshape(targets, -1)
    score = matrix_product(b, wide, b.constant(np.ascontiguousarray(weights.T)))
    if intercepts:
        if len(intercepts) != targets:
            raise CompileError(f"{len(intercepts)} intercepts for {targets} targets")
        score = b.add(score, b.broadcast_to(b.constant(list(intercepts), score.type.dtype), score.type.shape))
    return b.convert(score, dtypes.f32)


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(
    b: Builder,
    x: Value,
    *,
    coefficients: Sequence[float] = (),
    intercepts: Sequence[float] | None = None,
    targets: int,
    post_transform: str,
) -> Value:
    return transform(b, _linear(b, x, coefficients, intercepts, targets), post_transform)


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(
    b: Builder,
    x: Value,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    multi_class: int,
    post_transform: str,
) -> tuple[Value, Value]:
    """One column for two classes is the score of the second; the first has the opposite one."""
    labels = classlabels_ints or classlabels_strings or ()
    width = x.type.shape[-1]
    if isinstance(width, Dim) or not width:
        raise CompileError(f"LinearClassifier needs a known number of features, not {x.type.describe()}")
    targets = len(coefficients) // width
    score = _linear(b, x, coefficients, intercepts, targets)
    if targets == 1:
        wins = b.gt(score, b.full(0.0, score))
        index = b.convert(b.reshape(wins, score.type.shape[:1]), dtypes.i64)
        if len(labels) == 2:
            score = b.op("core.concat", b.neg(score), score, axis=1)
        return class_labels(b, index, labels or (0, 1)), transform(b, score, post_transform)
    return class_labels(b, best_class(b, score), labels), transform(b, score, post_transform)
