"""Debug information: which line of a printed function an instruction stems from, and which ONNX node.

The source that the debug information names is the text of the loop level: a kernel as `function_lines`
prints it.  Each ONNX node is a subprogram of its own that is inlined into the kernel, so that a debugger's
backtrace and a profiler's inlined frames show it::

    #0  Floor_0 () at Floor_0.mlir:46
    #1  Floor_0__k_eb2e5adf (...) at Floor_0.mlir:46
    ...
    #4  run Floor_0 () at main.mlir:8

Line numbers of instructions are attached to the emitted text afterwards, from the marks that a `Trace` has
made; without debug information nothing is marked and the text is what it always is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sardonyx.ir.graph import Block, Function, Location, Op, Value
from sardonyx.ir.printer import value_names
from sardonyx.ir.types import BufferType, Type
from sardonyx_runtime.version import __version__

__all__ = ["DebugInfo", "DebugSource", "Trace", "scope_name"]

_FIRST = 2  # the metadata below are those of every module (objects.METADATA)
_MOST_NAMES = 4
_ENCODINGS = {"float": "float", "signed": "signed", "bool": "boolean"}


@dataclass(frozen=True)
class DebugSource:
    """The text that debug information refers to.

    ``lines`` are those of the first line of each op, from 1; ``path`` is the file that holds the text.
    ``directives`` asks for what an assembler needs to tell lines, and nothing else: for listings.
    """

    lines: Mapping[Op, int]
    file: str
    folder: str = ""
    directives: bool = False


def scope_name(location: Location) -> str:
    """The name under which tools show these nodes."""
    names = [o.name for o in location.origins]
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return " + ".join(names[:_MOST_NAMES] + more)


class DebugInfo:
    """The metadata of one module with one function that has a text."""

    def __init__(self, function: Function, symbol: str, source: DebugSource, verb: str = "") -> None:
        self._function = function
        self._verb = verb  # in front of the nodes' names, where the function does not compute them itself
        self._lines = source.lines
        self._texts: list[str] = []
        self._numbers: dict[tuple[int, Location | None], int] = {}
        self._scopes: dict[Location, int] = {}  # the nodes' subprograms
        self._sites: dict[tuple[Location, Block | None], int] = {}  # where they are inlined
        self._kinds: dict[Type, int] = {}
        self._directives = source.directives
        self._names = {} if source.directives else value_names(function)
        kind = "DebugDirectivesOnly" if source.directives else "FullDebug"
        self._file = self._add(
            f'!DIFile(filename: "{_escaped(source.file)}", directory: "{_escaped(source.folder)}")'
        )
        self._unit = self._add(
            f"distinct !DICompileUnit(language: DW_LANG_C11, file: !{self._file}, "
            f'producer: "sardonyx {__version__}", isOptimized: true, runtimeVersion: 0, emissionKind: {kind})'
        )
        nothing = self._add("!{}")
        self._type = self._add(f"!DISubroutineType(types: !{nothing})")
        self.subprogram = self._subprogram(symbol, 1)

    def number(self, op: Op | None) -> int:
        """The number of the location of an op's instructions; of the function's own for None."""
        location = None
        if op is not None and op.location.origins:
            whole = op.location == self._function.location and len(op.location.origins) > 1
            location = None if whole else op.location
        line = self._lines.get(op, 1) if op is not None else 1
        key = (line, location)
        found = self._numbers.get(key)
        if found is None:
            if location is None:
                place = f"scope: !{self.subprogram}"
            else:
                assert op is not None
                scope, site = self._scope(location, op.block, line)
                place = f"scope: !{scope}, inlinedAt: !{site}"
            found = self._numbers[key] = self._add(f"!DILocation(line: {line}, {place})")
        return found

    def parameters(self) -> list[str]:
        """Lines that tell where the function's arguments are, to stand at the beginning of its body."""
        if self._directives:
            return []
        arguments = enumerate(self._function.arguments)
        return [self._variable(argument, f"%a{i}", 1, f"arg: {i + 1}, ") for i, argument in arguments]

    def index(self, op: Op, index: Value, ref: str) -> list[str]:
        """Lines that tell where the index of a loop is, to stand at the beginning of the loop's body."""
        return [] if self._directives else [self._variable(index, ref, self._lines[op])]

    def _variable(self, value: Value, ref: str, line: int, argument: str = "") -> str:
        """A value of the function's text as a variable of the same name."""
        variable = self._add(
            f'!DILocalVariable(name: "{_escaped(self._names[value])}", {argument}scope: !{self.subprogram}, '
            f"file: !{self._file}, line: {line}, type: !{self._kind(value.type)})"
        )
        place = self._add(f"!DILocation(line: {line}, scope: !{self.subprogram})")
        machine = "ptr" if isinstance(value.type, BufferType) else "i64"
        return f"    #dbg_value({machine} {ref}, !{variable}, !DIExpression(), !{place})"

    def _kind(self, kind: Type) -> int:
        """The debugger's type of an argument: a pointer to elements, or a 64-bit index."""
        found = self._kinds.get(kind)
        if found is None:
            if isinstance(kind, BufferType):
                dtype = kind.dtype
                bits = max(8, dtype.bits)
                encoding = _ENCODINGS.get(dtype.kind, "unsigned")
                if (encoding == "float" and bits not in (16, 32, 64)) or dtype.name == "bf16":
                    encoding = "unsigned"  # its bits
                element = self._add(
                    f'!DIBasicType(name: "{dtype}", size: {bits}, encoding: DW_ATE_{encoding})'
                )
                text = f"!DIDerivedType(tag: DW_TAG_pointer_type, baseType: !{element}, size: 64)"
            else:
                text = '!DIBasicType(name: "index", size: 64, encoding: DW_ATE_signed)'
            found = self._kinds[kind] = self._add(text)
        return found

    def metadata(self) -> str:
        """The module's metadata, behind those of `objects.METADATA`."""
        version = self._add('!{i32 2, !"Debug Info Version", i32 3}')
        dwarf = self._add('!{i32 7, !"Dwarf Version", i32 4}')
        lines = [f"!{number} = {text}" for number, text in enumerate(self._texts, _FIRST)]
        return "\n".join(
            [
                f"!llvm.dbg.cu = !{{!{self._unit}}}",
                f"!llvm.module.flags = !{{!{version}, !{dwarf}}}",
                *lines,
                "",
            ]
        )

    def _scope(self, location: Location, block: Block | None, line: int) -> tuple[int, int]:
        """The subprogram of nodes, and where it is inlined: once in each block, at its first line there."""
        if location not in self._scopes:
            self._scopes[location] = self._subprogram(self._verb + scope_name(location), line)
        site = self._sites.get((location, block))
        if site is None:
            site = self._add(f"distinct !DILocation(line: {line}, scope: !{self.subprogram})")
            self._sites[location, block] = site
        return self._scopes[location], site

    def _subprogram(self, name: str, line: int) -> int:
        return self._add(
            f'distinct !DISubprogram(name: "{_escaped(name)}", scope: !{self._file}, file: !{self._file}, '
            f"line: {line}, type: !{self._type}, scopeLine: {line}, "
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{self._unit})"
        )

    def _add(self, text: str) -> int:
        self._texts.append(text)
        return len(self._texts) - 1 + _FIRST


