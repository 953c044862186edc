"""layout: transposes move down and meet their inverse; every rewrite keeps every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx.core.interpret import interpret
from sardonyx.frontend import import_model
from sardonyx.ir.graph import Module
from sardonyx.passes.fuse_contraction import contraction_groups
from sardonyx.passes.layout import Layout
from sardonyx.passes.lower import LowerToCore
from sardonyx.passes.simplify import Simplify

from ..helpers import Array, check, make_model


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def lowered(model: onnx.ModelProto) -> Module:
    module = import_model(model)
    LowerToCore().run(module)
    Simplify().run(module)
    return module


def transposes(module: Module) -> list[tuple[int, ...]]:
    return [tuple(op.attributes["permutation"]) for op in module.main.body.ops if op.name == "core.transpose"]


def described(module: Module) -> list[tuple[Any, ...]]:
    return [(op.name, [str(r.type) for r in op.results], dict(op.attributes)) for op in module.main.body.ops]


X = numbers(2, 3, 5, 6)
W = {"w": numbers(4, 3, 3, 3), "v": numbers(4, 4, 1, 1), "k": numbers(4), "d": numbers(4, 1, 3, 3)}
NORM = {
    "s": numbers(4, seed=1),
    "t": numbers(4, seed=2),
    "m": numbers(4, seed=3),
    "q": np.abs(numbers(4, seed=4)) + 1,
}
CONV = "c = Conv <pads = [1, 1, 1, 1]> (x, w, k)"

# Nodes between a convolution's result c and the model's result y, and the transposes that may stay.
CHAINS: dict[str, tuple[list[str], int]] = {
    "activation": (["r = Relu (c)", "y = Conv (r, v)"], 2),
    "norm": (["n = BatchNormalization (c, s, t, m, q)", "r = HardSwish (n)", "y = Conv (r, v)"], 2),
    "residual": (["r = Relu (c)", "e = Conv (r, v)", "a = Add (e, r)", "y = Conv (a, v)"], 2),
    "pool": (["p = MaxPool <kernel_shape = [2, 2]> (c)", "y = Conv (p, v)"], 2),
    "average": (["p = AveragePool <kernel_shape = [2, 2], pads = [1, 0, 0, 1]> (c)", "y = Conv (p, v)"], 2),
    "concat": (["e = Conv (c, v)", "a = Concat <axis = 1> (c, e)", "y = Relu (a)"], 2),
    "slice": (["a = Slice (c, one, three, one)", "y = MaxPool <kernel_shape = [2, 2]> (a)"], 2),
    "squeeze": (
        [
            "g = GlobalAveragePool (c)",
            "h = Conv (g, v)",
            "i = HardSigmoid (h)",
            "a = Mul (c, i)",
            "y = Conv (a, v)",
        ],
        2,
    ),
    "classifier": (["g = GlobalAveragePool (c)", "f = Flatten (g)", "y = MatMul (f, square)"], 1),
    "depthwise": (["e = Conv <group = 4> (c, d)", "y = Conv (e, v)"], 2),
    "select": (["g = Greater (c, zero)", "a = Where (g, c, zero)", "y = Conv (a, v)"], 2),
    "scale": (["a = Mul (c, channel)", "e = Add (a, number)", "y = Conv (e, v)"], 2),
    "mean": (["a = ReduceMean <keepdims = 1> (c, axes)", "y = Conv (a, v)"], 2),
}
CONSTANTS = {
    **W,
    **NORM,
    "one": np.array([1]),
    "three": np.array([3]),
    "axes": np.array([2, 3]),
    "zero": np.float32(0),
    "square": numbers(4, 4),
    "channel": numbers(4, 1, 1),
    "number": np.array([[[[2.5]]]], np.float32),
}


def chain(name: str, symbolic: bool) -> onnx.ModelProto:
    nodes, _ = CHAINS[name]
    used = {k: v for k, v in CONSTANTS.items() if any(k in n.split("(")[1] for n in [CONV, *nodes])}
    dims = {"x": ["n", 3, "h", "w"]} if symbolic else {}
    return make_model([CONV, *nodes], {"x": X}, constants=used, dims=dims, opset=18, outputs=["y"])


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", CHAINS)
def test_chain_stays_channels_last(name: str, symbolic: bool) -> None:
    """Only the model's own input and output are transposed; the values are the same, bit for bit."""
    module = lowered(chain(name, symbolic))
    (want,) = interpret(module.main, [X])
    before = described(module)
    assert Layout().run(module) == (before != described(module))
    Simplify().run(module)
    assert len(transposes(module)) <= CHAINS[name][1], transposes(module)
    check(interpret(module.main, [X])[0], want)


