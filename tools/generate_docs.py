"""Writes the pages of docs/ that follow from the code.

    python tools/generate_docs.py           # write them
    python tools/generate_docs.py --check   # only say which are out of date (exit code 1)

- ``docs/ir.md``: every declared operation of the core and loop levels.
- ``docs/operators.md``: which operators of ONNX are supported.
- ``docs/architecture.md``: the example of each stage, between its two marks.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from sardonyx import core, loop
from sardonyx.cli.ops import count_text, markdown_table
from sardonyx.dumps.stages import Stage, stage_text
from sardonyx.ir.declare import OpDecl, all_declarations
from sardonyx.kernels.target import Target
from sardonyx.operator_table import operator_rows
from sardonyx.targets.host import llvm_version

__all__ = ["PAGES", "example_model", "fill_examples", "made_with"]

assert core.__all__ and loop.__all__  # the imports declare the ops

DOCS = Path(__file__).resolve().parent.parent / "docs"

_NOTE = "<!-- Written by tools/generate_docs.py; do not edit. -->\n"


# --- docs/ir.md ----------------------------------------------------------------------------------------

_IR_INTRODUCTION = """# The intermediate representation

One data structure (values, operations, blocks, functions) with three vocabularies, called levels. The text
form follows MLIR; `sardonyx dump` prints it, and what it prints can be parsed back.

- `onnx`: the model's nodes, one to one. The operations are ONNX's own, so there is no table here.
- `core`: what the nodes mean. Primitive operations on tensors, fully typed, broadcasts explicit.
- `loop`: how it runs. Loops over buffers on vectors, and the program that places buffers and launches
  kernels.

## Text

```mlir
%z = core.ge %f, %y : (tensor<?x3xf32, #sdx.dims<"batch", 3>>, tensor<?x3xf32, #sdx.dims<"batch", 3>>)
     -> tensor<?x3xi1, #sdx.dims<"batch", 3>> loc("main|GreaterOrEqual_1:GreaterOrEqual(z)")
```

(in one line). A dim that is no number stands as `?` in the shape and as an expression over named symbols in
`#sdx.dims`. A location names the ONNX nodes that an operation stems from: path of graphs, name, operator,
outputs; `fused[...]` lists several.

`sardonyx dump --mlir` prints the same in MLIR's generic syntax. MLIR's own tools read it with unregistered dialects
allowed (`iree-opt --allow-unregistered-dialect`), and so does xDSL:

```mlir
%z = "core.ge"(%f, %y) : (tensor<?x3xf32, #sdx.dims<"batch", 3>>, tensor<?x3xf32, #sdx.dims<"batch", 3>>)
     -> tensor<?x3xi1, #sdx.dims<"batch", 3>> loc("main|GreaterOrEqual_1:GreaterOrEqual(z)")
```

## How to read the entries

An operand `x?` may be left out, `*xs` takes any number; so do attributes with `?`. "Result" is the rule that gives the types
of the results, and that the verifier holds them against; where there is none, as at the loop level, whoever makes the
operation says its types. The example is in the short text form; the tests parse it, hold it against the declaration, and
have MLIR and xDSL read it. Facts:

| fact | meaning |
| --- | --- |
| elementwise | each element of the result depends on the same element of each operand; all shapes are equal |
| movement | each element of the result is one of the operand, or a fill |
| exact | the NumPy meaning gives the kernel's bits, so constants may be folded |
| commutative | the first two operands may be swapped, bit for bit |
| idempotent | f(f(x)) is f(x) |
| effect | stays although nothing uses its results |
| can_fault | may end the run with an error |
| terminator | ends a block |
"""


def ir_page() -> str:
    """The reference of all declared operations."""
    parts = [_NOTE, _IR_INTRODUCTION]
    titles = {"core": "Operations of the core level", "loop": "Operations of the loop level"}
    for level, title in titles.items():
        declarations = [d for d in all_declarations().values() if d.name.startswith(f"{level}.")]
        parts.append(f"\n## {title}\n\n{len(declarations)} operations.\n")
        parts += [_entry(list(alike)) for _, alike in groupby(declarations, key=_sameness)]
    return "".join(parts)


def _sameness(declaration: OpDecl) -> tuple[object, ...]:
    """Declarations that say the same but for the name have one entry."""
    return declaration.doc, declaration.operands, declaration.attributes, declaration.rule, declaration.traits


def _entry(alike: Sequence[OpDecl]) -> str:
    first = alike[0]
    facts = sorted(first.traits)
    if first.regions:
        facts.append("a region" if first.regions == 1 else f"{first.regions} regions")
    lines = [
        f"Operands: {_code(' '.join(first.operands)) or 'none'}.",
        f"Attributes: {_code(' '.join(first.attributes)) or 'none'}.",
        f"Facts: {', '.join(facts)}." if facts else "",
    ]
    result = f"\nResult: {first.rule}\n" if first.rule else ""
    return (
        f"\n### {', '.join(_code(d.name) for d in alike)}\n\n{_sentence(first.doc)}.\n\n"
        f"{' '.join(filter(None, lines))}\n{result}\n```mlir\n{first.example}\n```\n"
    )


def _sentence(text: str) -> str:
    """With a capital in front, unless a name stands there."""
    return text if text[1:2] in " (" else text[0].upper() + text[1:]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# --- docs/operators.md ---------------------------------------------------------------------------------


def operators_page() -> str:
    """Which operators are supported."""
    rows = operator_rows()
    supported = [r for r in rows if r.supported]
    return f"""{_NOTE}# Supported operators

