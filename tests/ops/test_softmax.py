"""The softmax family, LayerNormalization and RMSNormalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError

from ..helpers import Array, check, each_engine, make_model, numpy_type, prepare

F = np.float32


def numbers(*shape: int, dtype: str = "f32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(numpy_type(dtype))


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return np.asarray(e / e.sum(axis, keepdims=True))


def log_softmax(x: Array, axis: int) -> Array:
    moved = x - x.max(axis, keepdims=True, initial=-np.inf)
    return np.asarray(moved - np.log(np.exp(moved).sum(axis, keepdims=True)))


def hardmax(x: Array, axis: int) -> Array:
    hot = np.zeros_like(x)
    np.put_along_axis(hot, np.expand_dims(x.argmax(axis), axis), 1, axis)
    return hot


FAMILY: dict[str, Callable[[Array, int], Array]] = {
    "Softmax": softmax,
    "LogSoftmax": log_softmax,
    "Hardmax": hardmax,
}


@each_engine
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -3])
@pytest.mark.parametrize("op", FAMILY)
def test_along_an_axis(engine: str, op: str, axis: int | None) -> None:
    x = numbers(3, 4, 5)
    attribute = "" if axis is None else f"<axis = {axis}>"
    (y,) = prepare(make_model(f"y = {op} {attribute} (x)", {"x": x}, opset=13), engine)([x])
    check(y, FAMILY[op](x.astype(np.float64), -1 if axis is None else axis).astype(F), rtol=1e-6, atol=1e-7)


@each_engine
@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3, -1, -2])
@pytest.mark.parametrize("opset", [1, 11, 12])
@pytest.mark.parametrize("op", FAMILY)
def test_older_opsets_flatten(engine: str, op: str, opset: int, axis: int | None) -> None:
    if axis is not None and axis < 0 and opset < 11:
        return
    x = numbers(2, 3, 4)
    attribute = "" if axis is None else f"<axis = {axis}>"
    (y,) = prepare(make_model(f"y = {op} {attribute} (x)", {"x": x}, opset=opset), engine)([x])
    at = 1 if axis is None else axis % 3 if axis < 0 else axis
    rows = x.astype(np.float64).reshape(int(np.prod(x.shape[:at])), -1)
    check(y, FAMILY[op](rows, 1).reshape(x.shape).astype(F), rtol=1e-6, atol=1e-7)


@each_engine
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
@pytest.mark.parametrize("op", FAMILY)
def test_element_types(engine: str, op: str, dtype: str) -> None:
    x = numbers(4, 33, dtype=dtype)
    (y,) = prepare(make_model(f"y = {op} (x)", {"x": x}), engine)([x])
    want = FAMILY[op](x.astype(np.float64), -1).astype(x.dtype)
    check(y, want, **({"ulp": 1} if dtype != "f64" else {"rtol": 1e-14}))


@each_engine
@pytest.mark.parametrize("op", FAMILY)
def test_one_compilation_serves_all_sizes(engine: str, op: str) -> None:
    for axis in (0, 1):
        model = make_model(f"y = {op} <axis = {axis}> (x)", {"x": numbers(2, 2)}, dims={"x": ["n", "m"]})
        run = prepare(model, engine)
        for shape in ((1, 1), (3, 17), (40, 2), (5, 100)):
            x = numbers(*shape, seed=shape[0])
            check(run([x])[0], FAMILY[op](x.astype(np.float64), axis).astype(F), rtol=2e-6, atol=1e-7)


@each_engine
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_empty(engine: str, op: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, F)
    for dims in (None, {"x": [f"d{i}" for i in range(len(shape))]}):
        check(prepare(make_model(f"y = {op} (x)", {"x": x}, dims=dims), engine)([x])[0], x)


@each_engine
def test_infinities_and_nan(engine: str) -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[1, -inf, 2], [-inf, -inf, 5], [-inf, -inf, -inf], [inf, 0, 1], [nan, 0, 1]], F)
    (y,) = prepare(make_model("y = Softmax (x)", {"x": x}), engine)([x])
    check(y[0], np.array([0.26894143, 0, 0.7310586], F), ulp=4)
    check(y[1], np.array([0, 0, 1], F))
    assert np.isnan(y[2:]).all()
    (y,) = prepare(make_model("y = LogSoftmax (x)", {"x": x}), engine)([x])
    check(y[1], np.array([-inf, -inf, 0], F))
    assert np.isnan(y[2:, 1:]).all()


@each_engine
def test_ties_and_nan_of_hardmax(engine: str) -> None:
    x = np.array([[1, 3, 3], [2, 2, 2], [0, np.nan, 5]], F)
    (y,) = prepare(make_model("y = Hardmax (x)", {"x": x}), engine)([x])
    check(y, np.array([[0, 1, 0], [1, 0, 0], [0, 1, 0]], F))


@pytest.mark.parametrize(("opset", "axis"), [(13, 3), (13, -4), (11, 4), (11, -4)])
def test_axes_that_are_refused(opset: int, axis: int) -> None:
    with pytest.raises(CompileError, match=r"soft.*not within"):
        prepare(make_model(f"[soft] y = Softmax <axis = {axis}> (x)", {"x": numbers(2, 3, 4)}, opset=opset))


# -- LayerNormalization, RMSNormalization


def layer_norm(x: Array, scale: Array, bias: Any, axis: int, epsilon: float) -> list[Array]:
    axes = tuple(range(axis % x.ndim, x.ndim))
    x = x.astype(np.float64)
    centre = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(((x - centre) ** 2).mean(axes, keepdims=True) + epsilon)
    y = (x - centre) * inverse * scale.astype(np.float64)
    return [y if bias is None else y + bias.astype(np.float64), centre, inverse]


@each_engine
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("biased", [False, True])
def test_layer_normalization(engine: str, axis: int, biased: bool) -> None:
    x = numbers(3, 4, 5)
    shape = x.shape[axis % 3 :]
    feeds = {"x": x, "scale": numbers(*shape, seed=1)} | ({"bias": numbers(*shape, seed=2)} if biased else {})
    nodes = f"y, mean, inverse = LayerNormalization <axis = {axis}, epsilon = 0.001> ({', '.join(feeds)})"
    wants = layer_norm(x, feeds["scale"], feeds.get("bias"), axis, 0.001)
    for got, want in zip(prepare(make_model(nodes, feeds), engine)(feeds), wants, strict=True):
        check(got, want.astype(F), rtol=2e-5, atol=2e-6)


@each_engine
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_types_of_layer_normalization(engine: str, dtype: str) -> None:
    x, scale = numbers(3, 40, dtype=dtype), numbers(40, dtype=dtype, seed=1)
    y, mean, inverse = prepare(
        make_model("y, mean, inverse = LayerNormalization (x, scale)", {"x": x, "scale": scale}), engine
    )([x, scale])
    wants = layer_norm(x, scale, None, -1, 1e-5)
    assert (mean.dtype, inverse.dtype) == (F, F)  # the stash type
    check(y, wants[0].astype(x.dtype), **({"rtol": 1e-12} if dtype == "f64" else {"ulp": 1, "atol": 1e-4}))
    check(mean, wants[1].astype(F), rtol=1e-5, atol=1e-6)


@each_engine
def test_layer_normalization_of_symbolic_sizes_and_a_scale_that_broadcasts(engine: str) -> None:
    scale = np.array([2], F)
    nodes = "y = LayerNormalization (x, scale)"
    run = prepare(make_model(nodes, {"x": numbers(2, 3), "scale": scale}, dims={"x": ["n", "m"]}), engine)
    for shape in ((1, 1), (4, 33), (7, 2), (0, 5)):
        x = numbers(*shape)
        check(run([x, scale])[0], layer_norm(x, scale, None, -1, 1e-5)[0].astype(F), rtol=2e-5, atol=2e-6)


@each_engine
def test_layer_normalization_far_from_zero(engine: str) -> None:
    """The variance comes from centred values."""
    x = np.array([[80000, 80001, 80002, 80003], [1234] * 4], F)
    (y,) = prepare(
        make_model("y = LayerNormalization (x, scale)", {"x": x}, constants={"scale": np.ones(4, F)}), engine
    )([x])
    check(y, np.array([[-1.3416355, -0.4472118, 0.4472118, 1.3416355], [0] * 4], F), rtol=1e-4)


@each_engine
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rms_normalization(engine: str, axis: int) -> None:
    x = numbers(3, 4, 5)
    scale = numbers(*x.shape[axis % 3 :], seed=1)
    nodes = f"y = RMSNormalization <axis = {axis}, epsilon = 0.01> (x, scale)"
    axes = tuple(range(axis % 3, 3))
    wide = x.astype(np.float64)
    want = wide / np.sqrt((wide * wide).mean(axes, keepdims=True) + 0.01) * scale
    (y,) = prepare(make_model(nodes, {"x": x, "scale": scale}, opset=23), engine)([x, scale])
    check(y, want.astype(F), rtol=2e-5, atol=1e-6)


@each_engine
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_rms_normalization(engine: str, dtype: str) -> None:
    x, scale = numbers(3, 40, dtype=dtype), numbers(40, dtype=dtype, seed=1)
    wide = x.astype(np.float64)
    normal = (wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)
    (y,) = prepare(make_model("y = RMSNormalization (x, scale)", {"x": x, "scale": scale}, opset=23), engine)(
        [x, scale]
    )
    check(y, (normal.astype(np.float64) * scale.astype(np.float64)).astype(x.dtype), ulp=1.5, atol=1e-3)
