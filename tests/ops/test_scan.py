"""Scan, against its plain meaning in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import Array, check, each_engine, make_model, prepare

F = np.float32
BODY = """body = b (float[2] s, float[2] e) => (s2, o) { s2 = Add (s, e) o = Mul (s2, e) }"""


def step(state: Array, element: Array) -> tuple[Array, Array]:
    """What BODY means."""
    after = state + element
    return after, after * element


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(F)


def run(nodes: str, feeds: Mapping[str, Array], engine: str = "interpreter", **options: Any) -> list[Any]:
    return prepare(make_model(nodes, feeds, **options), engine)(feeds)


def scanned(
    state: Array, elements: Sequence[Array], body: Callable[..., tuple[Array, Array]]
) -> tuple[Array, list[Array]]:
    outputs = []
    for element in elements:
        state, output = body(state, element)
        outputs.append(output)
    return state, outputs


@each_engine
@pytest.mark.parametrize("opset", [9, 11, 21])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_scan(engine: str, opset: int, length: int) -> None:
    x, s = numbers(length, 2), numbers(2, seed=1)
    final, y = run(f"f, y = Scan <num_scan_inputs = 1, {BODY}> (s, x)", {"s": s, "x": x}, engine, opset=opset)
    state, outputs = scanned(s, list(x), step)
    check(final, state)
    check(y, np.reshape(np.array(outputs, F), (length, 2)))


@each_engine
@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize(("axis", "to"), [(0, 0), (1, 1), (-1, -2), (-2, -1)])
def test_axes_and_directions(engine: str, backward: int, turned: int, axis: int, to: int) -> None:
    x, s = numbers(2, 3) if axis % 2 else numbers(3, 2), numbers(2, seed=1)
    attributes = (
        f"scan_input_axes = [{axis}], scan_output_axes = [{to}], scan_input_directions = [{backward}]"
    )
    nodes = (
        f"f, y = Scan <num_scan_inputs = 1, {attributes}, scan_output_directions = [{turned}], {BODY}> (s, x)"
    )
    elements = list(np.moveaxis(x, axis, 0))
    state, outputs = scanned(s, elements[::-1] if backward else elements, step)
    final, y = run(nodes, {"s": s, "x": x}, engine)
    check(final, state)
    check(y, np.stack(outputs[::-1] if turned else outputs, axis=to))


@each_engine
def test_several_states_inputs_and_outputs(engine: str) -> None:
    nodes = """u, v, p, q = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
        body = b (float a, float[3] c, float x, float[3] y) => (a2, c2, o, r) {
            a2 = Add (a, x) t = Mul (y, a) c2 = Add (c, t) r = ReduceSum <keepdims = 0> (c2) o = Mul (c2, outer) }> (a, c, x, y)"""
    a, c, x, y = numbers(1)[0], numbers(3), numbers(4, seed=2), numbers(3, 4, seed=3)
    outer = np.array([1, 2, 3], F)
    feeds = {"a": np.asarray(a), "c": c, "x": x, "y": y}
    got = run(nodes, feeds, engine, constants={"outer": outer})
    outputs, sums = [], []
    for k in range(4):
        c = c + y[:, 3 - k] * a
        a = a + x[k]
        outputs.append(c * outer)
        sums.append(c.sum())
    for have, want in zip(got, (np.asarray(a), c, np.array(outputs), np.array(sums, F)), strict=True):
        check(have, want)


@each_engine
def test_without_a_state(engine: str) -> None:
    x = numbers(3, 2)
    (y,) = run(
        "y = Scan <num_scan_inputs = 1, body = b (float[2] e) => (o) { o = Neg (e) }> (x)", {"x": x}, engine
    )
    check(y, -x, zero_signs=False)


@each_engine
def test_one_compilation_serves_all_lengths(engine: str) -> None:
    nodes = f"f, y = Scan <num_scan_inputs = 1, {BODY}> (s, x)"
    s = numbers(2, seed=1)
    model = prepare(make_model(nodes, {"s": s, "x": numbers(3, 2)}, dims={"x": ["steps", 2]}), engine)
    for length in (3, 1, 0, 9):
        x = numbers(length, 2, seed=length)
        state, outputs = scanned(s, list(x), step)
        final, y = model([s, x])
        check(final, state)
        check(y, np.reshape(np.array(outputs, F), (length, 2)))


@each_engine
def test_scans_within_scans(engine: str) -> None:
    nodes = """y = Scan <num_scan_inputs = 1, body = outer (float[3] row) => (sums) {
        zero = Constant <value_float = 0.0> ()
        last, sums = Scan <num_scan_inputs = 1, body = inner (float s, float e) => (t, o) {
            t = Add (s, e) o = Identity (t) }> (zero, row) }> (x)"""
    x = numbers(4, 3)
    check(run(nodes, {"x": x}, engine)[0], np.cumsum(x, axis=1))


@each_engine
def test_unlike_numbers_of_steps(engine: str) -> None:
    nodes = """[zip] y = Scan <num_scan_inputs = 2, body = b (float p, float q) => (o) { o = Add (p, q) }> (x, z)"""
    feeds = {"x": numbers(3), "z": numbers(4)}
    with pytest.raises(CompileError, match=r"zip.*3 and 4"):
        run(nodes, feeds, engine)
    with pytest.raises(RuntimeFault, match=r"zip[\s\S]*unlike numbers of steps"):
        run(nodes, feeds, engine, dims={"x": ["n"], "z": ["m"]})


# -- opset 8: batches, lengths


@each_engine
@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("lengths", [None, [3, 0, 2], [3, 3, 3]])
@pytest.mark.parametrize("symbolic", [False, True])
def test_batches(engine: str, backward: int, lengths: list[int] | None, symbolic: bool) -> None:
    x, s = numbers(3, 3, 2), numbers(3, 2, seed=1)
    first = '""' if lengths is None else "n"
    nodes = f"f, y = Scan <num_scan_inputs = 1, directions = [{backward}], {BODY}> ({first}, s, x)"
    feeds = {"s": s, "x": x} | ({} if lengths is None else {"n": np.array(lengths)})
    dims = {"s": ["batch", 2], "x": ["batch", "steps", 2], "n": ["batch"]} if symbolic else None
    final, y = run(nodes, feeds, engine, opset=8, dims=dims)
    want = np.zeros_like(x)
    for k, length in enumerate(lengths or [3] * 3):
        elements = list(x[k, :length])
        state, outputs = scanned(s[k], elements[::-1] if backward else elements, step)
        want[k, :length] = np.reshape(outputs, (length, 2))
        check(final[k], state)
    check(y, want, zero_signs=False)


@each_engine
def test_batches_of_several_inputs(engine: str) -> None:
    nodes = """y, z = Scan <num_scan_inputs = 2, directions = [0, 1], body = b (float p, float q) => (o, r) {
        o = Sub (p, q) r = Add (p, p) }> ("", x, w)"""
    x, w = numbers(2, 3), numbers(2, 3, seed=1)
    y, z = run(nodes, {"x": x, "w": w}, engine, opset=8)
    check(y, x - w[:, ::-1])
    check(z, x + x)


@each_engine
def test_batches_with_a_length_beyond_the_input(engine: str) -> None:
    nodes = f"[recur] f, y = Scan <num_scan_inputs = 1, {BODY}> (n, s, x)"
    feeds = {"n": np.array([2, 4]), "s": numbers(2, 2), "x": numbers(2, 3, 2)}
    with pytest.raises(RuntimeFault, match=r"recur.*longer"):
        run(nodes, feeds, engine, opset=8)
    with pytest.raises(RuntimeFault, match="recur"):
        run(nodes, {**feeds, "n": np.array([2, -1])}, engine, opset=8)


def test_batches_that_are_refused() -> None:
    with pytest.raises(CompileError, match="batch sizes: 2 and 3"):
        run(
            f'f, y = Scan <num_scan_inputs = 1, {BODY}> ("", s, x)',
            {"s": numbers(3, 2), "x": numbers(2, 3, 2)},
            opset=8,
        )
    with pytest.raises(CompileError, match="axes of the batch and of the steps"):
        run(
            f'f, y = Scan <num_scan_inputs = 1, {BODY}> ("", s, x)',
            {"s": numbers(3, 2), "x": numbers(3)},
            opset=8,
        )
