"""GreaterOrEqual, bit for bit: every version, every type, every way to broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

from ..helpers import check, each_engine, make_model, prepare, run_model, tensor
from .document_examples import GREATER_OR_EQUAL

Array = np.ndarray[Any, Any]

INTEGERS = [getattr(dtypes, f"{kind}{bits}") for kind in "iu" for bits in (8, 16, 32, 64)]
FLOATS = [dtypes.f16, dtypes.f32, dtypes.f64, dtypes.bf16]
NUMBERS = INTEGERS + FLOATS
VERSIONS = [(opset, t) for opset in (12, 15, 16, 28) for t in NUMBERS if t is not dtypes.bf16 or opset >= 16]
each_version = pytest.mark.parametrize(("opset", "dtype"), VERSIONS, ids=str)
each_number = pytest.mark.parametrize("dtype", NUMBERS, ids=str)


def greater_or_equal(x: Any, y: Any, engine: str, opset: int = 16) -> Array:
    model = make_model("z = GreaterOrEqual (x, y)", {"x": x, "y": y}, opset=opset)
    (z,) = run_model(model, [x, y], engine)
    return np.asarray(z)


def expected(x: Array, y: Array) -> Array:
    """Python's own comparison, which is exact for integers and floats of any size."""
    exact = np.float64 if dtypes.by_numpy(x.dtype).is_float else object
    x, y = np.broadcast_arrays(x.astype(exact), y.astype(exact))
    flat = [a >= b for a, b in zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)]
    return np.array(flat, bool).reshape(x.shape)


