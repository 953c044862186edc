"""The elementwise operators: cases, versions, types, errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault
from sardonyx.frontend import schemas

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model, tensor

CASES = read_cases(Path(__file__).with_name("elementwise_cases.txt"))

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64", "bfloat16"]


def run_node(node: str, *arrays: Array, engine: str = "interpreter", opset: int = 28) -> Array:
    """The output of one node whose inputs are named a, b, c ..."""
    feeds = dict(zip("abcdefgh", arrays, strict=False))
    (result,) = run_model(make_model(node, feeds, opset=opset), feeds, engine)
    return np.asarray(result)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


def since(op_type: str) -> list[int]:
    return list(schemas.versions(op_type, ""))


def error_function(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf)(x))


# The operators of one number, with NumPy's own function and numbers in its domain.
UNARY: dict[str, tuple[Callable[[Array], Array], tuple[float, ...]]] = {
    "Abs": (np.abs, (-2.5, 0.0, 3.0)),
    "Acos": (np.arccos, (-1.0, 0.25, 1.0)),
    "Acosh": (np.arccosh, (1.0, 1.5, 40.0)),
    "Asin": (np.arcsin, (-1.0, 0.25, 1.0)),
    "Asinh": (np.arcsinh, (-30.0, 1e-4, 2.0)),
    "Atan": (np.arctan, (-30.0, 1e-4, 2.0)),
    "Atanh": (np.arctanh, (-0.99, 1e-4, 0.5)),
    "Ceil": (np.ceil, (-1.5, 0.25, 7.0)),
    "Cos": (np.cos, (-30.0, 1e-4, 2.0)),
    "Cosh": (np.cosh, (-30.0, 1e-4, 2.0)),
    "Erf": (error_function, (-1.5, 1e-4, 3.0)),
    "Exp": (np.exp, (-30.0, 1e-4, 2.0)),
    "Floor": (np.floor, (-1.5, 0.25, 7.0)),
    "Identity": (lambda x: x, (-1.5, 0.25, 7.0)),
    "Log": (np.log, (1e-30, 1.5, 40.0)),
    "Neg": (np.negative, (-1.5, 0.0, 7.0)),
    "Reciprocal": (lambda x: 1 / x, (-1.5, 0.25, 7.0)),
    "Relu": (lambda x: np.maximum(x, 0), (-1.5, 0.25, 7.0)),
    "Round": (np.rint, (-1.5, 0.5, 7.2)),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-1.5, 0.25, 7.0)),
    "Sign": (np.sign, (-1.5, 0.0, 7.0)),
    "Sin": (np.sin, (-30.0, 1e-4, 2.0)),
    "Sinh": (np.sinh, (-30.0, 1e-4, 2.0)),
    "Softplus": (lambda x: np.log1p(np.exp(x)), (-1.5, 0.25, 7.0)),
    "Softsign": (lambda x: x / (1 + np.abs(x)), (-1.5, 0.25, 7.0)),
    "Sqrt": (np.sqrt, (0.0, 0.25, 7.0)),
    "Tan": (np.tan, (-30.0, 1e-4, 2.0)),
    "Tanh": (np.tanh, (-30.0, 1e-4, 2.0)),
}


@pytest.mark.parametrize(("op_type", "opset"), [(op, v) for op in UNARY for v in since(op)])
@each_engine
def test_every_version_of_a_function_of_one_number(op_type: str, opset: int, engine: str) -> None:
    function, points = UNARY[op_type]
    for dtype in ("float32", "float64"):
        x = tensor(dtype, points)
        want = np.asarray(function(x.astype(np.float64))).astype(x.dtype)
        check(run_node(f"y = {op_type} (a)", x, engine=engine, opset=opset), want, ulp=4)


BINARY: dict[str, tuple[str, Callable[[Array, Array], Any]]] = {
    "Add": ("float32", np.add),
    "And": ("bool", np.logical_and),
    "BitwiseAnd": ("int32", np.bitwise_and),
    "BitwiseOr": ("uint16", np.bitwise_or),
    "BitwiseXor": ("int64", np.bitwise_xor),
    "Div": ("float32", np.divide),
    "Equal": ("int32", np.equal),
    "Greater": ("float32", np.greater),
    "GreaterOrEqual": ("float32", np.greater_equal),
    "Less": ("float32", np.less),
    "LessOrEqual": ("float32", np.less_equal),
    "Max": ("float32", np.maximum),
    "Mean": ("float32", lambda a, b: (a + b) / 2),
    "Min": ("float32", np.minimum),
    "Mod": ("int32", np.remainder),
    "Mul": ("float32", np.multiply),
    "Or": ("bool", np.logical_or),
    "Pow": ("float64", np.power),
    "PRelu": ("float32", lambda a, b: np.where(a < 0, a * b, a)),
    "Sub": ("float32", np.subtract),
    "Sum": ("float32", np.add),
    "Xor": ("bool", np.logical_xor),
}


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 1) -> Array:
    """Numbers from 1 to 20, booleans for bool."""
    drawn = np.random.default_rng(seed).integers(1, 21, shape)
    return (drawn % 2 == 0) if dtype == "bool" else drawn.astype(numpy_type(dtype))


@pytest.mark.parametrize(("op_type", "opset"), [(op, v) for op in BINARY for v in since(op)])
@each_engine
def test_every_version_of_a_function_of_two_numbers(op_type: str, opset: int, engine: str) -> None:
    dtype, function = BINARY[op_type]
    x, y = numbers(dtype, (3, 4)), numbers(dtype, (3, 4), 2)
    check(run_node(f"y = {op_type} (a, b)", x, y, engine=engine, opset=opset), function(x, y), ulp=1)


LEGACY = ["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"]
FITS: dict[str, tuple[tuple[int, ...], tuple[int, ...], str]] = {
    "a scalar": ((2, 3, 4, 5), (), ""),
    "one element of any rank": ((2, 3), (1, 1, 1), ""),
    "the last axis": ((2, 3, 4, 5), (5,), ""),
    "the last two axes": ((2, 3, 4, 5), (4, 5), ""),
    "axes in the middle": ((2, 3, 4, 5), (3, 4), ", axis = 1"),
    "the first axis": ((2, 3, 4, 5), (2,), ", axis = 0"),
    "an axis from the end": ((2, 3, 4, 5), (4,), ", axis = -2"),
    "extents of one": ((2, 3, 4), (3, 1), ", axis = 1"),
}


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("op_type", LEGACY)
@pytest.mark.parametrize("opset", [1, 6])
@each_engine
def test_broadcasting_before_opset_7(op_type: str, fit: str, opset: int, engine: str) -> None:
    dtype, function = BINARY[op_type]
    left, right, axis = FITS[fit]
    x, y = numbers(dtype, left), numbers(dtype, right, 2)
    start = int(axis.split("=")[1]) % len(left) if axis else max(0, len(left) - len(right))
    aligned = y.reshape(() if y.size == 1 else right + (1,) * (len(left) - start - len(right)))
    got = run_node(f"y = {op_type} <broadcast = 1{axis}> (a, b)", x, y, engine=engine, opset=opset)
    check(got, np.asarray(function(x, aligned)), ulp=1)


@pytest.mark.parametrize(
    ("attributes", "left", "right", "words"),
    [
        ("", (2, 3), (3,), ("float[2, 3]", "float[3]", "equal")),
        ("<broadcast = 1>", (2, 3), (2,), ("float[2, 3]", "float[2]", "do not broadcast")),
        ("<broadcast = 1, axis = 1>", (2, 3), (2, 3), ("more axes",)),
        ("<broadcast = 1>", (3,), (2, 3), ("more axes",)),
        ("<broadcast = 1, axis = 5>", (2, 3), (3,), ("axis 5",)),
    ],
)
def test_what_does_not_broadcast_before_opset_7(
    attributes: str, left: tuple[int, ...], right: tuple[int, ...], words: tuple[str, ...]
) -> None:
    with pytest.raises(CompileError) as error:
        run_node(
            f"[plus] y = Add {attributes} (a, b)",
            numbers("float32", left),
            numbers("float32", right),
            opset=6,
        )
    assert all(word in str(error.value) for word in ("plus", *words)), str(error.value)


@each_engine
def test_symbolic_shapes_before_opset_7(engine: str) -> None:
    x, y = numbers("float32", (2, 3)), numbers("float32", (2, 3), 2)
    model = make_model(
        "[plus] y = Add (a, b)", {"a": x, "b": y}, opset=6, dims={"a": ["n", 3], "b": ["m", 3]}
    )
    run = prepare(model, engine)
    check(run([x, y])[0], x + y)
    with pytest.raises(RuntimeFault, match="plus"):
        run([x, y[:1]])


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@each_engine
def test_every_type(dtype: str, engine: str) -> None:
    x, y = tensor(dtype, [[1], [5]]), tensor(dtype, [3, 100])
    check(run_node("y = Add (a, b)", x, y, engine=engine), tensor(dtype, [[4, 101], [8, 105]]))
    check(run_node("y = Min (a, b)", x, y, engine=engine), tensor(dtype, [[1, 1], [3, 5]]))
    check(run_node("y = Max (a, b)", x, y, engine=engine), tensor(dtype, [[3, 100], [5, 100]]))
    check(run_node("y = Mul (a, b)", x[:1], y, engine=engine), tensor(dtype, [[3, 100]]))
    check(run_node("y = Less (a, b)", x, y, engine=engine), np.array([[True, True], [False, True]]))
    check(run_node("y = Sign (a)", y, engine=engine), tensor(dtype, [1, 1]))
    check(run_node("y = Abs (a)", y, engine=engine), y)
    check(run_node("y = Clip (a, b)", y, y[:1].reshape(()), engine=engine), y)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("node", ["Div", "Mod", "Mod <fmod = 1>"])
@each_engine
def test_integer_division_by_zero_names_the_node(node: str, dtype: str, engine: str) -> None:
    x, y = tensor(dtype, [8, 7, 6, 5]), tensor(dtype, [2, 0, 3, 0])
    run = prepare(make_model(f"[ratio] y = {node} (a, b)", {"a": x, "b": y}), engine)
    with pytest.raises(RuntimeFault, match="ratio") as fault:
        run([x, y])
    assert fault.value.node == "ratio"
    run([x, x])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@each_engine
def test_the_lowest_integer_by_minus_one(dtype: str, engine: str) -> None:
    low = np.iinfo(dtype).min
    x, y = tensor(dtype, [low, low + 1, 7]), tensor(dtype, [-1])
    check(run_node("y = Div (a, b)", x, y, engine=engine), tensor(dtype, [low, -(low + 1), -7]))
    for fmod in (0, 1):
        check(run_node(f"y = Mod <fmod = {fmod}> (a, b)", x, y, engine=engine), tensor(dtype, [0, 0, 0]))
    check(run_node("y = Abs (a)", x, engine=engine), tensor(dtype, [low, -(low + 1), 7]))
    check(run_node("y = Neg (a)", x, engine=engine), tensor(dtype, [low, -(low + 1), -7]))


@pytest.mark.parametrize("exponent", INTEGERS)
@pytest.mark.parametrize("base", ["int32", "int64", "float16", "float32", "float64", "bfloat16"])
@each_engine
def test_powers_of_every_pair_of_types(base: str, exponent: str, engine: str) -> None:
    x, y = tensor(base, [2, -3, 5, 1]), tensor(exponent, [5, 3, 0, 100])
    check(run_node("y = Pow (a, b)", x, y, engine=engine), tensor(base, [32, -27, 1, 1]))


@each_engine
def test_powers_with_exponents_wider_than_the_base(engine: str) -> None:
    x = tensor("int32", [-1, -1, 3, 2, 7])
    y = tensor("uint64", [2**63 + 1, 2**63, 2**32, 2**40, 0])
    check(
        run_node("y = Pow (a, b)", x, y, engine=engine), tensor("int32", [-1, 1, pow(3, 2**32, 2**32), 0, 1])
    )
    z = tensor("int64", [-(2**40) - 1, -(2**40), 2**32, 2**40, 0])
    check(
        run_node("y = Pow (a, b)", x, z, engine=engine), tensor("int32", [-1, 1, pow(3, 2**32, 2**32), 0, 1])
    )


@pytest.mark.parametrize("op_type", ["Min", "Max"])
@each_engine
def test_a_nan_at_every_position(op_type: str, engine: str) -> None:
    zeros = np.zeros(1, np.float32)
    run = prepare(
        make_model(f"y = {op_type} (a, b)", {"a": zeros, "b": zeros}, dims={"a": ["n"], "b": ["n"]}), engine
    )
    for size in range(2, 35):
        for position in range(size):
            x, y = (
                np.arange(size, dtype=np.float32),
                np.full(size, 100 if op_type == "Min" else -100, np.float32),
            )
            x[position] = np.nan
            check(run([x, y])[0], x)
            check(run([y, x])[0], x)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("Mod (a, b)", ("fmod=1", "opset 28")),
        ("Mod <fmod = 2> (a, b)", ("fmod is 2",)),
        ('Gelu <approximate = "fast"> (a)', ("'fast'", "'tanh'")),
        ("Clip (a, b)", ("'min'", "float[3]", "scalar")),
        ("PRelu (b, a)", ("float[2, 3]", "float[3]")),
        ("Add (a, c)", ("float", "double", "same type")),
        ("Add (a, d)", ("float[2, 3]", "float[2]", "do not broadcast")),
        ("And (a, b)", ("float", "bool")),
        ('BitShift <direction = "UP"> (e, e)', ("'UP'", "'LEFT'", "'RIGHT'")),
        ("BitwiseNot (a)", ("float", "int32")),
    ],
)
def test_refusals_name_node_and_inputs(node: str, words: tuple[str, ...]) -> None:
    f = np.float32
    arrays = {
        "a": np.ones((2, 3), f),
        "b": np.ones(3, f),
        "c": np.ones(3),
        "d": np.ones(2, f),
        "e": np.ones(3, np.uint8),
    }
    used = {k: v for k, v in arrays.items() if k in node.split("(")[1]}
    with pytest.raises(CompileError) as error:
        prepare(make_model(f"[refused] y = {node}", used, opset=21))
    assert all(word in str(error.value) for word in ("refused", *words)), str(error.value)


def test_swiglu_needs_equal_shapes() -> None:
    with pytest.raises(CompileError, match=r"float\[2, 3\].*float\[3\].*equal"):
        run_node("y = SwiGLU (a, b)", np.ones((2, 3), np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize("op_type", ["Max", "Mean", "Min", "Sum"])
@each_engine
def test_any_number_of_operands(op_type: str, engine: str) -> None:
    arrays = [numbers("float32", s, i) for i, s in enumerate([(), (3, 1), (4,), (2, 1, 1)])]
    for count in (1, 2, 3, 4):
        names = "abcd"[:count]
        got = run_node(f"y = {op_type} ({', '.join(names)})", *arrays[:count], engine=engine)
        stacked = np.stack(np.broadcast_arrays(*(a.astype(np.float64) for a in arrays[:count])))
        reduction: Any = {"Max": np.max, "Mean": np.mean, "Min": np.min, "Sum": np.sum}[op_type]
        want = reduction(stacked, axis=0)
        check(got, want.astype(np.float32), ulp=1)
    with pytest.raises(CompileError, match="equal"):
        run_node(f"y = {op_type} (a, b)", arrays[1], arrays[2], opset=6)


@each_engine
def test_where_passes_every_type(engine: str) -> None:
    condition = np.array([[True], [False]])
    for dtype in [*INTEGERS, *FLOATS, "bool", "complex64", "complex128"]:
        x, y = tensor(dtype, [1, 0, 1]), tensor(dtype, [0, 0, 1])
        check(run_node("y = Where (a, b, c)", condition, x, y, engine=engine), np.where(condition, x, y))


@each_engine
def test_clip_in_every_form(engine: str) -> None:
    x = tensor("float32", [-math.inf, -3, 0.5, 9, math.inf])
    largest = float(np.finfo(np.float32).max)
    check(run_node("y = Clip (a)", x, engine=engine), tensor("float32", [-largest, -3, 0.5, 9, largest]))
    for opset in (1, 6):
        got = run_node("y = Clip <min = -1.0, max = 2.0> (a)", x, engine=engine, opset=opset)
        check(got, tensor("float32", [-1, -1, 0.5, 2, 2]))
    wide = tensor("float64", [-1e200, 1e200])
    check(run_node("y = Clip <min = 0.0> (a)", wide, engine=engine, opset=6), tensor("float64", [0, 1e200]))
    half = tensor("float16", [-2, math.inf, 3])
    check(
        run_node("y = Clip (a, , b)", half, tensor("float16", 2), engine=engine),
        tensor("float16", [-2, 2, 2]),
    )


@each_engine
def test_prelu_with_a_slope_per_channel(engine: str) -> None:
    x = -np.ones((2, 3, 4, 5), np.float32)
    slope = tensor("float32", [1, 2, 3])
    want = x * slope.reshape(3, 1, 1)
    for opset in (1, 6):
        check(run_node("y = PRelu (a, b)", x, slope, engine=engine, opset=opset), want)
    check(run_node("y = PRelu (a, b)", x, slope.reshape(3, 1, 1), engine=engine), want)


@pytest.mark.parametrize("dtype", INTEGERS)
@each_engine
def test_shrink_of_integers(dtype: str, engine: str) -> None:
    info = np.iinfo(dtype)
    x = tensor(dtype, [0, 1, 2, 5, 100, info.max, info.min])
    got = run_node("y = Shrink <lambd = 1.5, bias = 2.0> (a)", x, engine=engine)
    want = [v + 2 if v < -1.5 else v - 2 if v > 1.5 else 0 for v in x.tolist()]
    check(got, np.array(want, object).astype(np.dtype(dtype)))
    got = run_node("y = Shrink <lambd = 0.5, bias = 1.5> (a)", x[1:5], engine=engine)
    check(got, tensor(dtype, [0, 0, 3, 98]))


@pytest.mark.parametrize("dtype", FLOATS)
@each_engine
def test_classes_of_floats(dtype: str, engine: str) -> None:
    x = tensor(dtype, [math.nan, math.inf, -math.inf, 0, -1.5])
    check(run_node("y = IsNaN (a)", x, engine=engine), np.array([True, False, False, False, False]))
    for negative in (0, 1):
        for positive in (0, 1):
            node = f"y = IsInf <detect_negative = {negative}, detect_positive = {positive}> (a)"
            want = np.array([False, bool(positive), bool(negative), False, False])
            check(run_node(node, x, engine=engine), want)


@each_engine
def test_classes_of_small_floats(engine: str) -> None:
    for dtype in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        x = np.arange(256, dtype=np.uint8).view(numpy_type(dtype))
        check(run_node("y = IsNaN (a)", x, engine=engine), np.isnan(x.astype(np.float32)))
        check(run_node("y = IsInf (a)", x, engine=engine), np.isinf(x.astype(np.float32)))


@each_engine
def test_sums_and_products_keep_subnormals(engine: str) -> None:
    for dtype in FLOATS:
        tiny = np.array([1, 2, 3], f"u{numpy_type(dtype).itemsize}").view(numpy_type(dtype))
        check(run_node("y = Add (a, b)", tiny, tiny, engine=engine), tiny + tiny)
        check(run_node("y = Mul (a, b)", tiny, tensor(dtype, 1), engine=engine), tiny)


def test_identity_passes_strings() -> None:
    text = np.array(["a", ""], object)
    assert run_node("y = Identity (a)", text).tolist() == ["a", ""]


@each_engine
def test_arithmetic_of_dims_is_that_of_integers(engine: str) -> None:
    """Quotients of what may be negative are truncated for dims as well."""
    zeros = np.zeros(3, np.float32)
    nodes = [
        "s = Shape (x)",
        "d = Sub (s, five)",
        "q = Div (d, three)",
        "m = Mod (d, three)",
        "big = Max (d, three)",
        "small = Min (d, three)",
        "n = Neg (d)",
        "w = Mul (n, d)",
    ]
    constants = {"five": np.array([5]), "three": np.array([3])}
    outputs = ["q", "m", "big", "small", "w"]
    model = make_model(nodes, {"x": zeros}, constants=constants, dims={"x": ["size"]}, outputs=outputs)
    run = prepare(model, engine)
    for size in range(12):
        d = size - 5
        want = [int(d / 3), d % 3, max(d, 3), min(d, 3), -d * d]
        assert [int(v[0]) for v in run([np.zeros(size, np.float32)])] == want
