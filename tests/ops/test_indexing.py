"""Reads and writes at computed places: cases, the node tests of onnx, and random indices against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sardonyx
from sardonyx.errors import RuntimeFault

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model
from ..node_tests import node_tests, run_node_test

CASES = read_cases(Path(__file__).with_name("indexing_cases.txt"))
NODE_TESTS = node_tests(
    [
        "Gather",
        "GatherElements",
        "GatherND",
        "MaxUnpool",
        "Scatter",
        "ScatterElements",
        "ScatterND",
        "TensorScatter",
    ]
)
DEPRECATED = {"test_scatter_with_axis", "test_scatter_without_axis"}
COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
TYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
    "int8",
    "uint8",
    "int32",
    "int64",
    "uint64",
    "complex64",
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


@pytest.mark.parametrize("name", sorted(NODE_TESTS.keys() - DEPRECATED))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


def some(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * 9).astype(numpy_type(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@each_engine
def test_every_type(dtype: str, engine: str) -> None:
    x, u = some((4, 3), dtype), some((2, 3), dtype, 1)
    i = np.array([[-1, 0, 1], [2, 2, -4]])
    nodes = ["a = GatherElements (x, i)", "b = ScatterElements (x, i, u)", "c = ScatterND (x, j, u)"]
    model = make_model(nodes, {"x": x, "u": u}, constants={"i": i, "j": np.array([[3], [-4]])})
    a, b, c = run_model(model, {"x": x, "u": u}, engine)
    check(a, np.take_along_axis(x, i, 0))
    want = x.copy()
    np.put_along_axis(want, i, u, 0)
    check(b, want)
    want = x.copy()
    want[[3, 0]] = u
    check(c, want)


def places(data: st.DataObject, shape: tuple[int, ...], extent: int) -> Array:
    seed = data.draw(st.integers(0, 2**16))
    return np.random.default_rng(seed).integers(-extent, extent, shape)


@pytest.mark.parametrize("reduction", ["none", *COMBINE])
@given(data=st.data())
@settings(max_examples=10, deadline=None)
@each_engine
def test_scatter_elements_against_numpy(engine: str, reduction: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(0, 12))
    within = tuple(count if i == axis else data.draw(st.integers(0, d)) for i, d in enumerate(shape))
    x, u = some(shape), some(within, seed=1)
    feeds = {"x": x, "i": places(data, within, shape[axis]), "u": u}
    names = {k: [f"{k}{a}" for a in range(len(shape))] for k in feeds} if data.draw(st.booleans()) else None
    model = make_model(
        f'y = ScatterElements <axis = {axis}, reduction = "{reduction}"> (x, i, u)', feeds, dims=names
    )
    (y,) = run_model(model, feeds, engine)
    want = x.copy()
    for place in np.ndindex(*within):
        to = (*place[:axis], feeds["i"][place], *place[axis + 1 :])
        want[to] = u[place] if reduction == "none" else COMBINE[reduction](want[to], u[place])
    check(y, want)


@pytest.mark.parametrize("reduction", ["none", *COMBINE])
@given(data=st.data())
@settings(max_examples=10, deadline=None)
@each_engine
def test_gather_nd_and_scatter_nd_against_numpy(engine: str, reduction: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)))
    depth = data.draw(st.integers(1, len(shape)))
    lead = tuple(data.draw(st.lists(st.integers(0, 6), max_size=2)))
    index = np.stack([places(data, lead, d) for d in shape[:depth]], -1)
    x, u = some(shape), some((*lead, *shape[depth:]), seed=1)
    feeds = {"x": x, "i": index, "u": u}
    nodes = ["g = GatherND (x, i)", f'y = ScatterND <reduction = "{reduction}"> (x, i, u)']
    g, y = run_model(make_model(nodes, feeds), feeds, engine)
    check(g, x[tuple(np.moveaxis(index, -1, 0))])
    want = x.copy()
    for place in np.ndindex(*lead):
        to = tuple(index[place])
        want[to] = u[place] if reduction == "none" else COMBINE[reduction](want[to], u[place])
    check(y, want)


@pytest.mark.parametrize(
    "node",
    [
        'ScatterElements <axis = 1, reduction = "add"> (x, i, u)',
        'ScatterElements <reduction = "add"> (x, i, u)',
    ],
)
def test_threads_do_not_race(node: str) -> None:
    x, u = some((300, 400)), some((300, 400), seed=1)
    i = np.random.default_rng(2).integers(0, 300, (300, 400))
    model = make_model(f"y = {node}", {"x": x, "i": i, "u": u})
    one, many = (sardonyx.compile(model, threads=n).run([x, i, u])[0] for n in (1, 4))
    check(many, one)


@each_engine
def test_faults_in_any_lane_and_any_row_name_the_node(engine: str) -> None:
    x = some((7, 33))
    run = prepare(
        make_model("[there] y = GatherElements <axis = 1> (x, i)", {"x": x, "i": np.zeros((7, 33), int)}),
        engine,
    )
    for row, column in ((0, 0), (3, 32), (6, 15)):
        i = np.zeros((7, 33), np.int64)
        i[row, column] = 33
        with pytest.raises(RuntimeFault, match="there"):
            run({"x": x, "i": i})
    check(run({"x": x, "i": np.full((7, 33), -33)})[0], np.repeat(x[:, :1], 33, 1))


@each_engine
def test_a_gather_inside_a_larger_group(engine: str) -> None:
    x, i = some((50, 24)), np.array([[3, -1], [0, 49]])
    nodes = ["a = Exp (x)", "j = Add (i, o)", "b = Gather (a, j)", "c = Mul (b, b)", "y = ReduceSum (c, ax)"]
    constants = {"o": np.array(0), "ax": np.array([2])}
    (y,) = run_model(make_model(nodes, {"x": x, "i": i}, constants=constants), {"x": x * 0.1, "i": i}, engine)
    check(y, (np.exp(x * 0.1)[i] ** 2).sum(2, keepdims=True), rtol=1e-5)
