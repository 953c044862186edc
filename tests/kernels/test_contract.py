"""Matrix products: the fast kernel, its plain twin and the NumPy meaning, at every boundary of the tile."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import Array, check, make_model, prepare
from .targets import TARGETS, compile_for

ROWS = range(1, 14)
COLUMNS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 70, 129)
DEPTHS = (0, 1, 2, 63, 64, 65)
# Relative to the sum of the products' sizes, per type.
TOLERANCE = {"float32": 1e-6, "float64": 2e-15, "float16": 1e-3, "bfloat16": 8e-3}

PATCH = pytest.MonkeyPatch()


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Array:
    rng = np.random.default_rng([seed, *shape])
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
    return rng.standard_normal(shape).astype(kind)


def product(x: Array, y: Array) -> tuple[Array, Array]:
    """The product in a wide type, and the bound its error is measured by."""
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    return wide_x @ wide_y, np.abs(wide_x) @ np.abs(wide_y) + 1e-30


def close(got: Array, x: Array, y: Array) -> None:
    want, bound = product(x, y)
    assert got.dtype == x.dtype and got.shape == want.shape
    error = np.abs(got.astype(np.float64) - want)
    assert (error <= TOLERANCE[x.dtype.name] * bound).all(), (error / bound).max()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weights", [(65, n) for n in COLUMNS[::2]] + [(k, 33) for k in DEPTHS])
def test_constant_matrix(weights: tuple[int, int], target: str) -> None:
    """One compilation serves every number of rows; fast and plain agree bit for bit where both fuse."""
    depth, columns = weights
    y = numbers((depth, columns))
    shown = numbers((1, depth))
    model = make_model("c = MatMul (a, b)", {"a": shown}, constants={"b": y}, dims={"a": ["rows", depth]})
    fast = compile_for(PATCH, model, target)
    plain = compile_for(PATCH, model, target, plain=True)
    for rows in ROWS:
        x = numbers((rows, depth), seed=rows)
        (got,), (want,) = fast.run([x]), plain.run([x])
        close(got, x, y)
        check(got, want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("transposed", [0, 1])
def test_matrix_of_the_run(target: str, transposed: int) -> None:
    """All three extents symbolic: rows of B in place, or packed where they are columns in memory."""
    shapes = {"a": ["m", "k"], "b": ["n", "k"] if transposed else ["k", "n"]}
    shown = {"a": numbers((2, 3)), "b": numbers((3, 3))}
    node = f"c = Gemm <transB = {transposed}> (a, b)"
    model = make_model(node, shown, dims=shapes)
    fast = compile_for(PATCH, model, target)
    plain = compile_for(PATCH, model, target, plain=True)
    cases = [(m, 33, k) for m in ROWS for k in (1, 65)] + [(7, n, 5) for n in range(1, 71)]
    cases += [(3, 17, k) for k in DEPTHS] + [(5, 20, k) for k in (255, 256, 257, 1025)]
    for m, n, k in cases:
        x, y = numbers((m, k)), numbers((k, n), seed=1)
        feeds = [x, np.ascontiguousarray(y.T) if transposed else y]
        (got,), (want,) = fast.run(feeds), plain.run(feeds)
        close(got, x, y)
        check(got, want)


@pytest.mark.parametrize("rows", [1, 5, 6, 7, 12, 13, 31, 50])
def test_known_rows(rows: int) -> None:
    x, y = numbers((rows, 19)), numbers((19, 21))
    model = make_model("c = MatMul (a, b)", {"a": x}, constants={"b": y})
    close(compile_for(PATCH, model).run([x])[0], x, y)


def test_deep_products_in_blocks() -> None:
    """A depth beyond one block: partial sums stand in the result until the last block's epilogue."""
    x, y = numbers((7, 5000)), numbers((5000, 70))
    model = make_model(["c = MatMul (a, b)", "d = Relu (c)"], {"a": x}, constants={"b": y})
    got = compile_for(PATCH, model).run([x])[0]
    want, bound = product(x, y)
    assert (np.abs(got - np.maximum(want, 0)) <= 1e-6 * bound).all()
    check(got, compile_for(PATCH, model, plain=True).run([x])[0])


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("constant", [True, False])
def test_other_floats(dtype: str, constant: bool) -> None:
    y = numbers((37, 50), dtype)
    shown = {"a": numbers((1, 37), dtype)} | ({} if constant else {"b": y})
    model = make_model(
        "c = MatMul (a, b)", shown, constants={"b": y} if constant else {}, dims={"a": ["rows", 37]}
    )
    fast, plain = compile_for(PATCH, model), compile_for(PATCH, model, plain=True)
    for rows in ROWS:
        x = numbers((rows, 37), dtype, seed=rows)
        feeds = [x] if constant else [x, y]
        (got,), (want,) = fast.run(feeds), plain.run(feeds)
        close(got, x, y)
        check(got, want)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_integers_wrap(dtype: str) -> None:
    x, y = numbers((5, 9), dtype), numbers((9, 19), dtype)
    model = make_model("c = MatMul (a, b)", {"a": x, "b": y})
    with np.errstate(all="ignore"):
        check(compile_for(PATCH, model).run([x, y])[0], x @ y)


