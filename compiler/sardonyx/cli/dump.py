"""``sardonyx dump``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.plugins import LoadOption, load_files
from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import amount, milliseconds, print_or_save, print_table, progress
from sardonyx.dumps.dumping import Dump, PassDump, dump_passes, write_tree
from sardonyx.dumps.stage_printer import NodeChoice, StagePrinter
from sardonyx.dumps.stages import MLIR_STAGES, Stage, stage_text

__all__ = ["command"]


def command(
    model: ModelArgument,
    stage: Annotated[Stage | None, typer.Option(help="The stage to print [default: core].")] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="PASS", help="Print what this pass leaves; the second simplify is simplify#2."),
    ] = None,
    after_each: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write a file for every pass, and one for each kernel's code."),
    ] = None,
    changed_only: Annotated[
        bool, typer.Option("--changed-only", help="With --after-each: only passes that changed something.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="With --after or --after-each: what the pass changed, as a diff.")
    ] = False,
    node: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only what stems from nodes of such names, as 'Conv_*'."),
    ] = None,
    elide: Annotated[
        int, typer.Option(min=0, help="Constants of more elements than this are printed as a key.")
    ] = 16,
    full: Annotated[
        bool, typer.Option("--full", help="Add those constants' data: such a text can be run.")
    ] = False,
    mlir: Annotated[
        bool, typer.Option("--mlir", help="MLIR's generic syntax, which MLIR's own tools read.")
    ] = False,
    locations: Annotated[bool, typer.Option(help="Whether each line names its ONNX nodes.")] = True,
    load: LoadOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")
    ] = None,
) -> None:
    """Print a model at a stage of the compilation.

    The model is an ONNX file or IR text of any level (.mlir).  It is compiled only as far as needed; it need
    not be supported further on.

    \b
    Stages:
      onnx      the model's nodes, one to one
      resolved  typed core operations, as each node's definition makes them
      core      the same, simplified
      fused     grouped into kernels
      loop      the program, and the loops of every kernel
      planned   the same with every tensor's place in memory
      llvm      LLVM IR of each kernel and of the entry point
      llvm-opt  the same, optimised
      asm       assembly for this machine
      object    sections of the object files, and the code's bytes

    \b
    Examples:
      sardonyx dump model.onnx
      sardonyx dump model.onnx --stage asm --node 'Conv_1'
      sardonyx dump model.onnx --stage fused --no-locations -o fused.mlir
      sardonyx dump model.onnx --mlir | iree-opt --allow-unregistered-dialect -
      sardonyx dump model.onnx --after layout --diff
      sardonyx dump model.onnx --after-each passes --changed-only
      sardonyx dump model.onnx --stage fused --full -o fused.mlir && sardonyx run fused.mlir
    """
    given = {"--stage": stage, "--after": after, "--after-each": after_each}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} exclude each other")
    if (diff or changed_only) and after is None and after_each is None:
        raise typer.BadParameter("--diff and --changed-only go with --after or --after-each")
    if mlir and stage is not None and stage not in MLIR_STAGES:
        raise typer.BadParameter(
            f"the stage {str(stage)!r} is no MLIR; those that are: {', '.join(MLIR_STAGES)}",
            param_hint="--mlir",
        )
    load_files(load)
    path = checked(model)
    try:
        printer = StagePrinter(NodeChoice(node), locations, elide, full, mlir)
        if after_each is not None:
            _each(path, after_each, printer, changed_only=changed_only, diff=diff)
            return
        if after is not None:
            text = _after(path, after, printer, diff=diff)
        else:
            wanted = stage or Stage.CORE
            with progress(f"compiling to {wanted}"):
                text = stage_text(
                    path, wanted, node=node, locations=locations, elide=elide, resources=full, generic=mlir
                )
    except ValueError as error:
        if node is None and after is None and stage is None:
            raise
        raise typer.BadParameter(str(error)) from None
    print_or_save(text, output)


def _after(path: str, label: str, printer: StagePrinter, *, diff: bool) -> str:
    with progress("compiling"):
        found, error = dump_passes(path, printer, last=label)
    if error is not None:
        raise error
    one = found.passes[-1]
    return (one.diff or f"{label} changes nothing\n") if diff else one.text


def _each(path: str, folder: Path, printer: StagePrinter, *, changed_only: bool, diff: bool) -> None:
    with progress("compiling"):
        found, error = dump_passes(path, printer)
        try:
            files = write_tree(found, folder, changed_only=changed_only, diff=diff)
        except OSError as failure:
            raise typer.BadParameter(
                f"cannot write to {str(folder)!r}: {failure.strerror}", param_hint="--after-each"
            ) from None
    _print_passes(found)
    typer.echo(f"{len(files)} files, {amount(sum(f.stat().st_size for f in files))}, in {folder}")
    if error is not None:
        raise error


def _print_passes(found: Dump) -> None:
    def row(one: PassDump) -> list[str]:
        lines = one.diff.splitlines()[2:]
        added, gone = (sum(line.startswith(sign) for line in lines) for sign in "+-")
        what = f"+{added} -{gone} lines" if lines and one.label != "import" else "no change"
        return [one.label, one.stage, "" if one.label == "import" else what, milliseconds(one.seconds)]

    print_table(["pass", "stage", "changes", "time"], [row(p) for p in found.passes], right=(3,))
