"""``sardonyx run``."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sardonyx.build_options import BuildOptions
from sardonyx.cli.compare import Comparison, compare_arrays
from sardonyx.cli.engines import Engine, outputs_of
from sardonyx.cli.failure import ExitCode
from sardonyx.cli.feeds import Feeds, InputOption, SeedOption, SizeOption, ThreadsOption, feeds_of
from sardonyx.cli.plugins import LoadOption, load_files
from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import milliseconds, print_table, progress
from sardonyx.debugging import debug_options
from sardonyx.diagnosis.ablation import Ablation
from sardonyx.diagnosis.ablation import ablate as find_fault
from sardonyx.model import CompiledModel, compile_with
from sardonyx.passes.budget import Budget
from sardonyx_runtime.signature import Argument

__all__ = ["command", "print_comparison", "time_runs"]


class Debugger(StrEnum):
    """The tool that debug information is made for."""

    GDB = "gdb"
    PERF = "perf"


def command(
    model: ModelArgument,
    input: InputOption = None,
    dim: SizeOption = None,
    output_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Save every output there as a .npy file.")
    ] = None,
    compare: Annotated[
        Engine | None,
        typer.Option(
            metavar="[ENGINE]",
            help="Compare the outputs: with the `reference` (if no engine is given) or `onnxruntime`.",
        ),
    ] = None,
    rtol: Annotated[
        float | None, typer.Option(min=0, help="Relative tolerance [default: by type, f32 1e-4].")
    ] = None,
    atol: Annotated[
        float | None, typer.Option(min=0, help="Absolute tolerance [default: rtol / 10 * largest].")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Run so often, and print the time per run.")] = 1,
    threads: ThreadsOption = None,
    seed: SeedOption = 0,
    cache: Annotated[bool, typer.Option(help="Whether to use the cache of compiled code.")] = True,
    debug: Annotated[
        Debugger | None,
        typer.Option(
            metavar="[TOOL]",
            help="Make code that debuggers see into: for `gdb` (if no tool is given) or `perf`.",
        ),
    ] = None,
    debug_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where --debug keeps texts and library [default: in the cache]."),
    ] = None,
    passes: Annotated[
        str | None,
        typer.Option("--passes", metavar="PASSES", help="Run these passes up to fuse, not the usual ones."),
    ] = None,
    load: LoadOption = None,
    verify_each: Annotated[
        bool, typer.Option("--verify-each", help="Verify the IR after each pass.")
    ] = False,
    opt_bisect: Annotated[
        int | None,
        typer.Option("--opt-bisect", metavar="N", min=0, help="Take N optimisation steps and name the last."),
    ] = None,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate", help="With --compare, if the outputs differ: find the pass and the step at fault."
        ),
    ] = False,
    reproducer: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write what it takes to see a pass fail again."),
    ] = None,
) -> None:
    """Compile a model and run it.

    The model is an ONNX file, or IR text of any level as `sardonyx dump --full` and `sardonyx opt` write it.

    \b
    Data of an input:
      FILE.npy               an array saved by numpy.save
      random                 random values: floats normal, integers 0 or 1
      random:2x3             of this shape (`random:scalar` for rank 0)
      random:2x3:-1..1       of this shape, between bounds; `random:0..99` keeps the model's shape
      zeros, ones            with a shape as well

    \b
    Examples:
      sardonyx run model.onnx
      sardonyx run model.onnx --dim batch=4 --compare
      sardonyx run model.onnx -i ids=random:2x64:0..30000 -i mask=ones:2x64
      sardonyx run model.onnx -i image=cat.npy --output-dir results
      sardonyx run model.onnx --repeat 100 --threads 1
      gdb -ex 'break Conv_1' -ex run --args python -m sardonyx run model.onnx --debug
      sardonyx run fused.mlir --dim batch=4
      sardonyx run model.onnx --compare --ablate
      sardonyx run model.onnx --passes 'lower,simplify,fuse{max=1}' --verify-each

    `--compare` takes the plain NumPy meaning of each operator as the reference (slow, exact), `--compare
    onnxruntime` that engine, if it is installed.

    \b
    Exit codes: 0 done, or equal within the tolerance; 1 the outputs differ; 2 the command line is wrong;
    3 the model cannot be compiled; 4 the run failed (inputs that do not fit, a fault inside a node).
    """
    if debug_dir is not None and debug is None:
        raise typer.BadParameter("it is for --debug", param_hint="--debug-dir")
    if ablate and compare is None:
        raise typer.BadParameter("--ablate goes with --compare")
    load_files(load)
    path = checked(model)
    budget = Budget()
    debugged = debug_options(debug or False, debug_dir)
    place = None if reproducer is None else str(reproducer)
    options = BuildOptions(passes, verify_each, opt_bisect, place, debug=debugged, budget=budget)
    start = time.perf_counter()
    with progress("compiling"):
        compiled = compile_with(options, path, threads=threads, cache=cache)
    seconds = time.perf_counter() - start
    feeds = feeds_of(compiled.inputs, input, dim, seed)
    outputs = compiled.run(feeds.arrays)
    typer.echo(f"{'ready' if cache else 'compiled'} in {milliseconds(seconds)}")
    if debugged is not None:
        typer.echo(f"debug information in {debugged.folder}")
    if opt_bisect is not None:
        typer.echo(f"{min(opt_bisect, budget.asked)} of {budget.asked} optimisation steps were taken")
        typer.echo(f"the last: {budget.last or 'none'}")
    if feeds.assumed:
        typer.echo(f"dims left out: {', '.join(f'{n}={s}' for n, s in feeds.assumed.items())}")
    _print_arrays(compiled, feeds, outputs)
    if repeat > 1:
        print_times(time_runs(compiled, feeds, repeat))
    if output_dir is not None:
        _save(output_dir, compiled.outputs, outputs)
    if compare is not None:
        with progress(f"running {compare}"):
            expected = outputs_of(compare, path, feeds.arrays)
        good = print_comparison(compiled.outputs, outputs, expected, compare, rtol, atol)
        if not good:
            if ablate:

                def judge(other: CompiledModel) -> bool:
                    got = other.run(feeds.arrays)
                    pairs = zip(got, expected, strict=True)
                    return all(compare_arrays(g, e, rtol=rtol, atol=atol).good for g, e in pairs)

                print_ablation(find_fault(path, judge, passes=passes, threads=threads, cache=cache))
            raise typer.Exit(ExitCode.DIFFERS)


def print_ablation(found: Ablation) -> None:
    """What came of leaving out each pass, and the step at fault."""
    typer.echo()
    print_table(["without", "verdict"], [[t.removed, t.verdict] for t in found.trials])
    if found.step is not None:
        typer.echo(f"the first step with which the result is wrong is number {found.step}: {found.rewrite}")
        typer.echo(f"see it with --opt-bisect {found.step}, and the result before it with {found.step - 1}")
    elif not any(t.verdict == "cured" for t in found.trials):
        typer.echo("the result is wrong whatever pass is left out: look at lowering, or at the kernels")


def time_runs(compiled: CompiledModel, feeds: Feeds, repeat: int) -> list[float]:
    """Seconds of each run."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        compiled.run(feeds.arrays)
        times.append(time.perf_counter() - start)
    return times


