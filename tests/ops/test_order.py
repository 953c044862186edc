"""Order and data-dependent sizes: cases, the node tests of onnx, random data against NumPy."""

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

CASES = read_cases(Path(__file__).with_name("order_cases.txt"))
NODE_TESTS = node_tests(["Compress", "CumProd", "CumSum", "NonMaxSuppression", "NonZero", "TopK", "Unique"])
ORDERED = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


def values(data: st.DataObject, shape: tuple[int, ...], dtype: str, *, ties: bool) -> Array:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    wide = rng.integers(-4, 5, shape) if ties else rng.standard_normal(shape) * 50
    with np.errstate(all="ignore"):
        return np.asarray(wide).astype(np.int64 if dtype[0] in "iu" else np.float64).astype(numpy_type(dtype))


@pytest.mark.parametrize("dtype", ORDERED)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
@each_engine
def test_top_k_against_a_stable_sort(engine: str, dtype: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 70), min_size=1, max_size=2)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    k, largest = data.draw(st.integers(0, shape[axis])), data.draw(st.booleans())
    x = values(data, shape, dtype, ties=data.draw(st.booleans()))
    feeds = {"x": x, "k": np.array([k])}
    names = {"x": [f"d{i}" for i in range(len(shape))]} if data.draw(st.booleans()) else None
    model = make_model(
        f"v, i = TopK <axis = {axis}, largest = {int(largest)}> (x, k)", feeds, opset=24, dims=names
    )
    v, i = run_model(model, feeds, engine)
    key = x.astype(np.longdouble) * (-1 if largest else 1)
    want = np.take(np.argsort(key, axis, kind="stable"), np.arange(k), axis)
    check(i, want)
    check(v, np.take_along_axis(x, want, axis))


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("extent", [127, 128, 129, 1000])
@each_engine
def test_whole_rows_are_sorted(extent: int, dtype: str, engine: str) -> None:
    """Long rows are sorted by bytes: keys that differ in any of them, NaNs, ties."""
    rng = np.random.default_rng(extent)
    wide = rng.standard_normal((3, extent)) * 10.0 ** rng.integers(-3, 5, (3, extent))
    with np.errstate(all="ignore"):
        x = (wide.astype(np.int64) if dtype[0] in "iu" else wide).astype(numpy_type(dtype))
    x[1] = x[1, 0]
    if dtype[0] not in "iu":
        x[2, ::7] = np.nan
    for count, largest in ((extent, 1), (extent, 0), (extent // 2, 1)):
        node = f"v, i = TopK <largest = {largest}> (x, k)"
        constants = {"k": np.array([count])}
        v, i = run_model(make_model(node, {"x": x}, constants=constants, opset=24), {"x": x}, engine)
        key = x.astype(np.longdouble)
        key[np.isnan(key)] = np.inf
        want = np.argsort(-key if largest else key, 1, kind="stable")[:, :count]
        check(i, want)
        check(v, np.take_along_axis(x, want, 1))


@given(data=st.data())
@settings(max_examples=15, deadline=None)
@each_engine
def test_non_zero_and_compress_against_numpy(engine: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=3)))
    x = values(data, shape, "float32", ties=True)
    c = values(data, shape[:1], "int32", ties=True) > 1
    feeds = {"x": x, "c": c}
    dims = {"x": [f"d{i}" for i in range(len(shape))]}
    nodes = ["z = NonZero (x)", "y = Compress <axis = 0> (x, c)", "f = Neg (y)"]
    z, f = run_model(make_model(nodes, feeds, dims=dims), feeds, engine)
    check(z, np.array(np.nonzero(x), np.int64).reshape(len(shape), -1))
    check(f, -x[c], zero_signs=False)


@pytest.mark.parametrize("axis", [None, 0, 1])
@given(data=st.data())
@settings(max_examples=10, deadline=None)
@each_engine
def test_unique_against_numpy(engine: str, axis: int | None, data: st.DataObject) -> None:
    shape = (data.draw(st.integers(1, 30)), data.draw(st.integers(1, 6)))
    x = values(data, shape, data.draw(st.sampled_from(["float32", "int64", "int8"])), ties=True)
    at = "" if axis is None else f"axis = {axis}, "
    run: dict[int, Any] = {}
    for sort in (0, 1):
        model = make_model(f"y, i, v, c = Unique <{at}sorted = {sort}> (x)", {"x": x}, dims={"x": ["a", "b"]})
        run[sort] = run_model(model, {"x": x}, engine)
    want = np.unique(x, True, True, True, axis=axis)
    flat = [want[0], *(np.asarray(w).ravel().astype(np.int64) for w in want[1:])]
    for got, right in zip(run[1], flat, strict=True):
        check(got, right)
    order = np.argsort(flat[1])
    check(run[0][0], np.take(flat[0], order, axis or 0))
    check(run[0][1], flat[1][order])
    check(run[0][2], np.argsort(order)[flat[2]])
    check(run[0][3], flat[3][order])


