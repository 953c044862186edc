"""Floor, bit for bit: every version, every type, every kind of value and of array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

from ..helpers import check, each_engine, make_model, prepare, run_model, tensor
from .document_examples import FLOOR

Array = np.ndarray[Any, Any]

FLOATS = [dtypes.f16, dtypes.f32, dtypes.f64, dtypes.bf16]
VERSIONS = [(opset, t) for opset in (1, 6, 13, 28) for t in FLOATS if t is not dtypes.bf16 or opset >= 13]
each_version = pytest.mark.parametrize(("opset", "dtype"), VERSIONS, ids=str)
each_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)


def floor(x: Any, engine: str, opset: int = 13) -> Array:
    (y,) = run_model(make_model("y = Floor (x)", {"x": x}, opset=opset), [x], engine)
    return np.asarray(y)


def from_bits(bits: Any, dtype: DType) -> Array:
    return np.array(bits, f"u{dtype.itemsize}").view(dtype.numpy)


def expected(x: Array) -> Array:
    """Floor by taking the fraction's bits off the magnitude: no rounding function is involved."""
    dtype = dtypes.by_numpy(x.dtype)
    width, mantissa = dtype.bits, dtype.mantissa
    bits = x.reshape(-1).view(f"u{dtype.itemsize}").tolist()
    bias, top = (1 << (width - mantissa - 2)) - 1, 1 << (width - 1)
    result = []
    for value in bits:
        sign, size = value & top, value & (top - 1)
        exponent = (size >> mantissa) - bias
        if exponent >= mantissa or size == 0:
            result.append(value)  # integral, infinite, NaN or zero
        elif exponent < 0:
            result.append(top | (bias << mantissa) if sign else 0)  # -1 or 0
        else:
            fraction = size & ((1 << (mantissa - exponent)) - 1)
            whole = size - fraction
            step = 1 << (mantissa - exponent)  # one, in the bits; a carry into the exponent is right
            result.append(sign | (whole + step if sign and fraction else whole))
    return from_bits(result, dtype).reshape(x.shape)


@pytest.mark.parametrize("name", FLOOR)
@each_engine
def test_examples_of_the_document(name: str, engine: str) -> None:
    dtype, ((shape, values),), (_, result) = FLOOR[name]
    x = tensor(dtype, [float(v) for v in values.split()], shape)
    y = tensor(dtype, [float(v) for v in result.split()], shape)
    for opset in (1, 6, 13, 28) if dtype != "bfloat16" else (13, 28):
        check(floor(x, engine, opset), y)


def special_bits(dtype: DType) -> list[int]:
    """Zeros, subnormals, ones, halves, the last numbers with a fraction, infinities, NaNs of any payload."""
    mantissa, top = dtype.mantissa, 1 << (dtype.bits - 1)
    bias = (1 << (dtype.bits - mantissa - 2)) - 1
    infinity = (2 * bias + 1) << mantissa
    quiet = 1 << (mantissa - 1)
    around = [(bias + e) << mantissa for e in (-1, 0, 1, mantissa - 1, mantissa, mantissa + 1)]
    sizes = [
        *(0, 1, 2, (1 << mantissa) - 1, 1 << mantissa),
        *(b + d for b in around for d in (-2, -1, 0, 1, 2, 3)),
        *(infinity - 1, infinity, infinity + 1, infinity + quiet - 1, infinity + quiet, top - 1),
    ]
    return sizes + [top | s for s in sizes]


@each_version
@each_engine
def test_special_values(opset: int, dtype: DType, engine: str) -> None:
    x = from_bits(special_bits(dtype), dtype)
    check(floor(x, engine, opset), expected(x), nan_bits=True)


@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16], ids=str)
@each_engine
def test_all_values_of_16_bits(dtype: DType, engine: str) -> None:
    x = from_bits(np.arange(1 << 16), dtype)
    check(floor(x, engine), expected(x), nan_bits=True)


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=str)
@each_engine
def test_random_bits(dtype: DType, engine: str) -> None:
    generator = np.random.default_rng(20)
    x = from_bits(generator.integers(0, 1 << dtype.bits, 4000, f"u{dtype.itemsize}"), dtype)
    near_one = generator.normal(scale=300, size=4000).astype(dtype.numpy)
    check(floor(x, engine), expected(x), nan_bits=True)
    check(floor(near_one, engine), expected(near_one))


