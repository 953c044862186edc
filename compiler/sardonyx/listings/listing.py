"""Listings: the loop text of a kernel, its LLVM IR and its assembly, and which line stems from which.

A kernel is compiled with debug information whose lines are those of its loop text (`codegen/debug_info.py`).
LLVM keeps it through optimisation and instruction selection, so that every line that is left says where it
comes from; what LLVM merges or invents has no place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.codegen.debug_info import DebugSource
from sardonyx.codegen.objects import machine_text, optimise
from sardonyx.frontend.load import ModelSource
from sardonyx.interpreter import compiling
from sardonyx.ir.graph import Function, Location, Op, walk
from sardonyx.ir.printer import function_lines, print_block
from sardonyx.kernels.target import Target
from sardonyx.parts import ENTRY
from sardonyx.passes.program import Program
from sardonyx.pipeline import to_program
from sardonyx.source import open_source
from sardonyx.targets.host import host_target

__all__ = ["KernelListing", "kernel_listing", "model_listings", "program_listing", "program_listings"]

Names = tuple[str, ...]


@dataclass(frozen=True)
class KernelListing:
    """One kernel (or the entry point) at every level below the fused group, with the lines' relations.

    ``core``, ``loop``, ``emitted`` (LLVM IR as it is made), ``llvm`` (optimised) and ``asm`` are lines of text, ``nodes`` the names of all ONNX
    nodes that the symbol serves.  All numbers are indices from 0: ``llvm_to_loop[i]`` is the loop line that
    LLVM line i stems from, or None; ``emitted_to_loop`` and ``asm_to_loop`` likewise; ``loop_nodes[i]`` are the names of the nodes
    that loop line i stems from, ``core_nodes`` likewise.  Equal kernels are one: the names at the lines are
    then those of the nodes it was first made for.
    """

    symbol: str
    nodes: Names
    core: tuple[str, ...]
    core_nodes: tuple[Names, ...]
    loop: tuple[str, ...]
    loop_nodes: tuple[Names, ...]
    emitted: tuple[str, ...]
    emitted_to_loop: tuple[int | None, ...]
    llvm: tuple[str, ...]
    llvm_to_loop: tuple[int | None, ...]
    asm: tuple[str, ...]
    asm_to_loop: tuple[int | None, ...]

    def llvm_of(self, loop_line: int) -> list[int]:
        """The LLVM lines that stem from a loop line."""
        return [i for i, line in enumerate(self.llvm_to_loop) if line == loop_line]

    def asm_of(self, loop_line: int) -> list[int]:
        """The assembly lines that stem from a loop line."""
        return [i for i, line in enumerate(self.asm_to_loop) if line == loop_line]

    def loop_of(self, pattern: str) -> list[int]:
        """The loop lines that stem from nodes whose name matches a pattern (``Conv_*``)."""
        return [i for i, names in enumerate(self.loop_nodes) if _matches(names, pattern)]

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON knows them."""
        return asdict(self)


def kernel_listing(
    function: Function, symbol: str, target: Target, group: Op | None = None, nodes: Location | None = None
) -> KernelListing:
    """The listing of a kernel of the loop level under a symbol.

    ``group`` is the fused core op that it computes, ``nodes`` are all nodes that launch it (default: those
    of its ops).
    """
    source = _source(function)
    text = kernel_text(function, symbol, target, source)
    location = nodes if nodes is not None and nodes.origins else _all_nodes(function)
    return _listing(function, symbol, location, text, target, group)


def program_listing(program: Program, target: Target) -> KernelListing:
    """The listing of the entry point, which binds dims, places tensors and launches kernels."""
    text = whole_program_text(program, target, ENTRY, _source(program.main))
    return _listing(program.main, ENTRY, _all_nodes(program.main), text, target, None)


def program_listings(program: Program, target: Target, node: str | None = None) -> Iterator[KernelListing]:
    """The listings of all kernels, in the order of their first launch, and of the entry point.

    ``node`` is a pattern of node names: only kernels that serve such a node, and not the entry point.
    """
    launched: dict[str, Location] = {}
    for op in walk(program.main):
        if op.name == "loop.launch":
            symbol = op.attributes["kernel"]
            launched[symbol] = launched.get(symbol, Location()) | op.location
    for symbol, location in launched.items():
        if node is None or _matches([o.name for o in location.origins], node):
            group = program.group_of_kernel.get(symbol)
            yield kernel_listing(program.kernels[symbol], symbol, target, group, location)
    if node is None:
        yield program_listing(program, target)


