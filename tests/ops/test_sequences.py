"""Sequences and optionals: as inputs and outputs, in control flow, and how they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import sardonyx
from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import Array, check

F = np.float32
A, B, C = np.array([1], F), np.array([2, 3], F), np.array([4, 5, 6], F)


def compiled(signature: str, body: str, *, opset: int = 21) -> Any:
    """A model in ONNX's text form: ``(inputs) => (outputs)`` and the nodes."""
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g {signature} {{ {body} }}'
    return sardonyx.compile(onnx.parser.parse_model(text), threads=1)


def same(got: Any, want: Any) -> None:
    """Arrays, lists of arrays, None."""
    if want is None:
        assert got is None
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
    else:
        check(got, want)


def position(value: int) -> Array:
    return np.array(value, np.int64)


def test_sequences_in_and_out() -> None:
    model = compiled(
        "(seq(float[N]) s) => (seq(float[N]) t, int64 n)", "t = Identity (s) n = SequenceLength (s)"
    )
    for sequence in ([A, B, C], [C], [], [B, B]):
        t, n = model.run([sequence])
        same(t, sequence)
        check(n, position(len(sequence)))
    assert [o.name for o in model.outputs][-1:] != []


def test_construct() -> None:
    model = compiled("(float[N] a, float[M] b) => (seq(float[K]) s)", "s = SequenceConstruct (a, b, a)")
    same(model.run([A, B])[0], [A, B, A])
    same(model.run([C, A])[0], [C, A, C])


@pytest.mark.parametrize("place", [None, 0, 1, 3, -1, -3])
def test_insert(place: int | None) -> None:
    signature, last = "(seq(float[N]) s, float[M] x", "" if place is None else ", p"
    model = compiled(
        f"{signature}{', int64 p' if last else ''}) => (seq(float[K]) t)", f"t = SequenceInsert (s, x{last})"
    )
    feeds = [[A, B, C], B * 10] + ([] if place is None else [position(place)])
    want = [A, B, C]
    want.insert(3 if place is None else place, B * 10)
    same(model.run(feeds)[0], want)


@pytest.mark.parametrize("place", [None, 0, 2, -1, -3])
def test_erase(place: int | None) -> None:
    last = "" if place is None else ", p"
    model = compiled(
        f"(seq(float[N]) s{', int64 p' if last else ''}) => (seq(float[K]) t)", f"t = SequenceErase (s{last})"
    )
    want = [A, B, C]
    del want[-1 if place is None else place]
    same(model.run([[A, B, C]] + ([] if place is None else [position(place)]))[0], want)


def test_a_position_that_is_fed_is_compiled_once_for_each_value() -> None:
    model = compiled("(seq(float[N]) s, int64 p) => (float[K] y)", "y = SequenceAt (s, p)")
    for place in (0, 2, -1, -3, 1, 0):
        same(model.run([[A, B, C], position(place)])[0], [A, B, C][place])
    with pytest.raises(CompileError, match="position 3 is outside of a sequence of 3"):
        model.run([[A, B, C], position(3)])
    with pytest.raises(CompileError, match="position -4"):
        model.run([[A, B, C], position(-4)])
    same(model.run([[A, B, C], position(1)])[0], B)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("t = SequenceInsert (s, a, four)", "position 4"),
        ("t = SequenceErase (s, four)", "position 4"),
        ("t = SequenceInsert (s, i)", "int64"),
        ("t = SequenceConstruct (a, i)", "int64"),
    ],
)
def test_what_does_not_fit_is_refused(node: str, words: str) -> None:
    constants = "four = Constant <value_int = 4> () i = Constant <value_ints = [1]> ()"
    with pytest.raises(CompileError, match=words):
        model = compiled(
            "(float[N] a) => (seq(float[K]) t)", f"s = SequenceConstruct (a, a) {constants} {node}"
        )
        model.run([A])


def test_empty_and_length() -> None:
    body = "s = SequenceEmpty <dtype = 11> () n = SequenceLength (s) t = SequenceInsert (s, x)"
    model = compiled("(double[2] x) => (int64 n, seq(double[2]) s, seq(double[2]) t)", body)
    n, s, t = model.run([np.array([1.0, 2.0])])
    check(n, position(0))
    same(s, [])
    same(t, [np.array([1.0, 2.0])])