def print_times(times: Sequence[float]) -> None:
    typer.echo(
        f"{len(times)} runs: median {milliseconds(statistics.median(times))}, "
        f"fastest {milliseconds(min(times))}, slowest {milliseconds(max(times))}"
    )


def print_comparison(
    ports: Sequence[Argument],
    outputs: Sequence[Any],
    expected: Sequence[Any],
    engine: Engine,
    rtol: float | None = None,
    atol: float | None = None,
) -> bool:
    """Print a line per output; whether all are equal within the tolerance."""
    rows = []
    results: list[Comparison] = []
    for port, got, want in zip(ports, outputs, expected, strict=True):
        result = compare_arrays(got, want, rtol=rtol, atol=atol)
        results.append(result)
        figures = (result.max_ulp, _figure(result.max_absolute), _figure(result.max_relative))
        rows.append([port.name, result.verdict, *("-" if f is None else f for f in figures)])
    typer.echo()
    print_table(
        ["output", f"against {engine}", "max ULP", "max abs error", "max rel error"], rows, right=(2, 3, 4)
    )
    for port, result in zip(ports, results, strict=True):
        if result.why:
            typer.echo(f"{port.name}: {result.why}")
    return all(r.good for r in results)


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"


def _print_arrays(compiled: CompiledModel, feeds: Feeds, outputs: Sequence[Any]) -> None:
    rows = [
        ["input", a.name, a.dtype.onnx_name, _shape(array), _summary(array)]
        for a in compiled.inputs
        if (array := feeds.arrays.get(a.name)) is not None
    ]
    rows += [
        ["output", a.name, a.dtype.onnx_name, _shape(array), _summary(array)]
        for a, array in zip(compiled.outputs, outputs, strict=True)
    ]
    print_table(["", "name", "type", "shape", "values"], rows)


def _shape(array: Any) -> str:
    return "x".join(map(str, np.shape(array))) or "scalar"


def _summary(array: Any) -> str:
    """The values if they are few, else their range."""
    flat = np.asarray(array).ravel()
    if flat.size <= 6:
        return " ".join(_number(v) for v in flat)
    if flat.dtype.kind in "OUSc":
        return f"{_number(flat[0])} ..."
    if flat.dtype.kind == "b":
        return f"{int(flat.sum())} of {flat.size} true"
    wide = flat.astype(np.float64)
    text = f"{_number(np.nanmin(wide))} to {_number(np.nanmax(wide))}" if not np.isnan(wide).all() else "NaN"
    bad = int(np.isnan(wide).sum())
    return f"{text}, {bad} NaN" if bad and text != "NaN" else text


def _number(value: Any) -> str:
    if isinstance(value, str | bool | np.bool_):
        return str(value)
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, complex | np.complexfloating):
        return f"{complex(value):.4g}"
    return f"{float(value):.4g}"


def _save(folder: Path, ports: Sequence[Argument], outputs: Sequence[Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, (port, array) in enumerate(zip(ports, outputs, strict=True)):
            name = re.sub(r"[^\w.-]", "_", port.name) or "output"
            unique = len({re.sub(r"[^\w.-]", "_", p.name) for p in ports}) == len(ports)
            np.save(folder / (f"{name}.npy" if unique else f"{number}_{name}.npy"), array)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot write to {str(folder)!r}: {error.strerror}", param_hint="--output-dir"
        ) from None
