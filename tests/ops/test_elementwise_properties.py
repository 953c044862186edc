"""Property tests: random shapes, types, values and small graphs of elementwise operators against NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ..helpers import Array, Run, check, each_engine, make_model, prepare, run_model

several = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
few = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

INTEGERS = [np.dtype(f"{sign}int{bits}") for bits in (8, 16, 32, 64) for sign in ("", "u")]
TYPES = [*INTEGERS, *map(np.dtype, ("float16", "float32", "float64"))]

Function = Callable[..., Any]


def quiet(function: Function) -> Function:
    """Without warnings of overflow and the like."""

    @functools.wraps(function)
    def call(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arrays)

    return call


def extreme(larger: bool) -> Function:
    """The larger or the smaller, +0 above -0: NumPy leaves open which of two zeros it gives."""
    of_numbers, of_signs = (np.maximum, np.logical_and) if larger else (np.minimum, np.logical_or)

    def call(x: Any, y: Any) -> Any:
        chosen = np.asarray(of_numbers(x, y))
        if chosen.dtype.kind != "f":
            return chosen
        zero = np.where(of_signs(np.signbit(x), np.signbit(y)), -0.0, 0.0).astype(chosen.dtype)
        return np.where((x == 0) & (y == 0), zero, chosen)

    return call


maximum, minimum = extreme(larger=True), extreme(larger=False)

shapes = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=5, min_side=0, max_side=5)

# Operators that NumPy computes bit for bit as they are defined.
EXACT: dict[str, Function] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": maximum,
    "Min": minimum,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}


@each_engine
@given(data=st.data())
@several
def test_broadcasting_of_two_operands(engine: str, data: st.DataObject) -> None:
    op_type = data.draw(st.sampled_from(list(EXACT)))
    dtype = data.draw(st.sampled_from(TYPES))
    left, right = data.draw(shapes).input_shapes
    x = data.draw(hnp.arrays(dtype, left))
    y = data.draw(hnp.arrays(dtype, right))
    (z,) = run_model(make_model(f"z = {op_type} (x, y)", {"x": x, "y": y}), [x, y], engine)
    check(z, np.asarray(quiet(EXACT[op_type])(x, y)))


@each_engine
@given(data=st.data())
@few
def test_symbolic_dims_change_nothing(engine: str, data: st.DataObject) -> None:
    """The same model with every dim of the inputs a symbol of its own."""
    op_type = data.draw(st.sampled_from(list(EXACT)))
    left, right = data.draw(shapes).input_shapes
    x = data.draw(hnp.arrays(np.int32, left))
    y = data.draw(hnp.arrays(np.int32, right))
    dims = {"x": [f"x{i}" for i in range(len(left))], "y": [f"y{i}" for i in range(len(right))]}
    (z,) = run_model(make_model(f"z = {op_type} (x, y)", {"x": x, "y": y}, dims=dims), [x, y], engine)
    check(z, np.asarray(quiet(EXACT[op_type])(x, y)))


@functools.cache
def division(engine: str, dtype: np.dtype[Any]) -> Run:
    zeros = np.zeros(9, dtype)
    nodes = ["q = Div (x, y)", "m = Mod (x, y)", "r = Mod <fmod = 1> (x, y)"]
    return prepare(make_model(nodes, {"x": zeros, "y": zeros}), engine)


@each_engine
@given(data=st.data())
@several
def test_integer_division(engine: str, data: st.DataObject) -> None:
    """Div and both kinds of Mod against Python's integers."""
    dtype = data.draw(st.sampled_from(INTEGERS))
    x = data.draw(hnp.arrays(dtype, 9))
    y = data.draw(hnp.arrays(dtype, 9, elements=hnp.from_dtype(dtype).filter(bool)))
    q, m, r = division(engine, dtype)([x, y])
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert (int(q[i]) - quotient) % (1 << dtype.itemsize * 8) == 0
        assert int(m[i]) == a % b
        assert int(r[i]) == a - quotient * b


