"""``sardonyx info``."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from sardonyx.aot.reading import description_of, is_output
from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import amount, print_facts, print_table, progress
from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.codegen.objects import code_size, compile_text
from sardonyx.dumps.stages import kernel_locations
from sardonyx.frontend import import_model, schemas
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Function, Module, walk
from sardonyx.ir.types import Type
from sardonyx.pass_manager import run_steps
from sardonyx.passes.program import Port, Program
from sardonyx.pipeline import pipeline
from sardonyx.targets.host import host_target
from sardonyx_runtime.about import facts
from sardonyx_runtime.errors import RuntimeFault

__all__ = ["command"]

_SHOWN_KERNELS = 20


def command(
    model: ModelArgument,
    compile: Annotated[
        bool, typer.Option("--compile/--no-compile", help="Also compile, and show what comes of it.")
    ] = True,
    kernels: Annotated[
        bool, typer.Option("--kernels", help="List every kernel, not only the largest.")
    ] = False,
) -> None:
    """Show what a model is: inputs, outputs, operators, parameters.

    Compiled, it also shows the outputs' types as computed, the kernels, and the memory a run needs as an
    expression in the dims of the inputs.

    Of what `sardonyx compile` or `sardonyx package` wrote, it shows the model it was made from, versions,
    target, signature, and the sizes of code, weights and memory.

    \b
    Examples:
      sardonyx info model.onnx
      sardonyx info model.so
      sardonyx info model.onnx --no-compile
      sardonyx info model.onnx --kernels
    """
    path = checked(model)
    if is_output(path):
        _print_output(path)
        return
    module = import_model(path)
    _print_model(module)
    if compile:
        with progress("compiling"):
            compiled, rows = _compiled(module)
        typer.echo()
        print_facts(compiled)
        shown = rows if kernels else rows[:_SHOWN_KERNELS]
        typer.echo()
        print_table(["kernel", "code", "launches", "nodes"], shown, right=(1, 2))
        if len(shown) < len(rows):
            typer.echo(f"and {len(rows) - len(shown)} smaller ones (--kernels lists all)")


def _print_output(path: str) -> None:
    try:
        print_facts(facts(description_of(path)))
    except RuntimeFault as fault:
        raise typer.BadParameter(str(fault), param_hint="MODEL") from None


def _print_model(module: Module) -> None:
    main = module.main
    attributes = main.attributes
    facts: list[tuple[str, object]] = [
        ("graph", attributes["graph_name"] or "(unnamed)"),
        ("producer", attributes["producer"] or "(not said)"),
        ("ir version", attributes["ir_version"]),
        ("opsets", ", ".join(f"{schemas.domain_name(d)} {v}" for d, v in attributes["opsets"].items())),
    ]
    for argument in main.arguments:
        default = " (optional)" if argument.name in attributes["defaults"] else ""
        facts.append((f"input {argument.name}", f"{_type(argument.type)}{default}"))
    for name in attributes["outputs"]:
        facts.append((f"output {name}", _type(attributes["declared_outputs"].get(name))))
    nodes = [op for op in walk(module) if op.level == "onnx" and op.name not in ("onnx.none", "onnx.yield")]
    facts.append(("nodes", len(nodes)))
    tensors = _tensors(module)
    count = sum(t.array.size for t in tensors)
    facts.append(
        ("parameters", f"{count:,} in {len(tensors)} tensors, {amount(sum(t.array.nbytes for t in tensors))}")
    )
    if len(module.functions) > 1:
        facts.append(("functions", ", ".join(n for n in module.functions if n != main.name)))
    print_facts(facts)
    typer.echo()
    counts = Counter((op.kind, op.attributes.get("sdx.domain", "")) for op in nodes)
    rows = [[kind, schemas.domain_name(domain), n] for (kind, domain), n in counts.most_common()]
    print_table(["operator", "domain", "nodes"], rows, right=(2,))


def _tensors(module: Module) -> list[Dense]:
    """The model's constant tensors: initializers, those that are also inputs, values of Constant nodes."""
    values = [v for op in walk(module) for v in op.attributes.values()]
    return [v for v in (*values, *module.main.attributes["defaults"].values()) if isinstance(v, Dense)]


def _type(kind: Type | None) -> str:
    describe = getattr(kind, "describe", None)
    return describe() if describe is not None else "not stated"


def _compiled(module: Module) -> tuple[list[tuple[str, object]], list[list[object]]]:
    """Facts on the compiled model, and a row per kernel, the largest first."""
    target = host_target()
    run_steps(module, pipeline(target))
    program = Program.from_module(module)
    code = {
        symbol: code_size(compile_text(kernel_text(function, symbol, target), target))
        for symbol, function in program.kernels.items()
    }
    entry = code_size(compile_text(whole_program_text(program, target, "sdx_model_run"), target))
    launches = _launches(program.main)
    facts: list[tuple[str, object]] = [(f"output {p.name}", _port(p)) for p in program.outputs]
    facts += [
        ("kernels", f"{len(code)}, launched {launches.total()} times"),
        ("code", f"{amount(sum(code.values()))}, and {amount(entry)} for the entry point"),
        ("weights", f"{amount(program.weights.size)} in {len(program.weights.items)} tensors"),
    ]
    for number, size in enumerate(program.chunks):
        name = "arena" if len(program.chunks) == 1 else f"arena {number}"
        facts.append((name, amount(size) if isinstance(size, int) else f"{size} bytes"))
    nodes = kernel_locations(program)
    largest = sorted(code, key=lambda s: -code[s])
    return facts, [[s, amount(code[s]), launches[s], _names(nodes[s].names)] for s in largest]


def _launches(main: Function) -> Counter[str]:
    return Counter(op.attributes["kernel"] for op in walk(main) if op.name == "loop.launch")


def _port(port: Port) -> str:
    return f"{port.dtype.onnx_name}[{', '.join(map(str, port.shape))}]"


def _names(names: str, most: int = 72) -> str:
    return names if len(names) <= most else f"{names[: most - 3]}..."
