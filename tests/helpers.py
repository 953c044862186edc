"""What the tests share: models from a line of text, one way to run them on each engine, one comparison.

An engine makes a model ready to run.  A test decorated with `each_engine` runs on all that are there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from sardonyx.core.interpret import interpret
from sardonyx.frontend import import_model
from sardonyx.passes.lower import LowerToCore
from sardonyx_runtime import dtypes

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any] | Sequence[Any]
Run = Callable[[Feeds], list[Any]]


def numpy_type(name: str) -> np.dtype[Any]:
    """The NumPy type of an IR name (``f32``), an ONNX name (``float``) or a NumPy name (``float32``)."""
    try:
        return dtypes.by_name(name).numpy
    except KeyError:
        return np.dtype(getattr(ml_dtypes, name, name))


def tensor(dtype: str, values: Any, shape: Sequence[int] | None = None) -> Array:
    """An array of the named type; of a shape that the nesting of the values does not show."""
    array = np.array(values, numpy_type(dtype))
    return array if shape is None else array.reshape(shape)


def make_model(
    nodes: str | Iterable[str | onnx.NodeProto],
    inputs: Mapping[str, Any],
    *,
    opset: int = 21,
    constants: Mapping[str, Array] | None = None,
    dims: Mapping[str, Sequence[Any]] | None = None,
    outputs: Sequence[str] | None = None,
) -> onnx.ModelProto:
    """A model of nodes in ONNX's text form (``y = Add (a, b)``) with inputs like the given arrays.

    ``dims`` declares the dims of single inputs otherwise, symbolic ones as well.  The outputs are what no
    node consumes unless they are named.
    """
    lines = [nodes] if isinstance(nodes, str) else list(nodes)
    parsed = [onnx.parser.parse_node(n) if isinstance(n, str) else n for n in lines]
    used = {name for node in parsed for name in node.input}
    names = outputs or [name for node in parsed for name in node.output if name and name not in used]
    graph = helper.make_graph(
        parsed,
        "test",
        [_declare(name, np.asarray(array), (dims or {}).get(name)) for name, array in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in names],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _declare(name: str, array: Array, dims: Sequence[Any] | None) -> onnx.ValueInfoProto:
    number = dtypes.by_numpy(array.dtype).onnx
    return helper.make_tensor_value_info(name, number, array.shape if dims is None else dims)


def prepare(model: onnx.ModelProto, engine: str = "interpreter") -> Run:
    """The model made ready to run; feeds are named, or in the order of its inputs."""
    return ENGINES[engine](model)


def run_model(model: onnx.ModelProto, feeds: Feeds, engine: str = "interpreter") -> list[Any]:
    """The outputs of a model for one set of feeds."""
    return prepare(model, engine)(feeds)


def _interpreter(model: onnx.ModelProto) -> Run:
    module = import_model(model)
    LowerToCore().run(module)

    def run(feeds: Feeds) -> list[Any]:
        if isinstance(feeds, Mapping):
            feeds = [feeds[argument.name] for argument in module.main.arguments]
        return interpret(module.main, feeds)

    return run


def _compiled(model: onnx.ModelProto) -> Run:
    compiled = importlib.import_module("sardonyx").compile(model, verify_each=True)
    return lambda feeds: list(compiled.run(feeds))


ENGINES: dict[str, Callable[[onnx.ModelProto], Run]] = {"interpreter": _interpreter}
if hasattr(importlib.import_module("sardonyx"), "compile"):
    ENGINES["compiled"] = _compiled

each_engine = pytest.mark.parametrize("engine", list(ENGINES))


def check(
    got: Any,
    want: Any,
    *,
    ulp: float = 0,
    rtol: float = 0,
    atol: float = 0,
    zero_signs: bool = True,
    nan_bits: bool = False,
) -> None:
    """Fail unless an output is as expected: type, shape, and each element.

    A float may be ``ulp`` units in the last place off, or ``rtol`` and ``atol``; infinities and NaNs have
    to be where they are expected, zeros have to have the right sign unless ``zero_signs`` is false.  With
    ``nan_bits`` NaNs have to be equal bit for bit.
    """
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.size == 0:
        return
    with np.errstate(all="ignore"):  # signalling NaNs
        good = np.asarray(_equal(got, want))
        if want.dtype.kind in "fV" and dtypes.by_numpy(want.dtype).is_float:
            if ulp or rtol or atol:
                good |= _near(got, want, ulp, rtol, atol)
            if zero_signs:
                good &= (want != 0) | (got != 0) | (_sign_bits(got) == _sign_bits(want))
            if nan_bits:
                good &= ~np.isnan(want) | (_bits(got) == _bits(want))
        elif rtol or atol:
            good |= np.isclose(got, want, rtol=rtol, atol=atol)
    if not good.all():
        raise AssertionError(_report(got, want, good))


def _equal(got: Array, want: Array) -> Any:
    if dtypes.by_numpy(want.dtype).bits < 8:  # their own comparisons may be of the bytes
        got, want = got.astype(np.float32), want.astype(np.float32)
    return (got == want) | ((got != got) & (want != want))


def _bits(x: Array) -> Array:
    return np.asarray(x, order="C").view(f"u{x.dtype.itemsize}")


def _sign_bits(x: Array) -> Array:
    return np.asarray(np.signbit(x.astype(np.float64)))


def _steps(x: Array) -> Array:
    """The floats of a type numbered in their order."""
    bits = _bits(x).astype(np.int64)
    top = np.int64(1) << np.int64(x.dtype.itemsize * 8 - 1) if x.dtype.itemsize < 8 else np.int64(-(2**63))
    return np.where(bits & top, -(bits & ~top), bits)


def _near(got: Array, want: Array, ulp: float, rtol: float, atol: float) -> Any:
    finite = np.isfinite(got) & np.isfinite(want)
    wide, right = got.astype(np.float64), want.astype(np.float64)
    close = np.abs(wide - right) <= atol + rtol * np.abs(right)
    if ulp:
        close |= np.abs(_steps(got).astype(np.float64) - _steps(want).astype(np.float64)) <= ulp
    return finite & close


def _report(got: Array, want: Array, good: Array) -> str:
    wrong = np.argwhere(~good)
    lines = [f"{len(wrong)} of {want.size} elements of {want.dtype}{list(want.shape)} are wrong"]
    for index in map(tuple, wrong[:8]):
        have, need = got[index], want[index]
        text = f"  at {list(map(int, index))}: {have!r} instead of {need!r}"
        if want.dtype.kind in "fV" and np.isfinite(have) and np.isfinite(need):
            steps = _steps(np.asarray(have)) - _steps(np.asarray(need))
            text += f" ({int(steps):+d} ulp)"
        lines.append(text)
    return "\n".join(lines)
