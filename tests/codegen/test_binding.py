"""Dims bound while a model runs: the native rules equal those of core/binding.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sardonyx.core.binding import BindingError, reshape_target, slice_span
from sardonyx.errors import RuntimeFault

from ..helpers import check, each_engine, make_model, prepare

F = np.float32
Run = Callable[..., Any]


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def outcome(run: Run, feeds: Any) -> Any:
    """The outputs, or that there are none."""
    try:
        return run(feeds)
    except RuntimeFault as fault:
        assert "bind" in str(fault)
        return None


# -- Slice

INDICES = [-(2**63), -(2**31), -7, -6, -5, -2, -1, 0, 1, 2, 5, 6, 9, 2**31 - 1, 2**63 - 1]


@pytest.fixture(scope="module", params=[1, 2, 7, -1, -3])
def sliced(request: pytest.FixtureRequest) -> tuple[int, Run]:
    step = request.param
    feeds = {"x": np.zeros(6, F), "start": ints(0), "end": ints(6)}
    constants = {"axes": ints(0), "steps": ints(step)}
    model = make_model(
        "[bind] y = Slice (x, start, end, axes, steps)", feeds, dims={"x": ["n"]}, constants=constants
    )
    return step, prepare(model, "compiled")


def test_spans(sliced: tuple[int, Run]) -> None:
    step, run = sliced
    for size in (0, 1, 6):
        x = np.arange(size, dtype=F)
        for start, end in itertools.product(INDICES, repeat=2):
            first, count = slice_span(start, end, size, step)
            (got,) = run([x, ints(start), ints(end)])
            check(
                got,
                x[first : first + count * step : step]
                if step > 0
                else x[[first + k * step for k in range(count)]],
            )


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 6), st.sampled_from([-4, -2, -1, 1, 2, 3]))
def test_a_span_is_what_numpy_takes(start: int, end: int, extent: int, step: int) -> None:
    """Where Python's slices mean the same: a backward slice from before the first element begins at it in ONNX,
    and an end before the first element is written in another way."""
    assume(step > 0 or start + extent >= 0)
    first, count = slice_span(start, end, extent, step)
    beyond = step < 0 and end + extent < 0
    assert [first + k * step for k in range(count)] == list(range(extent))[
        start : None if beyond else end : step
    ]


@each_engine
def test_slices_of_several_axes(engine: str) -> None:
    x = np.arange(60, dtype=F).reshape(3, 4, 5)
    feeds = {"x": x, "start": ints(0, 0), "end": ints(1, 1)}
    constants = {"axes": ints(2, 0), "steps": ints(-2, 1)}
    run = prepare(make_model("y = Slice (x, start, end, axes, steps)", feeds, constants=constants), engine)
    check(run([x, ints(4, 1), ints(-9, 3)])[0], x[1:3, :, ::-2])
    check(run([x, ints(-2, -1), ints(0, 99)])[0], x[2:, :, 3:0:-2])
    check(run([x, ints(0, 2), ints(3, 1)])[0], x[2:1, :, 0:3:-2])


@each_engine
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_types_of_the_bounds(engine: str, dtype: Any) -> None:
    x = np.arange(6, dtype=F)
    feeds = {"x": x, "start": np.array([-3], dtype), "end": np.array([np.iinfo(dtype).max], dtype)}
    check(prepare(make_model("y = Slice (x, start, end)", feeds), engine)(feeds)[0], x[-3:])


# -- Reshape


@pytest.fixture(scope="module", params=[0, 1], ids=["copying zeros", "literal zeros"])
def reshaped(request: pytest.FixtureRequest) -> tuple[bool, Run]:
    feeds = {"x": np.zeros((2, 6), F), "shape": ints(3, 4, 1)}
    node = f"[bind] y = Reshape <allowzero = {request.param}> (x, shape)"
    return bool(request.param), prepare(make_model(node, feeds, dims={"x": ["n", "m"]}), "compiled")


def expected(target: tuple[int, ...], source: tuple[int, ...], allowzero: bool) -> Any:
    try:
        dims = reshape_target(target, source, allowzero=allowzero)
    except BindingError:
        return None
    return dims if np.prod(dims, dtype=np.int64) == np.prod(source, dtype=np.int64) else None


@settings(deadline=None, max_examples=300)
@given(
    st.tuples(*[st.sampled_from([-2, -1, 0, 1, 2, 3, 4, 6, 12])] * 3),
    st.sampled_from([(2, 6), (3, 4), (0, 4), (1, 1), (12, 1), (3, 0)]),
)
def test_targets(reshaped: tuple[bool, Run], target: tuple[int, ...], source: tuple[int, ...]) -> None:
    allowzero, run = reshaped
    x = np.arange(source[0] * source[1], dtype=F).reshape(source)
    got, dims = outcome(run, [x, ints(*target)]), expected(target, source, allowzero)
    if dims is None:
        assert got is None
    else:
        check(got[0], x.reshape(dims))


@each_engine
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ((-1, -1, 1), "bind"),
        ((-2, 3, 2), "bind"),
        ((5, 3, 1), "bind"),
        ((-1, 5, 1), "bind"),
        ((1, 12, 0), "bind"),
    ],
)
def test_targets_that_are_none(engine: str, target: tuple[int, ...], words: str) -> None:
    x = np.zeros((2, 6), F)
    run = prepare(make_model("[bind] y = Reshape (x, shape)", {"x": x, "shape": ints(3, 4, 1)}), engine)
    with pytest.raises(RuntimeFault, match=words) as caught:
        run([x, ints(*target)])
    assert "bind" in (caught.value.node or "")
    check(run([x, ints(0, 3, 2)])[0], x.reshape(2, 3, 2))


@each_engine
def test_shapes_that_are_computed(engine: str) -> None:
    """What follows is compiled for dims that nobody knows before."""
    nodes = [
        "most = ReduceMax <keepdims = 1> (k)",
        "shape = Concat <axis = 0> (most, rest)",
        "y = Reshape (x, shape)",
        "z = Transpose (y)",
        "p = MatMul (z, y)",
        "s = Shape (p)",
    ]
    x = np.arange(12, dtype=F)
    feeds = {"x": x, "k": ints(1, 3)}
    run = prepare(make_model(nodes, feeds, constants={"rest": ints(-1)}, outputs=["p", "s"]), engine)
    for rows in (3, 4, 1):
        y = x.reshape(rows, -1)
        p, s = run([x, ints(rows, 1)])
        check(p, y.T @ y)
        check(s, ints(12 // rows, 12 // rows))
    with pytest.raises(RuntimeFault):
        run([x, ints(5, 1)])


@each_engine
def test_dims_of_constant_of_shape_and_expand(engine: str) -> None:
    x = np.array([[1], [2]], F)
    nodes = ["[fill] a = ConstantOfShape (k)", "[spread] y = Expand (x, k)", "z = Add (a, y)"]
    run = prepare(make_model(nodes, {"x": x, "k": ints(2, 3)}, outputs=["z"]), engine)
    check(run([x, ints(2, 3)])[0], np.repeat(x, 3, 1))
    check(run([x, ints(2, 0)])[0], np.zeros((2, 0), F))
    with pytest.raises(RuntimeFault, match=r"fill.*-1"):
        run([x, ints(2, -1)])
    with pytest.raises(RuntimeFault, match="spread"):
        run([x, ints(3, 3)])
