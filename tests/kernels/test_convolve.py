"""Convolutions: the fast and depthwise kernels, their plain twin and the NumPy meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError

from ..helpers import Array, check, make_model, prepare
from .targets import compile_for
from .test_contract import PATCH, numbers

# x (n, c, spatial...), weights (filters, c / group, kernel...), attributes
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], str]] = {
    "1d": ((2, 5, 17), (9, 5, 4), "pads = [2, 1], strides = [2]"),
    "1d dilated": ((1, 8, 30), (16, 8, 3), "dilations = [4], pads = [4, 4]"),
    "2d": ((1, 5, 9, 11), (7, 5, 3, 3), "pads = [1, 1, 1, 1]"),
    "many filters": ((1, 7, 6, 5), (130, 7, 3, 3), "pads = [1, 1, 1, 1]"),
    "uneven panels": ((1, 6, 5, 5), (83, 6, 2, 2), ""),
    "asymmetric": (
        (2, 8, 12, 15),
        (65, 8, 3, 5),
        "pads = [2, 4, 0, 1], dilations = [2, 2], strides = [1, 2]",
    ),
    "5x5": ((2, 20, 5, 3), (33, 20, 5, 5), "pads = [2, 2, 2, 2]"),
    "large stride": ((1, 8, 13, 14), (4, 8, 2, 2), "strides = [4, 3]"),
    "pointwise": ((2, 9, 5, 7), (12, 9, 1, 1), ""),
    "pointwise strided": ((2, 9, 5, 7), (12, 9, 1, 1), "strides = [2, 3]"),
    "pointwise padded": ((1, 9, 5, 7), (12, 9, 1, 1), "pads = [1, 0, 2, 1]"),
    "picture": ((2, 3, 13, 10), (20, 3, 3, 3), "pads = [1, 1, 1, 1], strides = [2, 2]"),
    "picture 7x7": ((1, 3, 20, 23), (64, 3, 7, 7), "pads = [3, 3, 3, 2], strides = [2, 2]"),
    "one channel": ((2, 1, 9, 9), (5, 1, 3, 3), "pads = [1, 1, 1, 1]"),
    "groups": ((2, 20, 9, 11), (8, 5, 3, 2), "group = 4, pads = [1, 0, 0, 1]"),
    "wide groups": ((1, 6, 7, 7), (80, 3, 3, 3), "group = 2"),
    "depthwise": ((2, 20, 9, 11), (20, 1, 3, 3), "group = 20, pads = [1, 1, 1, 1]"),
    "depthwise 5x5": ((1, 35, 12, 13), (35, 1, 5, 5), "group = 35, pads = [2, 2, 2, 2], strides = [2, 1]"),
    "depthwise dilated": (
        (1, 16, 15, 20),
        (16, 1, 3, 3),
        "group = 16, dilations = [2, 3], pads = [2, 3, 1, 3]",
    ),
    "depthwise narrow": ((1, 17, 9, 2), (17, 1, 3, 3), "group = 17, pads = [1, 1, 1, 1]"),
    "depthwise 1d": ((2, 33, 40), (33, 1, 9), "group = 33, pads = [4, 4]"),
    "depthwise 3d": ((1, 8, 4, 5, 6), (8, 1, 3, 3, 3), "group = 8, pads = [1, 1, 1, 1, 1, 1]"),
    "depthwise long": ((1, 8, 40), (8, 1, 15), "group = 8, pads = [7, 7]"),
    "multiplier": ((1, 6, 7, 7), (12, 1, 3, 3), "group = 6"),
    "3d": ((1, 4, 5, 6, 7), (6, 4, 2, 3, 2), "pads = [1, 1, 0, 0, 1, 1]"),
    "3d strided": ((2, 3, 6, 7, 8), (5, 3, 3, 3, 3), "strides = [2, 1, 3], pads = [1, 1, 1, 1, 1, 1]"),
    "same upper": ((1, 4, 10, 11), (6, 4, 3, 4), 'auto_pad = "SAME_UPPER", strides = [2, 3]'),
    "same lower": ((1, 4, 10, 11), (6, 4, 3, 4), 'auto_pad = "SAME_LOWER"'),
    "valid": ((1, 4, 10, 11), (6, 4, 3, 4), 'auto_pad = "VALID"'),
    "no images": ((0, 4, 5, 5), (6, 4, 3, 3), ""),
}


def model_of(
    name: str, *, symbolic: bool = False, dtype: str = "float32", constant: bool = True
) -> tuple[Any, Array, Any]:
    shape, weights, attributes = CASES[name]
    x, w = numbers(shape, dtype), numbers(weights, dtype, 1)
    feeds = {"x": x} if constant else {"x": x, "w": w}
    dims = {"x": ["n", shape[1], *(f"d{i}" for i in range(len(shape) - 2))]} if symbolic else {}
    if symbolic and not constant:
        dims["w"] = ["f" if CASES[name][2].find("group") < 0 else weights[0], *weights[1:]]
    node = f"y = Conv {f'<{attributes}>' if attributes else ''} (x, w)"
    return make_model(node, feeds, constants={"w": w} if constant else {}, dims=dims, opset=22), x, feeds


def near(got: Array, want: Array, dtype: str = "float32") -> None:
    tolerance = {"float32": 1e-5, "float64": 1e-13, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    scale = float(np.abs(want.astype(np.float64)).max(initial=1.0))
    check(got, want, rtol=tolerance, atol=tolerance * scale, zero_signs=False)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
def test_every_kind(name: str, symbolic: bool) -> None:
    model, _, feeds = model_of(name, symbolic=symbolic)
    (got,) = compile_for(PATCH, model).run(feeds)
    near(got, prepare(model)(feeds)[0])
    if not symbolic:
        check(got, compile_for(PATCH, model, plain=True).run(feeds)[0])


@pytest.mark.parametrize("name", ["2d", "asymmetric", "picture", "groups", "pointwise", "depthwise"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
def test_weights_of_the_run(name: str, symbolic: bool) -> None:
    model, _, feeds = model_of(name, constant=False, symbolic=symbolic)
    near(compile_for(PATCH, model).run(feeds)[0], prepare(model)(feeds)[0])


@pytest.mark.parametrize("target", ["avx2", "sse2"])
@pytest.mark.parametrize(
    "name", ["asymmetric", "many filters", "uneven panels", "picture", "depthwise 5x5", "groups"]
)
def test_other_vector_units(name: str, target: str) -> None:
    model, _, feeds = model_of(name)
    (got,) = compile_for(PATCH, model, target).run(feeds)
    near(got, prepare(model)(feeds)[0])
    check(got, compile_for(PATCH, model, target, plain=True).run(feeds)[0])


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["2d", "picture", "depthwise", "groups"])
def test_other_floats(name: str, dtype: str) -> None:
    model, _, feeds = model_of(name, dtype=dtype)
    (got,) = compile_for(PATCH, model).run(feeds)
    near(got, prepare(model)(feeds)[0], dtype)
    check(got, compile_for(PATCH, model, plain=True).run(feeds)[0])


@pytest.mark.parametrize("kind", ["", "group = 6, "])
def test_one_compilation_serves_all_sizes(kind: str) -> None:
    """Pictures from one pixel up to more than a tile in each direction."""
    w = numbers((6, 1 if kind else 6, 3, 3))
    model = make_model(
        f"y = Conv <{kind}pads = [1, 1, 1, 1]> (x, w)",
        {"x": numbers((1, 6, 4, 4))},
        constants={"w": w},
        dims={"x": ["n", 6, "h", "w"]},
    )
    compiled, meaning = compile_for(PATCH, model), prepare(model)
    sizes = [(1, 1, 1), (2, 1, 5), (1, 5, 1), (0, 3, 3), (1, 2, 0)]
    for n, height, width in sizes + [(2, 3, w) for w in range(1, 20)]:
        x = numbers((n, 6, height, width))
        near(compiled.run([x])[0], meaning([x])[0])


EPILOGUES = {
    "bias": ["y = Conv <pads = [1, 1, 1, 1]> (x, w, v)"],
    "norm": ["c = Conv <pads = [1, 1, 1, 1]> (x, w)", "y = BatchNormalization (c, v, v2, v3, v4)"],
    "swish": ["c = Conv <pads = [1, 1, 1, 1]> (x, w, v)", "s = Sigmoid (c)", "y = Mul (c, s)"],
    "hard swish": ["c = Conv <pads = [1, 1, 1, 1]> (x, w, v)", "y = HardSwish (c)"],
    "residual": ["c = Conv <pads = [1, 1, 1, 1]> (x, w, v)", "a = Add (c, x)", "y = Relu (a)"],
    "pointwise": ["c = Conv (x, w1, v)", "a = Add (x, c)", "r = Relu (a)", "y = Conv (r, w1)"],
    "squeeze": [
        "c = Conv <pads = [1, 1, 1, 1]> (x, w)",
        "g = GlobalAveragePool (c)",
        "k = Conv (g, w1)",
        "y = Mul (c, k)",
    ],
    "prelu": ["c = Conv <pads = [1, 1, 1, 1]> (x, w)", "y = PRelu (c, slope)"],
}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("depthwise", [False, True])
def test_epilogues(name: str, depthwise: bool) -> None:
    positive = np.abs(numbers((20,), seed=5)) + 0.5
    constants = {
        "w": numbers((20, 1 if depthwise else 20, 3, 3)),
        "w1": numbers((20, 20, 1, 1)),
        "v": numbers((20,)),
        "v2": numbers((20,), seed=2),
        "v3": numbers((20,), seed=3),
        "v4": positive,
        "slope": numbers((20, 1, 1)),
    }
    nodes = [n.replace("<pads", "<group = 20, pads") if depthwise else n for n in EPILOGUES[name]]
    x = numbers((2, 20, 6, 9))
    model = make_model(nodes, {"x": x}, constants=constants, dims={"x": ["n", 20, "h", "w"]}, opset=21)
    near(compile_for(PATCH, model).run([x])[0], prepare(model)([x])[0])


def test_threads_do_not_change_results() -> None:
    for name in ("many filters", "groups", "depthwise", "picture 7x7"):
        model, _, feeds = model_of(name)
        one = compile_for(PATCH, model).run(feeds)[0]
        check(compile_for(PATCH, model, threads=3).run(feeds)[0], one)


@pytest.mark.parametrize(
    ("weights", "attributes", "message"),
    [
        ((4, 5, 3, 3), "", "6 channels"),
        ((4, 3, 3, 3), "group = 3", "6 channels"),
        ((5, 3, 3, 3), "group = 2", "do not divide"),
        ((4, 6, 3), "", "same rank"),
        ((4, 6, 3, 3), "kernel_shape = [3, 2]", "kernel_shape"),
        ((4, 6, 3, 3), "strides = [1]", "strides"),
        ((4, 6, 3, 3), "pads = [1, 1]", "pads"),
        ((4, 6, 3, 3), "strides = [0, 1]", "positive"),
        ((4, 6, 30, 3), "", "smaller than the kernel"),
        ((4, 6, 3, 3), 'auto_pad = "SOME"', "auto_pad"),
    ],
)
def test_refused(weights: tuple[int, ...], attributes: str, message: str) -> None:
    x, w = numbers((1, 6, 8, 8)), numbers(weights)
    node = f"y = Conv {f'<{attributes}>' if attributes else ''} (x, w)"
    with pytest.raises(CompileError, match=message):
        compile_for(PATCH, make_model(node, {"x": x, "w": w}))


def test_every_dim_symbolic() -> None:
    """Channels and filters that only the run knows."""
    node = "y = Conv <pads = [1, 0, 1, 2]> (x, w)"
    shown = {"x": numbers((1, 2, 3, 4)), "w": numbers((2, 2, 3, 3))}
    model = make_model(node, shown, dims={"x": ["n", "c", "h", "w"], "w": ["f", "c", 3, 3]})
    compiled, meaning = compile_for(PATCH, model), prepare(model)
    for n, c, f, size in [(1, 1, 1, 3), (2, 7, 70, 5), (1, 33, 16, 6), (1, 0, 3, 4)]:
        feeds = {"x": numbers((n, c, size, size)), "w": numbers((f, c, 3, 3))}
        near(compiled.run(feeds)[0], meaning(feeds)[0])


def test_weights_spread_from_a_number() -> None:
    nodes = ["w = ConstantOfShape <value = float[1] {0.5}> (shape)", "y = Conv (x, w)"]
    x = numbers((1, 3, 5, 6))
    model = make_model(nodes, {"x": x}, constants={"shape": np.array([4, 3, 2, 2])})
    near(compile_for(PATCH, model).run([x])[0], prepare(model)([x])[0])


def test_no_filters() -> None:
    x, w = numbers((1, 3, 4, 4)), numbers((0, 3, 3, 3))
    model = make_model("y = Conv (x, w)", {"x": x, "w": w})
    check(compile_for(PATCH, model).run({"x": x, "w": w})[0], np.zeros((1, 0, 2, 2), np.float32))