As `sardonyx ops --format markdown` prints it; `sardonyx ops --operator NAME` shows the types of one operator.
Made with the schemas of onnx {version("onnx")}.

{count_text(supported)}. "By function body" are those that are taken apart by the definition which ONNX itself
gives for the operator; all others are written directly.

{markdown_table(supported)}"""


# --- docs/architecture.md ------------------------------------------------------------------------------

# A fixed machine, so that the page does not depend on who makes it: x86-64 with AVX2.
EXAMPLE_TARGET = Target(
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v3",
    features=("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"),
    vector_bytes=32,
    registers=16,
)
_MACHINE_STAGES = (Stage.LLVM, Stage.LLVM_OPT, Stage.ASM, Stage.OBJECT)
_BLOCK = re.compile(r"(<!-- example ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def example_model() -> onnx.ModelProto:
    """Floor, then GreaterOrEqual, on rows of eight."""
    nodes = [
        helper.make_node("Floor", ["x"], ["f"], name="Floor_0"),
        helper.make_node("GreaterOrEqual", ["f", "y"], ["z"], name="GreaterOrEqual_1"),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [8]),
    ]
    output = helper.make_tensor_value_info("z", TensorProto.BOOL, ["batch", 8])
    graph = helper.make_graph(nodes, "example", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def fill_examples(page: str, *, machine: bool = True) -> str:
    """The page with its examples made anew; those that depend on LLVM's version only if ``machine``."""

    def fill(match: re.Match[str]) -> str:
        head, stage, tail = match.groups()
        if stage in _MACHINE_STAGES and not machine:
            return match.group()
        return f"{head}```{_language(Stage(stage))}\n{_example(Stage(stage))}```\n{tail}"

    page = re.sub(r"LLVM \d+\.\d+", made_with(), page) if machine else page
    return _BLOCK.sub(fill, page)


def made_with() -> str:
    """The version of LLVM, as the page names it."""
    return f"LLVM {'.'.join(map(str, llvm_version()[:2]))}"


def architecture_page() -> str:
    return fill_examples((DOCS / "architecture.md").read_text(encoding="utf-8"))


def _example(stage: Stage) -> str:
    """The stage's text, shortened to what there is to see."""
    node = "Floor_0" if stage in _MACHINE_STAGES else None
    text = stage_text(
        example_model(), stage, node=node, locations=stage is Stage.FUSED, target=EXAMPLE_TARGET
    )
    return _middle_out(_SHORTEN.get(stage, _without_attributes)(text), _COMMENT.get(stage, "//"))


_MOST_LINES = 64
_COMMENT = {Stage.LLVM: ";", Stage.LLVM_OPT: ";", Stage.ASM: "#", Stage.OBJECT: "#"}


def _middle_out(text: str, comment: str) -> str:
    """Long text without its middle: the page is to show what a stage looks like."""
    lines = text.splitlines()
    if len(lines) <= _MOST_LINES:
        return text
    head, tail = lines[: _MOST_LINES - 12], lines[-12:]
    gone = len(lines) - len(head) - len(tail)
    return "\n".join([*head, f"  {comment} ... {gone} more lines ...", *tail]) + "\n"


def _without_attributes(text: str) -> str:
    return re.sub(r" (names|attributes) \{.*\} \{$", " {", text, flags=re.MULTILINE)


def _program_only(text: str) -> str:
    return text.partition("\n\n")[0] + "\n"


def _first_function(text: str) -> str:
    match = re.search(r"^define .*?^\}\n", text, re.DOTALL | re.MULTILINE)
    assert match is not None
    return match.group()


def _instructions(text: str) -> str:
    """Labels and instructions of the first function."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("k_"))
    end = next(i for i, line in enumerate(lines) if line.startswith(".Lfunc_end"))
    return "".join(f"{line}\n" for line in lines[start:end] if not line.startswith("\t."))


def _sections(text: str) -> str:
    """The sections, and the beginning of the code."""
    lines = text.splitlines()
    code = next(i for i, line in enumerate(lines) if line.startswith("\t"))
    rest = [line for line in lines[code + 3 :] if not line.startswith("\t")]
    return "\n".join([*lines[: code + 3], "\t...", *rest]) + "\n"


_SHORTEN: dict[Stage, Callable[[str], str]] = {
    Stage.LOOP: _without_attributes,
    Stage.PLANNED: _program_only,
    Stage.LLVM: _first_function,
    Stage.LLVM_OPT: _first_function,
    Stage.ASM: _instructions,
    Stage.OBJECT: _sections,
}


def _language(stage: Stage) -> str:
    return {Stage.LLVM: "llvm", Stage.LLVM_OPT: "llvm", Stage.ASM: "asm", Stage.OBJECT: "text"}.get(
        stage, "mlir"
    )


PAGES: dict[str, Callable[[], str]] = {
    "ir.md": ir_page,
    "operators.md": operators_page,
    "architecture.md": architecture_page,
}


def _main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the pages of docs/ that follow from the code.")
    parser.add_argument("--check", action="store_true", help="only say which pages are out of date")
    options = parser.parse_args(arguments)
    stale = []
    for name, make in PAGES.items():
        path = DOCS / name
        text = make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            path.write_text(text, encoding="utf-8")
    print(f"{'out of date' if options.check else 'written'}: {', '.join(stale) or 'none'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(_main())
