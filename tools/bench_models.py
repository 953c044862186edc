"""Real models against onnxruntime: results, times on one and two threads, compile time, memory.

    python tools/fetch_models.py --all
    python tools/bench_models.py                        every model that is fetched, as a Markdown table
    python tools/bench_models.py ocr-cls minilm --threads 1
    python tools/bench_models.py --rounds 30

Times are medians of runs of both engines in turn, in one process.  Memory is the peak of a fresh process
that loads the model (from the cache, where it was compiled before) and runs it once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fetch_models import MODELS, default_folder, path_of

Feeds = dict[str, Any]

_BLOCK = 5  # runs of one engine before the other has its turn


def _floats(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _tokens(batch: int, length: int, most: int = 30000) -> Any:
    return np.random.default_rng(0).integers(1, most, (batch, length))


def _text(batch: int, length: int) -> Feeds:
    return {"input_ids": _tokens(batch, length), "attention_mask": np.ones((batch, length), np.int64)}


def _windows(count: int) -> Feeds:
    lines = {n: _floats(count, 64, 101) for n in ("line_input", "value_input", "variable_input")}
    return {"feature_input": _floats(count, 529), **lines}


# For each model the sizes it is run at, from one compilation.
FEEDS: dict[str, Sequence[Callable[[], Feeds]]] = {
    "ocr-cls": [lambda: {"x": _floats(1, 3, 48, 192)}, lambda: {"x": _floats(6, 3, 48, 192)}],
    "ocr-det": [lambda: {"x": _floats(1, 3, 640, 640)}, lambda: {"x": _floats(1, 3, 320, 480)}],
    "ocr-rec": [lambda: {"x": _floats(1, 3, 48, 320)}, lambda: {"x": _floats(3, 3, 48, 160)}],
    "layout": [lambda: {"image": _floats(1, 3, 800, 608)}],
    "minilm": [lambda: _text(1, 64), lambda: _text(1, 128), lambda: _text(8, 32)],
    "minilm-int8": [lambda: {**_text(1, 64), "token_type_ids": np.zeros((1, 64), np.int64)}],
    "smart-turn": [lambda: {"input_features": _floats(1, 80, 800)}],
    "silero-vad": [
        lambda: {
            "input": _floats(1, 576) * 0.1,
            "state": np.zeros((2, 1, 128), np.float32),
            "sr": np.array(16000),
        }
    ],
    "title-encoder": [lambda: _text(1, 64)],
    "title-decoder": [
        lambda: {
            "input_ids": _tokens(1, 16),
            "encoder_hidden_states": _floats(1, 64, 512),
            "encoder_attention_mask": np.ones((1, 64), np.int64),
        }
    ],
    "credsweeper": [lambda: _windows(1), lambda: _windows(8)],
    "piper": [
        lambda: {
            "input": _tokens(1, 64, 100),
            "input_lengths": np.array([64]),
            "scales": np.array([0, 1, 0], np.float32),
        }
    ],
    "slovorez": [lambda: {"input_layer": _tokens(1, 20, 30).astype(np.int32)}],
    "trees": [lambda: {"X": _floats(1, 229).astype(float)}, lambda: {"X": _floats(64, 229).astype(float)}],
    "basic-pitch": [lambda: {"serving_default_input_2:0": _floats(1, 43844, 1)}],
}


def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _error(got: Sequence[Any], want: Sequence[Any]) -> float:
    """The largest difference of a value, relative to the largest value of its output (or to 1e-6)."""
    worst = 0.0
    for a, b in zip(got, want, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if b.size and b.dtype != object:
            x, y = a.astype(np.float64), b.astype(np.float64)
            worst = max(worst, float(np.nanmax(np.abs(x - y)) / max(np.nanmax(np.abs(y)), 1e-6)))
    return worst


def _times(first: Callable[[], Any], second: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Medians of both in blocks, in turn.  A pause lets the threads of the other engine come to rest, which
    would else hold the processors of this one; the first run of a block does not count."""
    a: list[float] = []
    b: list[float] = []
    for _ in range(max(1, rounds // _BLOCK)):
        for fn, times in ((first, a), (second, b)):
            time.sleep(0.1)
            fn()
            for _ in range(_BLOCK):
                start = time.perf_counter()
                fn()
                times.append(time.perf_counter() - start)
    return statistics.median(a), statistics.median(b)


def _memory(name: str, engine: str) -> float:
    """Peak memory in MB of a fresh process that loads the model, from the cache where there is one, and runs it."""
    command = [sys.executable, __file__, name, "--memory", engine, "--folder", str(_FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def _measure_memory(name: str, engine: str) -> None:
    path, feeds = path_of(name, _FOLDER), FEEDS[name][0]()
    if engine == "onnxruntime":
        _session(path, 1).run(None, feeds)
    else:
        import sardonyx

        sardonyx.compile(path, threads=1).run(feeds)
    # (What the kernel counts for a child begins with the size of its parent; this does not.)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024)


def _row(name: str, threads: Sequence[int], rounds: int) -> None:
    import sardonyx

    path = path_of(name, _FOLDER)
    start = time.perf_counter()
    try:
        sardonyx.compile(path, threads=1, cache=False)
    except sardonyx.CompileError as error:
        print(f"| {name} | not compiled: {str(error).splitlines()[0]} |", flush=True)
        return
    cold = time.perf_counter() - start
    sardonyx.compile(path, threads=1)
    start = time.perf_counter()
    models = {n: sardonyx.compile(path, threads=n) for n in threads}
    warm = (time.perf_counter() - start) / len(models)
    parts = getattr(models[threads[0]], "_parts", None)
    kernels = len(parts.objects) - 1 if parts is not None else 0
    sessions = {n: _session(path, n) for n in threads}
    memory = [_memory(name, e) for e in ("sardonyx", "onnxruntime")]
    for number, make in enumerate(FEEDS[name]):
        feeds = make()
        want = sessions[threads[0]].run(None, feeds)
        error = _error(models[threads[0]].run(feeds), want)
        shape = "x".join(map(str, next(iter(feeds.values())).shape)) or "scalar"
        cells = [name, shape, f"{error:.0e}"]
        for n in threads:
            run, peer = models[n].run, sessions[n].run
            run(feeds)
            a, b = _times(partial(run, feeds), partial(peer, None, feeds), rounds)
            cells += [f"{a * 1e3:.2f}", f"{b * 1e3:.2f}", f"{b / a:.2f}"]
        if number == 0:
            cells += [f"{cold:.1f}", f"{warm:.2f}", str(kernels), f"{memory[0]:.0f}", f"{memory[1]:.0f}"]
        else:
            cells += [""] * 5
        print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="default: every model that is fetched")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=Path, default=default_folder())
    parser.add_argument("--memory", choices=("sardonyx", "onnxruntime"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    global _FOLDER
    _FOLDER = options.folder
    if options.memory:
        _measure_memory(options.names[0], options.memory)
        return
    threads = [int(n) for n in options.threads.split(",")]
    names = options.names or [n for n in MODELS if n in FEEDS and path_of(n, _FOLDER).exists()]
    heads = ["model", "input", "error"]
    for n in threads:
        heads += [f"ours, {n} thread{'s' * (n > 1)} (ms)", "onnxruntime", "ratio"]
    heads += ["compile (s)", "from the cache (s)", "kernels", "memory (MB)", "onnxruntime"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads), flush=True)
    for name in names:
        _row(name, threads, options.rounds)


_FOLDER = Path(os.curdir)

if __name__ == "__main__":
    main()
