"""The first result in a fresh process: a compiled library against an onnxruntime session.

    python tools/fetch_models.py
    python tools/bench_start.py                     MiniLM, 15 fresh processes of each, in turn
    python tools/bench_start.py --model ocr-cls --rounds 30

A process imports its engine (`sardonyx_runtime` without the compiler, or onnxruntime), opens the model and runs it
once.  Times are of the process as a whole, the interpreter's own start taken off (the median of processes that only
import numpy, which both engines do too, stands in the last column), and of its parts as the process sees them.
Python's compiled files and the model's file are in the system's cache: the first process of each is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench_models import FEEDS
from fetch_models import path_of

import sardonyx

_RUNTIME = Path(__file__).resolve().parent.parent / "runtime"

_PROGRAM = """
import time
start = time.perf_counter()
{engine}
imported = time.perf_counter()
{open}
opened = time.perf_counter()
feeds = dict(numpy.load({feeds!r}))
loaded = time.perf_counter()
{run}
end = time.perf_counter()
import json
print(json.dumps([imported - start, opened - imported, end - loaded]))
"""
_PARTS = ("import", "open", "first run")


def _programs(library: str, model: str, feeds: str, threads: int) -> dict[str, str]:
    session = (
        f"options = onnxruntime.SessionOptions()\noptions.intra_op_num_threads = {threads}\n"
        f"model = onnxruntime.InferenceSession({model!r}, options, providers=['CPUExecutionProvider'])"
    )
    return {
        "sardonyx": _PROGRAM.format(
            engine="import numpy\nfrom sardonyx_runtime import load",
            open=f"model = load({library!r}, threads={threads})",
            feeds=feeds,
            run="model.run(feeds)",
        ),
        "onnxruntime": _PROGRAM.format(
            engine="import numpy, onnxruntime", open=session, feeds=feeds, run="model.run(None, feeds)"
        ),
        "nothing": "import numpy, json\nprint(json.dumps([0, 0, 0]))",
    }


def _once(program: str, environment: dict[str, str]) -> list[float]:
    """Seconds of a fresh process, and of its parts."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return [time.perf_counter() - start, *json.loads(done.stdout)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Times the first result in fresh processes.")
    parser.add_argument("--model", default="minilm", choices=sorted(FEEDS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    model = path_of(options.model)
    if not model.exists():
        parser.error(f"{model} is not there: python tools/fetch_models.py {options.model}")
    with tempfile.TemporaryDirectory() as folder:
        library, feeds = f"{folder}/model.so", f"{folder}/feeds.npz"
        sardonyx.compile_to(model, library)
        np.savez(feeds, **FEEDS[options.model][0]())
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPATH": str(_RUNTIME), "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        programs = _programs(library, str(model), feeds, options.threads)
        times: dict[str, list[list[float]]] = {name: [] for name in programs}
        for _ in range(options.rounds + 1):
            for name, program in programs.items():
                times[name].append(_once(program, environment))
    medians = {
        n: [statistics.median(column) for column in zip(*rows[1:], strict=True)] for n, rows in times.items()
    }
    empty = medians.pop("nothing")[0]
    print(
        "| engine | process (ms) | "
        + " | ".join(f"{p} (ms)" for p in _PARTS)
        + " | beyond an empty one (ms) |"
    )
    print("|---|" + "--:|" * (len(_PARTS) + 2))
    for name, row in medians.items():
        cells = [f"{1e3 * value:.1f}" for value in (*row, row[0] - empty)]
        print(f"| {name} | {' | '.join(cells)} |")
    ours, theirs = (medians[name][0] for name in ("sardonyx", "onnxruntime"))
    print(
        f"\nprocess: {theirs / ours:.2f} times as quick, beyond an empty one: {(theirs - empty) / (ours - empty):.2f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
