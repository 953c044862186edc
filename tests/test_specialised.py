"""Models whose code depends on values that are fed: one compilation for each combination."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sardonyx
from sardonyx import specialised
from sardonyx.errors import CompileError, RuntimeFault
from sardonyx.specialised import SpecialisedModel

from .helpers import Array, check, make_model

F = np.float32
X = np.arange(24, dtype=F).reshape(2, 3, 4)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def compiled(nodes: Any, feeds: dict[str, Array], **options: Any) -> SpecialisedModel:
    model: Any = sardonyx.compile(make_model(nodes, feeds, **options), threads=1)
    assert isinstance(model, SpecialisedModel)
    return model


def variants(model: SpecialisedModel) -> int:
    return len(model._variants)


def test_axes_of_a_reduction() -> None:
    model = compiled("[sum] y = ReduceSum (x, axes)", {"x": X, "axes": ints(0)})
    for axes in ((0,), (1, 2), (-1,), (0,), (2, 1, 0), ()):
        check(model.run({"x": X, "axes": ints(*axes)})[0], np.sum(X, axis=axes or None, keepdims=True))
    assert variants(model) == 5
    assert model.decisive == ["axes"]


def test_a_reduction_of_symbolic_sizes_is_compiled_once_for_all_of_them() -> None:
    model = compiled(
        "y = ReduceSum <keepdims = 0> (x, axes)", {"x": X, "axes": ints(0)}, dims={"x": ["a", "b", "c"]}
    )
    for shape in ((2, 3, 4), (1, 5, 2), (3, 0, 2)):
        x = np.ones(shape, F)
        check(model.run([x, ints(1)])[0], x.sum(1))
    assert variants(model) == 1


@pytest.mark.parametrize("axes", [(0,), (1, 3), (-1, 0)])
def test_axes_of_unsqueeze_and_squeeze(axes: tuple[int, ...]) -> None:
    model = compiled("y = Unsqueeze (x, axes)", {"x": X, "axes": ints(*axes)})
    y = np.expand_dims(X, axes)
    check(model.run([X, ints(*axes)])[0], y)
    back = compiled("x = Squeeze (y, axes)", {"y": y, "axes": ints(*axes)})
    check(back.run([y, ints(*axes)])[0], X)


def test_steps_and_axes_of_a_slice() -> None:
    names = ("x", "starts", "ends", "axes", "steps")
    first = dict(zip(names, (X, ints(0, 0), ints(2, 3), ints(0, 1), ints(1, 1)), strict=True))
    model = compiled("y = Slice (x, starts, ends, axes, steps)", first)
    for starts, ends, axes, steps in (
        ((0, 0), (2, 3), (0, 1), (1, 1)),
        ((1, 3), (-9, -9), (0, 2), (-1, -2)),
        ((0, 1), (1, 4), (0, 2), (1, 1)),
        ((1, 1), (2, 3), (0, 1), (1, 1)),
    ):
        index = [slice(None)] * 3
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            index[axis] = slice(start, None if end < -8 else end, step)
        feeds = dict(zip(names, (X, *(ints(*v) for v in (starts, ends, axes, steps))), strict=True))
        check(model.run(feeds)[0], X[tuple(index)])
    assert set(model.decisive) == {"axes", "steps"}  # starts and ends are read while the model runs
    assert variants(model) == 3


def test_two_inputs_that_decide() -> None:
    nodes = ["s = ReduceSum <keepdims = 0> (x, a)", "y = Unsqueeze (s, b)"]
    model = compiled(nodes, {"x": X, "a": ints(1), "b": ints(0)})
    for a, b in ((1, 0), (2, 1), (0, 2), (1, 0)):
        check(model.run([X, ints(a), ints(b)])[0], np.expand_dims(X.sum(a), b))
    assert model.decisive == ["a", "b"]
    assert variants(model) == 3


def test_an_input_with_a_default_that_decides() -> None:
    model = compiled("y = ReduceSum (x, axes)", {"x": X, "axes": ints(0)}, constants={"axes": ints(2)})
    check(model.run([X])[0], X.sum(2, keepdims=True))
    check(model.run({"x": X})[0], X.sum(2, keepdims=True))
    check(model.run({"x": X, "axes": ints(0)})[0], X.sum(0, keepdims=True))


def test_the_oldest_variant_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialised, "_VARIANTS", 2)
    model = compiled("y = ReduceSum (x, axes)", {"x": X, "axes": ints(0)})
    for axis in (0, 1, 0, 2):
        check(model.run([X, ints(axis)])[0], X.sum(axis, keepdims=True))
        assert variants(model) <= 2
    kept = dict(model._variants)
    model.run([X, ints(0)])
    assert dict(model._variants).keys() == kept.keys()


def test_ports_before_and_after_a_run() -> None:
    model = compiled(
        "y = ReduceSum <keepdims = 0> (x, axes)", {"x": X, "axes": ints(0)}, dims={"x": ["n", 3, 4]}
    )
    assert [a.name for a in model.inputs] == ["x", "axes"]
    assert model.outputs == ()
    model.run([X, ints(1)])
    (output,) = model.outputs
    assert (output.name, str(output.shape[0]), output.shape[1]) == ("y", "n", 4)


def test_memory_of_the_caller() -> None:
    model = compiled("y = ReduceSum <keepdims = 0> (x, axes)", {"x": X, "axes": ints(0)})
    out = np.empty((3, 4), F)
    (result,) = model.run([X, ints(0)], out=[out])
    assert result is out or np.shares_memory(result, out)
    check(out, X.sum(0))


def test_a_value_that_is_wrong_is_refused_and_leaves_no_variant() -> None:
    model = compiled("[sum] y = ReduceSum (x, axes)", {"x": X, "axes": ints(0)})
    with pytest.raises(CompileError, match=r"sum.*3 is not within -3 to 2"):
        model.run([X, ints(3)])
    assert variants(model) == 0
    check(model.run([X, ints(2)])[0], X.sum(2, keepdims=True))


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"x": X}, "'axes' is missing"),
        ({"x": X, "axes": ints(0), "z": X}, "no input 'z'"),
        ([X], "1 feeds for 2 inputs"),
        ([X, np.array([0], F)], "'axes'"),
        ([X.astype(np.float64), ints(0)], "'x'"),
        ([X[0], ints(0)], "'x'"),
    ],
)
def test_feeds_that_do_not_fit(feeds: Any, words: str) -> None:
    model = compiled("y = ReduceSum (x, axes)", {"x": X, "axes": ints(0)})
    with pytest.raises(RuntimeFault, match=words):
        model.run(feeds)


def test_what_is_computed_cannot_decide() -> None:
    nodes = ["m = ReduceMax <keepdims = 0> (k)", "[axes] a = Reshape (m, one)", "[sum] y = ReduceSum (x, a)"]
    with pytest.raises(CompileError, match=r"sum.*has to be constant"):
        model: Any = sardonyx.compile(
            make_model(nodes, {"x": X, "k": ints(0, 1)}, constants={"one": ints(1)})
        )
        model.run([X, ints(0, 1)])


def test_a_dim_that_decides_which_branch_fits() -> None:
    """The branches give unlike ranks, and the shape of an input says which is taken."""
    nodes = [
        "s = Shape <start = 0, end = 1> (x)",
        "n = Squeeze (s)",
        "c = Equal (n, one)",
        """y = If (c) <then_branch = t () => (p) { zero = Constant <value_ints = [0]> () p = Squeeze (x, zero) },
            else_branch = e () => (q) { q = Identity (x) }>""",
    ]
    x = np.ones((1, 3), F)
    model = compiled(nodes, {"x": x}, dims={"x": ["n", 3]}, constants={"one": np.array(1)})
    for rows, shape in ((1, (3,)), (4, (4, 3)), (1, (3,))):
        check(model.run([np.ones((rows, 3), F)])[0], np.ones(shape, F))
    assert variants(model) == 2


def test_the_length_of_a_shape_that_is_fed() -> None:
    """One compilation for each rank, whatever the values."""
    x = np.arange(12, dtype=F)
    shape = ints(3, 4)
    model = compiled("y = Reshape (x, shape)", {"x": x, "shape": shape}, dims={"x": ["n"], "shape": ["k"]})
    for wanted in ((3, 4), (4, -1), (2, 2, 3), (12,), (6, 2)):
        check(model.run([x, ints(*wanted)])[0], x.reshape(wanted))
    assert variants(model) == 3


def test_the_extents_of_a_kernel_that_is_fed() -> None:
    x, w = np.ones((1, 2, 5, 5), F), np.ones((3, 2, 3, 3), F)
    dims = {"x": ["n", 2, "h", "w"], "w": [3, 2, "kh", "kw"]}
    model = compiled("y = Conv (x, w)", {"x": x, "w": w}, dims=dims)
    for height, width in ((3, 3), (1, 2), (3, 3)):
        got = model.run([x, np.ones((3, 2, height, width), F)])[0]
        check(got, np.full((1, 3, 6 - height, 6 - width), 2 * height * width, F))
    assert variants(model) == 2


@pytest.mark.parametrize(
    ("node", "x", "k", "shape", "refused"),
    [
        ("y = Pad (x, k)", X[0], ints(1, 0, 0, 2), (4, 6), ints(1, 1)),
        ("y = Tile (x, k)", X[0], ints(2, 1), (6, 4), ints(1, 1, 1)),
        ("y = OneHot (x, depth, k)", ints(1), np.array([0, 1], F), (1, 5), np.ones(3, F)),
        ("y = Resize <axes = [0]> (x, , k)", X[0], np.array([2], F), (6, 4), np.ones(2, F)),
    ],
)
def test_the_length_of_what_has_one_entry_for_each_axis(
    node: str, x: Array, k: Array, shape: tuple[int, ...], refused: Array
) -> None:
    constants = {"depth": np.array(5)} if "depth" in node else {}
    model: Any = sardonyx.compile(
        make_model(node, {"x": x, "k": k}, dims={"k": ["many"]}, constants=constants)
    )
    assert model.run([x, k])[0].shape == shape
    with pytest.raises((RuntimeFault, CompileError)):
        model.run([x, refused])
