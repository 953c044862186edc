"""``sardonyx profile``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.feeds import InputOption, SeedOption, SizeOption, ThreadsOption, feeds_of
from sardonyx.cli.plugins import LoadOption, load_files
from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import amount, milliseconds, print_table, progress, save_text
from sardonyx.model import compile
from sardonyx.profiling.results import Figures, Node, Profile

__all__ = ["command"]


class By(StrEnum):
    """What the rows of the table are."""

    KERNEL = "kernel"
    LAUNCH = "launch"
    NODE = "node"


def command(
    model: ModelArgument,
    input: InputOption = None,
    dim: SizeOption = None,
    runs: Annotated[int, typer.Option(min=1, help="How often to run.")] = 20,
    threads: ThreadsOption = None,
    by: Annotated[By, typer.Option(help="What the rows of the table are.")] = By.KERNEL,
    top: Annotated[int, typer.Option(min=0, help="How many rows to print; 0: all.")] = 20,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a trace for Perfetto or chrome://tracing."),
    ] = None,
    seed: SeedOption = 0,
    load: LoadOption = None,
) -> None:
    """Show where the time of a run goes: by kernel, by launch, or by ONNX node.

    The kernels are those that `sardonyx run` uses; the entry point looks at the clock around each launch. Times
    are means of the faster half of the runs.

    \b
    Columns:
      time, share      of a run, on the calling thread
      calls            launches per run
      threads          that took part in a launch
      memory           read or written at least once, per second
      arithmetic       operations on elements (a multiply-add is two), per second
      of peak          the larger share of what this machine can do, measured:
                       f32 multiply-adds, or copying in a working set of this size

    A kernel that computes several nodes is one row. `--by node` splits its time by the instructions
    that stem from each node: an estimate, marked with ~.

    \b
    Examples:
      sardonyx profile model.onnx
      sardonyx profile model.onnx --dim batch=8 --threads 1 --by node
      sardonyx profile model.onnx --json times.json --trace trace.json
      sardonyx explore model.onnx --profile times.json
    """
    path = checked(model)
    load_files(load)
    with progress("compiling"):
        compiled = compile(path, threads=threads)
    inputs = compiled.inputs
    feeds = feeds_of(inputs, input, dim, seed)
    with progress("profiling"):
        profile: Profile = compiled.profile(feeds.arrays, runs=runs)
    if feeds.assumed:
        typer.echo(f"dims left out: {', '.join(f'{n}={s}' for n, s in feeds.assumed.items())}")
    _print(profile, by, top)
    for option, file, content in (("--json", json_file, profile.to_json), ("--trace", trace, profile.trace)):
        if file is not None:
            save_text(json.dumps(content()) + "\n", file, option)


def _print(profile: Profile, by: By, top: int) -> None:
    inside = profile.in_kernels
    typer.echo(
        f"{milliseconds(profile.seconds)} a run, {milliseconds(inside)} of it in {len(profile.launches)} launches of "
        f"{len(profile.kernels)} kernels; {profile.threads} threads, {profile.runs} runs"
    )
    peak = profile.peak
    largest = peak.bandwidth[-1][1]
    typer.echo(f"peak: {peak.operations / 1e9:.3g} GFLOP/s, {largest / 1e9:.3g} GB/s from memory\n")
    if by is By.NODE:
        nodes = profile.nodes
        rows: list[list[object]] = [
            [
                f"{'~' if n.estimated else ''}{milliseconds(n.seconds)}",
                f"{profile.share(n.seconds):.1%}",
                len(n.kernels),
                n.node.op_type,
                n.node.name,
            ]
            for n in nodes
        ]
        columns, right = ["time", "share", "kernels", "operator", "node"], [0, 1, 2]
    else:
        launches: Iterable[Figures] = profile.kernels
        if by is By.LAUNCH:
            launches = sorted(profile.launches, key=lambda one: -one.seconds)
        rows = [_row(profile, one) for one in launches]
        columns = ["time", "share", "calls", "threads", "memory", "arithmetic", "of peak", "kernel", "nodes"]
        right = list(range(7))
    shown = rows[:top] if top else rows
    print_table(columns, shown, right=right)
    if len(rows) > len(shown):
        typer.echo(f"and {len(rows) - len(shown)} more (--top 0 prints all)")


def _row(profile: Profile, one: Figures) -> list[object]:
    seconds = one.seconds or 1.0
    return [
        milliseconds(one.seconds),
        f"{profile.share(one.seconds):.1%}",
        f"{one.calls:g}",
        one.threads,
        f"{amount(round(one.bytes / seconds))}/s",
        f"{one.operations / seconds / 1e9:.3g} G/s",
        f"{one.peak_share:.0%}",
        one.kernel if len(one.kernel) <= 14 else f"{one.kernel[:12]}..",
        _names(one.nodes),
    ]


def _names(nodes: tuple[Node, ...], most: int = 3) -> str:
    names = [n.name for n in nodes[:most]]
    return ", ".join(names) + (f" and {len(nodes) - most} more" if len(nodes) > most else "")
