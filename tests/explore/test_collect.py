"""What the page is told: nodes, types, lines, kernels, changes, memory."""

from __future__ import annotations

import json
from typing import Any

import onnx
import pytest

from sardonyx.explore import Exploration, explore
from sardonyx.pass_manager import PassFailure
from sardonyx.pipeline import pipeline
from sardonyx.targets.host import host_target

from .conftest import branches, floor_ge, layers, unequal, unheard


def nodes_of(found: Exploration, kind: str = "node") -> list[dict[str, Any]]:
    return [node for node in found.main["nodes"] if node["kind"] == kind]


def lines_of(found: Exploration, section: str, node: str) -> list[str]:
    """The lines of a section that stem from a node."""
    names = [n["name"] for n in found.main["nodes"]]
    data = found.sections[section]
    sets = found.main["sets"]
    return [
        line
        for line, number in zip(data["text"].split("\n"), data["sets"], strict=True)
        if names.index(node) in sets[number]
    ]


@pytest.fixture(scope="module")
def small() -> Exploration:
    return explore(floor_ge())


@pytest.fixture(scope="module")
def chain() -> Exploration:
    return explore(layers(3))


def test_nodes_and_types(small: Exploration) -> None:
    assert [(n["name"], n["op"]) for n in nodes_of(small)] == [
        ("Floor_0", "Floor"),
        ("GreaterOrEqual_1", "GreaterOrEqual"),
    ]
    assert dict(small.main["tensors"]) == {
        "x": "float[batch, 8]",
        "y": "float[8]",
        "f": "float[batch, 8]",
        "z": "bool[batch, 8]",
    }
    assert [n["name"] for n in nodes_of(small, "input")] == ["x", "y"]
    assert [n["name"] for n in nodes_of(small, "output")] == ["z"]


