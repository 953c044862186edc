"""QuantizeLinear and DequantizeLinear: every version, granularity and type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model, tensor

INTEGERS = [getattr(dtypes, name) for name in ("u8", "i8", "u16", "i16", "u4", "i4", "u2", "i2")]
FLOATS = [t for t in dtypes.ALL if t.is_small_float and t is not dtypes.f8e8m0]


def quantize(
    x: Array, scale: Array, zero: Array | None = None, *, engine: str, opset: int = 28, more: str = ""
) -> Array:
    feeds = {"x": x, "scale": scale} | ({} if zero is None else {"zero": zero})
    node = f"y = QuantizeLinear {f'<{more}>' if more else ''} ({', '.join(feeds)})"
    return np.asarray(run_model(make_model(node, feeds, opset=opset), feeds, engine)[0])


def dequantize(
    x: Array, scale: Array, zero: Array | None = None, *, engine: str, opset: int = 28, more: str = ""
) -> Array:
    feeds = {"x": x, "scale": scale} | ({} if zero is None else {"zero": zero})
    node = f"y = DequantizeLinear {f'<{more}>' if more else ''} ({', '.join(feeds)})"
    return np.asarray(run_model(make_model(node, feeds, opset=opset), feeds, engine)[0])


def limits(dtype: DType) -> tuple[int, int]:
    span = 1 << dtype.bits
    return (-span // 2, span // 2 - 1) if dtype.kind == "signed" else (0, span - 1)


def quantized(x: Array, scale: Any, zero: Any, dtype: DType) -> Array:
    """The definition: the quotient of float32, rounded to even, then exact integers."""
    quotient = np.rint(x.astype(np.float32) / np.asarray(scale, np.float32))
    low, high = limits(dtype)
    sums = np.clip(quotient.astype(np.float64) + np.asarray(zero, np.float64), low, high)
    return np.asarray(sums.astype(np.int64)).astype(dtype.numpy)


VALUES = [0, 0.5, 1.5, 2.5, 3.49, 7, 100, 127.5, 128.5, 300, 40000, 7e4, 1e30, math.inf]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@each_engine
def test_quantize_to_integers(dtype: DType, engine: str) -> None:
    x = tensor("float32", [*VALUES, *(-v for v in VALUES)])
    for zero in (0, 1, limits(dtype)[1]):
        for scale in (1.0, 0.3):
            got = quantize(
                x, tensor("float32", scale), np.array(zero, np.int64).astype(dtype.numpy), engine=engine
            )
            check(got, quantized(x, scale, zero, dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@each_engine
def test_quantize_to_floats(dtype: DType, engine: str) -> None:
    """The quotient is cast: as Cast saturates, or not where the type and the attribute allow."""
    x = tensor("float32", [*VALUES, *(-v for v in VALUES)])
    scale, zero = tensor("float32", 0.3), tensor(dtype.name, 0)
    quotient = (x / scale + np.float32(0)).astype(np.float32)
    for saturate in (1, 0):
        model = make_model(
            f"y = Cast <to = {dtype.onnx}, saturate = {saturate}> (x)", {"x": quotient}, opset=28
        )
        (want,) = run_model(model, [quotient])
        for more in (f"saturate = {saturate}", f"saturate = {saturate}, output_dtype = {dtype.onnx}"):
            given = None if "output" in more else zero
            check(quantize(x, scale, given, engine=engine, more=more), want, zero_signs=False)


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 24, 25, 28])
@each_engine
def test_every_version(opset: int, engine: str) -> None:
    x = tensor("float32", [[-300, -1, 0.5], [2.5, 100, 1000]])
    scale, zero = tensor("float32", 2), tensor("int8", 3)
    q = quantize(x, scale, zero, engine=engine, opset=opset)
    check(q, quantized(x, 2, 3, dtypes.i8))
    check(dequantize(q, scale, zero, engine=engine, opset=opset), (q.astype(np.float32) - 3) * 2)
    check(quantize(x, scale, engine=engine, opset=opset), quantized(x, 2, 0, dtypes.u8))
    check(dequantize(q, scale, engine=engine, opset=opset), q.astype(np.float32) * 2)


AXES = [("", 1), ("axis = 0", 0), ("axis = 2", 2), ("axis = -1", 2), ("axis = -3", 0)]


@pytest.mark.parametrize(("more", "axis"), AXES)
@each_engine
def test_along_an_axis(more: str, axis: int, engine: str) -> None:
    x = np.linspace(-40, 40, 24, dtype=np.float32).reshape(2, 3, 4)
    scale = np.arange(1, x.shape[axis] + 1).astype(np.float32) / 3
    zero = np.arange(x.shape[axis]).astype(np.uint8) * 40
    spread = tuple(-1 if i == axis else 1 for i in range(3))
    q = quantize(x, scale, zero, engine=engine, opset=13, more=more)
    check(q, quantized(x, scale.reshape(spread), zero.reshape(spread), dtypes.u8))
    back = (q.astype(np.float32) - zero.reshape(spread)) * scale.reshape(spread)
    check(dequantize(q, scale, zero, engine=engine, opset=13, more=more), back.astype(np.float32))


@each_engine
def test_a_vector_has_one_axis_only(engine: str) -> None:
    x, scale = tensor("float32", [1, 2, 3]), tensor("float32", [1, 2, 0.5])
    check(quantize(x, scale, engine=engine, opset=13), tensor("uint8", [1, 1, 6]))


@pytest.mark.parametrize(("axis", "size"), [(0, 2), (1, 2), (1, 3), (-1, 4), (2, 7), (1, 5)])
@each_engine
def test_blocks(axis: int, size: int, engine: str) -> None:
    """The last block may be shorter."""
    x = np.linspace(-60, 60, 4 * 5 * 7, dtype=np.float32).reshape(4, 5, 7)
    blocks = [-(-d // size) if i == axis % 3 else d for i, d in enumerate(x.shape)]
    generator = np.random.default_rng(5)
    scale = generator.uniform(0.5, 2, blocks).astype(np.float32)
    zero = generator.integers(-5, 5, blocks).astype(np.int8)
    wide_scale, wide_zero = (
        np.take(np.repeat(a, size, axis), range(x.shape[axis]), axis) for a in (scale, zero)
    )
    more = f"axis = {axis}, block_size = {size}"
    q = quantize(x, scale, zero, engine=engine, more=more)
    check(q, quantized(x, wide_scale, wide_zero, dtypes.i8))
    check(
        dequantize(q, scale, zero, engine=engine, more=more), (q.astype(np.float32) - wide_zero) * wide_scale
    )


@each_engine
def test_blocks_of_a_symbolic_extent(engine: str) -> None:
    x, scale = np.zeros((2, 6), np.int8), np.ones((2, 2), np.float32)
    dims = {"x": ["n", "k"], "s": ["n", "b"]}
    node = "[dq] y = DequantizeLinear <axis = 1, block_size = 4> (x, s)"
    run = prepare(make_model(node, {"x": x, "s": scale}, dims=dims), engine)
    for extent in (1, 4, 6, 8, 11):
        x = np.arange(2 * extent).astype(np.int8).reshape(2, extent)
        scale = np.arange(1, 2 * -(-extent // 4) + 1).astype(np.float32).reshape(2, -1)
        wide = np.repeat(scale, 4, 1)[:, :extent]
        check(run([x, scale])[0], x * wide)
    with pytest.raises(RuntimeFault, match="dq"):
        run([np.zeros((2, 9), np.int8), np.ones((2, 2), np.float32)])


@pytest.mark.parametrize("scale_type", ["float32", "float16", "bfloat16"])
@each_engine
def test_types_of_scales(scale_type: str, engine: str) -> None:
    x = tensor(scale_type, [0.1249, -0.1249, 0.749, 200, -200])
    scale = tensor(scale_type, 0.2496)
    got = quantize(x, scale, tensor("int8", 0), engine=engine, opset=19)
    check(got, quantized(x, scale.astype(np.float32), 0, dtypes.i8))
    q = tensor("uint8", [0, 7, 200, 255])
    want = ((q.astype(np.float32) - 3) * scale.astype(np.float32)).astype(scale.dtype)
    check(dequantize(q, scale, tensor("uint8", 3), engine=engine, opset=19), want)


@each_engine
def test_mixed_types_and_precisions(engine: str) -> None:
    x, scale = tensor("float32", [4.467658, 100, -3]), tensor("float16", 0.0682)
    wide = scale.astype(np.float32)
    check(quantize(x, scale, tensor("int8", 0), engine=engine), quantized(x, wide, 0, dtypes.i8))
    half = np.rint((x.astype(np.float16).astype(np.float32) / wide).astype(np.float16).astype(np.float32))
    got = quantize(x, scale, tensor("int8", 0), engine=engine, more="precision = 10")
    check(got, np.clip(half, -128, 127).astype(np.int8))
    whole = tensor("int32", [7, -7, 9, 2**31 - 1])
    got = quantize(whole, tensor("int32", 2), tensor("int16", 0), engine=engine, more="")
    check(got, tensor("int16", [4, -4, 4, 32767]))
    power = tensor("float8_e8m0fnu", 0.5)
    check(quantize(x, power, tensor("int8", 0), engine=engine, opset=24), quantized(x, 0.5, 0, dtypes.i8))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@each_engine
def test_dequantize_every_type(dtype: DType, engine: str) -> None:
    if dtype.is_integer:
        low, high = limits(dtype)
        x = np.unique(np.clip([low, low + 1, -1, 0, 1, high - 1, high], low, high)).astype(dtype.numpy)
    else:
        x = np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)
    scale = tensor("float32", 0.3)
    zero = np.array(1).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32)
        check(dequantize(x, scale, engine=engine), wide * scale)
        check(dequantize(x, scale, zero, engine=engine), (wide - np.float32(1)) * scale)
        for out in ("float16", "bfloat16"):
            number = dtypes.by_numpy(numpy_type(out)).onnx
            got = dequantize(x, scale, engine=engine, more=f"output_dtype = {number}")
            check(got, (wide * scale).astype(numpy_type(out)))


@each_engine
def test_dequantize_int32(engine: str) -> None:
    """Subtracted as integers, rounded to float32, multiplied."""
    x = tensor("int32", [2**31 - 1, 2**24 + 3, -5])
    scale = tensor("float32", 0.5)
    check(dequantize(x, scale, engine=engine, opset=13), x.astype(np.float32) * scale)
    zero = tensor("int32", 2**24)
    check(dequantize(x[1:], scale, zero, engine=engine), tensor("float32", [1.5, -(2**24 + 5) / 2]))


@each_engine
def test_dequantize_with_powers_of_two(engine: str) -> None:
    x, scale = tensor("float4_e2m1fn", [[0.5, -6], [3, 1]]), tensor("float8_e8m0fnu", [[4], [0.5]])
    more = "axis = 1, block_size = 2, output_dtype = 1"
    check(dequantize(x, scale, engine=engine, opset=24, more=more), tensor("float32", [[2, -24], [1.5, 0.5]]))


@pytest.mark.parametrize(
    ("node", "opset", "words"),
    [
        ("QuantizeLinear (x, s3)", 12, ("scale", "float[3]", "opset 13")),
        ("QuantizeLinear (x, s3)", 13, ("float[3]", "float[4, 6]", "do not broadcast")),
        ("QuantizeLinear (x, s23)", 21, ("float[2, 3]", "block_size")),
        ("QuantizeLinear <block_size = -2> (x, s23)", 21, ("block_size is -2",)),
        (
            "QuantizeLinear <block_size = 2, axis = 1> (x, s23)",
            21,
            ("blocks of 2", "float[2, 3]", "float[4, 6]"),
        ),
        ("QuantizeLinear <block_size = 2, axis = 2> (x, s23)", 21, ("axis 2",)),
        ("QuantizeLinear (x, s3, z)", 21, ("float[3]", "int8[2]", "equal")),
        ("QuantizeLinear <output_dtype = 2> (x, s, z1)", 21, ("uint8", "int8")),
        ("QuantizeLinear <output_dtype = 6> (x, s)", 21, ("int32",)),
        ("QuantizeLinear <precision = 3> (x, s)", 23, ("precision is 3",)),
        ("QuantizeLinear <output_dtype = 22> (x, s)", 23, ()),
    ],
)
def test_refusals(node: str, opset: int, words: tuple[str, ...]) -> None:
    arrays = {
        "x": np.ones((4, 6), np.float32),
        "s": np.ones((), np.float32),
        "s3": np.ones(3, np.float32),
        "s23": np.ones((2, 3), np.float32),
        "z": np.ones(2, np.int8),
        "z1": np.ones((), np.int8),
    }
    names = node.rpartition("(")[2].rstrip(")").split(", ")
    model = make_model(f"[quantise] y = {node}", {n: arrays[n] for n in names}, opset=opset)
    if not words:
        prepare(model)
        return
    with pytest.raises(CompileError) as error:
        prepare(model)
    assert all(word in str(error.value) for word in ("quantise", *words)), str(error.value)