def values(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Numbers of which many are equal: small ones, extremes, and their neighbours."""
    generator = np.random.default_rng(seed)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        pool = [
            *(0, 1, 2, 3, 5, 100),
            info.min,
            info.min + 1,
            info.max - 1,
            info.max,
            info.max // 2,
            info.max // 2 + 1,
        ]
        if dtype.kind == "signed":
            pool += [-1, -2, -100]
        if dtype.bits == 64:
            pool += [2**53, 2**53 + 1, 2**53 + 2, 2**62 + 1]
        choices = np.array(pool, dtype.numpy)
    else:
        bits = np.array([*range(3), (1 << dtype.mantissa) - 1, 1 << dtype.mantissa], f"u{dtype.itemsize}")
        tiny = bits.view(dtype.numpy)  # zero, subnormals, the smallest normal number
        common = np.array([1, 1.5, 100, 3e4, np.inf], dtype.numpy)
        sizes = np.concatenate([tiny, common, np.nextafter(common[:2], common[2])])
        choices = np.concatenate([sizes, -sizes, np.array([np.nan], dtype.numpy)])
    return np.asarray(choices[generator.integers(0, len(choices), shape)])


@pytest.mark.parametrize("name", GREATER_OR_EQUAL)
@each_engine
def test_examples_of_the_document(name: str, engine: str) -> None:
    dtype, inputs, (shape, printed) = GREATER_OR_EQUAL[name]
    number = float if "float" in dtype else int
    x, y = (tensor(dtype, [number(v) for v in text.split()], s) for s, text in inputs)
    z = np.array([c == "T" for c in printed.replace(" ", "")]).reshape(shape)
    for opset in (12, 13, 16, 28) if dtype != "bfloat16" else (16, 28):
        check(greater_or_equal(x, y, engine, opset), z)


@each_version
@each_engine
def test_all_pairs_of_special_values(opset: int, dtype: DType, engine: str) -> None:
    x = np.unique(values(dtype, (400,)).view(f"u{dtype.itemsize}")).view(dtype.numpy)
    got = greater_or_equal(x[:, None], x[None, :], engine, opset)
    check(got, expected(x[:, None], x[None, :]))


@each_number
@each_engine
def test_comparison_is_no_complement(dtype: DType, engine: str) -> None:
    """x >= y and x < y are both false exactly where one of them is a NaN."""
    x, y = values(dtype, (300,), 1), values(dtype, (300,), 2)
    nodes = ["less = Less (x, y)", "z = GreaterOrEqual (x, y)", "either = Or (less, z)"]
    (either,) = run_model(make_model(nodes, {"x": x, "y": y}, opset=16), [x, y], engine)
    check(either, (x == x) & (y == y))


FAMILIES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "same shape": ((3, 4, 5), (3, 4, 5)),
    "scalar left": ((), (3, 4, 5)),
    "scalar right": ((3, 4, 5), ()),
    "row": ((6, 35), (35,)),
    "per channel": ((2, 3, 4, 5), (3, 1, 1)),
    "outer product": ((9, 1), (1, 17)),
    "general": ((2, 1, 4, 1, 8, 1), (1, 3, 1, 5, 1, 7)),
}


@pytest.mark.parametrize("family", FAMILIES)
@each_number
@each_engine
def test_broadcasting(family: str, dtype: DType, engine: str) -> None:
    for left, right in (FAMILIES[family], FAMILIES[family][::-1]):
        x, y = values(dtype, left, 3), values(dtype, right, 4)
        check(greater_or_equal(x, y, engine), expected(x, y))


def symbolic(shape: tuple[int, ...], names: str) -> list[int | str]:
    return [1 if size == 1 else f"{names}{axis}" for axis, size in enumerate(shape)]


@pytest.mark.parametrize("family", FAMILIES)
@each_engine
def test_one_preparation_serves_many_sizes(family: str, engine: str) -> None:
    left, right = FAMILIES[family]
    dims = {"x": symbolic(left, "a"), "y": symbolic(right, "a" if left == right else "b")}
    dtype = dtypes.f32
    zeros = {"x": np.zeros(left, np.float32), "y": np.zeros(right, np.float32)}
    run = prepare(make_model("z = GreaterOrEqual (x, y)", zeros, dims=dims), engine)
    for factor in (1, 2, 3):
        x, y = (
            values(dtype, tuple(1 if s == 1 else s * factor for s in shape), 5) for shape in (left, right)
        )
        check(run([x, y])[0], expected(x, y))


@each_engine
def test_unlike_symbols_broadcast_both_ways(engine: str) -> None:
    zeros = np.zeros((2, 2), np.int64)
    model = make_model(
        "z = GreaterOrEqual (x, y)", {"x": zeros, "y": zeros}, dims={"x": ["n", "k"], "y": ["m", "k"]}
    )
    run = prepare(model, engine)
    for n, m in [(4, 4), (1, 4), (4, 1), (1, 1), (0, 1), (1, 0), (0, 0)]:
        x, y = values(dtypes.i64, (n, 3), 6), values(dtypes.i64, (m, 3), 7)
        check(run([x, y])[0], expected(x, y))


@each_number
@each_engine
def test_shapes(dtype: DType, engine: str) -> None:
    for shape in [
        (),
        (0,),
        (2, 0, 3),
        *((n,) for n in (1, 7, 16, 31, 64, 70)),
        *((2,) * r for r in (2, 5, 8)),
    ]:
        x, y = values(dtype, shape, 8), values(dtype, shape, 9)
        check(greater_or_equal(x, y, engine), expected(x, y))


@each_number
@each_engine
def test_one_preparation_serves_all_lengths(dtype: DType, engine: str) -> None:
    x, y = values(dtype, (70,), 12), values(dtype, (70,), 13)
    dims = {"x": ["n"], "y": ["n"]}
    run = prepare(make_model("z = GreaterOrEqual (x, y)", {"x": x, "y": y}, dims=dims), engine)
    for length in range(71):
        check(run([x[:length], y[:length]])[0], expected(x[:length], y[:length]))


@each_number
@each_engine
def test_layouts(dtype: DType, engine: str) -> None:
    x, y = values(dtype, (6, 35), 10), values(dtype, (35,), 11)
    run = prepare(make_model("z = GreaterOrEqual (x, y)", {"x": x, "y": y}), engine)
    want = expected(x, y)
    shifted = np.zeros(x.nbytes + 3, np.uint8)
    shifted[3:] = x.view(np.uint8).reshape(-1)
    constant = np.asfortranarray(x)
    constant.flags.writeable = False
    for array in (constant, np.repeat(x, 2, axis=0)[::2], shifted[3:].view(x.dtype).reshape(x.shape)):
        check(run([array, y])[0], want)
    check(run([x[::-1], np.repeat(y, 3)[::3]])[0], want[::-1])
    if dtype is not dtypes.bf16:
        swapped = x.astype(x.dtype.newbyteorder())
        check(run([swapped, y.astype(y.dtype.newbyteorder())])[0], want)


@each_number
@each_engine
def test_numpy_scalars(dtype: DType, engine: str) -> None:
    x, y = np.array(7, dtype.numpy)[()], np.array(7, dtype.numpy)[()]
    check(greater_or_equal(x, y, engine), np.array(True))


def refusal(x: Array, y: Array, opset: int = 16, **more: Any) -> str:
    with pytest.raises(CompileError) as error:
        prepare(make_model("[compare] z = GreaterOrEqual (x, y)", {"x": x, "y": y}, opset=opset, **more))
    return str(error.value)


@pytest.mark.parametrize("opset", [12, 16])
def test_bool_is_refused(opset: int) -> None:
    message = refusal(np.array([True]), np.array([False]), opset)
    assert all(word in message for word in ("compare", "GreaterOrEqual", "bool[1]", "int64"))


@pytest.mark.parametrize("opset", [12, 15])
def test_bfloat16_is_refused_before_opset_16(opset: int) -> None:
    message = refusal(tensor("bfloat16", [1]), tensor("bfloat16", [2]), opset)
    assert all(word in message for word in ("compare", "bfloat16[1]", "opset 16"))


def test_unlike_types_are_refused() -> None:
    message = refusal(np.zeros(2, np.float32), np.zeros(3, np.float64))
    assert all(word in message for word in ("compare", "float[2]", "double[3]", "same type"))


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    message = refusal(np.zeros((2, 3), np.int8), np.zeros((4, 3), np.int8))
    assert all(word in message for word in ("compare", "int8[2, 3]", "int8[4, 3]", "do not broadcast"))


@each_engine
def test_symbolic_shapes_that_do_not_broadcast_end_the_run(engine: str) -> None:
    zeros = np.zeros((2, 3), np.float32)
    nodes = "[compare] z = GreaterOrEqual (left, right)"
    dims: dict[str, list[int | str]] = {"left": ["n", 3], "right": ["m", 3]}
    run = prepare(make_model(nodes, {"left": zeros, "right": zeros}, dims=dims), engine)
    with pytest.raises(RuntimeFault) as fault:
        run([np.zeros((2, 3), np.float32), np.zeros((5, 3), np.float32)])
    assert all(word in str(fault.value) for word in ("compare", "left", "right", "2", "5"))
    check(run([zeros, zeros])[0], np.ones((2, 3), bool))
