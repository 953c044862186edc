"""`sardonyx.explain`: what it says of a node is what the compiler did."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import sardonyx
from sardonyx.dumps.stages import stage_text
from sardonyx.explanations.explainer import explain_nodes
from sardonyx.explanations.explanation import Explanation
from sardonyx.ir.parser import parse_module

from .helpers import make_model
from .tools import load_tool

F = np.float32
X = np.ones((4, 8), F)


def floor_ge() -> onnx.ModelProto:
    nodes = [
        onnx.helper.make_node("Floor", ["x"], ["f"], name="Floor_0"),
        onnx.helper.make_node("GreaterOrEqual", ["f", "y"], ["z"], name="GreaterOrEqual_1"),
    ]
    return make_model(nodes, {"x": X, "y": X[0]}, opset=17, dims={"x": ["batch", 8]}, outputs=["z"])


def explained(nodes: Sequence[str], node: str, **options: object) -> Explanation:
    inputs = options.pop("inputs", {"x": X})
    return sardonyx.explain(make_model(nodes, inputs, **options), node)  # type: ignore[arg-type]


def test_floor_and_greater_or_equal() -> None:
    floor, ge = explain_nodes(floor_ge(), "*")
    assert (floor.operator, floor.domain, floor.version, floor.opset) == ("Floor", "ai.onnx", 13, 17)
    assert (ge.operator, ge.version) == ("GreaterOrEqual", 16)
    assert [(v.use, v.name, v.type) for v in ge.values] == [
        ("input", "f", "float[batch, 8]"),
        ("input", "y", "float[8]"),
        ("output", "z", "bool[batch, 8]"),
    ]
    assert [o.operation.partition(" = ")[2].split()[0] for o in ge.operations] == [
        "core.broadcast",
        "core.ge",
    ]
    assert ge.operations[1].rule == "i1, the shape of x; all operands are of one dtype and shape."
    assert ge.operations[1].meaning == "x >= y; false for NaN"
    assert floor.outcome == "computed by one kernel, together with GreaterOrEqual_1"
    assert [k.symbol for k in floor.kernels] == [k.symbol for k in ge.kernels]
    (joined,) = [f for f in floor.fusion if f.nodes == ("GreaterOrEqual_1",)]
    assert (joined.side, joined.producer, joined.consumer, joined.fused) == (
        "consumer",
        "core.floor",
        "core.ge",
        True,
    )
    assert "nothing outside of the kernel reads" in joined.reason


def test_a_kernel_is_the_one_of_the_program() -> None:
    (kernel,) = sardonyx.explain(floor_ge(), "Floor_0").kernels
    module = parse_module(stage_text(floor_ge(), "planned"))
    (launch,) = [op for op in module.main.body.ops if op.name == "loop.launch"]
    assert launch.attributes["kernel"] == kernel.symbol
    assert (str(launch.attributes["range"]), str(launch.attributes["cost"])) == (kernel.units, kernel.cost)
    assert kernel.schedule[0] == "map" and kernel.kind == "map" and kernel.operations == 3
    assert [(b.name, b.use, b.place, b.bytes) for b in kernel.buffers] == [
        ("x", "read", "input x", "32*batch"),
        ("y", "read", "input y", "32"),
        ("z", "written", "output z", "8*batch"),
    ]
    assert (kernel.read, kernel.written) == ("32*batch+32", "8*batch")


def test_places_are_those_of_the_memory_plan() -> None:
    nodes = [
        "a = MatMul (x, w)",
        "b = Softmax (a)",
        "c = MatMul (b, w)",
        "d = Softmax (c)",
        "y = MatMul (d, w)",
    ]
    model = make_model(nodes, {"x": X}, constants={"w": np.eye(8, dtype=F)})
    module = parse_module(stage_text(model, "planned"))
    placed = {
        f"arena {op.attributes['chunk']} at {op.attributes['offset']}"
        for op in module.main.body.ops
        if op.name == "loop.place"
    }
    buffers = [b for e in explain_nodes(model, "*") for k in e.kernels for b in k.buffers]
    assert {b.place for b in buffers if b.place.startswith("arena")} == placed
    assert all(len(b.life) == 2 and b.life[0] < b.life[1] for b in buffers if b.place.startswith("arena"))
    assert {b.name for b in buffers if b.place.startswith("weights")} == {"panels"}


IMAGE = np.ones((1, 3, 9, 9), F)
SCHEDULES = [
    ("y = Neg (x)", {}, {"x": X}, "map", "lanes"),
    ("y = Softmax (x)", {}, {"x": X}, "rows", "along each row"),
    ("y = ReduceSum (x, a)", {"a": np.array([0])}, {"x": X}, "rows", "each lane a row of its own"),
    ("y = MatMul (x, w)", {"w": np.eye(8, dtype=F)}, {"x": X}, "contract", "packed when compiled"),
    ("y = MatMul (x, w)", {}, {"x": X, "w": np.eye(8, dtype=F)}, "contract", "the right operand is in place"),
    ("t = Transpose (w) y = MatMul (x, t)", {}, {"x": X, "w": X}, "contract", "packed by a kernel of its own"),
    ("y = MatMul (x, w)", {}, {"x": np.eye(8, dtype=int), "w": np.eye(8, dtype=int)}, "plain_contract", ""),
    ("y = Conv (x, w)", {"w": np.ones((8, 3, 3, 3), F)}, {"x": IMAGE}, "convolve", "rows being pixels"),
    ("y = Conv <group = 3> (x, w)", {"w": np.ones((3, 1, 3, 3), F)}, {"x": IMAGE}, "depthwise", "lanes of channels"),
    ("y = MaxPool <kernel_shape = [2, 2]> (x)", {}, {"x": IMAGE}, "window", "lanes of channels"),
    ("y = Transpose <perm = [1, 0]> (x)", {}, {"x": np.ones((40, 50), F)}, "transpose", "turned in registers"),
    ("y = CumSum (x, a)", {"a": np.array(0)}, {"x": X}, "scan", "each a line of its own"),
    ("y, i = TopK (x, k)", {"k": np.array([2])}, {"x": X}, "top_k", ""),
]  # fmt: skip


@pytest.mark.parametrize(("node", "constants", "inputs", "schedule", "choice"), SCHEDULES)
def test_the_schedule_is_named(
    node: str, constants: dict[str, np.ndarray], inputs: dict[str, np.ndarray], schedule: str, choice: str
) -> None:
    nodes = re.sub(r"\) (?=\w+ =)", ")\n", node).splitlines()
    kernels = explain_nodes(make_model(nodes, inputs, constants=constants), "*")[-1].kernels
    assert schedule in [k.schedule[0] for k in kernels]
    assert any(choice in " ".join(k.schedule) for k in kernels), kernels


OUTCOMES = [
    (["c = Add (k, k)", "y = Mul (x, c)"], "Add_0", "its result is a constant, computed when compiling"),
    (
        ["f = Floor (x)", "y = Identity (f)"],
        "Identity_1",
        "it adds no operation: its result is the value 'f' itself",
    ),
    (
        ["s = Shape (x)", "z = ConstantOfShape (s)"],
        "Shape_0",
        "nothing is left of it: simplify removed its last",
    ),
    (
        ["f = Floor (x)", "y = Reshape (x, r)"],
        "Reshape_1",
        "it only names the memory of its input anew: no code",
    ),
    (["s = Size (x)"], "Size_0", "its result follows from the sizes of the inputs"),
    (["f = Floor (x)", "y = Neg (x)", "g = Exp (f)"], "Exp_2", "computed by one kernel"),
    (["y = Floor (x)"], "Floor_0", "computed by one kernel of its own"),
]


@pytest.mark.parametrize(("nodes", "node", "outcome"), OUTCOMES)
def test_the_outcome(nodes: Sequence[str], node: str, outcome: str) -> None:
    constants = {"k": np.ones(40, F), "r": np.array([8, 4])}
    used = {k: v for k, v in constants.items() if any(f"{k})" in n for n in nodes)}
    inputs = {"x": np.ones((4, 40), F) if "k" in used else X}
    dims = {"x": ["n", "m"]} if "Size" in nodes[0] or "Shape" in nodes[0] else None
    assert outcome in explained(nodes, node, inputs=inputs, constants=used, dims=dims).outcome


def test_control_flow_and_what_stands_in_it() -> None:
    branches = "then_branch = t () => (p) { p = Exp (x) }, else_branch = e () => (q) { q = Neg (x) }"
    model = make_model([f"y = If (c) <{branches}>"], {"x": X, "c": np.array(True)})
    choice = sardonyx.explain(model, "If_0")
    assert "control flow" in choice.outcome and "in its bodies: 2" in choice.outcome
    assert (choice.operator, choice.version) == ("If", 21)
    (exp,) = [e for e in explain_nodes(model, "*") if e.operator == "Exp"]
    assert exp.path.startswith("main/If_0") and len(exp.kernels) == 1


def test_passes_that_change_a_node() -> None:
    image, w = np.ones((1, 4, 5, 5), F), np.ones((6, 4, 1, 1), F)
    one = explained(["y = Conv (x, w)"], "Conv_0", inputs={"x": image}, constants={"w": w})
    labels = [change.label for change in one.changes]
    assert labels[0] == "lower" and "fuse" in labels
    (fuse,) = [change for change in one.changes if change.label == "fuse"]
    assert "core.convolve" in fuse.removed and "core.contract" in fuse.added


def test_it_is_data_and_text() -> None:
    one = sardonyx.explain(floor_ge(), "Greater*")
    again = json.loads(json.dumps(one.to_json()))
    assert again["kernels"][0]["buffers"][2]["place"] == "output z"
    text = str(one)
    for part in ("GreaterOrEqual of ai.onnx, version 16", "core operations", "fusion", "memory of k_"):
        assert part in text


def test_names_that_are_none() -> None:
    with pytest.raises(ValueError, match=r"has no node 'Flor_0'; did you mean Floor_0\?"):
        sardonyx.explain(floor_ge(), "Flor_0")
    with pytest.raises(ValueError, match="the node that gives the value 'f' is Floor_0"):
        sardonyx.explain(floor_ge(), "f")
    with pytest.raises(ValueError, match="its nodes are Floor_0, GreaterOrEqual_1"):
        sardonyx.explain(floor_ge(), "Conv_*")
    with pytest.raises(ValueError, match="'\\*' means 2 nodes: Floor_0, GreaterOrEqual_1"):
        sardonyx.explain(floor_ge(), "*")


def test_text_of_a_stage_has_no_nodes(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(stage_text(floor_ge(), "core"))
    with pytest.raises(ValueError, match="not text of a later stage"):
        sardonyx.explain(str(path), "Floor_0")


def test_what_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(sardonyx.CompileError, match="Floor"):
        explained(["y = Floor (x)"], "Floor_0", inputs={"x": np.ones(3, np.int32)})


@pytest.mark.models
@pytest.mark.parametrize("name", ["minilm", "ocr-cls"])
def test_every_node_of_a_real_model(name: str) -> None:
    path: Path = load_tool("fetch_models").path_of(name)
    if not path.exists():
        pytest.skip(f"{name} not fetched; `python tools/fetch_models.py {name}` does it")
    found = explain_nodes(path, "*")
    assert len(found) > 300
    assert all(
        e.outcome and bool(e.kernels) == e.outcome.startswith(("computed", "takes part", "it is control"))
        for e in found
    )
    assert all(f.reason for e in found for f in e.fusion)
    values = [v for e in found if e.kernels for v in e.values if v.use == "output"]
    assert all(v.type for v in values)