@pytest.mark.parametrize("name", CHAINS)
def test_second_run_changes_nothing(name: str) -> None:
    module = lowered(chain(name, False))
    while Layout().run(module):
        Simplify().run(module)
    before = described(module)
    assert not Layout().run(module)
    assert described(module) == before


@pytest.mark.parametrize("name", CHAINS)
def test_groups_keep_the_meaning(name: str) -> None:
    """What the contraction groups rewrite on the way keeps every bit too."""
    module = lowered(chain(name, True))
    (want,) = interpret(module.main, [X])
    Layout().run(module)
    Simplify().run(module)
    groups = contraction_groups(module.main)
    members = [op for group in groups for op in group]
    assert len(members) == len(set(members))
    check(interpret(module.main, [X])[0], want, rtol=1e-6, atol=1e-6)


RULES: dict[str, list[str]] = {
    "elementwise": ["t = Transpose <perm = [0, 2, 3, 1]> (x)", "y = Exp (t)"],
    "unlike permutations": [
        "t = Transpose <perm = [0, 1, 3, 2]> (x)",
        "u = Transpose <perm = [0, 1, 3, 2]> (x)",
        "v = Reshape (u, same)",
        "y = Add (t, v)",
    ],
    "pair": ["t = Transpose <perm = [0, 2, 3, 1]> (x)", "y = Transpose <perm = [0, 3, 1, 2]> (t)"],
    "unit axes": ["r = ReduceMax <keepdims = 1> (x, axes)", "y = Transpose <perm = [0, 2, 3, 1]> (r)"],
    "reduce": ["t = Transpose <perm = [3, 1, 0, 2]> (x)", "y = ReduceSum <keepdims = 0> (t, one)"],
    "unsqueeze": ["t = Transpose <perm = [0, 2, 3, 1]> (x)", "y = Unsqueeze (t, one)"],
    "concat": ["t = Transpose <perm = [1, 0, 3, 2]> (x)", "y = Concat <axis = 2> (t, t)"],
    "pad": ["t = Transpose <perm = [0, 2, 3, 1]> (x)", "y = Slice (t, one, three, three)"],
    "expand": ["t = Transpose <perm = [0, 2, 3, 1]> (x)", "y = Expand (t, target)"],
    "two users": ["t = Transpose <perm = [0, 2, 3, 1]> (x)", "a = Exp (t)", "b = Neg (t)", "y = Mul (a, b)"],
}


@pytest.mark.parametrize("name", RULES)
def test_rules_are_exact(name: str) -> None:
    nodes = RULES[name]
    constants: dict[str, Any] = {
        "axes": np.array([2, 3]),
        "one": np.array([1]),
        "three": np.array([3]),
        "same": np.array([2, 3, 6, 5]),
        "target": np.array([2, 5, 6, 3]),
    }
    used = {k: v for k, v in constants.items() if any(k in n for n in nodes)}
    module = lowered(make_model(nodes, {"x": X}, constants=used, opset=18, outputs=["y"]))
    (want,) = interpret(module.main, [X])
    Layout().run(module)
    check(interpret(module.main, [X])[0], want)
    Simplify().run(module)
    check(interpret(module.main, [X])[0], want)


def test_nothing_to_do() -> None:
    module = lowered(make_model(["a = Exp (x)", "y = Neg (a)"], {"x": X}))
    assert not Layout().run(module)
