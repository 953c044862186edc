"""Fusion tells why it put ops into one kernel or left them apart, and what it tells is what it did."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from sardonyx.frontend import import_model
from sardonyx.ir.graph import Module, Op, walk
from sardonyx.passes.decisions import Decision, Decisions
from sardonyx.passes.fuse import Fuse
from sardonyx.passes.lower import LowerToCore
from sardonyx.passes.simplify import Simplify

from ..helpers import make_model
from .random_graphs import CONSTANTS, FEEDS, Graphs

F = np.float32
X = np.ones((4, 8), F)
W = np.ones((8, 8), F)


def fused(model: onnx.ModelProto, max: int = 64) -> tuple[Module, list[Decision]]:
    module, decisions = import_model(model), Decisions()
    for one in (LowerToCore(), Simplify(), Fuse(max, decisions)):
        one.run(module)
    return module, decisions.made


CASES: list[tuple[Sequence[str], str, str, bool, str]] = [
    (
        ["f = Floor (x)", "y = Neg (f)"],
        "floor",
        "neg",
        True,
        "nothing outside of the kernel reads the producer's",
    ),
    (
        ["f = Floor (x)", "y = Neg (f)", "z, i = TopK (f, k)"],
        "floor",
        "neg",
        False,
        "something outside of the kernel",
    ),
    (
        ["m = MatMul (x, w)", "y = Relu (m)"],
        "contract",
        "max",
        True,
        "on the product's sums before they are stored",
    ),
    (
        ["m = MatMul (x, w)", "y = ReduceMax (m)"],
        "contract",
        "reduce",
        False,
        "core.reduce is not elementwise",
    ),
    (
        ["f = Floor (x)", "y = MatMul (f, w)"],
        "floor",
        "contract",
        False,
        "a product reads its operands from memory",
    ),
    (["t = Transpose (x)", "y = MatMul (w, t)"], "transpose", "contract", True, "by other strides"),
    (
        ["e = Exp (v)", "y = Add (x, e)"],
        "exp",
        "broadcast",
        False,
        "compute the producer again for every repetition",
    ),
    (["e = Exp (x)", "y = Gather (e, k)"], "exp", "gather", False, "an element that is gathered often"),
    (["y = Softmax (x)"], "exp", "div", True, "one pass over the rows of a reduction"),
    (
        ["f = Exp (x)", "y = ReduceMax (f, one)"],
        "exp",
        "reduce",
        True,
        "nothing outside of the reduction's kernel",
    ),
    (["e = Gather (x, k)", "y = Neg (e)"], "constant", "gather", True, "an immediate of the code"),
    (
        ["f = Floor (x)", "y = Identity (f)"],
        "floor",
        "return",
        False,
        "core.return needs its operands in memory",
    ),
    (["y = Add (x, r)"], "constant", "add", False, "the constant lies among the weights"),
    (["f = Floor (x)", "y = Transpose (f)"], "floor", "transpose", False, "another axis becomes innermost"),
]
MADE = {
    "w": W,
    "k": np.array([2]),
    "one": np.array([1]),
    "half": np.array(0.5, F),
    "r": np.arange(32, dtype=F).reshape(4, 8),
}


@pytest.mark.parametrize(("nodes", "producer", "consumer", "together", "reason"), CASES)
def test_reasons(nodes: Sequence[str], producer: str, consumer: str, together: bool, reason: str) -> None:
    used = {name: array for name, array in MADE.items() if any(re.search(rf"\b{name}\b", n) for n in nodes)}
    inputs = {"x": X, "v": X[0]} if any("(v)" in n for n in nodes) else {"x": X}
    _, made = fused(make_model(nodes, inputs, constants=used))
    found = [d for d in made if (d.producer, d.consumer) == (f"core.{producer}", f"core.{consumer}")]
    assert any(d.fused is together and reason in d.reason for d in found), made


def test_the_bound_of_a_group_is_a_reason() -> None:
    nodes = ["a = Floor (x)", "b = Neg (a)", "y = Exp (b)"]
    assert all(d.fused for d in fused(make_model(nodes, {"x": X}))[1] if d.consumer != "core.return")
    apart = [d for d in fused(make_model(nodes, {"x": X}), max=2)[1] if "2 operations already" in d.reason]
    assert [(d.producer, d.consumer, d.fused) for d in apart] == [("core.floor", "core.neg", False)]


Key = tuple[str, object]


def key(op: Op) -> Key:
    return op.name, op.location


@pytest.mark.parametrize("seed", range(12))
def test_the_decisions_are_what_was_done(seed: int) -> None:
    values = ["x", "z"]
    nodes = Graphs(seed).nodes(values, 10, 1)
    module, made = fused(make_model(nodes, FEEDS, constants=CONSTANTS, outputs=values[-2:]))
    assert all(d.reason for d in made)
    groups = [op.regions[0] for op in walk(module) if op.name == "core.fused"]
    held = [{key(op) for op in group.ops} for group in groups]
    onward: dict[Key, set[Key]] = defaultdict(set)
    for d in made:
        pair = (d.producer, d.producer_nodes), (d.consumer, d.consumer_nodes)
        if d.fused:
            onward[pair[0]].add(pair[1])
            assert any(pair[1] in group for group in held), d
    for group in groups:  # what stands together was decided to (a repetition that is none may be gone)
        for op in group.ops:
            for user in (u for r in op.results for u in r.uses if u.name != "core.yield"):
                reached, ahead = set[Key](), [key(op)]
                while ahead:
                    for following in onward[ahead.pop()] - reached:
                        reached.add(following)
                        ahead += [following] if following[0] in ("core.broadcast", "core.assume") else []
                assert key(user) in reached, (op, user)


def test_fusing_is_the_same_when_it_is_recorded() -> None:
    model = make_model(Graphs(5).nodes(["x", "z"], 12, 1), FEEDS, constants=CONSTANTS)
    recorded, _ = fused(model)
    plain = import_model(model)
    for one in (LowerToCore(), Simplify(), Fuse()):
        one.run(plain)
    assert [op.name for op in walk(recorded)] == [op.name for op in walk(plain)]
