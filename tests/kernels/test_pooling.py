"""Pooling: every attribute, all types, NaN, indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError

from ..helpers import check, make_model, prepare
from .targets import compile_for
from .test_contract import PATCH, numbers
from .test_convolve import near

CASES: dict[str, tuple[tuple[int, ...], str]] = {
    "2x2": ((1, 5, 8, 8), "kernel_shape = [2, 2], strides = [2, 2]"),
    "3x3": ((2, 20, 9, 11), "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]"),
    "1d": ((2, 17, 20), "kernel_shape = [4], strides = [3], pads = [1, 2]"),
    "3d": ((1, 3, 5, 6, 7), "kernel_shape = [2, 3, 2], pads = [1, 0, 0, 0, 1, 1]"),
    "ceil": ((1, 4, 7, 8), "kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1"),
    "ceil dropped": (
        (1, 1, 6, 6),
        "kernel_shape = [1, 2], strides = [4, 4], pads = [0, 1, 2, 1], ceil_mode = 1",
    ),
    "ceil padded": (
        (1, 4, 10, 9),
        "kernel_shape = [3, 3], strides = [3, 2], pads = [1, 1, 1, 1], ceil_mode = 1",
    ),
    "same upper": ((1, 4, 10, 9), 'kernel_shape = [3, 2], strides = [2, 3], auto_pad = "SAME_UPPER"'),
    "same lower": ((1, 4, 10, 9), 'kernel_shape = [3, 2], auto_pad = "SAME_LOWER"'),
    "dilated": ((1, 4, 10, 12), "kernel_shape = [3, 2], dilations = [2, 3], pads = [1, 1, 1, 1]"),
}


def model_of(op: str, name: str, more: str = "", *, dtype: str = "float32", symbolic: bool = False) -> Any:
    shape, attributes = CASES[name]
    x = numbers(shape, dtype)
    dims = {"x": ["n", shape[1], *(f"d{i}" for i in range(len(shape) - 2))]} if symbolic else {}
    outputs = "y, i" if op == "MaxPool" and "indices" in more else "y"
    more = more.replace("indices", "")
    return make_model(f"{outputs} = {op} <{attributes}{more}> (x)", {"x": x}, opset=22, dims=dims), x


@pytest.mark.parametrize("name", CASES)
def test_max(name: str) -> None:
    model, x = model_of("MaxPool", name, symbolic=True)
    check(compile_for(PATCH, model).run([x])[0], prepare(model)([x])[0])


@pytest.mark.parametrize(("name", "order"), [(n, i % 2) for i, n in enumerate([*CASES, "2x2"])])
def test_indices(name: str, order: int) -> None:
    """The largest element lies where the index says, in row- or column-major order of the spatial axes."""
    model, x = model_of("MaxPool", name, f"indices, storage_order = {order}")
    values, places = compile_for(PATCH, model).run([x])
    for got, want in zip((values, places), prepare(model)([x]), strict=True):
        check(got, want)
    axes = range(2, x.ndim)
    flat = x if order == 0 else x.transpose(0, 1, *reversed(axes))
    valid = places >= 0
    check(flat.reshape(-1)[places[valid]], values[valid])


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint8"])
def test_max_of_other_types(dtype: str) -> None:
    model, x = model_of("MaxPool", "3x3", dtype=dtype)
    check(compile_for(PATCH, model).run([x])[0], prepare(model)([x])[0])


def test_max_passes_nan_on() -> None:
    model, x = model_of("MaxPool", "3x3", "indices")
    x[0, 3, 4, 5] = np.nan
    x[1, :, 0, 0] = -np.inf
    for got, want in zip(compile_for(PATCH, model).run([x]), prepare(model)([x]), strict=True):
        check(got, want)
    assert np.isnan(compile_for(PATCH, model).run([x])[0]).sum() in (1, 2, 4)


@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_average(name: str, include: int) -> None:
    """Counts are constants where the sizes are known, windows over ones where they are not."""
    model, x = model_of("AveragePool", name, f", count_include_pad = {include}", symbolic=include == 1)
    near(compile_for(PATCH, model).run([x])[0], prepare(model)([x])[0])


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_average_of_other_types(dtype: str) -> None:
    model, x = model_of("AveragePool", "3x3", dtype=dtype)
    near(compile_for(PATCH, model).run([x])[0], prepare(model)([x])[0], dtype)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 20, 5, 6), (1, 3, 7), (2, 4, 3, 4, 5)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_global(op: str, shape: tuple[int, ...], symbolic: bool) -> None:
    x = numbers(shape)
    dims = {"x": [f"d{i}" for i in range(x.ndim)]} if symbolic else {}
    model = make_model(f"y = {op} (x)", {"x": x}, dims=dims)
    near(compile_for(PATCH, model).run([x])[0], prepare(model)([x])[0])


def test_refused() -> None:
    x = numbers((2, 3))
    with pytest.raises(CompileError, match="rank of at least 3"):
        compile_for(PATCH, make_model("y = GlobalMaxPool (x)", {"x": x}))
    with pytest.raises(CompileError, match="kernel_shape"):
        compile_for(PATCH, make_model("y = MaxPool <kernel_shape = [2, 2]> (x)", {"x": numbers((1, 2, 5))}))