def test_types_of_what_leaves_no_operation_and_of_what_does_not_compile() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[N] x) => (float[N] y) { a = Identity(x)  s = Shape(a)  b = Reshape(a, s)  y = Add(b, w) }
    """)
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.INT64, [1]))
    found = explore(model)
    types = dict(found.main["tensors"])
    assert (types["a"], types["s"], types["b"], types["y"]) == ("float[N]", "int64[1]", "float[N]", "")
    assert "Add" in found.main["error"]["message"]


@pytest.mark.parametrize("model", [floor_ge(), layers(2), branches()], ids=["floor_ge", "layers", "branches"])
def test_everything_refers_to_something(model: onnx.ModelProto) -> None:
    found = explore(model)
    main = json.loads(json.dumps(found.main))
    count = len(main["nodes"])
    assert all(n < count for nodes in main["sets"] for n in nodes)
    for edge in main["edges"]:
        assert edge["from"] < count and edge["to"] < count and edge["tensor"] < len(main["tensors"])
        assert edge["way"][0] == main["nodes"][edge["from"]]["at"]
        assert edge["way"][-1] == main["nodes"][edge["to"]]["at"]
    for stage in main["stages"]:
        assert stage["kernel"] or stage["section"] in found.sections
    for kernel in main["kernels"]:
        section = json.loads(json.dumps(found.sections[kernel["section"]]))
        loop = section["loop"]["text"].split("\n")
        for stage in ("loop", "llvm", "llvm-opt", "asm"):
            lines = section[stage]["text"].split("\n")
            assert len(lines) == len(section[stage]["sets"])
            assert all(0 <= n < len(main["sets"]) for n in section[stage]["sets"])
            if stage in section["links"]:
                assert len(section["links"][stage]) == len(lines)
                assert all(-1 <= n < len(loop) for n in section["links"][stage])


def test_lines_know_their_nodes(small: Exploration) -> None:
    assert [line.split()[2] for line in lines_of(small, "core", "Floor_0")] == ["core.floor"]
    assert [line.split()[2] for line in lines_of(small, "resolved", "GreaterOrEqual_1")] == [
        "core.broadcast",
        "core.ge",
    ]


@pytest.mark.parametrize("stage", ["llvm", "llvm-opt", "asm"])
def test_code_leads_back_to_the_node(small: Exploration, stage: str) -> None:
    section = small.sections[small.main["kernels"][0]["section"]]
    loop = section["loop"]["text"].split("\n")
    floors = {n for n, line in enumerate(loop) if "loop.floor" in line}
    linked = [n for n, place in enumerate(section["links"][stage]) if place in floors]
    assert linked
    names = [n["name"] for n in small.main["nodes"]]
    for number in linked:
        assert names.index("Floor_0") in small.main["sets"][section[stage]["sets"][number]]


def test_passes_tell_what_they_changed(chain: Exploration) -> None:
    passes = {one["name"]: one for one in chain.main["passes"]}
    lower = chain.sections[passes["lower"]["section"]]["text"].split("\n")
    assert sum(line.startswith("-") for line in lower) == passes["lower"]["removed"]
    assert sum(line.startswith("+") for line in lower) == passes["lower"]["added"]
    first = next(n for n, line in enumerate(lower) if line.startswith("-") and "onnx.MatMul" in line)
    assert lower[first + 1].startswith("+"), "what a node became stands below the node"
    assert [one["name"].partition("#")[0] for one in chain.main["passes"]] == [
        step.run.name for step in pipeline(host_target())
    ]
    places = chain.sections[passes["plan-memory"]["section"]]["text"]
    assert "-  %" in places and "loop.allocate" in places and "loop.place" in places
    unchanged = [one for one in chain.main["passes"] if not one["removed"] + one["added"]]
    assert unchanged and all(one["section"] not in chain.sections for one in unchanged)


def test_kernels_are_shared_and_launched_often(chain: Exploration) -> None:
    *kernels, entry = chain.main["kernels"]
    assert sum(len(kernel["launches"]) for kernel in kernels) > len(kernels)
    assert not entry["launches"]
    launching = lines_of(chain, "planned", "block1/Tanh_d")
    assert any("loop.launch" in line for line in launching)
    assert "loop.launch" in chain.sections[entry["section"]]["loop"]["text"]


def test_fusion_tells_its_reasons(chain: Exploration) -> None:
    data = chain.sections["fusion"]
    names = [node["name"] for node in chain.main["nodes"]]
    sets = [{names[n] for n in nodes} for nodes in chain.main["sets"]]
    told = {
        (producer, consumer): (fused, data["reasons"][reason])
        for producer, before, consumer, after, fused, reason in data["pairs"]
        if "block1/MatMul_a" in sets[before] and "block1/Relu_b" in sets[after]
    }
    assert told and all(reason for _, reason in told.values())
    (kernel,) = [
        k for k in chain.main["kernels"] if names.index("block1/Relu_b") in chain.main["sets"][k["nodes"]]
    ]
    together = names.index("block1/MatMul_a") in chain.main["sets"][kernel["nodes"]]
    assert any(fused for fused, _ in told.values()) == together
    assert kernel["schedule"].startswith("contract; ")


def test_memory_does_not_overlap(chain: Exploration) -> None:
    memory = chain.main["memory"]
    assert memory["symbols"] == ["batch"]

    def value(formula: Any, batch: int) -> int:
        if isinstance(formula, int):
            return formula
        total = 0
        for coefficient, *atoms in formula:
            for atom in atoms:
                assert atom == "batch"
                coefficient *= batch
            total += coefficient
        return total

    boxes = [
        (a["chunk"], a["start"], a["end"], value(a["offset"], 5), value(a["size"], 5))
        for a in memory["allocations"]
    ]
    assert len(boxes) > 3
    for i, (chunk, start, end, low, size) in enumerate(boxes):
        for other, begin, last, offset, length in boxes[i + 1 :]:
            if chunk == other and start <= last and begin <= end:
                assert low + size <= offset or offset + length <= low


def test_subgraphs_have_frames() -> None:
    found = explore(branches())
    scopes = [scope["title"] for scope in found.main["scopes"]]
    assert len(scopes) == 3
    owner = found.main["scopes"][1]["owner"]
    assert found.main["nodes"][owner]["op"] == "If"
    for scope, x, y, width, height in found.main["frames"]:
        inside = [n["at"] for n in found.main["nodes"] if n["scope"] == scope and n["at"]]
        assert inside
        assert all(x < px < x + width and y < py < y + height for px, py in inside)
    (captured,) = {(e["from"], e["to"]) for e in found.main["edges"] if e["captured"]}
    assert found.main["nodes"][captured[0]]["op"] == "Abs"


def test_a_pattern_limits_the_kernels() -> None:
    found = explore(layers(2), node="*Softmax_f")
    listed = [k for k in found.main["kernels"] if k["section"]]
    assert 0 < len(listed) < len(found.main["kernels"])
    assert [found.main["nodes"][n]["op"] for n in found.main["chosen"]] == ["Softmax", "Softmax"]
    with pytest.raises(ValueError, match="no node matches 'Nothing'"):
        explore(layers(1), node="Nothing")


@pytest.mark.parametrize(
    ("model", "stages", "what"),
    [(unequal(), ["onnx"], "broadcast"), (unheard(), [], "Unheard")],
    ids=["lowering", "import"],
)
def test_a_model_that_does_not_compile_gives_what_was_reached(
    model: onnx.ModelProto, stages: list[str], what: str
) -> None:
    found = explore(model)
    assert found.error is not None
    assert what in found.main["error"]["message"]
    assert [stage["id"] for stage in found.main["stages"]] == stages
    (guilty,) = found.main["sets"][found.main["error"]["nodes"]]
    assert found.main["nodes"][guilty]["name"] == "GreaterOrEqual_1"
    assert len(found.main["edges"]) == 4


def test_a_mistake_of_the_compiler_gives_what_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a key")

    monkeypatch.setattr("sardonyx.explore.collect.plan_memory", broken)
    found = explore(floor_ge())
    assert isinstance(found.error, PassFailure)
    assert "KeyError" in found.main["error"]["message"]
    assert [stage["id"] for stage in found.main["stages"]] == ["onnx", "resolved", "core", "fused"]


def test_progress_goes_up() -> None:
    told: list[tuple[str, float]] = []
    explore(floor_ge(), report=lambda what, done: told.append((what, done)))
    parts = [done for _, done in told]
    assert parts == sorted(parts) and parts[0] >= 0 and parts[-1] <= 1
    assert any("kernel" in what for what, _ in told)
