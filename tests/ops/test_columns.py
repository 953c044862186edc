"""Col2Im and DeformConv: node tests, and loops over the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import Array, check, each_engine, make_model, prepare, run_model
from ..node_tests import node_tests, run_node_test

NODE_TESTS = node_tests(["Col2Im", "DeformConv"])


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@each_engine
def test_col2im(dtype: str, engine: str) -> None:
    image, block, strides, dilations, pads = (6, 7), (2, 3), (2, 1), (1, 2), (1, 0, 0, 2)
    counts = [
        (n + pads[i] + pads[i + 2] - (k - 1) * d - 1) // s + 1
        for i, (n, k, d, s) in enumerate(zip(image, block, dilations, strides, strict=True))
    ]
    x = np.random.default_rng(0).integers(-9, 9, (2, 3 * 6, math.prod(counts))).astype(dtype)
    want = np.zeros((2, 3, *image))
    for (a, c), (i, j) in ((t, p) for t in np.ndindex(*block) for p in np.ndindex(*counts)):
        y, z = i * strides[0] + a * dilations[0] - pads[0], j * strides[1] + c * dilations[1] - pads[1]
        if 0 <= y < image[0] and 0 <= z < image[1]:
            want[:, :, y, z] += x.reshape(2, 3, 6, *counts)[:, :, a * block[1] + c, i, j]
    text = f"y = Col2Im <strides = {list(strides)}, dilations = {list(dilations)}, pads = {list(pads)}> (x, i, k)"
    constants = {"i": np.array(image), "k": np.array(block)}
    got = run_model(make_model(text, {"x": x}, constants=constants), {"x": x}, engine)[0]
    check(got, want.astype(dtype), zero_signs=False)
    run = prepare(make_model(text, {"x": x}, constants=constants, dims={"x": ["n", "r", "p"]}), engine)
    check(run({"x": x})[0], got)
    with pytest.raises(RuntimeFault, match="places"):
        run({"x": x[:, :, :-1]})
    with pytest.raises(CompileError, match="places"):
        prepare(make_model(text, {"x": x[:, :, :-1]}, constants=constants), engine)


def bilinear(image: Array, y: float, z: float) -> Array:
    """Between the places of (c, h, w), zeros outside."""
    total = np.zeros(len(image))
    for i, j in np.ndindex(2, 2):
        u, v = math.floor(y) + i, math.floor(z) + j
        if 0 <= u < image.shape[1] and 0 <= v < image.shape[2]:
            total += (1 - abs(y - u)) * (1 - abs(z - v)) * image[:, u, v]
    return total


@pytest.mark.parametrize(("group", "offset_group"), [(1, 1), (2, 1), (1, 2), (2, 4)])
@each_engine
def test_deform_conv(group: int, offset_group: int, engine: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 4, 5, 6)).astype(np.float32)
    w = rng.standard_normal((6, 4 // group, 2, 3)).astype(np.float32)
    bias = rng.standard_normal(6).astype(np.float32)
    out = (3, 6)
    offset = rng.uniform(-2, 2, (2, offset_group * 12, *out)).astype(np.float32)
    mask = rng.random((2, offset_group * 6, *out)).astype(np.float32)
    want = np.zeros((2, 6, *out)) + bias.reshape(6, 1, 1)
    each = 4 // offset_group
    for n, i, j in np.ndindex(2, *out):
        columns = np.zeros((4, 2, 3))
        for g, a, c in np.ndindex(offset_group, 2, 3):
            place = (g * 6 + a * 3 + c) * 2
            y = i * 2 + a - 1 + offset[n, place, i, j]
            z = j + c - 1 + offset[n, place + 1, i, j]
            value = bilinear(x[n, g * each : (g + 1) * each], float(y), float(z))
            columns[g * each : (g + 1) * each, a, c] = value * mask[n, g * 6 + a * 3 + c, i, j]
        for f in range(6):
            first = f // (6 // group) * (4 // group)
            want[n, f, i, j] += (columns[first : first + 4 // group] * w[f]).sum()
    text = (
        f"y = DeformConv <strides = [2, 1], pads = [1, 1, 1, 1], group = {group}, offset_group = {offset_group}> "
        "(x, w, o, b, m)"
    )
    feeds = {"x": x, "w": w, "o": offset, "b": bias, "m": mask}
    got = run_model(make_model(text, feeds), feeds, engine)[0]
    check(got, want.astype(np.float32), rtol=1e-4, atol=1e-4)
