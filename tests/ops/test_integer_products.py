"""Products of quantised integers: exact against int64 sums, zero points of every form, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import Array, check, each_engine, make_model, prepare, run_model
from ..kernels.targets import TARGETS, compile_for
from ..node_tests import node_tests, run_node_test

NODE_TESTS = node_tests(
    ["MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "DynamicQuantizeLinear"]
)
PAIRS = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")]


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


def some(dtype: str, *shape: int, seed: int = 0) -> Array:
    """All values of the type, the extreme ones often."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    values = rng.integers(info.min, info.max + 1, shape)
    return np.where(
        rng.random(shape) < 0.3, np.where(rng.random(shape) < 0.5, info.min, info.max), values
    ).astype(dtype)


def product(x: Array, y: Array, x_zero: Any = 0, y_zero: Any = 0) -> Array:
    return np.asarray((x.astype(np.int64) - x_zero) @ (y.astype(np.int64) - y_zero), np.int32)


SHAPES = [
    ((3, 5), (5, 4)),
    ((1, 64), (64, 1)),
    ((7, 32), (32, 33)),
    ((13, 100), (100, 70)),
    ((40, 36), (36, 128)),
    ((2, 3, 8), (8, 5)),
    ((2, 1, 3, 7), (3, 7, 6)),
    ((8,), (8, 3)),
    ((3, 9), (9,)),
    ((6,), (6,)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize("folded", [False, True], ids=["inputs", "constant"])
@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize(("a", "c"), SHAPES, ids=str)
@each_engine
def test_matmul_integer(
    a: tuple[int, ...], c: tuple[int, ...], left: str, right: str, folded: bool, engine: str
) -> None:
    x, y = some(left, *a), some(right, *c, seed=1)
    p, q = np.array(np.iinfo(left).max, left), np.array(np.iinfo(right).min + 3, right)
    feeds = {"x": x} if folded else {"x": x, "z": y, "p": p, "q": q}
    constants = {"z": y, "p": p, "q": q} if folded else {}
    for text, want in (
        ("r = MatMulInteger (x, z, p, q)", product(x, y, int(p), int(q))),
        ("r = MatMulInteger (x, z)", product(x, y)),
    ):
        check(run_model(make_model(text, feeds, constants=constants), feeds, engine)[0], want)


@pytest.mark.parametrize(("left", "right"), PAIRS)
@each_engine
def test_zero_points_by_row_and_column(left: str, right: str, engine: str) -> None:
    x, y = some(left, 2, 5, 12), some(right, 2, 12, 7, seed=1)
    rows, columns = some(left, 2, 5, 1, seed=2), some(right, 2, 1, 7, seed=3)
    feeds = {"x": x, "z": y, "p": rows, "q": columns}
    want = product(x, y, rows.astype(np.int64), columns.astype(np.int64))
    check(run_model(make_model("r = MatMulInteger (x, z, p, q)", feeds), feeds, engine)[0], want)
    feeds = {"x": x[0], "z": y[0], "p": rows[0, :, 0], "q": columns[0, 0]}
    check(run_model(make_model("r = MatMulInteger (x, z, p, q)", feeds), feeds, engine)[0], want[0])


@each_engine
def test_symbolic_dims(engine: str) -> None:
    x, y = some("uint8", 6, 10), some("uint8", 10, 9, seed=1)
    zero = np.array(7, np.uint8)
    feeds = {"x": x, "z": y}
    dims = {"x": ["m", "k"], "z": ["l", "n"]}
    run = prepare(
        make_model("r = MatMulInteger (x, z, p, p)", feeds, constants={"p": zero}, dims=dims), engine
    )
    check(run(feeds)[0], product(x, y, 7, 7))
    check(run({"x": x[:2, :5], "z": y[:5]})[0], product(x[:2, :5], y[:5], 7, 7))
    with pytest.raises(RuntimeFault, match="inner dims"):
        run({"x": x, "z": y[:4]})


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(1, 64, 33), (5, 20, 16), (13, 132, 65), (25, 8, 128)])
def test_every_target_gives_the_same(
    shape: tuple[int, int, int], target: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    m, k, n = shape
    x, y = some("uint8", m, k), some("int8", k, n, seed=1)
    model = make_model("r = MatMulInteger (x, z)", {"x": x}, constants={"z": y})
    run = compile_for(monkeypatch, model, target, plain=plain)
    check(run.run({"x": x})[0], product(x, y))


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 6, 7), (5, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 4, 8, 5), (6, 4, 1, 1), {}),
    ((1, 8, 7, 7), (16, 8, 3, 2), {"strides": [2, 1], "pads": [0, 1, 2, 0]}),
    ((1, 5, 9, 9), (3, 5, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((1, 4, 6, 6), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((1, 4, 6, 6), (6, 2, 3, 3), {"group": 2}),
    ((1, 300, 3, 3), (2, 150, 2, 2), {"group": 2}),
    ((2, 3, 11), (4, 3, 4), {"strides": [3], "pads": [1, 2]}),
    ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), {"pads": [1, 0, 1, 0, 1, 0]}),
    ((1, 3, 5, 6), (2, 3, 2, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
]


def convolved(x: Array, w: Array, attributes: dict[str, Any]) -> Array:
    """The convolution of integers as int64, tap by tap; x and w are differences already."""
    group, spatial = attributes.get("group", 1), x.ndim - 2
    strides, dilations = attributes.get("strides", [1] * spatial), attributes.get("dilations", [1] * spatial)
    pads = attributes.get("pads", [0] * (2 * spatial))
    if "auto_pad" in attributes:
        total = [
            max(0, (-(-n // s) - 1) * s + k - n)
            for n, s, k in zip(x.shape[2:], strides, w.shape[2:], strict=True)
        ]
        pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    padded = np.pad(x, [(0, 0), (0, 0), *((pads[i], pads[i + spatial]) for i in range(spatial))])
    out = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(padded.shape[2:], w.shape[2:], dilations, strides, strict=True)
    ]
    within, outs = x.shape[1] // group, w.shape[0] // group
    result = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    for tap in np.ndindex(*w.shape[2:]):
        index = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilations, out, strides, strict=True)
        )
        for g in range(group):
            part = padded[(slice(None), slice(g * within, (g + 1) * within), *index)]
            kernel = w[(slice(g * outs, (g + 1) * outs), slice(None), *tap)]
            result[:, g * outs : (g + 1) * outs] += np.einsum("nc...,fc->nf...", part, kernel)
    return result


def attribute_text(attributes: dict[str, Any]) -> str:
    return ", ".join(f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in attributes.items())


@pytest.mark.parametrize(("left", "right"), [("uint8", "uint8"), ("uint8", "int8")])
@pytest.mark.parametrize(("a", "c", "attributes"), CONVOLUTIONS, ids=str)
@each_engine
def test_conv_integer(
    a: tuple[int, ...], c: tuple[int, ...], attributes: dict[str, Any], left: str, right: str, engine: str
) -> None:
    x, w = some(left, *a), some(right, *c, seed=1)
    p, q = np.array(119, left), some(right, c[0], seed=2)
    text = (
        f"r = ConvInteger <{attribute_text(attributes)}> (x, w, p, q)"
        if attributes
        else "r = ConvInteger (x, w, p, q)"
    )
    by_filter = q.astype(np.int64).reshape(-1, *(1,) * (len(c) - 1))
    want = convolved(x.astype(np.int64) - 119, w.astype(np.int64) - by_filter, attributes).astype(np.int32)
    constants = {"w": w, "p": p, "q": q}
    check(run_model(make_model(text, {"x": x}, constants=constants), {"x": x}, engine)[0], want)
    feeds = {"x": x, **constants}
    dims = {"x": ["n", a[1], *(f"d{i}" for i in range(len(a) - 2))]}
    check(run_model(make_model(text, feeds, dims=dims), feeds, engine)[0], want)


def requantised(total: Array, factor: Any, zero: Array) -> Array:
    info = np.iinfo(zero.dtype)
    scaled = np.rint(total.astype(np.float32) * np.float32(factor)) + np.float32(zero)
    return np.asarray(np.clip(scaled, info.min, info.max)).astype(zero.dtype)


@pytest.mark.parametrize("by_filter", [False, True])
@pytest.mark.parametrize(("a", "c", "attributes"), CONVOLUTIONS[:6], ids=str)
@each_engine
def test_qlinear_conv(
    a: tuple[int, ...], c: tuple[int, ...], attributes: dict[str, Any], by_filter: bool, engine: str
) -> None:
    x, w = some("uint8", *a), some("int8", *c, seed=1)
    count = c[0] if by_filter else 1
    scales = np.linspace(0.001, 0.004, count).astype(np.float32)
    zeros = np.arange(count).astype(np.int8)
    bias = np.arange(c[0], dtype=np.int32) * 1000 - 2000
    constants: dict[str, Any] = {
        "xs": np.float32(0.05),
        "xz": np.array(100, np.uint8),
        "w": w,
        "ws": scales if by_filter else scales.reshape(()),
        "wz": zeros if by_filter else zeros.reshape(()),
        "ys": np.float32(0.3),
        "yz": np.array(110, np.uint8),
        "b": bias,
    }
    feeds = {"x": x}
    ones = (1,) * (len(c) - 1)
    total = convolved(x.astype(np.int64) - 100, w.astype(np.int64) - zeros.reshape(-1, *ones), attributes)
    total = total + bias.reshape(-1, *ones[1:])
    factor = np.float32(0.05) * scales.reshape(-1, *ones[1:]) / np.float32(0.3)
    text = f"r = QLinearConv <{attribute_text(attributes)}> (x, xs, xz, w, ws, wz, ys, yz, b)"
    text = text if attributes else text.replace(" <>", "")
    got = run_model(make_model(text, feeds, constants=constants), feeds, engine)[0]
    check(got, requantised(total, factor, constants["yz"]))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("by_row", [False, True])
@each_engine
def test_qlinear_matmul(by_row: bool, dtype: str, engine: str) -> None:
    x, y = some(dtype, 5, 12), some(dtype, 12, 6, seed=1)
    rows, columns = (5, 6) if by_row else (1, 1)

    def shape(v: Array, n: int) -> Array:
        return v if n > 1 else v.reshape(())

    xs, ys = (
        np.linspace(0.01, 0.05, rows).astype(np.float32),
        np.linspace(0.02, 0.03, columns).astype(np.float32),
    )
    xz, yz = some(dtype, rows, seed=4), some(dtype, columns, seed=5)
    feeds: dict[str, Any] = {
        "x": x,
        "xs": shape(xs, rows),
        "xz": shape(xz, rows),
        "z": y,
        "zs": shape(ys, columns),
        "zz": shape(yz, columns),
        "rs": np.float32(0.7),
        "rz": np.array(3, dtype),
    }
    total = product(x, y, xz.astype(np.int64)[:, None], yz.astype(np.int64))
    factor = (xs[:, None] * ys) / np.float32(0.7)
    text = "r = QLinearMatMul (x, xs, xz, z, zs, zz, rs, rz)"
    check(run_model(make_model(text, feeds), feeds, engine)[0], requantised(total, factor, feeds["rz"]))


@pytest.mark.parametrize(
    "values", [[0, 2, -3, -2.5, 1.34, 0.5], [1, 2, 3], [-4, -2.5], [0, 0], [-128.5, 126.5, 0.5]], ids=str
)
@each_engine
def test_dynamic_quantize_linear(values: list[float], engine: str) -> None:
    x = np.array(values, np.float32)
    outputs = run_model(make_model("y, s, z = DynamicQuantizeLinear (x)", {"x": x}), {"x": x}, engine)
    low, high = np.minimum(x.min(), 0), np.maximum(x.max(), 0)
    scale = np.float32((high - low) / np.float32(255)) if high > low else outputs[1]
    zero = np.rint(np.clip(-low / scale, 0, 255))
    check(outputs[0], np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8))
    check(outputs[1], np.asarray(scale))
    check(outputs[2], np.array(zero, np.uint8))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r = MatMulInteger (x, z)", "inner dims"),
        ("r = MatMulInteger (x, x, p)", "does not broadcast|do not broadcast"),
        ("r = ConvInteger (x, x)", "convolution"),
    ],
)
@each_engine
def test_refused(text: str, words: str, engine: str) -> None:
    feeds = {"x": np.zeros((3, 3), np.uint8)}
    constants = {"z": np.zeros((4, 2), np.uint8), "p": np.ones(2, np.uint8)}
    with pytest.raises(CompileError, match=words):
        prepare(make_model(text, feeds, constants=constants), engine)
