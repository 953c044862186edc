"""GridSample, RoiAlign and AffineGrid: every mode against plain loops over the definition; refusals."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model
from ..node_tests import node_tests, run_node_test

NODE_TESTS = node_tests(["GridSample", "RoiAlign", "AffineGrid"])
CASES = read_cases(Path(__file__).with_name("gridsample_cases.txt"))
PADDINGS = ["zeros", "border", "reflection"]


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


def reflect(x: float, low: float, high: float) -> float:
    while x < low or x > high:
        if low == high:
            return low
        x = 2 * low - x if x < low else 2 * high - x
    return x


def keys(d: float) -> float:
    d = abs(d)
    if d <= 1:
        return (1.25 * d - 2.25) * d * d + 1
    return ((-0.75 * d + 3.75) * d - 6) * d + 3 if d < 2 else 0.0


def neighbours(at: float, size: int, mode: str, padding: str, align: bool) -> list[tuple[int | None, float]]:
    """Places along one axis (None: outside) with their weights."""
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    if mode == "nearest":
        at = float(np.rint(at))
    if padding == "border" and not low <= at <= high:
        at = min(max(at, 0.0), size - 1.0)
    elif padding == "reflection":
        at = reflect(at, low, high)
    base = math.floor(at)
    if mode == "nearest":
        taps = [(int(at), 1.0)]
    elif mode == "linear":
        taps = [(base, 1 - (at - base)), (base + 1, at - base)]
    else:
        taps = [(base + i, keys(at - base - i)) for i in (-1, 0, 1, 2)]
    found: list[tuple[int | None, float]] = []
    for place, weight in taps:
        if 0 <= place < size:
            found.append((place, weight))
        elif padding == "zeros":
            found.append((None, weight))
        elif padding == "border":
            found.append((min(max(place, 0), size - 1), weight))
        else:
            found.append((int(reflect(place, low, high)), weight))
    return found


def sampled(x: Array, grid: Array, mode: str, padding: str, align: bool) -> Array:
    sizes = x.shape[2:]
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n in range(len(x)):
        for place in np.ndindex(*grid.shape[1:-1]):
            lines = []
            for v, size in zip(grid[n][place][::-1].astype(np.float32), sizes, strict=True):
                at = (v + 1) / 2 * (size - 1) if align else ((v + 1) * size - 1) / 2
                lines.append(neighbours(float(np.float32(at)), size, mode, padding, align))
            for choice in itertools.product(*lines):
                index = [p for p, _ in choice]
                if None not in index:
                    weight = math.prod(w for _, w in choice)
                    result[(n, slice(None), *place)] += weight * x[(n, slice(None), *index)]
    return result


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 9, 4, 6), (2, 2, 3, 4, 3)])
@each_engine
def test_every_mode(shape: tuple[int, ...], mode: str, padding: str, align: int, engine: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    grid = rng.uniform(-1.9, 1.9, (shape[0], *(3, 4, 2)[: len(shape) - 2], len(shape) - 2)).astype(np.float32)
    want = sampled(x, grid, mode, padding, bool(align)).astype(np.float32)
    text = f'y = GridSample <mode = "{mode}", padding_mode = "{padding}", align_corners = {align}> (x, g)'
    feeds = {"x": x, "g": grid}
    named: dict[str, list[Any]] = {
        "x": [f"x{i}" for i in range(x.ndim)],
        "g": [*(f"g{i}" for i in range(grid.ndim - 1)), grid.shape[-1]],
    }
    declared: list[dict[str, list[Any]] | None] = [None, named]
    for dims in declared:
        got = run_model(make_model(text, feeds, dims=dims, opset=20), feeds, engine)[0]
        check(got, want, rtol=2e-4, atol=2e-5, zero_signs=False)


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int64", "bool"])
@each_engine
def test_types_and_older_names(dtype: str, engine: str) -> None:
    x = (np.arange(12).reshape(1, 1, 3, 4) % 5).astype(numpy_type(dtype))
    grid = np.random.default_rng(1).uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32)
    feeds = {"x": x, "g": grid}
    for mode, now in (("nearest", "nearest"), ("bilinear", "linear")):
        text = f'y = GridSample <mode = "{mode}", padding_mode = "border"> (x, g)'
        if dtype == "bool" and mode == "bilinear":
            with pytest.raises(CompileError, match="numbers"):
                prepare(make_model(text, feeds, opset=16), engine)
            continue
        want = sampled(x.astype(np.float64), grid, now, "border", False)
        want = np.rint(want) if x.dtype.kind in "iu" else want
        check(run_model(make_model(text, feeds, opset=16), feeds, engine)[0], want.astype(x.dtype), rtol=1e-3)


@each_engine
def test_coordinates_that_are_no_numbers(engine: str) -> None:
    """They stay within the image: no signal, whatever the value."""
    x = np.ones((1, 9, 2, 2), np.float32)
    grid = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32).reshape(1, 1, 2, 2)
    for padding in PADDINGS:
        text = f'y = GridSample <mode = "nearest", padding_mode = "{padding}"> (x, g)'
        got = run_model(make_model(text, {"x": x, "g": grid}, opset=20), {"x": x, "g": grid}, engine)[0]
        assert got.shape == (1, 9, 1, 2)


@pytest.mark.parametrize(
    ("attributes", "shape", "words"),
    [
        ('mode = "best"', (1, 1, 1, 2), "best"),
        ('padding_mode = "best"', (1, 1, 1, 2), "best"),
        ("align_corners = 1", (1, 1, 1, 3), "number of spatial axes"),
        ("align_corners = 1", (2, 1, 1, 2), "batches"),
    ],
)
@each_engine
def test_refused(attributes: str, shape: tuple[int, ...], words: str, engine: str) -> None:
    feeds = {"x": np.zeros((1, 1, 2, 2), np.float32), "g": np.zeros(shape, np.float32)}
    with pytest.raises(CompileError, match=words):
        prepare(make_model(f"y = GridSample <{attributes}> (x, g)", feeds, opset=20), engine)


def pooled(x: Array, rois: Array, batch: Array, size: int, ratio: int, mode: str, half_pixel: bool) -> Array:
    height, width = x.shape[2:]
    result = np.zeros((len(rois), x.shape[1], size, size))
    for r, (roi, image) in enumerate(zip(rois.astype(np.float64) - 0.5 * half_pixel, batch, strict=True)):
        w, h = roi[2] - roi[0], roi[3] - roi[1]
        if not half_pixel:
            w, h = max(w, 1.0), max(h, 1.0)
        step_y, step_x = h / size, w / size
        rows, columns = (ratio or max(0, math.ceil(v)) for v in (step_y, step_x))
        for i, j in np.ndindex(size, size):
            values: list[Array] = []
            total = np.zeros(x.shape[1])
            for a, c in np.ndindex(rows, columns):
                y = roi[1] + i * step_y + (a + 0.5) * step_y / rows
                z = roi[0] + j * step_x + (c + 0.5) * step_x / columns
                if not (-1 <= y <= height and -1 <= z <= width):
                    values.append(np.zeros(x.shape[1]))
                    continue
                lines = []
                for at, most in ((max(y, 0.0), height), (max(z, 0.0), width)):
                    low = min(int(at), most - 1)
                    share = at - low if low < most - 1 else 0.0
                    lines.append([(low, 1 - share), (min(low + 1, most - 1), share)])
                parts = [p * q * x[image, :, u, v] for u, p in lines[0] for v, q in lines[1]]
                total += sum(parts)
                values.append(np.max(parts, 0))
            if mode == "avg":
                result[r, :, i, j] = total / max(rows * columns, 1)
            elif values:
                result[r, :, i, j] = np.max(values, 0)
    return result


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("half_pixel", [False, True])
@each_engine
def test_roi_align(half_pixel: bool, ratio: int, mode: str, engine: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 5, 9, 7)).astype(np.float32)
    rois = np.array(
        [[0, 0, 5, 6], [1.5, 2, 3, 8.5], [-3, -2, 12, 11], [4, 4, 4, 4], [5, 5, 3, 2]], np.float32
    )
    batch = np.array([0, 1, 1, 0, 1])
    transformation = "half_pixel" if half_pixel else "output_half_pixel"
    text = (
        f'y = RoiAlign <mode = "{mode}", output_height = 3, output_width = 3, sampling_ratio = {ratio}, '
        f'coordinate_transformation_mode = "{transformation}"> (x, r, i)'
    )
    feeds = {"x": x, "r": rois, "i": batch}
    want = pooled(x, rois, batch, 3, ratio, mode, half_pixel).astype(np.float32)
    check(run_model(make_model(text, feeds), feeds, engine)[0], want, rtol=1e-4, atol=1e-5, zero_signs=False)
    dims: dict[str, list[Any]] = {"x": ["n", "c", "h", "w"], "r": ["k", 4], "i": ["j"]}
    run = prepare(make_model(text, feeds, dims=dims), engine)
    check(run(feeds)[0], want, rtol=1e-4, atol=1e-5, zero_signs=False)
    with pytest.raises(RuntimeFault, match="RoiAlign"):
        run({**feeds, "i": np.array([0, 1, 2, 0, 1])})


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 2, 3, 2, 4), (1, 1, 1, 3)])
@pytest.mark.parametrize("align", [0, 1])
@each_engine
def test_affine_grid(align: int, size: tuple[int, ...], engine: str) -> None:
    spatial = len(size) - 2
    theta = np.random.default_rng(3).standard_normal((size[0], spatial, spatial + 1)).astype(np.float32)
    lines = [np.linspace(-1, 1, d) if align else (2 * np.arange(d) + 1) / d - 1 for d in size[2:]]
    lines = [np.zeros(1) if align and len(line) == 1 else line for line in lines]
    places = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(size[2:])], -1)
    want = np.einsum("nij,...j->n...i", theta.astype(np.float64), places).astype(np.float32)
    text = f"y = AffineGrid <align_corners = {align}> (t, s)"
    feeds = {"t": theta, "s": np.array(size)}
    check(run_model(make_model(text, feeds, opset=20), feeds, engine)[0], want, rtol=1e-5, atol=1e-6)
    folded = make_model(text, {"t": theta}, constants={"s": np.array(size)}, opset=20)
    check(run_model(folded, {"t": theta}, engine)[0], want, rtol=1e-5, atol=1e-6)
