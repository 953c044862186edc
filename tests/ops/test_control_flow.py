"""If and Loop: what they give, and how they are refused.  Scan stands in test_scan.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..case_files import Case, read_cases, run_case
from ..helpers import Array, check, each_engine, make_model, prepare

CASES = read_cases(Path(__file__).with_name("control_cases.txt"))
F = np.float32


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)


def run(
    nodes: str | Sequence[str], feeds: Mapping[str, Array], engine: str = "interpreter", **options: Any
) -> list[Any]:
    return prepare(make_model(nodes, feeds, **options), engine)(feeds)


def flag(value: bool) -> Array:
    return np.array(value)


def count(value: int) -> Array:
    return np.array(value, np.int64)


# -- If

SIGNS = (
    "[pick] y = If (c) <then_branch = t () => (p) { p = Neg (x) }, else_branch = e () => (q) { q = Abs (x) }>"
)


@each_engine
@pytest.mark.parametrize("shape", [(), (1,)])
def test_if_reads_values_of_the_graph(engine: str, shape: tuple[int, ...]) -> None:
    x = np.array([1, -2], F)
    model = prepare(make_model(SIGNS, {"c": np.full(shape, True), "x": x}), engine)
    check(model({"c": np.full(shape, True), "x": x})[0], -x)
    check(model({"c": np.full(shape, False), "x": x})[0], abs(x))


@each_engine
def test_if_with_branches_of_unlike_shapes(engine: str) -> None:
    nodes = """y = If (c) <
        then_branch = t () => (p) { p = Concat <axis = 0> (x, x) },
        else_branch = e () => (q) { one = Constant <value_ints = [1]> () q = Slice (x, one, n) }>"""
    behind = "z = Mul (y, y)"
    x, n = np.arange(5, dtype=F), np.array([4])
    model = prepare(
        make_model([nodes, behind], {"c": flag(True), "x": x, "n": n}, outputs=["y", "z"]), engine
    )
    for c, want in ((True, np.tile(x, 2)), (False, x[1:4])):
        y, z = model({"c": flag(c), "x": x, "n": n})
        check(y, want)
        check(z, want * want)


@each_engine
@pytest.mark.parametrize("rows", [1, 7])
def test_if_of_symbolic_shapes(engine: str, rows: int) -> None:
    nodes = [
        """y = If (c) <then_branch = t () => (p) { p = Transpose (x) }, else_branch = e () => (q) { q = Identity (x) }>""",
        "s = Shape (y)",
    ]
    x = np.arange(rows * 3, dtype=F).reshape(rows, 3)
    feeds = {"c": flag(True), "x": x}
    model = prepare(make_model(nodes, feeds, dims={"x": ["n", 3]}, outputs=["y", "s"]), engine)
    y, s = model(feeds)
    check(y, x.T)
    check(s, np.array([3, rows]))
    check(model({"c": flag(False), "x": x})[0], x)


@each_engine
def test_if_gives_several_outputs_and_constants(engine: str) -> None:
    nodes = """a, b, d = If (c) <
        then_branch = t () => (p, q, r) { p = Constant <value_float = 1.5> () q = Identity (x) r = Identity (x) },
        else_branch = e () => (u, v, w) { u = Constant <value_float = 2.5> () v = Neg (x) w = Identity (v) }>"""
    x = np.array([3, 4], F)
    model = prepare(make_model(nodes, {"c": flag(True), "x": x}), engine)
    for got, want in zip(model([flag(True), x]), (F(1.5), x, x), strict=True):
        check(got, np.asarray(want))
    for got, want in zip(model([flag(False), x]), (F(2.5), -x, -x), strict=True):
        check(got, np.asarray(want))


@each_engine
def test_a_fault_in_the_branch_that_is_not_taken(engine: str) -> None:
    nodes = """[pick] y = If (c) <
        then_branch = t () => (p) { p = Add (x, x) },
        else_branch = e () => (q) { [divide] q = Div (x, z) }>"""
    x, zero = np.array([3, -4], np.int32), np.zeros(2, np.int32)
    model = prepare(make_model(nodes, {"c": flag(True), "x": x}, constants={"z": zero}), engine)
    check(model([flag(True), x])[0], x + x)
    with pytest.raises(RuntimeFault, match="divide") as caught:
        model([flag(False), x])
    assert "divide" in (caught.value.node or "")


@each_engine
@pytest.mark.parametrize("wrong", [False, True])
def test_a_branch_that_cannot_be_built_fails_when_it_is_taken(engine: str, wrong: bool) -> None:
    branches = ["p = Add (x, x)", "[wrong] p = Add (x, w)"]
    then, otherwise = branches[::-1] if wrong else branches
    nodes = f"""[pick] y = If (c) <
        then_branch = t () => (p) {{ {then} }}, else_branch = e () => (p) {{ {otherwise} }}>"""
    x, w = np.ones(3, F), np.ones(4, F)
    model = prepare(make_model(nodes, {"c": flag(True), "x": x}, constants={"w": w}), engine)
    check(model([flag(not wrong), x])[0], x + x)
    with pytest.raises(RuntimeFault, match=r"this branch cannot be run.*do not broadcast"):
        model([flag(wrong), x])


def test_two_branches_that_cannot_be_built_are_refused() -> None:
    nodes = """[pick] y = If (c) <
        then_branch = t () => (p) { [left] p = Add (x, w) },
        else_branch = e () => (q) { [right] q = Sub (x, w) }>"""
    with pytest.raises(CompileError, match="left"):
        run(nodes, {"c": flag(True), "x": np.ones(3, F)}, constants={"w": np.ones(4, F)})


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("q = Cast <to = 7> (x)", ("pick", "float[2]", "int64[2]")),
        ("q = Unsqueeze (x, zero)", ("pick", "float[2]", "float[1, 2]")),
    ],
)
def test_branches_of_unlike_types_are_refused(other: str, words: tuple[str, ...]) -> None:
    nodes = f"""[pick] y = If (c) <
        then_branch = t () => (p) {{ p = Identity (x) }}, else_branch = e () => (q) {{ {other} }}>"""
    with pytest.raises(CompileError) as caught:
        run(nodes, {"c": flag(True), "x": np.ones(2, F)}, constants={"zero": np.zeros(1, np.int64)})
    assert all(word in str(caught.value) for word in words), str(caught.value)


@each_engine
def test_a_known_condition_takes_its_branch_at_once(engine: str) -> None:
    nodes = """y = If (c) <
        then_branch = t () => (p) { p = Cast <to = 7> (x) }, else_branch = e () => (q) { q = Neg (x) }>"""
    x = np.array([1, 2], F)
    check(run(nodes, {"x": x}, engine, constants={"c": flag(True)})[0], np.array([1, 2]))
    check(run(nodes, {"x": x}, engine, constants={"c": flag(False)})[0], -x)


@each_engine
def test_ifs_within_ifs(engine: str) -> None:
    nodes = """y = If (a) <
        then_branch = t () => (p) { p = If (b) <
            then_branch = tt () => (r) { r = Add (x, x) }, else_branch = te () => (s) { s = Neg (x) }> },
        else_branch = e () => (q) { q = If (b) <
            then_branch = et () => (u) { u = Concat <axis = 0> (x, x) }, else_branch = ee () => (v) { v = Abs (x) }> }>"""
    x = np.array([-1, 2], F)
    model = prepare(make_model(nodes, {"a": flag(True), "b": flag(True), "x": x}), engine)
    wants = {(1, 1): x + x, (1, 0): -x, (0, 1): np.tile(x, 2), (0, 0): abs(x)}
    for (a, b), want in wants.items():
        check(model([flag(bool(a)), flag(bool(b)), x])[0], want)


@each_engine
def test_the_branch_may_yield_a_view_or_a_graph_input(engine: str) -> None:
    nodes = """y = If (c) <
        then_branch = t () => (p) { p = Reshape (x, to) }, else_branch = e () => (q) { q = Reshape (z, to) }>"""
    x, z = np.arange(6, dtype=F), -np.arange(6, dtype=F)
    model = prepare(
        make_model(nodes, {"c": flag(True), "x": x, "z": z}, constants={"to": np.array([2, 3])}), engine
    )
    check(model([flag(True), x, z])[0], x.reshape(2, 3))
    check(model([flag(False), x, z])[0], z.reshape(2, 3))


# -- Loop

SUMS = """[repeat] total, steps = Loop (n, go, start) <body = b (int64 i, bool ok, float s) => (more, t, o) {
    more = Identity (ok) t = Add (s, x) o = Mul (t, t) }>"""


@each_engine
@pytest.mark.parametrize("trips", [0, 1, 5, -3])
def test_loop_by_a_trip_count(engine: str, trips: int) -> None:
    start, x = np.array(1, F), np.array(2, F)
    feeds = {"n": count(trips), "start": start, "x": x}
    total, steps = run(SUMS.replace("go", ""), feeds, engine)
    made = max(trips, 0)
    check(total, np.asarray(start + x * made, F))
    check(steps, np.array([(start + x * (k + 1)) ** 2 for k in range(made)], F))


@each_engine
@pytest.mark.parametrize("go", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_loop_by_a_trip_count_and_a_condition(engine: str, go: bool, known: bool) -> None:
    start, x = np.array(1, F), np.array(2, F)
    feeds: dict[str, Array] = {"n": count(3), "start": start, "x": x}
    given = {"go": flag(go)}
    constants = given if known else {}
    total, steps = run(SUMS, feeds if known else {**feeds, **given}, engine, constants=constants)
    check(total, np.array(7 if go else 1, F))
    check(steps, np.array([9, 25, 49] if go else [], F))


GROWS = """[repeat] final, seen = Loop (n, go, x) <body = b (int64 i, bool ok, float[d] s) => (more, t, o) {
    t = Concat <axis = 0> (s, s) size = Size (t) more = Less (size, limit) o = Identity (size) }>"""


@each_engine
@pytest.mark.parametrize("limit", [1, 4, 40])
@pytest.mark.parametrize("trips", ["n", ""])
def test_a_carried_tensor_grows_until_the_condition_ends_it(engine: str, limit: int, trips: str) -> None:
    x = np.array([1, 2, 3], F)
    feeds = {"go": flag(True), "x": x, "limit": count(limit)} | ({"n": count(9)} if trips else {})
    final, seen = run(GROWS.replace("(n,", f"({trips},"), feeds, engine)
    sizes = []
    while True:
        x = np.tile(x, 2)
        sizes.append(x.size)
        if x.size >= limit:
            break
    check(final, x)
    check(seen, np.array(sizes))


@each_engine
def test_the_condition_of_the_body_is_ignored_where_only_a_trip_count_is_given(engine: str) -> None:
    x = np.array([1], F)
    final, seen = run(GROWS.replace("go", ""), {"n": count(3), "x": x, "limit": count(0)}, engine)
    check(final, np.ones(8, F))
    check(seen, np.array([2, 4, 8]))


@each_engine
def test_without_trip_count_and_condition_the_body_ends_the_loop(engine: str) -> None:
    x = np.array([1], F)
    final, seen = run(GROWS.replace("(n, go", '("", ""'), {"x": x, "limit": count(8)}, engine)
    check(final, np.ones(8, F))
    check(seen, np.array([2, 4, 8]))


@each_engine
def test_a_loop_that_grows_runs_again_with_other_sizes(engine: str) -> None:
    nodes = GROWS.replace("go", "")
    feeds = {"n": count(2), "x": np.ones(3, F), "limit": count(0)}
    model = prepare(make_model(nodes, feeds, dims={"x": ["d"]}), engine)
    for trips, size in ((2, 3), (6, 5), (0, 1), (3, 0), (1, 70)):
        x = np.arange(size, dtype=F)
        final, seen = model({"n": count(trips), "x": x, "limit": count(0)})
        check(final, np.tile(x, 2**trips))
        check(seen, np.array([size * 2 ** (k + 1) for k in range(trips)], np.int64))


@each_engine
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_carried_tensors_that_change_places(engine: str, trips: int) -> None:
    nodes = """u, v, w = Loop (n, "", x, y, z) <body = b (int64 i, bool ok, float[2] p, float[2] q, float[2] r)
        => (ok, q, r, p) { unused = Identity (ok) }>"""
    x, y, z = (np.array(v, F) for v in ([1, 2], [3, 4], [5, 6]))
    got = run(nodes, {"n": count(trips), "x": x, "y": y, "z": z}, engine, outputs=["u", "v", "w"])
    for _ in range(trips):
        x, y, z = y, z, x
    for have, want in zip(got, (x, y, z), strict=True):
        check(have, want)


@each_engine
def test_carried_tensors_of_unlike_sizes_that_change_places(engine: str) -> None:
    nodes = """u, v = Loop (n, "", x, y) <body = b (int64 i, bool ok, float[a] p, float[c] q)
        => (ok, q2, p) { q2 = Neg (q) }>"""
    x, y = np.array([1, 2], F), np.array([3, 4, 5], F)
    u, v = run(nodes, {"n": count(3), "x": x, "y": y}, engine)
    for _ in range(3):
        x, y = -y, x
    check(u, x)
    check(v, y)


@each_engine
def test_the_number_of_the_pass_is_data(engine: str) -> None:
    nodes = """final, rows = Loop (n, "", start) <body = b (int64 i, bool ok, float s) => (ok, t, row) {
        row = Gather (x, i) part = ReduceSum <keepdims = 0> (row) t = Add (s, part) }>"""
    x = np.arange(12, dtype=F).reshape(4, 3)
    final, rows = run(nodes, {"n": count(3), "x": x}, engine, constants={"start": np.array(10, F)})
    check(final, np.array(10 + x[:3].sum(), F))
    check(rows, x[:3])


@each_engine
def test_stacked_elements_of_a_shape_that_the_body_finds(engine: str) -> None:
    """All passes agree on it, but nothing before the loop says it."""
    nodes = """rows = Loop (n, "") <body = b (int64 i, bool ok) => (ok, row) {
        p = Greater (x, zero) where = NonZero (p) row = Add (where, i) }>"""
    x = np.array([1, -1, 2, 3], F)
    model = prepare(make_model(nodes, {"n": count(2), "x": x}, constants={"zero": np.array(0, F)}), engine)
    check(model([count(2), x])[0], np.array([[[0, 2, 3]], [[1, 3, 4]]]))
    (none,) = model([count(0), x])
    assert none.shape[:2] == (0, 1)


@each_engine
def test_stacked_elements_of_known_shape_where_no_pass_is_made(engine: str) -> None:
    nodes = """rows = Loop (n, "") <body = b (int64 i, bool ok) => (ok, row) { row = Neg (x) }>"""
    x = np.ones((2, 3), F)
    check(run(nodes, {"n": count(0), "x": x}, engine)[0], np.zeros((0, 2, 3), F))
    check(run(nodes, {"n": count(0), "x": x}, engine, dims={"x": ["a", "c"]})[0], np.zeros((0, 2, 3), F))


@each_engine
def test_loops_within_loops(engine: str) -> None:
    nodes = """total, sums = Loop (n, "", start) <body = outer (int64 i, bool ok, float s) => (ok, t, part) {
        next = Add (i, one)
        part, each = Loop (next, "", s) <body = inner (int64 j, bool fine, float p) => (fine, q, q2) {
            w = Cast <to = 1> (j) v = Cast <to = 1> (i) m = Mul (w, v) a = Add (p, m) q = Add (a, x) q2 = Identity (q) }>
        t = ReduceSum <keepdims = 0> (each) }>"""
    start, x, one = np.array(0, F), np.array(0.5, F), np.array(1)
    feeds = {"n": count(4), "x": x}
    total, sums = run(nodes, feeds, engine, constants={"start": start, "one": one})
    s, parts = 0.0, []
    for i in range(4):
        p, each = s, []
        for j in range(i + 1):
            p += i * j + 0.5
            each.append(p)
        s = sum(each)
        parts.append(p)
    check(total, np.array(s, F))
    check(sums, np.array(parts, F))


@each_engine
def test_ifs_in_loops(engine: str) -> None:
    nodes = """final, kept = Loop (n, "", x) <body = b (int64 i, bool ok, float[d] s) => (ok, t, size) {
        half = Mod (i, two) odd = Cast <to = 9> (half)
        t = If (odd) <then_branch = th () => (p) { p = Concat <axis = 0> (s, y) },
            else_branch = el () => (q) { q = Neg (s) }>
        size = Size (t) }>"""
    x, y = np.array([1, 2], F), np.array([7], F)
    final, kept = run(nodes, {"n": count(5), "x": x, "y": y}, engine, constants={"two": np.array(2)})
    sizes = []
    for i in range(5):
        x = np.concatenate([x, y]) if i % 2 else -x
        sizes.append(x.size)
    check(final, x)
    check(kept, np.array(sizes))


@each_engine
def test_loops_in_ifs(engine: str) -> None:
    nodes = """y = If (c) <
        then_branch = t () => (p) { p = Loop (n, "", x) <body = b (int64 i, bool ok, float[d] s) => (ok, r) {
            r = Concat <axis = 0> (s, x) }> },
        else_branch = e () => (q) { q = Neg (x) }>"""
    x = np.array([1, 2], F)
    model = prepare(make_model(nodes, {"c": flag(True), "n": count(2), "x": x}), engine)
    check(model([flag(True), count(2), x])[0], np.tile(x, 3))
    check(model([flag(False), count(2), x])[0], -x)


@each_engine
def test_a_fault_in_a_body_names_its_node(engine: str) -> None:
    nodes = """[repeat] final = Loop (n, "", x) <body = b (int64 i, bool ok, int64[2] s) => (ok, t) {
        left = Sub (three, i) [divide] t = Div (s, left) }>"""
    x = np.array([100, 200])
    model = prepare(make_model(nodes, {"n": count(3), "x": x}, constants={"three": np.array(3)}), engine)
    check(model([count(3), x])[0], x // 6)
    with pytest.raises(RuntimeFault, match=r"divide.*division by zero"):
        model([count(4), x])
    check(model([count(1), x])[0], x // 3)  # the fault leaves nothing behind


@each_engine
def test_a_fault_of_dims_in_a_body_names_its_node(engine: str) -> None:
    nodes = """[repeat] final = Loop (n, "", x) <body = b (int64 i, bool ok, float[d] s) => (ok, t) {
        u = Concat <axis = 0> (s, one) [join] v = Add (u, y) t = Identity (u) }>"""
    x, y = np.ones(2, F), np.ones(4, F)
    feeds, dims = {"n": count(2), "x": x, "y": y}, {"y": ["k"]}
    model = prepare(make_model(nodes, feeds, dims=dims, constants={"one": np.ones(1, F)}), engine)
    with pytest.raises(RuntimeFault, match="join"):
        model([count(2), x, y])


@each_engine
def test_constants_and_initializers_of_bodies(engine: str) -> None:
    nodes = """final = Loop (n, "", x) <body = b (int64 i, bool ok, float[2] s) => (ok, t)
        <float[2] w = {2, 3}> { k = Constant <value_float = 0.5> () u = Mul (s, w) v = Add (u, k) t = Mul (v, outer) }>"""
    x, outer = np.array([1, 1], F), np.array([1, -1], F)
    (final,) = run(nodes, {"n": count(3), "x": x}, engine, constants={"outer": outer})
    for _ in range(3):
        x = (x * np.array([2, 3], F) + F(0.5)) * outer
    check(final, x)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("t = Cast <to = 7> (s)", ("repeat", "float[2]", "int64[2]")),
        ("t = Unsqueeze (s, zero)", ("repeat", "float[2]", "float[1, 2]")),
        ("[inside] t = Add (s, four)", ("inside", "do not broadcast")),
    ],
)
def test_bodies_that_are_refused(body: str, words: tuple[str, ...]) -> None:
    nodes = (
        f"""[repeat] y = Loop (n, "", x) <body = b (int64 i, bool ok, float[2] s) => (ok, t) {{ {body} }}>"""
    )
    constants = {"zero": np.zeros(1, np.int64), "four": np.ones(4, F)}
    with pytest.raises(CompileError) as caught:
        run(nodes, {"n": count(1), "x": np.ones(2, F)}, constants=constants)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@each_engine
def test_a_newton_iteration(engine: str) -> None:
    """A while loop as exporters write it: a condition on what is carried, the result used behind it."""
    nodes = [
        """root, error = Loop ("", go, x, far) <body = b (int64 i, bool ok, float s, float was) => (more, t, miss) {
            q = Div (a, s) sum = Add (s, q) t = Mul (sum, half) sq = Mul (t, t) d = Sub (sq, a) miss = Abs (d)
            more = Greater (miss, least) }>""",
        "y = Sub (root, a)",
    ]
    constants = {
        "half": np.array(0.5, F),
        "least": np.array(1e-4, F),
        "go": flag(True),
        "far": np.array(9, F),
    }
    a = np.array(2, F)
    root, y = run(nodes, {"x": np.array(1, F), "a": a}, engine, constants=constants, outputs=["root", "y"])
    check(root, np.array(np.sqrt(2), F), rtol=1e-5)
    check(y, root - a)


@each_engine
def test_a_product_in_a_body_of_what_is_moved_outside(engine: str) -> None:
    nodes = [
        "turned = Transpose <perm = [1, 0, 2]> (x)",
        "shaped = Reshape (turned, to)",
        """y = Loop (n, "", start) <body = b (int64 i, bool ok, float[2, 2] s) => (ok, t) {
            row = Gather (shaped, i) p = MatMul (row, s) t = Reshape (p, square) }>""",
    ]
    x = np.arange(12, dtype=F).reshape(2, 3, 2)
    constants = {"to": np.array([3, 2, 2]), "square": np.array([2, 2]), "start": np.eye(2, dtype=F)}
    for dims in (None, {"x": ["a", "c", 2]}):
        (y,) = run(nodes, {"x": x, "n": count(3)}, engine, constants=constants, dims=dims, outputs=["y"])
        want = np.eye(2, dtype=F)
        for part in x.transpose(1, 0, 2):
            want = part @ want
        check(y, want)


@each_engine
def test_a_product_in_a_body_with_one_of_several_constants(engine: str) -> None:
    """Weights of layers, stacked and picked by the number of the pass."""
    nodes = """y = Scan <num_scan_inputs = 1, body = b (float[2, 4] s, float[4, 4] w) => (t) { t = MatMul (s, w) }> (x, layers)"""
    x, layers = np.arange(8, dtype=F).reshape(2, 4), (np.arange(48) % 5 - 2).astype(F).reshape(3, 4, 4)
    (y,) = run(nodes, {"x": x}, engine, constants={"layers": layers})
    check(y, x @ layers[0] @ layers[1] @ layers[2])
