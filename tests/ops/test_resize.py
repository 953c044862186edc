"""Resize and Upsample: every mode against matrices made from the operator's text, versions, dims, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model
from ..node_tests import node_tests, run_node_test

NODE_TESTS = node_tests(["Resize", "Upsample"])
CASES = read_cases(Path(__file__).with_name("resize_cases.txt"))
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


def coordinate(mode: str, x: float, old: int, new: int, scale: float) -> float:
    length = scale * old
    match mode:
        case "asymmetric":
            return x / scale
        case "align_corners":
            return 0.0 if length == 1 else x * (old - 1) / (length - 1)
        case "pytorch_half_pixel" if new == 1:
            return 0.0
        case "half_pixel_symmetric":
            return old / 2 * (1 - new / length) + (x + 0.5) / scale - 0.5
    return (x + 0.5) / scale - 0.5


def cubic(distance: float, a: float) -> float:
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0


def line(old: int, scale: float, mode: str, coordinates: str, **options: Any) -> Array:
    """The matrix that resizes one axis."""
    new = int(np.floor(np.float32(old) * np.float32(scale)))
    scale = float(np.float32(scale))
    matrix = np.zeros((new, old))
    for i in range(new):
        at = coordinate(coordinates, i, old, new, scale)
        if mode == "nearest":
            rounding = options.get("nearest_mode", "round_prefer_floor")
            place = {
                "round_prefer_floor": np.ceil(at - 0.5),
                "round_prefer_ceil": np.floor(at + 0.5),
                "floor": np.floor(at),
                "ceil": np.ceil(at),
            }[rounding]
            matrix[i, int(np.clip(place, 0, old - 1))] = 1
            continue
        stretch = min(scale, 1.0) if options.get("antialias") else 1.0
        reach = int(np.ceil((1 if mode == "linear" else 2) / stretch))
        places = np.floor(at) + np.arange(1 - reach, reach + 1)
        weight = (
            (lambda d: max(0.0, 1 - abs(d)))
            if mode == "linear"
            else (lambda d: cubic(d, options.get("cubic_coeff_a", -0.75)))
        )
        weights = np.array([weight((p - at) * stretch) for p in places])
        if options.get("exclude_outside"):
            weights[(places < 0) | (places >= old)] = 0
        if options.get("exclude_outside") or options.get("antialias"):
            weights /= weights.sum()
        np.add.at(matrix[i], np.clip(places, 0, old - 1).astype(int), weights)
    return matrix


def resized(x: Array, scales: Sequence[float], mode: str, coordinates: str, **options: Any) -> Array:
    result = x.astype(np.float64)
    for axis, scale in enumerate(scales):
        if scale != 1:
            result = np.moveaxis(
                np.tensordot(line(x.shape[axis], scale, mode, coordinates, **options), result, (1, axis)),
                0,
                axis,
            )
    return result


def node(mode: str, coordinates: str, **options: Any) -> str:
    texts = [f"{k} = {v!r}".replace("'", '"') for k, v in options.items()]
    return f"y = Resize <{', '.join([f'mode = {chr(34)}{mode}{chr(34)}', f'coordinate_transformation_mode = {chr(34)}{coordinates}{chr(34)}', *texts])}> (x, , s)"


OPTIONS = [
    *(("nearest", {"nearest_mode": m}) for m in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
    ("linear", {}),
    ("linear", {"exclude_outside": 1}),
    ("linear", {"antialias": 1}),
    ("cubic", {}),
    ("cubic", {"cubic_coeff_a": -0.5}),
    ("cubic", {"exclude_outside": 1}),
    ("cubic", {"antialias": 1}),
    ("cubic", {"antialias": 1, "exclude_outside": 1}),
]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("mode", "options"), OPTIONS)
@each_engine
def test_every_mode(mode: str, options: dict[str, Any], coordinates: str, engine: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 7, 9)).astype(np.float32)
    for scales in ([1, 1, 2, 1.7], [1, 1, 0.6, 0.3], [1, 2, 1, 0.125]):
        want = resized(x, scales, mode, coordinates, **options).astype(np.float32)
        constants = {"s": np.array(scales, np.float32)}
        for dims in (None, ["n", "c", "h", "w"]) if engine == "compiled" else (None,):
            model = make_model(
                node(mode, coordinates, **options),
                {"x": x},
                constants=constants,
                dims={"x": dims} if dims else None,
            )
            check(run_model(model, {"x": x}, engine)[0], want, rtol=2e-5, atol=2e-6, zero_signs=False)


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@each_engine
def test_any_number_of_axes(mode: str, rank: int, engine: str) -> None:
    x = np.random.default_rng(rank).standard_normal((3, 4, 2, 5, 3)[:rank]).astype(np.float32)
    scales = [2.0, 1.5, 3.0, 0.5, 1.0][:rank]
    want = resized(x, scales, mode, "half_pixel").astype(np.float32)
    feeds = {"x": x, "s": np.array(scales, np.float32)}
    check(
        run_model(make_model(node(mode, "half_pixel"), feeds), feeds, engine)[0],
        want,
        rtol=2e-5,
        atol=2e-6,
        zero_signs=False,
    )


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "uint8", "int8", "int32", "bool", "int64"]
)
@each_engine
def test_types(dtype: str, engine: str) -> None:
    x = (np.arange(12).reshape(1, 1, 3, 4) % 7 * 3 - 5).astype(numpy_type(dtype))
    scales = [1, 1, 2, 4]  # weights that any type holds
    for mode in ("nearest", "linear"):
        model = make_model(node(mode, "half_pixel"), {"x": x}, constants={"s": np.array(scales, np.float32)})
        if dtype == "bool" and mode == "linear":
            with pytest.raises(CompileError, match="numbers"):
                prepare(model, engine)
            continue
        want = resized(x.astype(np.float64), scales, mode, "half_pixel")
        want = np.rint(want) if x.dtype.kind in "iu" else want
        if x.dtype.kind == "u":
            want = np.clip(want, 0, 255)
        check(run_model(model, {"x": x}, engine)[0], want.astype(x.dtype), ulp=1, zero_signs=False)


@each_engine
def test_sizes_computed_from_a_shape(engine: str) -> None:
    """The usual way of exporters: the sizes of another tensor."""
    nodes = [
        "shape = Shape <start = 2> (other)",
        "lead = Shape <end = 2> (x)",
        "sizes = Concat <axis = 0> (lead, shape)",
        'y = Resize <mode = "linear"> (x, , , sizes)',
    ]
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    dims = {"x": ["n", 2, "h", "w"], "other": ["n", 1, "p", "q"]}
    feeds = {"x": x, "other": np.zeros((1, 1, 6, 7), np.float32)}
    run = prepare(make_model(nodes, feeds, dims=dims, outputs=["y"]), engine)
    want = resized(x, [1, 1, 2, 7 / 4], "linear", "half_pixel").astype(np.float32)
    check(run(feeds)[0], want, rtol=1e-5, atol=1e-5)
    again = {"x": x[:, :, :2], "other": np.zeros((1, 1, 4, 4), np.float32)}
    check(
        run(again)[0],
        resized(again["x"], [1, 1, 2, 1], "linear", "half_pixel").astype(np.float32),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize(("policy", "shape"), [("not_larger", (3, 6)), ("not_smaller", (4, 8))])
@each_engine
def test_aspect_ratio(policy: str, shape: tuple[int, int], engine: str) -> None:
    text = f'y = Resize <axes = [-1, 0], keep_aspect_ratio_policy = "{policy}"> (x, , , s)'
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    for dims in (None, {"x": ["h", "w"]}):
        feeds = {"x": x, "s": np.array([8, 3])}
        got = run_model(make_model(text, feeds, dims=dims), feeds, engine)[0]
        assert got.shape == shape
        folded = make_model(text, {"x": x}, constants={"s": np.array([8, 3])}, dims=dims)
        check(run_model(folded, {"x": x}, engine)[0], got)


@each_engine
def test_nothing_to_resize(engine: str) -> None:
    x = np.zeros((1, 0, 2), np.float32)
    text = "y = Resize (x, , , s)"
    got = run_model(make_model(text, {"x": x}, constants={"s": np.array([1, 0, 4])}), {"x": x}, engine)[0]
    assert got.shape == (1, 0, 4)
    with pytest.raises(CompileError, match="empty"):
        prepare(make_model(text, {"x": x}, constants={"s": np.array([1, 3, 4])}), engine)
    run = prepare(
        make_model(text, {"x": x}, constants={"s": np.array([1, 3, 4])}, dims={"x": [1, "n", 2]}), engine
    )
    with pytest.raises(RuntimeFault, match="empty"):
        run({"x": x})


@pytest.mark.parametrize("opset", [1, 6, 7, 8, 9, 10])
@each_engine
def test_upsample(opset: int, engine: str) -> None:
    """Older forms sample asymmetrically; nearest rounds down."""
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    scales = np.array([1, 1, 2, 2], np.float32)
    for mode in ("nearest", "linear"):
        inputs: dict[str, Array] = {"x": x}
        if opset < 7:
            text = f'y = Upsample <height_scale = 2.0, width_scale = 2.0, mode = "{"bilinear" if mode == "linear" else mode}"> (x)'
        elif opset < 9:
            text = f'y = Upsample <scales = [1.0, 1.0, 2.0, 2.0], mode = "{mode}"> (x)'
        else:
            inputs["s"] = scales
            text = f'y = {"Upsample" if opset == 9 else "Resize"} <mode = "{mode}"> (x, s)'
        want = resized(x, [1, 1, 2, 2], mode, "asymmetric", nearest_mode="floor").astype(np.float32)
        check(run_model(make_model(text, inputs, opset=opset), inputs, engine)[0], want)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y = Resize (x)", "scales or sizes"),
        ('y = Resize <mode = "sinc"> (x, , s)', "sinc"),
        ('y = Resize <coordinate_transformation_mode = "middle"> (x, , s)', "middle"),
        ("y = Resize <antialias = 1> (x, , s)", "antialias"),
        ('y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, , s)', "roi"),
        ("y = Resize <axes = [0]> (x, , s)", "scales"),
    ],
)
@each_engine
def test_refused(text: str, words: str, engine: str) -> None:
    x = np.zeros((2, 2), np.float32)
    with pytest.raises(CompileError, match=words):
        prepare(make_model(text, {"x": x}, constants={"s": np.array([2, 2], np.float32)}), engine)