def model_listings(
    model: ModelSource, node: str | None = None, *, target: Target | None = None
) -> list[KernelListing]:
    """The listings of a model's kernels and of its entry point; ``node`` as for `program_listings`.

    CompileError if the model cannot be compiled, ValueError if the pattern matches no node.
    """
    target = target or host_target()
    with compiling():
        program = to_program(open_source(model).module(), target)
        found = list(program_listings(program, target, node))
    if not found:
        names = sorted({o.name for op in walk(program.main) for o in op.location.origins})
        some = ", ".join(names[:8]) + (f" and {len(names) - 8} others" if len(names) > 8 else "")
        raise ValueError(f"no node that is left in a kernel matches {node!r}; the nodes are {some}")
    return found


# --- making ----------------------------------------------------------------------------------------------


def _source(function: Function) -> DebugSource:
    _, lines = function_lines(function)
    return DebugSource({op: at.start + 1 for op, at in lines.items()}, "listing", directives=True)


def _listing(
    function: Function, symbol: str, nodes: Location, text: str, target: Target, group: Op | None
) -> KernelListing:
    loop, lines = function_lines(function, locations=False)
    loop_nodes = [_names(function.location)] * len(loop)
    for op, at in lines.items():
        loop_nodes[at.start : at.stop] = [_names(op.location)] * len(at)
    emitted, emitted_to_loop = _llvm_lines(text)
    module = optimise(text, target)
    llvm, llvm_to_loop = _llvm_lines(str(module))
    asm, asm_to_loop = _asm_lines(machine_text(module, target))
    core = group.regions[0] if group is not None else None
    return KernelListing(
        symbol,
        _names(nodes),
        tuple(print_block(core).splitlines()) if core is not None else (),
        tuple(_names(op.location) for op in core.ops) if core is not None else (),
        tuple(loop),
        tuple(loop_nodes),
        tuple(emitted),
        tuple(emitted_to_loop),
        tuple(llvm),
        tuple(llvm_to_loop),
        tuple(asm),
        tuple(asm_to_loop),
    )


_LOCATION = re.compile(r"!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
_ATTACHED = re.compile(r",? !dbg !(\d+)")
_METADATA = re.compile(r"!\d+ = |!llvm\.")
_BRANCHES = re.compile(r"!\d+ = !\{(!\"branch_weights\"|i32 1\}$)")


def _llvm_lines(text: str) -> tuple[list[str], list[int | None]]:
    """The lines of a module without its debug information, and the loop line of each."""
    places = {number: int(line) for number, line in _LOCATION.findall(text)}
    lines: list[str] = []
    origins: list[int | None] = []
    for line in text.strip().splitlines():
        if _METADATA.match(line) and not _BRANCHES.match(line):
            continue
        attached = _ATTACHED.search(line)
        lines.append(_ATTACHED.sub("", line))
        origins.append(_index(places.get(attached[1], 0)) if attached else None)
    return lines, origins


_PLACE = re.compile(r"\t\.loc\t\d+ (\d+)")
_DEBUG_ONLY = re.compile(r"\t\.(loc|file|cfi_sections)\b|\.L(tmp|func_begin|func_end)\d+:")


def _asm_lines(text: str) -> tuple[list[str], list[int | None]]:
    """The lines of an assembly without debug directives, and the loop line of each instruction."""
    lines: list[str] = []
    origins: list[int | None] = []
    current: int | None = None
    for line in text.strip("\n").splitlines():
        place = _PLACE.match(line)
        if place:
            current = _index(int(place[1]))
        if line.startswith("\t.cfi_endproc"):
            current = None  # of the function behind, nothing is known until it says so
        if _DEBUG_ONLY.match(line):
            continue
        is_instruction = line.startswith("\t") and not line.startswith(("\t.", "\t#"))
        lines.append(line)
        origins.append(current if is_instruction else None)
    return lines, origins


def _index(line: int) -> int | None:
    """LLVM says 0 where it does not know."""
    return line - 1 if line else None


def _names(location: Location) -> Names:
    return tuple(o.name for o in location.origins)


def _all_nodes(function: Function) -> Location:
    location = function.location
    for op in walk(function):
        location = location | op.location
    return location


def _matches(names: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)
