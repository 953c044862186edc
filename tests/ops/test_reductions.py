"""Reductions, ArgMax and ArgMin, the softmax family, and the normalisations over trailing axes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare

CASES = read_cases(Path(__file__).with_name("reduction_cases.txt"))
F = np.float32
X = np.random.default_rng(7).integers(-4, 5, (2, 3, 1, 5)).astype(F)


def log_sum_exp(x: Array, **axes: Any) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.sum(np.exp(x), **axes)))


Meaning = Callable[..., Array]
MEANINGS: dict[str, Meaning] = {  # of values in float64
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": lambda x, **a: np.max(x, initial=-np.inf, **a),
    "ReduceMin": lambda x, **a: np.min(x, initial=np.inf, **a),
    "ReduceMean": np.mean,
    "ReduceL1": lambda x, **a: np.sum(np.abs(x), **a),
    "ReduceL2": lambda x, **a: np.sqrt(np.sum(x * x, **a)),
    "ReduceSumSquare": lambda x, **a: np.sum(x * x, **a),
    "ReduceLogSum": lambda x, **a: np.log(np.sum(x, **a)),
    "ReduceLogSumExp": log_sum_exp,
}
INPUT_SINCE = {op: 13 if op == "ReduceSum" else 18 for op in MEANINGS}
AXES = [None, *(c for n in range(5) for c in itertools.combinations(range(4), n)), (-1, 0), (3, -3)]


def node(op: str, opset: int, axes: Any, **attributes: int) -> tuple[str, dict[str, Array]]:
    """A node with its axes where the opset has them, and its constants."""
    given = [f"{k} = {v}" for k, v in attributes.items()]
    if opset >= INPUT_SINCE.get(op, 1):
        constants = {} if axes is None else {"axes": np.array(axes, np.int64)}
        operands = "x" if axes is None else "x, axes"
    else:
        constants, operands = {}, "x"
        given += [] if axes is None else [f"axes = {list(axes)}"]
    listed = f"<{', '.join(given)}>" if given else ""
    return f"[reduce] y = {op} {listed} ({operands})", constants


def reduced(op: str, x: Array, axes: Any, keepdims: int) -> Array:
    chosen = None if axes is None or len(axes) == 0 else tuple(axes)
    with np.errstate(all="ignore"):
        result = MEANINGS[op](x.astype(np.float64), axis=chosen, keepdims=bool(keepdims))
    return np.asarray(result).astype(x.dtype)


def values_for(op: str, x: Array) -> Array:
    return np.abs(x) + 1 if op == "ReduceLogSum" else x


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", MEANINGS)
def test_every_combination_of_axes(op: str, keepdims: int) -> None:
    x = values_for(op, X)
    for axes in AXES:
        for opset in (11, 13, 18):
            if axes == () and opset < INPUT_SINCE[op]:
                continue  # an empty list as an attribute: all axes or none, the text does not say
            text, constants = node(op, opset, axes, keepdims=keepdims)
            (y,) = prepare(make_model(text, {"x": x}, opset=opset, constants=constants))([x])
            check(y, reduced(op, x, axes, keepdims), rtol=2e-6, zero_signs=False)


def every_operator(opset: int, axes: Any, **attributes: int) -> tuple[list[str], dict[str, Array]]:
    """A node for each operator, so that one model tests them all."""
    nodes, constants = [], {}
    for op in MEANINGS:
        text, constants = node(op, opset, axes, **attributes)
        text = text.replace("[reduce] y", f"[{op}] {op}_y")
        nodes.append(text.replace("(x", "(positive") if op == "ReduceLogSum" else text)
    return nodes, constants


def run_every(
    x: Array, engine: str, axes: Any, *, opset: int = 20, dims: Any = None, **attributes: int
) -> dict[str, Array]:
    """The results of all operators by name."""
    nodes, constants = every_operator(opset, axes, **attributes)
    feeds = {"x": x, "positive": values_for("ReduceLogSum", x)}
    outputs = [f"{op}_y" for op in MEANINGS]
    run = prepare(
        make_model(nodes, feeds, opset=opset, dims=dims, constants=constants, outputs=outputs), engine
    )
    return dict(zip(MEANINGS, run(feeds), strict=True))


@pytest.mark.parametrize("axes", [None, (0,), (1,), (3,), (0, 3), (1, 2)])
def test_compiled(axes: Any) -> None:
    x = np.random.default_rng(3).integers(-3, 4, (3, 5, 4, 37)).astype(F)
    for op, y in run_every(x, "compiled", axes, opset=18).items():
        check(y, reduced(op, values_for(op, x), axes, 1), rtol=1e-5, zero_signs=False)


@each_engine
def test_one_compilation_serves_all_sizes(engine: str) -> None:
    nodes, constants = every_operator(20, (1,), keepdims=0)
    names, feeds = ("a", "b", "c"), {"x": X[0], "positive": X[0]}
    model = make_model(nodes, feeds, opset=20, dims=dict.fromkeys(feeds, names), constants=constants)
    run = prepare(model, engine)
    for shape in ((3, 1, 5), (1, 7, 1), (2, 40, 33), (0, 3, 2), (2, 3, 0)):
        x = np.random.default_rng(0).integers(-2, 3, shape).astype(F)
        for op, y in zip(MEANINGS, run([x, values_for("ReduceLogSum", x)]), strict=True):
            check(y, reduced(op, values_for(op, x), (1,), 0), rtol=1e-5, zero_signs=False)


# -- nothing to reduce


@each_engine
@pytest.mark.parametrize("axes", [None, ()])
def test_no_axes_and_the_flag(engine: str, axes: Any) -> None:
    """Nothing is reduced; the map before and after a reduction applies to each element."""
    x = np.array([[-2, 0.5], [3, -1]], F)
    maps: dict[str, Callable[[Array], Array]] = {
        "ReduceL1": np.abs,
        "ReduceL2": np.abs,
        "ReduceSumSquare": np.square,
        "ReduceLogSum": np.log,
    }
    for op, y in run_every(x, engine, axes, opset=18, noop_with_empty_axes=1).items():
        check(y, maps.get(op, lambda v: v)(values_for(op, x)), ulp=2)


IDENTITIES = {
    "ReduceSum": 0,
    "ReduceProd": 1,
    "ReduceMax": -np.inf,
    "ReduceMin": np.inf,
    "ReduceL1": 0,
    "ReduceL2": 0,
    "ReduceSumSquare": 0,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
}


@each_engine
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("middle", [0, "n"])
def test_a_reduction_over_nothing_gives_the_identity(engine: str, dtype: str, middle: Any) -> None:
    x = np.zeros((2, 0, 3), numpy_type(dtype))
    dims = {"x": (2, middle, 3), "positive": (2, middle, 3)}
    results = run_every(x, engine, (1,), dims=dims, keepdims=0)
    for op, want in IDENTITIES.items():
        check(results[op], np.full((2, 3), want, x.dtype), zero_signs=False)


@each_engine
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_extremes_of_no_integers(engine: str, dtype: str) -> None:
    x, info = np.zeros((2, 0), numpy_type(dtype)), np.iinfo(numpy_type(dtype))
    for op, want in (("ReduceMax", info.min), ("ReduceMin", info.max)):
        text, constants = node(op, 20, (1,), keepdims=0)
        (y,) = prepare(make_model(text, {"x": x}, opset=20, constants=constants), engine)([x])
        check(y, np.full(2, want, x.dtype))


@each_engine
def test_extremes_of_booleans(engine: str) -> None:
    x = np.array([[True, False], [False, False], [True, True]])
    for op, want in (("ReduceMax", x.any(1)), ("ReduceMin", x.all(1))):
        text, constants = node(op, 20, (1,), keepdims=0)
        (y,) = prepare(make_model(text, {"x": x}, opset=20, constants=constants), engine)([x])
        check(y, want)


# -- element types


@each_engine
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_integers(engine: str, dtype: str) -> None:
    x = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]], numpy_type(dtype))
    for op, y in run_every(x, engine, (1,), opset=18, keepdims=0).items():
        check(y, reduced(op, values_for(op, x), (1,), 0))


@each_engine
def test_integers_wrap_and_are_exact(engine: str) -> None:
    x = np.array([2**31 - 1, 5, 7], np.int32)
    assert prepare(make_model("y = ReduceSum <keepdims = 0> (x)", {"x": x}), engine)([x])[0] == np.int32(
        -(2**31) + 11
    )
    x = np.array([2**62, 2**62 - 1, 3], np.int64)
    check(prepare(make_model("y = ReduceMax <keepdims = 0> (x)", {"x": x}), engine)([x])[0], np.array(2**62))
    check(
        prepare(make_model("y = ReduceMean <keepdims = 0> (x)", {"x": x[2:]}), engine)([x[2:]])[0],
        np.array(3),
    )
    x = np.array([-7, 2], np.int64)
    check(prepare(make_model("y = ReduceMean <keepdims = 0> (x)", {"x": x}), engine)([x])[0], np.array(-2))


@each_engine
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_floats_round_once(engine: str, dtype: str) -> None:
    for size in (6, 70):
        x = np.random.default_rng(5).normal(size=(3, size)).astype(numpy_type(dtype))
        for op, y in run_every(x, engine, (1,), opset=18, keepdims=0).items():
            if op != "ReduceProd" or size == 6:
                check(y, reduced(op, values_for(op, x), (1,), 0), ulp=1, atol=2e-3)


# -- NaN and infinities


@each_engine
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [3, 17, 40])
def test_nan_comes_through_from_every_place(engine: str, size: int, axis: int) -> None:
    x = np.ones((size, size), F)
    np.fill_diagonal(x, np.nan)
    for op, y in run_every(x, engine, (axis,), opset=18, keepdims=0).items():
        assert np.isnan(y).all(), op


@each_engine
def test_infinities_in_log_sum_exp(engine: str) -> None:
    inf = np.inf
    x = np.array([[-inf, -inf], [inf, 0], [inf, inf], [-inf, 3], [inf, -inf], [1000, 1000]], F)
    text, constants = node("ReduceLogSumExp", 18, (1,), keepdims=0)
    (y,) = prepare(make_model(text, {"x": x}, opset=18, constants=constants), engine)([x])
    check(y, np.array([-inf, inf, inf, 3, inf, 1000 + np.log(2)], F), ulp=2)


# -- refusals


@pytest.mark.parametrize("axes", [(4,), (-5,), (0, 0), (1, -3)])
@pytest.mark.parametrize("opset", [11, 18])
def test_axes_that_are_refused(axes: tuple[int, ...], opset: int) -> None:
    text, constants = node("ReduceMax", opset, axes)
    with pytest.raises(CompileError, match="reduce"):
        prepare(make_model(text, {"x": X}, opset=opset, constants=constants))


# -- ArgMax, ArgMin


@each_engine
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 3, -1, -3])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg(engine: str, op: str, axis: int, last: int, keepdims: int) -> None:
    nodes = f"y = {op} <axis = {axis}, keepdims = {keepdims}, select_last_index = {last}> (x)"
    (y,) = prepare(make_model(nodes, {"x": X}, opset=13), engine)([X])
    find = np.argmax if op == "ArgMax" else np.argmin
    flipped = np.flip(X, axis)
    want = X.shape[axis] - 1 - find(flipped, axis) if last else find(X, axis)
    check(y, np.expand_dims(want, axis) if keepdims else want)


@each_engine
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "f16", "bf16", "f64"])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_types_of_arg(engine: str, op: str, dtype: str) -> None:
    x = np.array([[3, 120, 7, 120, 0], [0, 1, 0, 1, 0]], numpy_type(dtype))
    (y,) = prepare(make_model(f"y = {op} <axis = 1, keepdims = 0> (x)", {"x": x}), engine)([x])
    check(y, np.array([1, 1] if op == "ArgMax" else [4, 0]))


@each_engine
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_nan_is_the_extreme_value(engine: str, op: str) -> None:
    size = 37
    x = np.tile(np.arange(size, dtype=F), (size, 1))
    np.fill_diagonal(x, np.nan)
    model = make_model(
        [f"y = {op} <axis = 1> (x)", f"z = {op} <axis = 1, select_last_index = 1> (x)"], {"x": x}
    )
    for got in prepare(model, engine)([x]):
        check(got, np.arange(size)[:, None])
    x[:, 20] = np.nan
    y, z = prepare(model, engine)([x])
    check(y, np.minimum(np.arange(size), 20)[:, None])
    check(z, np.maximum(np.arange(size), 20)[:, None])


@each_engine
def test_arg_over_nothing(engine: str) -> None:
    x = np.zeros((2, 0), F)
    with pytest.raises(CompileError, match=r"far.*empty"):
        prepare(make_model("[far] y = ArgMax <axis = 1> (x)", {"x": x}), engine)
    run = prepare(make_model("[far] y = ArgMax <axis = 1> (x)", {"x": x}, dims={"x": [2, "n"]}), engine)
    with pytest.raises(RuntimeFault, match=r"far.*empty"):
        run([x])
    run = prepare(make_model("[far] y = ArgMax <axis = 0> (x)", {"x": x}, dims={"x": [2, "n"]}), engine)
    check(run([x])[0], np.zeros((1, 0), np.int64))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


@each_engine
@pytest.mark.parametrize("op", ["ReduceSum", "Softmax", "ArgMax", "CumSum"])
def test_what_broadcasts_at_run_time_in_front(engine: str, op: str) -> None:
    """A symbolic extent may turn out to be 1."""
    node_of = {"ReduceSum": "y = ReduceSum (s, last)", "CumSum": "y = CumSum (s, axis)"}
    nodes = ["s = Add (x, z)", node_of.get(op, f"y = {op} (s)")]
    constants = {"last": np.array([-1]), "axis": np.array(1)}
    feeds = {"x": X[:, :, 0], "z": X[:, :, 0]}
    dims = {"x": ["a", "b", "c"], "z": ["p", "q", "r"]}
    run = prepare(make_model(nodes, feeds, dims=dims, constants=constants, outputs=["s", "y"]), engine)
    for left, right in (
        ((4, 2, 37), (4, 1, 37)),
        ((1, 2, 5), (3, 2, 1)),
        ((2, 1, 1), (1, 3, 9)),
        ((2, 3, 4), (2, 3, 4)),
    ):
        x = np.random.default_rng(0).integers(-3, 4, left).astype(F)
        z = np.random.default_rng(1).integers(-3, 4, right).astype(F)
        s, y = run([x, z])
        check(s, x + z)
        static = make_model(nodes, {"x": x, "z": z}, constants=constants, outputs=["y"])
        check(y, prepare(static)([x, z])[0], rtol=1e-6, atol=1e-7)
