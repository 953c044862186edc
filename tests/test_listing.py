"""Listings: every line of a kernel's code names the loop line and the nodes it stems from."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import pytest

from sardonyx.codegen.compile import kernel_text
from sardonyx.codegen.debug_info import DebugSource
from sardonyx.codegen.objects import assembly
from sardonyx.frontend.importer import import_model
from sardonyx.ir.printer import function_lines
from sardonyx.listings.listing import KernelListing, kernel_listing, model_listings
from sardonyx.listings.listing_text import downward, upward
from sardonyx.pipeline import to_program
from sardonyx.targets.host import host_target

from .helpers import make_model

NODES = [
    onnx.helper.make_node("MatMul", ["x", "w"], ["m"], name="MatMul_0"),
    onnx.helper.make_node("Add", ["m", "b"], ["a"], name="Add_1"),
    onnx.helper.make_node("Floor", ["a"], ["f"], name="Floor_2"),
    onnx.helper.make_node("Softmax", ["f"], ["s"], name="Softmax_3"),
    onnx.helper.make_node("Erf", ["s"], ["e"], name="Erf_4"),
]
INPUTS = {
    "x": np.zeros((4, 24), np.float32),
    "w": np.zeros((24, 40), np.float32),
    "b": np.zeros(40, np.float32),
}


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return make_model(NODES, INPUTS, dims={"x": ["batch", 24]}, outputs=["e"])


@pytest.fixture(scope="module")
def listings(model: onnx.ModelProto) -> list[KernelListing]:
    return model_listings(model)


def is_llvm_instruction(line: str) -> bool:
    return line.startswith("  ") and not line.lstrip().startswith(";")


def is_machine_instruction(line: str) -> bool:
    return line.startswith("\t") and not line.startswith(("\t.", "\t#"))


def test_a_node_leads_to_its_instructions(listings: list[KernelListing]) -> None:
    (listing,) = [one for one in listings if "MatMul_0" in one.nodes and any("floor" in c for c in one.core)]
    floors = [i for i in listing.loop_of("Floor_*") if "loop.floor" in listing.loop[i]]
    assert floors
    for line in floors:
        assert listing.loop_nodes[line] == ("Floor_2",)
    assert any("@llvm.floor" in listing.llvm[i] for line in floors for i in listing.llvm_of(line))
    assert any(listing.asm_of(line) for line in floors)
    products = {i for i, text in enumerate(listing.loop) if "loop.muladd" in text or "loop.fma" in text}
    assert products and all(listing.loop_nodes[i] == ("MatMul_0",) for i in products)
    assert any(listing.asm_of(line) for line in products)
    core = dict(zip(listing.core, listing.core_nodes, strict=True))
    assert {names for text, names in core.items() if "core.contract" in text} == {("MatMul_0",)}


def test_an_instruction_leads_to_its_node(listings: list[KernelListing]) -> None:
    """All but what LLVM merges or makes for itself; helpers of the mathematics are inlined under their node."""
    names: set[str] = set()
    for listing in listings:
        inside = [i for i, line in enumerate(listing.llvm) if is_llvm_instruction(line)]
        if listing.symbol == "sdx_model_run":
            continue
        mapped = [i for i in inside if listing.llvm_to_loop[i] is not None]
        assert len(mapped) > 0.7 * len(inside)
        machine = [i for i, line in enumerate(listing.asm) if is_machine_instruction(line)]
        placed = [o for o in (listing.asm_to_loop[i] for i in machine) if o is not None]
        assert len(placed) > 0.7 * len(machine)
        names |= {n for o in placed for n in listing.loop_nodes[o]}
    assert names == {str(n.name) for n in NODES}


def test_the_entry_point_has_a_listing(listings: list[KernelListing]) -> None:
    entry = listings[-1]
    assert entry.symbol == "sdx_model_run" and not entry.core
    launches = [i for i, line in enumerate(entry.loop) if "loop.launch" in line]
    calls = [i for i, line in enumerate(entry.llvm) if "@sdx_launch(ptr %context" in line]
    assert [entry.llvm_to_loop[i] for i in calls] == launches
    assert {n for i in launches for n in entry.loop_nodes[i]} == {str(n.name) for n in NODES}


def test_lines_and_relations_fit(listings: list[KernelListing]) -> None:
    for one in listings:
        assert len(one.loop) == len(one.loop_nodes) and len(one.core) == len(one.core_nodes)
        assert len(one.emitted) == len(one.emitted_to_loop)
        assert len(one.llvm) == len(one.llvm_to_loop) and len(one.asm) == len(one.asm_to_loop)
        for line in range(len(one.loop)):
            assert all(one.llvm_to_loop[i] == line for i in one.llvm_of(line))
        found = [o for o in (*one.llvm_to_loop, *one.asm_to_loop) if o is not None]
        assert all(0 <= o < len(one.loop) for o in found)
        assert not any("!dbg" in line or "!DI" in line for line in (*one.emitted, *one.llvm))
        assert not any(".loc" in line or ".Ltmp" in line for line in one.asm)


def test_debug_information_changes_no_instruction(model: onnx.ModelProto) -> None:
    """What is listed is what runs."""
    module, target = import_model(model), host_target()
    program = to_program(module, target)
    for symbol, function in program.kernels.items():
        plain = kernel_text(function, symbol, target)
        assert "!dbg" not in plain and "DISubprogram" not in plain
        starts = {op: at.start + 1 for op, at in function_lines(function)[1].items()}
        debugged = kernel_text(function, symbol, target, DebugSource(starts, "kernel.mlir"))
        assert "#dbg_value" in debugged
        assert _instructions(assembly(debugged, target).splitlines()) == _instructions(
            assembly(plain, target).splitlines()
        )
        listed = kernel_listing(function, symbol, target).asm
        assert _instructions(listed) == _instructions(assembly(plain, target).splitlines())


def _instructions(lines: tuple[str, ...] | list[str]) -> list[str]:
    """Machine instructions, blind to the numbers of labels."""
    return [re.sub(r"\.L\w+", ".L", line) for line in lines if is_machine_instruction(line)]


def test_text_goes_both_ways(listings: list[KernelListing]) -> None:
    listing = listings[0]
    down, up = downward(listing), upward(listing)
    assert all(line.strip() in down for line in (*listing.core, *listing.loop))
    assert all(line in up for line in listing.asm)
    assert up.splitlines()[1:] != list(listing.asm)
    for at, origin in enumerate(listing.asm_to_loop):
        if origin is not None:
            assert f"  asm   {at + 1:>5}  " in down


def test_only_kernels_of_a_node(model: onnx.ModelProto) -> None:
    found = model_listings(model, "Softmax_*")
    assert found and all("Softmax_3" in one.nodes for one in found)
    with pytest.raises(ValueError, match=r"matches 'Conv_\*'; the nodes are Add_1, Erf_4"):
        model_listings(model, "Conv_*")


def test_json_has_every_relation(listings: list[KernelListing]) -> None:
    one = json.loads(json.dumps(listings[0].to_json()))
    assert one["asm_to_loop"] == list(listings[0].asm_to_loop)
    assert tuple(map(tuple, one["loop_nodes"])) == listings[0].loop_nodes