# -- SplitToSequence, ConcatFromSequence

X = np.arange(10, dtype=F).reshape(2, 5)


@pytest.mark.parametrize("dims", ["2, 5", "n, m"])
@pytest.mark.parametrize(
    ("attributes", "split", "want"),
    [
        ("", None, [X[:1], X[1:]]),
        ("axis = 1", None, [X[:, i : i + 1] for i in range(5)]),
        ("axis = -1, keepdims = 0", None, [X[:, i] for i in range(5)]),
        ("axis = 1", 2, [X[:, :2], X[:, 2:4], X[:, 4:]]),
        ("axis = 1, keepdims = 0", 2, [X[:, :2], X[:, 2:4], X[:, 4:]]),
        ("axis = 1", 7, [X]),
        ("axis = -1", [1, 0, 4], [X[:, :1], X[:, 1:1], X[:, 1:]]),
    ],
)
def test_split(dims: str, attributes: str, split: Any, want: list[Array]) -> None:
    kind = "int64" if isinstance(split, int) else "int64[3]"
    given = "" if split is None else f", {kind} k"
    node = f"s = SplitToSequence <{attributes}> (x{'' if split is None else ', k'})".replace(" <>", "")
    model = compiled(f"(float[{dims}] x{given}) => (seq(float[p, q]) s)", node)
    same(model.run([X] + ([] if split is None else [np.array(split)]))[0], want)


def test_split_of_a_symbolic_axis_is_compiled_for_each_extent() -> None:
    model = compiled("(float[n, 2] x) => (seq(float[1, 2]) s)", "s = SplitToSequence (x)")
    for rows in (3, 1, 0, 3):
        x = np.arange(2 * rows, dtype=F).reshape(rows, 2)
        same(model.run([x])[0], [x[i : i + 1] for i in range(rows)])


@pytest.mark.parametrize("split", [[2, 2], [6, -1], 0, -2])
def test_splits_that_do_not_fit(split: Any) -> None:
    kind = "int64" if isinstance(split, int) else "int64[2]"
    model = compiled(
        f"(float[2, 5] x, {kind} k) => (seq(float[p, q]) s)", "[cut] s = SplitToSequence <axis = 1> (x, k)"
    )
    with pytest.raises(CompileError, match="cut"):
        model.run([X, np.array(split)])


@pytest.mark.parametrize(("new", "axis"), [(0, 0), (0, -1), (1, 0), (1, 1), (1, -1)])
def test_concat(new: int, axis: int) -> None:
    rank = 2 + new
    dims = ", ".join("pqr"[:rank])
    node = f"y = ConcatFromSequence <axis = {axis}, new_axis = {new}> (s)"
    model = compiled(f"(seq(float[n, m]) s) => (float[{dims}] y)", node)
    for sequence in ([X, X + 1], [X], [X, X, X]):
        joined = np.stack(sequence, axis) if new else np.concatenate(sequence, axis)
        same(model.run([sequence])[0], joined)
    if not new:
        parts = [X, X[:1]] if axis == 0 else [X, X[:, :2]]
        same(model.run([parts])[0], np.concatenate(parts, axis))
    with pytest.raises(CompileError, match="nothing to concatenate"):
        model.run([[]])


def test_parts_that_do_not_go_together() -> None:
    model = compiled(
        "(seq(float[n, m]) s) => (float[p, q] y)", "[join] y = ConcatFromSequence <axis = 0> (s)"
    )
    with pytest.raises((CompileError, RuntimeFault), match="join"):
        model.run([[X, X[:, :2]]])


# -- SequenceMap


def test_map() -> None:
    body = """t, n = SequenceMap <body = b (float[k] e, float[k] o, float x) => (p, q) {
        u = Add (e, o) p = Mul (u, x) q = Size (p) }> (s, r, x)"""
    model = compiled("(seq(float[k]) s, seq(float[k]) r, float x) => (seq(float[k]) t, seq(int64) n)", body)
    t, n = model.run([[A, B], [A, -B], np.array(3, F)])
    same(t, [A * 6, B * 0])
    same(n, [position(1), position(2)])
    same(model.run([[], [], np.array(3, F)]), [[], []])
    with pytest.raises(CompileError, match="sequences of 2 and 1"):
        model.run([[A, B], [A], np.array(3, F)])


