"""``sardonyx opt``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sardonyx import reproducer
from sardonyx.cli.failure import ExitCode
from sardonyx.cli.plugins import LoadOption, load_files
from sardonyx.cli.source import checked
from sardonyx.cli.terminal import milliseconds, print_or_save, print_table, progress
from sardonyx.codegen import emit_pass  # registers the pass
from sardonyx.diagnosis.reduce import reduce_module
from sardonyx.dumps.stage_printer import StagePrinter
from sardonyx.ir.graph import Module, walk
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module
from sardonyx.pass_manager import PassFailure, PassRun, Step, registered_passes, run_steps
from sardonyx.passes.budget import limited
from sardonyx.pipeline import steps_of
from sardonyx.source import Source, open_source, parse_ir
from sardonyx.targets.host import host_target

__all__ = ["command"]

assert emit_pass.__all__


def command(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="IR text of any level, `-` for standard input, or an ONNX file."),
    ] = "-",
    passes: Annotated[
        str,
        typer.Option("--passes", "-p", metavar="PASSES", help="The passes to run, as 'fold,fuse{max=8}'."),
    ] = "",
    verify_each: Annotated[
        bool, typer.Option("--verify-each", help="Verify before and after each pass.")
    ] = False,
    time_passes: Annotated[
        bool, typer.Option("--time-passes", help="Print each pass's time on the error stream.")
    ] = False,
    opt_bisect: Annotated[
        int | None,
        typer.Option("--opt-bisect", metavar="N", min=0, help="Take N optimisation steps and name the last."),
    ] = None,
    mlir: Annotated[bool, typer.Option("--mlir", help="Write MLIR's generic form.")] = False,
    locations: Annotated[bool, typer.Option(help="Whether each line names its ONNX nodes.")] = True,
    elide: Annotated[
        int, typer.Option(min=0, help="Constants of more elements go to the end of the text.")
    ] = 16,
    data: Annotated[
        bool,
        typer.Option(help="Whether the data of those constants is written; without, the text can't be run."),
    ] = True,
    load: LoadOption = None,
    list_passes: Annotated[
        bool, typer.Option("--list-passes", help="List the passes and their options.")
    ] = False,
    reproduce: Annotated[
        bool, typer.Option("--reproduce", help="FILE is a reproducer: run the pass that failed, as it says.")
    ] = False,
    reduce: Annotated[
        bool, typer.Option("--reduce", help="Write the smallest module for which the passes fail likewise.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")
    ] = None,
) -> None:
    """Run passes on IR text.

    The text may be of any level: what `sardonyx dump`, this command, or MLIR's tools wrote (generic form).
    Nothing is lost from reading to writing: constants, names, locations.

    \b
    Examples:
      sardonyx dump model.onnx --stage resolved --full | sardonyx opt -p 'simplify,fuse{max=8}'
      sardonyx opt model.onnx -p lower,simplify --verify-each --time-passes -o core.mlir
      sardonyx opt core.mlir -p layout,simplify,fuse --opt-bisect 12 -o /dev/null
      sardonyx opt --load my_pass.py core.mlir -p my-pass
      sardonyx opt --reproduce FILE.mlir
      sardonyx opt --reproduce FILE.mlir --reduce -o small.mlir
      sardonyx opt --list-passes

    \b
    Exit codes: 0 done (with --reproduce: the pass does not fail); 2 the command line is wrong; 3 the text is
    no IR or the model is wrong; 70 a pass broke down or left IR that does not verify.
    """
    load_files(load)
    if list_passes:
        _print_passes()
        return
    source, text = _source(file)
    if reproduce:
        passes = passes or reproducer.read(text or "").passes
        verify_each = True
    steps = _steps(passes)
    if reduce:
        written = _reduced(text or print_module(source.module(), resources=True), steps)
    else:
        module = source.module()
        runs = _run(module, steps, opt_bisect, verify_each=verify_each)
        if time_passes:
            _print_times(runs)
        printer = StagePrinter(locations=locations, elide=elide, resources=data, generic=mlir)
        written = printer.module(module)
        if reproduce:
            typer.echo(f"{passes} does not fail", err=True)
            if output is None:
                return
    print_or_save(written, output)


def _source(file: str) -> tuple[Source, str | None]:
    """The source, and its text if it is IR."""
    if file == "-":
        text = sys.stdin.read()
        return Source(lambda: parse_ir(text, "the standard input")), text
    path = Path(checked(file))
    data = path.read_bytes()
    if path.suffix != ".onnx" and _looks_like_ir(data):
        text = data.decode()
        return Source(lambda: parse_ir(text, str(path))), text
    return open_source(file), None


def _looks_like_ir(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return text.lstrip().startswith(("//", "module", "func", '"', "#", "{-#"))


def _steps(passes: str) -> tuple[Step, ...]:
    try:
        return steps_of(passes, host_target())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--passes") from None


def _run(module: Module, steps: Sequence[Step], limit: int | None, *, verify_each: bool) -> list[PassRun]:
    with progress("running passes"), limited(limit) as budget:
        runs = run_steps(module, steps, verify_each=verify_each)
    if limit is not None:
        typer.echo(f"{budget.taken} of {budget.asked} optimisation steps were taken", err=True)
        if budget.last:
            typer.echo(f"the last: {budget.last}", err=True)
    return runs


def _reduced(text: str, steps: Sequence[Step]) -> str:
    """The smallest text for which the same pass fails in the same way."""
    kind = _failure(parse_module(text), steps)
    if kind is None:
        typer.echo("the passes do not fail: there is nothing to reduce", err=True)
        raise typer.Exit(ExitCode.USAGE)
    before = sum(1 for _ in walk(parse_module(text)))
    with progress("reducing"):
        smaller = reduce_module(text, lambda module: _failure(module, steps) == kind)
    after = sum(1 for _ in walk(parse_module(smaller)))
    typer.echo(f"{before} ops reduced to {after}; {kind[0]} fails as before", err=True)
    head = [
        line for line in text.splitlines() if line.startswith(("// Sardonyx", "// passes:", "// failure:"))
    ]
    return "\n".join([*head, "", smaller]) if head else smaller


def _failure(module: Module, steps: Sequence[Step]) -> tuple[str, str] | None:
    """Which pass fails, and how (without the names and numbers in the message)."""
    try:
        run_steps(module, steps, verify_each=True)
    except PassFailure as failure:
        cause = failure.__cause__ or failure
        return failure.label, type(cause).__name__
    return None


def _print_passes() -> None:
    rows = []
    for name, made in sorted(registered_passes().items()):
        text = (made.__doc__ or "").strip().splitlines()
        options = [
            f"{f.name}={f.default}"
            for f in vars(made).get("__dataclass_fields__", {}).values()
            if f.init and type(f.default) in (int, float, bool, str)
        ]
        rows.append([name, " ".join(options), text[0] if text else ""])
    print_table(["pass", "options", "what it does"], rows)


def _print_times(runs: Sequence[PassRun]) -> None:
    total = sum(r.seconds for r in runs) or 1.0
    for r in runs:
        share = f"{100 * r.seconds / total:.0f} %"
        changed = "changed" if r.changed else "nothing to do"
        typer.echo(f"{milliseconds(r.seconds):>10}  {share:>5}  {r.label:<14}  {changed}", err=True)