# kind: (node without its operands, number of operands, meaning)
STEPS: dict[str, list[tuple[str, int, Function]]] = {
    "float32": [
        ("Add", 2, np.add),
        ("Sub", 2, np.subtract),
        ("Mul", 2, np.multiply),
        ("Div", 2, np.divide),
        ("Neg", 1, np.negative),
        ("Abs", 1, np.abs),
        ("Floor", 1, np.floor),
        ("Ceil", 1, np.ceil),
        ("Round", 1, np.rint),
        ("Sqrt", 1, np.sqrt),
        ("Reciprocal", 1, lambda x: np.float32(1) / x),
        ("Max", 2, maximum),
        ("Min", 2, minimum),
        ("Relu", 1, lambda x: maximum(x, np.float32(0))),
        ("Sum", 3, lambda x, y, z: (x + y) + z),
    ],
    "int32": [
        ("Add", 2, np.add),
        ("Sub", 2, np.subtract),
        ("Mul", 2, np.multiply),
        ("Neg", 1, np.negative),
        ("Abs", 1, np.abs),
        ("BitwiseAnd", 2, np.bitwise_and),
        ("BitwiseOr", 2, np.bitwise_or),
        ("BitwiseXor", 2, np.bitwise_xor),
        ("BitwiseNot", 1, np.invert),
        ("Max", 2, maximum),
        ("Min", 2, minimum),
        ("Sign", 1, np.sign),
    ],
}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], dict[str, Array], dict[str, Array]]:
    """Nodes, inputs by name, and every value by name as NumPy computes it."""
    dtype = draw(st.sampled_from(list(STEPS)))
    given_shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4)).input_shapes
    inputs = {f"x{i}": draw(hnp.arrays(np.dtype(dtype), s)) for i, s in enumerate(given_shapes)}
    values = dict(inputs)
    nodes: list[str] = []
    for i in range(draw(st.integers(1, 8))):
        op_type, count, meaning = draw(st.sampled_from(STEPS[dtype]))
        chosen = [draw(st.sampled_from(list(values))) for _ in range(count)]
        nodes.append(f"v{i} = {op_type} ({', '.join(chosen)})")
        values[f"v{i}"] = np.asarray(quiet(meaning)(*(values[c] for c in chosen))).astype(dtype)
    return nodes, inputs, values


def check_values(got: list[Any], names: list[str], values: dict[str, Array]) -> None:
    for array, name in zip(got, names, strict=True):
        check(array, values[name])


@each_engine
@given(graph=graphs())
@several
def test_random_graphs(engine: str, graph: Any) -> None:
    """Every value of a graph is an output, and has NumPy's bits."""
    nodes, inputs, values = graph
    outputs = [name for name in values if name not in inputs]
    run = prepare(make_model(nodes, inputs, outputs=outputs), engine)
    check_values(run(inputs), outputs, values)


@each_engine
@given(graph=graphs())
@few
def test_random_graphs_with_one_output(engine: str, graph: Any) -> None:
    """What is fused for not being an output has the same bits."""
    nodes, inputs, values = graph
    last = list(values)[-1:]
    check_values(prepare(make_model(nodes, inputs, outputs=last), engine)(inputs), last, values)


@each_engine
@given(graph=graphs(), data=st.data())
@few
def test_random_graphs_with_constants(engine: str, graph: Any, data: st.DataObject) -> None:
    """Folding gives the same bits: some of the inputs are initializers."""
    nodes, inputs, values = graph
    fixed = data.draw(st.sets(st.sampled_from(list(inputs)), min_size=1))
    free = {name: array for name, array in inputs.items() if name not in fixed}
    constants = {name: inputs[name] for name in sorted(fixed)}
    outputs = [name for name in values if name not in inputs]
    run = prepare(make_model(nodes, free, constants=constants, outputs=outputs), engine)
    check_values(run(free), outputs, values)