# -- control flow


def test_a_loop_that_makes_a_sequence() -> None:
    body = """e = SequenceEmpty () t = Loop (n, "", e) <body = b (int64 i, bool ok, seq(float[k]) c) => (ok2, seq(float[k]) d) {
        ok2 = Identity (ok) f = Cast <to = 1> (i) y = Add (x, f) d = SequenceInsert (c, y) }>"""
    model = compiled("(int64 n, float[k] x) => (seq(float[k]) t)", body)
    for trips in (0, 3, 1):
        same(model.run([position(trips), B])[0], [B + i for i in range(trips)])


def test_a_loop_over_a_sequence() -> None:
    body = """n = SequenceLength (s) t, y = Loop (n, "", zero) <body = b (int64 i, bool ok, float c) => (ok, d, e) {
        x = SequenceAt (s, i) p = ReduceSum <keepdims = 0> (x) d = Add (c, p) e = Identity (p) }>"""
    model = compiled("(seq(float[k]) s, float zero) => (float t, float[l] y)", body)
    t, y = model.run([[A, B, C], np.array(1, F)])
    check(t, np.array(22, F))
    check(y, np.array([1, 5, 15], F))


def test_a_loop_that_carries_a_sequence_and_stacks() -> None:
    body = """t, y = Loop (n, "", s) <body = b (int64 i, bool ok, seq(float[k]) c) => (ok, seq(float[k]) d, float[k] e) {
        e = SequenceAt (c, i) d = SequenceErase (c, i) }>"""
    model = compiled("(int64 n, seq(float[k]) s) => (seq(float[k]) t, float[l, k] y)", body)
    t, y = model.run([position(2), [B, B + 1, B + 2]])
    same(t, [B + 1])
    check(y, np.stack([B, B + 2]))
    t, y = model.run([position(0), [B]])
    same(t, [B])
    check(y, np.zeros((0, 2), F))


def test_a_loop_that_has_to_be_unrolled_makes_few_passes() -> None:
    body = """t = Loop (n, "", s) <body = b (int64 i, bool ok, seq(float[k]) c) => (ok, seq(float[k]) d) { d = Identity (c) }>"""
    model = compiled("(int64 n, seq(float[k]) s) => (seq(float[k]) t)", body)
    same(model.run([position(1000), [A]])[0], [A])
    with pytest.raises(CompileError, match="more than 1024 passes"):
        model.run([position(2000), [A]])


def test_a_condition_that_decides_on_sequences() -> None:
    body = """t = If (c) <then_branch = g1 () => (seq(float[k]) p) { p = SequenceInsert (s, x) },
        else_branch = g2 () => (seq(float[k]) q) { q = SequenceErase (s) }>"""
    model = compiled("(bool c, seq(float[k]) s, float[k] x) => (seq(float[k]) t)", body)
    same(model.run([np.array(True), [A, B], C])[0], [A, B, C])
    same(model.run([np.array(False), [A, B], C])[0], [A])


def test_a_condition_on_the_length_takes_one_branch() -> None:
    body = """n = SequenceLength (s) z = Constant <value_int = 0> () c = Equal (n, z)
        y = If (c) <then_branch = g1 () => (float[k] p) { p = Identity (x) },
        else_branch = g2 () => (float[k] q) { q = SequenceAt (s, z) }>"""
    model = compiled("(seq(float[k]) s, float[k] x) => (float[k] y)", body)
    same(model.run([[], C])[0], C)
    same(model.run([[A, B], C])[0], A)


def test_a_condition_that_is_computed_cannot_decide_on_sequences() -> None:
    body = """z = Constant <value_float = 0.0> () m = ReduceMax <keepdims = 0> (x) c = Less (m, z)
        [pick] t = If (c) <then_branch = g1 () => (seq(float[k]) p) { p = SequenceInsert (s, x) },
        else_branch = g2 () => (seq(float[k]) q) { q = SequenceErase (s) }>"""
    with pytest.raises(CompileError, match=r"pick.*the condition has to be known"):
        compiled("(seq(float[k]) s, float[k] x) => (seq(float[k]) t)", body).run([[A], B])


