"""Operators on realistic shapes against onnxruntime: one thread, interleaved in one process.

    python tools/bench_operators.py                     all sections
    python tools/bench_operators.py computed            one section
    python tools/bench_operators.py computed Resize     the rows whose name contains a word

The rows stand in ``bench_rows/``, a file per section, as a list ``ROWS``.  Each line gives the median
time of both and their ratio: above 1 we are faster.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from bench_rows.row import Row
from bench_timing import medians

import sardonyx

SECTIONS = sorted(
    p.stem for p in Path(__file__).with_name("bench_rows").glob("*.py") if p.stem not in ("__init__", "row")
)


def session_of(row: Row) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        row.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def difference(got: Any, want: Any) -> str:
    """How far apart two outputs are, for a hint; empty if they agree."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"  shapes {got.shape} and {want.shape}"
    if got.dtype.kind not in "fiu":
        return ""
    apart = np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0)
    scale = np.abs(want.astype(np.float64)).max(initial=0) or 1.0
    return f"  differs by {apart:.3g}" if apart > 1e-4 * scale else ""


def measure(row: Row, budget: float) -> float | None:
    """Print one row; the ratio, None where onnxruntime does not run the model."""
    start = time.perf_counter()
    ours = sardonyx.compile(row.model, threads=1, cache=False)
    seconds = time.perf_counter() - start
    feeds = row.feeds
    got = ours.run(feeds)
    try:
        session = session_of(row)
        want = session.run(None, feeds)
    except Exception as error:
        a, _ = medians(lambda: ours.run(feeds), lambda: None, budget)
        text = str(error).split("\n")[0][:60]
        print(
            f"{row.name:44} {a * 1e6:11.1f} us   compiled in {seconds:.2f} s; onnxruntime: {text}", flush=True
        )
        return None
    a, b = medians(lambda: ours.run(feeds), lambda: session.run(None, feeds), budget)
    apart = "".join(difference(g, w) for g, w in zip(got, want, strict=True))
    print(
        f"{row.name:44} {a * 1e6:11.1f} us  onnxruntime {b * 1e6:11.1f} us  ratio {b / a:6.2f}"
        f"  compiled in {seconds:.2f} s{apart}",
        flush=True,
    )
    return b / a


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("section", nargs="?", default="", help=f"one of {', '.join(SECTIONS)}")
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per row")
    options = parser.parse_args()
    ratios: list[float] = []
    for section in [options.section] if options.section else SECTIONS:
        for row in importlib.import_module(f"bench_rows.{section}").ROWS:
            if options.word in row.name and (ratio := measure(row, options.budget)) is not None:
                ratios.append(ratio)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        below = sum(r < 1 / 3 for r in ratios)
        print(
            f"{len(ratios)} rows, geometric mean {mean:.2f}, least {min(ratios):.2f}, {below} below a third"
        )


if __name__ == "__main__":
    main()