SHAPES = [
    (),
    (0,),
    (3, 0, 2),
    *((n,) for n in (1, 7, 8, 15, 16, 17, 31, 33, 64, 70)),
    (2,) * 8,
    (1, 1, 7, 1, 3),
]


@each_float
@each_engine
def test_shapes(dtype: DType, engine: str) -> None:
    for shape in SHAPES:
        size = int(np.prod(shape))
        x = (np.arange(size) * 0.75 - 20.25).astype(dtype.numpy).reshape(shape)
        check(floor(x, engine), expected(x))


@each_float
@each_engine
def test_one_preparation_serves_all_lengths(dtype: DType, engine: str) -> None:
    numbers = (np.arange(70) * 0.3 - 9).astype(dtype.numpy)
    run = prepare(make_model("y = Floor (x)", {"x": numbers}, dims={"x": ["n"]}), engine)
    for length in range(71):
        check(run([numbers[:length]])[0], expected(numbers[:length]))


@each_float
@each_engine
def test_one_preparation_serves_many_shapes(dtype: DType, engine: str) -> None:
    for rank in range(1, 9):
        x = np.zeros((1,) * rank, dtype.numpy)
        dims = {"x": [f"n{axis}" for axis in range(rank)]}
        run = prepare(make_model("y = Floor (x)", {"x": x}, dims=dims), engine)
        for shape in [
            (1,) * rank,
            (2,) * rank,
            (*(1,) * (rank - 1), 70),
            (33, *(1,) * (rank - 1)),
            (0,) * rank,
        ]:
            size = int(np.prod(shape))
            x = (np.arange(size) * 0.3 - 9).astype(dtype.numpy).reshape(shape)
            check(run([x])[0], expected(x))


def layouts(x: Array) -> dict[str, Array]:
    """The same values laid out in unusual ways."""
    padded = np.zeros(x.nbytes + 1, np.uint8)
    padded[1:] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
    spread = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
    spread[::2, ::3] = x
    constant = x.copy()
    constant.flags.writeable = False
    made = {
        "every other element": spread[::2, ::3],
        "backwards": np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        "columns first": np.asfortranarray(x),
        "repeated row": np.broadcast_to(x[:1], x.shape),
        "read-only": constant,
        "not aligned": padded[1:].view(x.dtype).reshape(x.shape),
    }
    if x.dtype.kind == "f":
        made["foreign byte order"] = x.astype(x.dtype.newbyteorder())
    return made


@each_float
@each_engine
def test_layouts(dtype: DType, engine: str) -> None:
    x = (np.arange(35) * 0.7 - 11).astype(dtype.numpy).reshape(5, 7)
    run = prepare(make_model("y = Floor (x)", {"x": x}), engine)
    for array in layouts(x).values():
        before = array.copy()
        native = np.array(array, dtype.numpy)
        check(run([array])[0], expected(native))
        check(array, before)


@each_float
@each_engine
def test_numpy_scalar(dtype: DType, engine: str) -> None:
    x = np.array(-2.5, dtype.numpy)[()]
    check(floor(x, engine), np.array(-3, dtype.numpy))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "bool"])
@pytest.mark.parametrize("opset", [1, 6, 13])
def test_integers_are_refused(dtype: str, opset: int) -> None:
    x = tensor(dtype, [1, 0])
    with pytest.raises(CompileError) as error:
        prepare(make_model("[round_down] y = Floor (x)", {"x": x}, opset=opset))
    assert all(word in str(error.value) for word in ("round_down", "Floor", dtype, "float16"))


@pytest.mark.parametrize("opset", [1, 6, 12])
def test_bfloat16_is_refused_before_opset_13(opset: int) -> None:
    x = tensor("bfloat16", [1.5])
    with pytest.raises(CompileError) as error:
        prepare(make_model("[round_down] y = Floor (x)", {"x": x}, opset=opset))
    assert all(word in str(error.value) for word in ("round_down", "bfloat16", "opset 13"))
