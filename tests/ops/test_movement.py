"""Operators that move elements: cases, the node tests of onnx, every mode against NumPy on random shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model
from ..node_tests import node_tests, run_node_test

CASES = read_cases(Path(__file__).with_name("movement_cases.txt"))
OPERATORS = (
    "CenterCropPad Concat DepthToSpace Expand EyeLike OneHot Pad Range ReverseSequence Size Slice "
    "SpaceToDepth Split Tile Trilu"
).split()
NODE_TESTS = node_tests(OPERATORS)
STRINGS = {
    name
    for name, case in NODE_TESTS.items()
    if any(i.type.tensor_type.elem_type == 8 for i in case.model.graph.input)
}
TYPES = [
    "float16", "bfloat16", "float32", "float64", "bool", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


@pytest.mark.parametrize("name", sorted(NODE_TESTS.keys() - STRINGS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


def some(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * 9).astype(numpy_type(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@each_engine
def test_every_type(dtype: str, engine: str) -> None:
    x = some((3, 5), dtype)
    nodes = [
        "a = Pad (x, p)",
        "b = Tile (x, r)",
        "c, d = Split <axis = 1> (x, s)",
        "e = Concat <axis = 1> (d, c)",
    ]
    constants = {"p": np.array([1, 0, 0, 2]), "r": np.array([2, 1]), "s": np.array([2, 3])}
    model = make_model(nodes, {"x": x}, constants=constants, outputs=["a", "b", "c", "e"])
    a, b, c, e = run_model(model, {"x": x}, engine)
    check(a, np.pad(x, [(1, 0), (0, 2)]))
    check(b, np.tile(x, (2, 1)))
    check(c, x[:, :2])
    check(e, np.concatenate([x[:, 2:], x[:, :2]], 1))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@given(data=st.data())
@settings(max_examples=12, deadline=None)
@each_engine
def test_pad_against_numpy(engine: str, mode: str, symbolic: bool, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 40), min_size=1, max_size=3)))
    pads = [(data.draw(st.integers(0, d - 1)), data.draw(st.integers(0, d - 1))) for d in shape]
    x = some(shape)
    p = np.array([low for low, _ in pads] + [high for _, high in pads], np.int64)
    feeds = {"x": x, "p": p} if symbolic else {"x": x}
    dims = {"x": [f"d{i}" for i in range(len(shape))]} if symbolic else None
    model = make_model(
        f'y = Pad <mode = "{mode}"> (x, p)', feeds, constants={} if symbolic else {"p": p}, dims=dims
    )
    (y,) = run_model(model, feeds, engine)
    check(y, np.pad(x, pads, mode=mode))  # type: ignore[call-overload]


@given(data=st.data())
@settings(max_examples=15, deadline=None)
@each_engine
def test_concat_of_computed_parts_against_numpy(engine: str, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    axis = data.draw(st.integers(0, rank - 1))
    shape = data.draw(st.lists(st.integers(1, 20), min_size=rank, max_size=rank))
    sizes = data.draw(st.lists(st.integers(0, 90), min_size=1, max_size=5))
    named = data.draw(st.booleans())
    parts, nodes, dims = {}, [], {}
    for i, size in enumerate(sizes):
        parts[f"p{i}"] = some((*shape[:axis], size, *shape[axis + 1 :]), seed=i)
        dims[f"p{i}"] = [f"n{i}" if a == axis else f"d{a}" for a in range(rank)]
        nodes.append(f"r{i} = Relu (p{i})")
    inputs = [f"r{i}" if i % 2 else f"p{i}" for i in range(len(sizes))]
    nodes += [f"y = Concat <axis = {axis}> ({', '.join(inputs)})", "z = Neg (y)"]
    outputs = ["y", "z", *(f"r{i}" for i in range(len(sizes)))]
    model = make_model(nodes, parts, dims=dims if named else None, outputs=outputs)
    y, z, *_ = run_model(model, parts, engine)
    want = np.concatenate([np.maximum(p, 0) if i % 2 else p for i, p in enumerate(parts.values())], axis)
    check(y, want, zero_signs=False)
    check(z, -want, zero_signs=False)


@each_engine
def test_a_part_used_twice_and_a_concatenation_of_concatenations(engine: str) -> None:
    x = some((4, 30, 20))
    nodes = [
        "r = Relu (x)",
        "a = Concat <axis = 1> (r, x, r)",
        "b = Concat <axis = 0> (a, a)",
        "c = Concat <axis = 2> (b, b)",
    ]
    (c,) = run_model(make_model(nodes, {"x": x}, dims={"x": ["a", "b", "c"]}), {"x": x}, engine)
    r = np.maximum(x, 0)
    a = np.concatenate([r, x, r], 1)
    b = np.concatenate([a, a], 0)
    check(c, np.concatenate([b, b], 2), zero_signs=False)


@pytest.mark.parametrize(
    ("start", "limit", "delta", "dtype"),
    [
        (0, 7, 2, "int16"),
        (3, -9, -2, "int64"),
        (1, 2, 0.3, "float32"),
        (1, 2, 0.25, "float64"),
        (5, 5, 1, "int32"),
    ],
)
@each_engine
def test_range_at_run_time(start: Any, limit: Any, delta: Any, dtype: str, engine: str) -> None:
    feeds = {k: np.array(v, dtype) for k, v in zip("abc", (start, limit, delta), strict=True)}
    (y,) = run_model(make_model("y = Range (a, b, c)", feeds), feeds, engine)
    count = max(int(np.ceil((feeds["b"] - feeds["a"]) / feeds["c"])), 0)
    check(y, (feeds["a"] + np.arange(count).astype(dtype) * feeds["c"]).astype(dtype), ulp=1)


@each_engine
def test_one_compilation_serves_every_size(engine: str) -> None:
    x = some((2, 3))
    nodes = [
        "a, b = Split <num_outputs = 2, axis = 1> (x)",
        "y = Concat <axis = 1> (b, a)",
        "t = Tile (y, r)",
    ]
    run = prepare(
        make_model(nodes, {"x": x}, dims={"x": ["n", "m"]}, constants={"r": np.array([2, 2])}), engine
    )
    for shape in ((2, 3), (1, 1), (40, 33), (3, 64), (0, 4)):
        x = some(shape)
        half = -(-shape[1] // 2)
        (t,) = run({"x": x})
        check(t, np.tile(np.concatenate([x[:, half:], x[:, :half]], 1), (2, 2)))
