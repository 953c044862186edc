"""Einsum against NumPy's, every form of equation and type; refusals."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import CompileError, RuntimeFault

from ..helpers import check, each_engine, make_model, prepare, run_model
from ..node_tests import node_tests, run_node_test

NODE_TESTS = node_tests(["Einsum"])

Shape = tuple[int, ...]

EQUATIONS: list[tuple[str, tuple[Shape, ...]]] = [
    ("ij,jk->ik", ((3, 4), (4, 5))),
    ("ij,kj", ((3, 4), (5, 4))),
    ("i,i", ((4,), (4,))),
    ("i,j->ij", ((3,), (4,))),
    ("ij->", ((3, 4),)),
    ("ij->j", ((3, 4),)),
    ("ba", ((2, 3),)),
    ("ii", ((4, 4),)),
    ("ii->i", ((4, 4),)),
    ("iji->ij", ((3, 4, 3),)),
    ("ijij->ij", ((2, 3, 2, 3),)),
    ("iii->i", ((3, 3, 3),)),
    ("...ij,...jk->...ik", ((2, 1, 3, 4), (5, 4, 2))),
    ("i...->...", ((2, 3, 4),)),
    ("...->...", ((2, 3),)),
    ("...i,i...", ((2, 3), (3, 2))),
    ("a,b,c->abc", ((2,), (3,), (4,))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
    ("ij,jk,kl,lm->im", ((2, 3), (3, 4), (4, 5), (5, 2))),
    ("iij,j->i", ((3, 3, 4), (4,))),
    ("abc,cd,abd->ab", ((2, 3, 4), (4, 5), (2, 3, 5))),
    ("bqhd,bkhd->bhqk", ((2, 4, 3, 5), (2, 6, 3, 5))),
    (",ij->ij", ((), (3, 4))),
    ("ij,ij->", ((3, 4), (3, 4))),
    ("ab,cd->", ((2, 3), (4, 5))),
    ("ab,cd->d", ((2, 3), (4, 5))),
    ("xbc,xb->xc", ((2, 3, 4), (2, 3))),
    ("ij,jk->ik", ((3, 1), (4, 5))),
    ("ij,ij->ij", ((1, 4), (3, 1))),
    ("ij,jk->ik", ((0, 4), (4, 5))),
    ("ij,jk->ik", ((3, 0), (0, 5))),
    (" i j , j k -> i k ", ((3, 4), (4, 5))),
    ("aB,Bc->ac", ((3, 4), (4, 5))),
]


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
@each_engine
def test_node(name: str, engine: str) -> None:
    run_node_test(NODE_TESTS[name], engine)


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=str)
@each_engine
def test_equation(equation: str, shapes: tuple[Shape, ...], symbolic: bool, engine: str) -> None:
    rng = np.random.default_rng(0)
    feeds = {n: rng.integers(-3, 4, s).astype(np.float32) for n, s in zip("pqrs", shapes, strict=False)}
    dims = {n: [f"{n}{i}" if d != 1 else 1 for i, d in enumerate(x.shape)] for n, x in feeds.items()}
    text = f'y = Einsum <equation = "{equation}"> ({", ".join(feeds)})'
    got = run_model(make_model(text, feeds, dims=dims if symbolic else None), feeds, engine)[0]
    check(got, np.asarray(np.einsum(equation.replace(" ", ""), *feeds.values())), zero_signs=False)


@pytest.mark.parametrize(
    "dtype", ["float16", "float64", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
)
@pytest.mark.parametrize(("equation", "shapes"), [EQUATIONS[i] for i in (0, 4, 8, 12, 19, 23)], ids=str)
@each_engine
def test_types(equation: str, shapes: tuple[Shape, ...], dtype: str, engine: str) -> None:
    rng = np.random.default_rng(1)
    feeds = {n: rng.integers(0, 9, s).astype(dtype) for n, s in zip("pqrs", shapes, strict=False)}
    text = f'y = Einsum <equation = "{equation}"> ({", ".join(feeds)})'
    want = np.einsum(
        equation, *(x.astype(np.float64 if dtype[0] == "f" else np.int64) for x in feeds.values())
    )
    check(
        run_model(make_model(text, feeds), feeds, engine)[0], np.asarray(want).astype(dtype), zero_signs=False
    )


@each_engine
def test_half_precision_rounds_once(engine: str) -> None:
    x = np.full(3000, 1.001, np.float16)
    one = np.ones(1, np.float16)
    feeds = {"p": x, "q": one, "r": one}
    text = 'y = Einsum <equation = "i,j,k->jk"> (p, q, r)'
    want = np.array([[x.astype(np.float64).sum()]]).astype(np.float16)
    check(run_model(make_model(text, feeds), feeds, engine)[0], want)


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("ij,jk", "terms"),
        ("ijk->i", "does not fit"),
        ("i->i", "does not fit"),
        ("ij->ii", "repeated"),
        ("ij->k", "no operand"),
        ("i.j->i", "no term"),
        ("ii->i", "extents"),
    ],
)
@each_engine
def test_refused(equation: str, words: str, engine: str) -> None:
    with pytest.raises(CompileError, match=words):
        prepare(
            make_model(f'y = Einsum <equation = "{equation}"> (x)', {"x": np.zeros((2, 3), np.float32)}),
            engine,
        )


@each_engine
def test_extents_that_differ_at_run_time(engine: str) -> None:
    x, y = np.zeros((2, 3), np.float32), np.zeros((4, 2), np.float32)
    text = 'y = Einsum <equation = "ij,jk->ik"> (x, z)'
    run = prepare(make_model(text, {"x": x, "z": y}, dims={"x": ["a", "b"], "z": ["c", "d"]}), engine)
    with pytest.raises(RuntimeFault, match="'j'"):
        run({"x": x, "z": y})