# -- optionals


@pytest.mark.parametrize("kind", ["optional(float[n])", "optional(seq(float[n]))"])
def test_has_element(kind: str) -> None:
    model = compiled(f"({kind} o) => (bool y)", "y = OptionalHasElement (o)")
    full: Any = [A, B] if "seq" in kind else A
    check(model.run([full])[0], np.array(True))
    check(model.run([None])[0], np.array(False))
    check(model.run([full])[0], np.array(True))


def test_get_element() -> None:
    model = compiled("(optional(float[n]) o) => (float[n] y)", "[open] y = OptionalGetElement (o)")
    same(model.run([B])[0], B)
    with pytest.raises(CompileError, match=r"open[\s\S]*holds nothing"):
        model.run([None])
    model = compiled("(optional(seq(float[n])) o) => (seq(float[n]) y)", "y = OptionalGetElement (o)")
    same(model.run([[A, C]])[0], [A, C])
    same(model.run([[]])[0], [])


def test_optionals_as_outputs() -> None:
    body = """full = Optional (x) none = Optional <type: type_proto = float[2]> () has = OptionalHasElement (none)
        same = Identity (o)"""
    signature = """(float[2] x, optional(float[2]) o)
        => (optional(float[2]) full, optional(float[2]) none, bool has, optional(float[2]) same)"""
    try:
        model = compiled(signature, body)
    except onnx.parser.ParseError:  # a type as an attribute
        model = compiled(
            signature.replace(", optional(float[2]) none, bool has", ""),
            body[: body.index("none")] + "same = Identity (o)",
        )
        same(model.run([B, None]), [B, None])
        return
    full, none, has, kept = model.run([B, None])
    same([full, none, kept], [B, None, None])
    check(has, np.array(False))


def test_tensors_and_nothing_count_as_optionals_from_opset_18_on() -> None:
    model = compiled(
        "(float[n] x) => (bool y, bool z, float[n] w)",
        "y = OptionalHasElement (x) z = OptionalHasElement () w = OptionalGetElement (x)",
    )
    y, z, w = model.run([B])
    check(y, np.array(True))
    check(z, np.array(False))
    check(w, B)


def test_an_optional_decides_on_a_branch() -> None:
    body = """has = OptionalHasElement (o) y = If (has) <
        then_branch = g1 () => (float[n] p) { p = OptionalGetElement (o) },
        else_branch = g2 () => (float[n] q) { q = Neg (x) }>"""
    model = compiled("(optional(float[n]) o, float[n] x) => (float[n] y)", body)
    same(model.run([B, C])[0], B)
    same(model.run([None, C])[0], -C)


# -- what is fed


def test_feeds_that_do_not_fit() -> None:
    model = compiled(
        "(seq(float[n]) s, optional(float[2]) o) => (seq(float[n]) t, bool y)",
        "t = Identity (s) y = OptionalHasElement (o)",
    )
    cases: list[tuple[Any, str]] = [
        ([[A.astype(np.float64)], None], "'s'"),
        ([[A, A[None]], None], "'s'"),
        ([A, None], "'s'"),
        ([None, None], "'s'"),
        ([[A], C], "'o'"),
        ([[A], [A]], "'o'"),
        ([[A], B.astype(np.int32)], "'o'"),
        ([[A]], "2 inputs"),
        ({"s": [A], "q": None}, "'q'"),
    ]
    for feeds, words in cases:
        with pytest.raises(RuntimeFault, match=words):
            model.run(feeds)
    same(model.run({"s": [A], "o": None})[0], [A])


def test_outputs_by_name() -> None:
    model = compiled(
        "(seq(float[n]) s) => (seq(float[n]) t, int64 n)", "t = Identity (s) n = SequenceLength (s)"
    )
    check(model.run([[A, B]], ["n"])[0], position(2))
    with pytest.raises(RuntimeFault, match="no output 'x'"):
        model.run([[A]], ["x"])