def plain_suppression(boxes: Array, scores: Array, most: int, limit: float, least: float) -> list[list[int]]:
    rows = []
    for image, label in np.ndindex(*scores.shape[:2]):
        kept: list[int] = []
        for i in np.argsort(-scores[image, label], kind="stable").tolist():
            if scores[image, label, i] <= least or len(kept) == most:
                continue
            low = np.maximum(boxes[image, i, :2], boxes[image, kept, :2])
            high = np.minimum(boxes[image, i, 2:], boxes[image, kept, 2:])
            both = np.prod(np.maximum(high - low, 0), axis=-1)
            areas = np.prod(boxes[image, :, 2:] - boxes[image, :, :2], axis=-1)
            if not (both / (areas[i] + areas[kept] - both) > limit).any():
                kept.append(i)
        rows += [[image, label, i] for i in kept]
    return rows


@pytest.mark.parametrize(
    ("most", "limit", "least"), [(100, 0.3, 0.2), (3, 0.5, 0.0), (7, 0.0, 0.9), (10, 0.3, 2.0)]
)
@each_engine
def test_suppression_against_a_plain_loop(engine: str, most: int, limit: float, least: float) -> None:
    rng = np.random.default_rng(5)
    corner = rng.integers(0, 64, (2, 130, 2))
    boxes = (np.concatenate([corner, corner + rng.integers(1, 24, (2, 130, 2))], 2) / 8).astype(np.float32)
    scores = rng.random((2, 3, 130)).astype(np.float32)
    feeds = {"b": boxes, "s": scores, "m": np.array([most])}
    constants = {"o": np.array([limit], np.float32), "t": np.array([least], np.float32)}
    dims: dict[str, list[Any]] = {"b": ["n", "k", 4], "s": ["n", "l", "k"]}
    run = prepare(
        make_model("y = NonMaxSuppression (b, s, m, o, t)", feeds, constants=constants, dims=dims), engine
    )
    (y,) = run(feeds)
    check(
        y,
        np.array(
            plain_suppression(boxes, scores, most, float(np.float32(limit)), float(np.float32(least))),
            np.int64,
        ).reshape(-1, 3),
    )
    center = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], 2)
    model = make_model(
        "y = NonMaxSuppression <center_point_box = 1> (b, s, m, o, t)", feeds, constants=constants
    )
    check(run_model(model, {**feeds, "b": center}, engine)[0], y)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint32", "int64", "uint64"]
)
@pytest.mark.parametrize("axis", [0, 1, -1])
@each_engine
def test_running_sums(dtype: str, axis: int, engine: str) -> None:
    x = (np.random.default_rng(1).standard_normal((5, 9, 37)) * 9).astype(np.int64).astype(numpy_type(dtype))
    for exclusive, reverse in ((0, 0), (1, 0), (0, 1), (1, 1)):
        node = f"y = CumSum <exclusive = {exclusive}, reverse = {reverse}> (x, a)"
        (y,) = run_model(make_model(node, {"x": x}, constants={"a": np.array(axis)}), {"x": x}, engine)
        wide = x.astype(np.float64) if dtype in ("float16", "bfloat16") else x
        wide = np.flip(wide, axis) if reverse else wide
        want = np.cumsum(wide, axis, dtype=wide.dtype) - (wide if exclusive else 0)
        check(y, (np.flip(want, axis) if reverse else want).astype(x.dtype), zero_signs=False)


@each_engine
def test_sizes_that_are_data_in_a_larger_graph(engine: str) -> None:
    """Two data-dependent sizes, one computed from the other, and an op that reads both results."""
    x = np.random.default_rng(3).standard_normal((30, 4)).astype(np.float32)
    nodes = [
        "m = Greater (x, t)",
        "z = NonZero (m)",
        "zt = Transpose (z)",
        "v = GatherND (x, zt)",
        "s = Sigmoid (v)",
        "h = Greater (s, u)",
        "w = Compress (s, h)",
        "e = Concat <axis = 0> (s, w)",
        "y = CumSum (e, a)",
    ]
    constants = {"t": np.array(0.3, np.float32), "u": np.array(0.65, np.float32), "a": np.array(0)}
    run = prepare(
        make_model(nodes, {"x": x}, constants=constants, dims={"x": ["n", "m"]}, outputs=["y", "z"]), engine
    )
    for part in (x, x[:7], x[:0], -np.abs(x)):
        y, z = run({"x": part})
        chosen = 1 / (1 + np.exp(-part[part > np.float32(0.3)]))
        check(y, np.cumsum(np.concatenate([chosen, chosen[chosen > np.float32(0.65)]])), rtol=1e-5)
        check(z, np.array(np.nonzero(part > np.float32(0.3)), np.int64).reshape(2, -1))