class Trace:
    """Remembers which op emitted which lines of a body, and attaches their locations in the end."""

    def __init__(self, lines: list[str], info: DebugInfo) -> None:
        self._lines = lines
        self._info = info
        self._current: Op | None = None
        self._marks: list[tuple[int, Op | None]] = [(0, None)]

    def run(self, ops: Iterable[Op], emit: Callable[[Op], None]) -> None:
        """Emit ops, each under a mark of its own; may be called again inside."""
        outer = self._current
        for op in ops:
            self._current = op
            self._marks.append((len(self._lines), op))
            emit(op)
        self._current = outer
        self._marks.append((len(self._lines), outer))

    def index(self, op: Op, index: Value, ref: str) -> None:
        """Tell where the index of a loop is from here on."""
        self._lines.extend(self._info.index(op, index, ref))

    def attach(self) -> None:
        """Write the locations behind the instructions."""
        ends = [start for start, _ in self._marks[1:]] + [len(self._lines)]
        for (start, op), end in zip(self._marks, ends, strict=True):
            if start == end:
                continue
            suffix = f", !dbg !{self._info.number(op)}"
            for at in range(start, end):
                if self._lines[at].startswith("  ") and not self._lines[at].startswith("    #"):
                    self._lines[at] += suffix


def _escaped(text: str) -> str:
    """As LLVM's strings are written."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode()
    )
