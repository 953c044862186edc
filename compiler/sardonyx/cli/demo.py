"""``sardonyx demo``."""

from __future__ import annotations

import statistics
import time

import numpy as np
import typer

from sardonyx.cli.demo_model import CLASSES, SIZE, demo_images, demo_model
from sardonyx.cli.engines import Engine, outputs_of
from sardonyx.cli.failure import ExitCode
from sardonyx.cli.feeds import Feeds, ThreadsOption
from sardonyx.cli.run import print_comparison, time_runs
from sardonyx.cli.terminal import milliseconds, print_table, progress
from sardonyx.dumps.stages import stage_sizes
from sardonyx.model import compile

__all__ = ["command"]

_BATCHES = (1, 8)
_REPEAT = 50


def command(
    threads: ThreadsOption = None,
) -> None:
    """Compile, run and check a small model that is made on the spot.

    The model tells the direction of stripes in a picture: convolutions, pooling, a linear layer, Softmax;
    Floor and GreaterOrEqual at its ends.  One compilation serves every batch size.  The command prints what
    it sees, whether the outputs equal the reference's, the size of every stage of the compilation, and the
    time per run.

    \b
    Examples:
      sardonyx demo
      sardonyx demo --threads 1

    Exit code 1 if the outputs differ from the reference's.
    """
    model = demo_model()
    start = time.perf_counter()
    with progress("compiling"):
        compiled = compile(model, threads=threads, cache=False)
    seconds = time.perf_counter() - start
    typer.echo(
        f"A classifier of stripes, {len(model.graph.node)} nodes, compiled in {milliseconds(seconds)}.\n"
    )

    images, labels = demo_images(max(_BATCHES))
    feeds = Feeds({"image": images}, {})
    outputs = compiled.run(feeds.arrays)
    rows = [
        [number, CLASSES[label], CLASSES[int(np.argmax(p))], f"{p.max():.3f}", "yes" if sure.any() else "no"]
        for number, (label, p, sure) in enumerate(zip(labels, *outputs, strict=True))
    ]
    print_table(["image", "stripes are", "seen as", "probability", "sure"], rows, right=(0, 3))

    good = print_comparison(
        compiled.outputs, outputs, outputs_of(Engine.REFERENCE, model, feeds.arrays), Engine.REFERENCE
    )
    typer.echo()
    sizes = stage_sizes(model)
    print_table(
        ["stage", "operations", "bytes of text"],
        [[s.stage, s.operations, f"{s.bytes:,}"] for s in sizes],
        right=(1, 2),
    )
    typer.echo()
    for batch in _BATCHES:
        times = time_runs(compiled, Feeds({"image": images[:batch]}, {}), _REPEAT)
        typer.echo(
            f"{batch} x {SIZE}x{SIZE}: {milliseconds(statistics.median(times))} per run, median of {_REPEAT}"
        )
    typer.echo("\nNext: sardonyx run YOUR_MODEL.onnx --compare")
    if not good:
        raise typer.Exit(ExitCode.DIFFERS)
