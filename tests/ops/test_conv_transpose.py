"""ConvTranspose against a scatter written out, with every attribute; refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare, run_model
from ..node_tests import node_tests, run_node_test

NODE_TESTS = node_tests(["ConvTranspose"])
CASES = read_cases(Path(__file__).with_name("conv_transpose_cases.txt"))


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


def scattered(
    x: Array,
    w: Array,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    lows: tuple[int, ...],
    out: tuple[int, ...],
    group: int,
) -> Array:
    """Each element of x spread over the result by the kernel, as the operator is defined."""
    n, channels = x.shape[:2]
    within, outs = channels // group, w.shape[1]
    result = np.zeros((n, outs * group, *out))
    for g in range(group):
        part, kernel = x[:, g * within : (g + 1) * within], w[g * within : (g + 1) * within]
        spread = np.tensordot(
            part.astype(np.float64), kernel.astype(np.float64), (1, 0)
        )  # n, spatial, outs, kernel
        for place in itertools.product(*(range(d) for d in x.shape[2:])):
            for tap in itertools.product(*(range(k) for k in w.shape[2:])):
                to = tuple(
                    p * s + t * d - low
                    for p, s, t, d, low in zip(place, strides, tap, dilations, lows, strict=True)
                )
                if all(0 <= t < o for t, o in zip(to, out, strict=True)):
                    index: Any = (slice(None), *place, slice(None), *tap)
                    target: Any = (slice(None), slice(g * outs, (g + 1) * outs), *to)
                    result[target] += spread[index]
    return result


FORMS: list[dict[str, Any]] = [
    {"size": (5,), "kernel": (3,)},
    {"size": (5,), "kernel": (4,), "strides": (3,), "pads": (1, 2), "output_padding": (2,)},
    {"size": (4, 5), "kernel": (3, 2), "strides": (2, 3), "pads": (1, 0, 0, 1)},
    {"size": (4, 3), "kernel": (3, 3), "strides": (2, 1), "dilations": (2, 2), "group": 2},
    {"size": (4, 3), "kernel": (3, 3), "strides": (3, 2), "dilations": (2, 3), "output_padding": (1, 0)},
    {"size": (3, 3), "kernel": (1, 2), "strides": (3, 4)},
    {"size": (3, 4), "kernel": (5, 5), "strides": (2, 2), "pads": (4, 3, 3, 4)},
    {"size": (4, 4), "kernel": (4, 4), "strides": (2, 2), "pads": (1, 1, 1, 1), "group": 4},
    {"size": (2, 3, 2), "kernel": (2, 3, 2), "strides": (2, 1, 3), "pads": (0, 1, 1, 1, 0, 0)},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@each_engine
def test_every_attribute(form: dict[str, Any], engine: str) -> None:
    size, kernel = form["size"], form["kernel"]
    count, group = len(size), form.get("group", 1)
    ones = (1,) * count
    strides, dilations = form.get("strides", ones), form.get("dilations", ones)
    pads, extra = form.get("pads", (0,) * (2 * count)), form.get("output_padding", (0,) * count)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, *size)).astype(np.float32)
    w = rng.standard_normal((4, 3, *kernel)).astype(np.float32)
    bias = rng.standard_normal(3 * group).astype(np.float32)
    out = tuple(
        (n - 1) * s + e + (k - 1) * d + 1 - pads[i] - pads[i + count]
        for i, (n, k, s, d, e) in enumerate(zip(size, kernel, strides, dilations, extra, strict=True))
    )
    want = scattered(x, w, strides, dilations, pads[:count], out, group) + bias.reshape(-1, *ones)
    attributes = ", ".join(
        f"{k} = {list(v) if isinstance(v, tuple) else v}"
        for k, v in form.items()
        if k not in ("size", "kernel")
    )
    text = f"y = ConvTranspose <{attributes}> (x, w, b)" if attributes else "y = ConvTranspose (x, w, b)"
    symbolic = {"x": ["n", 4, *(f"d{i}" for i in range(count))]}
    constant = make_model(text, {"x": x}, constants={"w": w, "b": bias})
    inputs = make_model(text, {"x": x, "w": w, "b": bias}, dims=symbolic)
    check(run_model(constant, {"x": x}, engine)[0], want.astype(np.float32), rtol=1e-4, atol=1e-5)
    check(
        run_model(inputs, {"x": x, "w": w, "b": bias}, engine)[0],
        want.astype(np.float32),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("opset", [1, 11, 22])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@each_engine
def test_versions_and_types(dtype: str, opset: int, engine: str) -> None:
    x = np.arange(8).reshape(1, 2, 2, 2).astype(numpy_type(dtype))
    w = np.arange(8).reshape(2, 1, 2, 2).astype(numpy_type(dtype))
    text = "y = ConvTranspose <strides = [2, 2]> (x, w)"
    want = scattered(x, w, (2, 2), (1, 1), (0, 0), (4, 4), 1).astype(x.dtype)
    check(run_model(make_model(text, {"x": x}, constants={"w": w}, opset=opset), {"x": x}, engine)[0], want)


@each_engine
def test_a_symbolic_size_with_a_fixed_result(engine: str) -> None:
    x = np.ones((1, 1, 3), np.float32)
    w = np.array([[[1, 10, 100]]], np.float32)
    text = "y = ConvTranspose <output_shape = [5], strides = [2]> (x, w)"
    model = make_model(text, {"x": x}, constants={"w": w}, dims={"x": [1, 1, "n"]})
    run = prepare(model, engine)
    # 7 places in all: 1 10 101 10 101 10 100; one is cropped on either side.
    check(run({"x": x})[0], np.array([[[10, 101, 10, 101, 10]]], np.float32))
    check(run({"x": x[:, :, :2]})[0], np.array([[[1, 10, 101, 10, 100]]], np.float32))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("strides = [2]", "strides"),
        ("strides = [0, 1]", "positive"),
        ('auto_pad = "MIDDLE"', "MIDDLE"),
        ("group = 2", "groups"),
        ("kernel_shape = [3, 2]", "kernel_shape"),
        ("pads = [9, 9, 9, 9]", "crop"),
    ],
)
@each_engine
def test_refused(attributes: str, words: str, engine: str) -> None:
    x, w = np.zeros((1, 3, 2, 2), np.float32), np.zeros((3, 1, 2, 2), np.float32)
    with pytest.raises(CompileError, match=words):
        prepare(make_model(f"y = ConvTranspose <{attributes}> (x, w)", {"x": x}, constants={"w": w}), engine)