BATCHES = [
    ((2, 3, 4, 5), (5, 6)),
    ((4, 5), (2, 3, 5, 6)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((2, 3, 4, 5), (2, 3, 5, 6)),
    ((5,), (5, 6)),
    ((4, 5), (5,)),
    ((5,), (5,)),
    ((3, 1, 5), (2, 1, 5, 6)),
    ((5,), (2, 5, 6)),
    ((0, 4, 5), (5, 6)),
    ((2, 0, 5), (2, 5, 6)),
    ((2, 3, 4, 0), (2, 3, 0, 6)),
]


@pytest.mark.parametrize("shapes", BATCHES, ids=str)
@pytest.mark.parametrize("symbolic", [False, True])
def test_batches_broadcast(shapes: tuple[Any, Any], symbolic: bool) -> None:
    x, y = numbers(shapes[0]), numbers(shapes[1], seed=1)
    dims = {
        name: [f"{name}{i}" for i in range(array.ndim)] for name, array in (("a", x), ("b", y)) if symbolic
    }
    model = make_model("c = MatMul (a, b)", {"a": x, "b": y}, dims=dims)
    (got,) = compile_for(PATCH, model).run([x, y])
    check(got, np.matmul(x.astype(np.float64), y).astype(np.float32), rtol=1e-5, atol=1e-5, zero_signs=False)


@pytest.mark.parametrize("perm", [(0, 2, 1, 3), (0, 2, 3, 1), (0, 1, 3, 2), (2, 0, 1, 3)])
def test_operands_behind_movement(perm: tuple[int, ...]) -> None:
    """Heads split off and moved: read as strides on either side, stored as strides behind."""
    x, y = numbers((2, 3, 4, 8)), numbers((2, 3, 4, 8), seed=1)
    nodes = [
        "ra = Reshape (a, shape)",
        "rb = Reshape (b, shape)",
        f"p = Transpose <perm = {list(perm)}> (ra)",
        f"q0 = Transpose <perm = {list(perm)}> (rb)",
        "q = Transpose <perm = [0, 1, 3, 2]> (q0)",
        "c = MatMul (p, q)",
        "d = Transpose <perm = [0, 2, 1, 3]> (c)",
        "e = Relu (d)",
    ]
    flat = {"a": x.reshape(6, 32), "b": y.reshape(6, 32)}
    model = make_model(nodes, flat, constants={"shape": np.array([2, 3, 4, 8])})
    (got,) = compile_for(PATCH, model).run(flat)
    p, q = x.transpose(perm).astype(np.float64), y.transpose(perm).astype(np.float64)
    want = np.maximum((p @ q.swapaxes(2, 3)).transpose(0, 2, 1, 3), 0).astype(np.float32)
    check(got, want, rtol=1e-5, atol=1e-5, zero_signs=False)


EPILOGUES = {
    "bias": "d = Add (c, v)",
    "residual": "d = Add (c, m)",
    "column": "d = Mul (c, w)",
    "gelu": "d = Gelu (c)",
    "swish": "s = Sigmoid (c)\nd = Mul (c, s)",
    "clip": "l = Add (c, v)\nh = HardSwish (l)\nd = Sub (h, m)",
    "compare": "d = Greater (c, m)",
    "transposed": "l = Add (c, v)\nd = Transpose <perm = [1, 0]> (l)",
    "two uses": "l = Add (c, v)\nk = Relu (l)\nn = MatMul (l, q)\nd = Sum (k, n)",
}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_epilogues(name: str, dtype: str) -> None:
    constants = {"b": numbers((9, 35), dtype), "v": numbers((35,), dtype), "q": numbers((35, 35), dtype)}
    feeds = {"a": numbers((8, 9), dtype), "m": numbers((8, 35), dtype, 2), "w": numbers((8, 1), dtype)}
    nodes = ["c = MatMul (a, b)", *EPILOGUES[name].split("\n")]
    used = {k: v for k, v in feeds.items() if k in " ".join(nodes)}
    dims = {k: ["rows", v.shape[1]] for k, v in used.items()}
    model = make_model(nodes, used, opset=20, constants=constants, dims=dims)
    (got,) = compile_for(PATCH, model).run(used)
    (want,) = prepare(model)(used)
    tolerance = {"float32": 2e-5, "float16": 2e-2}[dtype]
    if got.dtype == bool:
        assert (got != want).mean() < 0.01
    else:
        check(got, want, rtol=tolerance, atol=tolerance, zero_signs=False)
    check(got, compile_for(PATCH, model, plain=True).run(used)[0])


def test_threads_do_not_change_results() -> None:
    x, y = numbers((301, 130)), numbers((130, 200))
    model = make_model("c = MatMul (a, b)", {"a": x}, constants={"b": y})
    one = compile_for(PATCH, model, threads=1).run([x])[0]
    for threads in (2, 3, 5):
        check(compile_for(PATCH, model, threads=threads).run([x])[0], one)


@pytest.mark.parametrize(
    ("opset", "flips"), [(1, (0, 0)), (6, (1, 0)), (7, (0, 1)), (9, (1, 1)), (11, (0, 0)), (13, (1, 0))]
)
def test_gemm(opset: int, flips: tuple[int, int]) -> None:
    a, b, c = numbers((5, 7)), numbers((7, 20)), numbers((20,))
    feeds = {"a": a.T.copy() if flips[0] else a, "b": b.T.copy() if flips[1] else b, "c": c}
    old = ", broadcast = 1" if opset < 7 else ""
    node = f"d = Gemm <alpha = 0.5, beta = 2.0, transA = {flips[0]}, transB = {flips[1]}{old}> (a, b, c)"
    model = make_model(node, feeds, opset=opset)
    check(compile_for(PATCH, model).run(feeds)[0], 0.5 * (a @ b) + 2 * c, rtol=1e-5, atol=1e-5)


def test_refused() -> None:
    x = numbers((2, 3))
    with pytest.raises(CompileError, match=r"inner dims .* differ: 3 and 2"):
        compile_for(PATCH, make_model("c = MatMul (a, b)", {"a": x, "b": x}))
    with pytest.raises(CompileError, match="has to be a matrix"):
        compile_for(PATCH, make_model("c = Gemm (a, b)", {"a": x[None], "b": x}))
    with pytest.raises(CompileError, match="scalars"):
        compile_for(PATCH, make_model("c = MatMul (a, b)", {"a": np.float32(1), "b": x}))
    with pytest.raises(CompileError, match="broadcast"):
        compile_for(
            PATCH, make_model("c = MatMul (a, b)", {"a": numbers((2, 2, 3)), "b": numbers((3, 3, 4))})
        )
    compiled = compile_for(
        PATCH, make_model("c = MatMul (a, b)", {"a": x, "b": x}, dims={"a": [2, "k"], "b": ["l", 3]})
    )
    with pytest.raises(RuntimeFault, match="inner dims"):
        compiled.run([x, x])


@pytest.mark.parametrize("symbolic", [False, True])
def test_matrices_spread_from_a_number(symbolic: bool) -> None:
    """Operands that are one number everywhere are never written out."""
    x = numbers((5, 7))
    nodes = [
        "w = ConstantOfShape <value = float[1] {0.5}> (shape)",
        "c = MatMul (a, w)",
        "d = Gemm <transB = 1> (w, c)",
    ]
    model = make_model(
        nodes, {"a": x}, constants={"shape": np.array([7, 9])}, dims={"a": ["m", 7]} if symbolic else {}
    )
    (got,) = compile_for(PATCH, model).run([x])
    check(got, prepare(model)([x])[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
@pytest.mark.parametrize("constant", [True, False])
def test_nothing_to_multiply(sizes: tuple[int, int, int], constant: bool) -> None:
    """Extents of 0, known when compiling: an empty depth gives zeros."""
    rows, depth, columns = sizes
    x, y = numbers((rows, depth)), numbers((depth, columns))
    shown = {"a": x} if constant else {"a": x, "b": y}
    model = make_model(["c = MatMul (a, b)", "d = Relu (c)"], shown, constants={"b": y} if constant else {})
    check(compile_for(PATCH, model).run(list(shown.values()))[0], np.zeros((rows, columns), np.float32))
