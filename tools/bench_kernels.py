"""Matrix products and convolutions against onnxruntime, one thread, interleaved in one process.

    python tools/bench_kernels.py                    the products and convolutions of the project's first aims
    python tools/bench_kernels.py --more             other shapes: skinny, strided, grouped, pictures
    python tools/bench_kernels.py --chain            a small residual network besides
    python tools/bench_kernels.py --only conv        rows whose name contains a text

Every model has one node, NCHW in and out; the weights are constants unless the row says `run time`.
Each row: median time of both, what it is in GFLOP/s, how far the middle half of the rounds is spread,
their ratio (above 1: we are faster), the largest difference relative to the largest result, and how long
compiling took.  Time is the CPU time of the calling thread, on which both engines do all their work here:
other processes take turns with it, but are not counted.  They still share caches and, on some hosts, the
core itself; a row with a spread above a tenth or so says nothing and is marked with `?`.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper

import sardonyx

Array = np.ndarray[Any, Any]


@dataclass
class Row:
    """One model to measure: its nodes, inputs and constants, and the operations of a run."""

    name: str
    nodes: list[Any]
    feeds: dict[str, Array]
    constants: dict[str, Array] = field(default_factory=dict)
    operations: float = 0

    def model(self) -> ModelProto:
        inputs = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in self.feeds.items()]
        output = helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, None)
        weights = [numpy_helper.from_array(v, k) for k, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "bench", inputs, [output], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


RNG = np.random.default_rng(0)
_NOISE = 0.15  # spread from which a row is doubtful


def numbers(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def matmul(rows: int, depth: int, columns: int, *, constant: bool = True) -> Row:
    y = numbers(depth, columns)
    name = f"MatMul {rows}x{depth}x{columns}{'' if constant else ', run time'}"
    feeds = {"a": numbers(rows, depth)} | ({} if constant else {"b": y})
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    return Row(name, [node], feeds, {"b": y} if constant else {}, 2 * rows * depth * columns)


def conv(channels: int, filters: int, size: int, kernel: int, *, stride: int = 1, group: int = 1) -> Row:
    w = numbers(filters, channels // group, kernel, kernel)
    attributes = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    kind = (
        "depthwise"
        if group == channels
        else f"{channels} to {filters}" + (f", {group} groups" if group > 1 else "")
    )
    name = f"Conv {kernel}x{kernel}{f'/{stride}' if stride > 1 else ''} {kind} at {size}x{size}"
    pixels = (-(-size // stride)) ** 2
    return Row(name, [node], {"x": numbers(1, channels, size, size)}, {"w": w}, 2 * w.size * pixels)


def residual_network() -> Row:
    """Two residual blocks with batch normalisation, pooled: what a chain of convolutions costs together."""
    nodes, constants, value = [], {}, "x"

    def block(index: int, value: str) -> str:
        for part in "ab":
            name = f"{index}{part}"
            constants[f"w{name}"] = numbers(64, 64, 3, 3) / 24
            for kind, array in zip(
                "sbmv", (numbers(64), numbers(64), numbers(64), numbers(64) ** 2 + 1), strict=True
            ):
                constants[kind + name] = array
            source = value if part == "a" else f"r{index}"
            nodes.append(helper.make_node("Conv", [source, f"w{name}"], [f"c{name}"], pads=[1] * 4))
            statistics_ = [f"{kind}{name}" for kind in "sbmv"]
            nodes.append(helper.make_node("BatchNormalization", [f"c{name}", *statistics_], [f"n{name}"]))
            if part == "a":
                nodes.append(helper.make_node("Relu", [f"n{name}"], [f"r{index}"]))
        nodes.append(helper.make_node("Add", [f"n{index}b", value], [f"a{index}"]))
        nodes.append(helper.make_node("Relu", [f"a{index}"], [f"y{index}"]))
        return f"y{index}"

    for index in range(2):
        value = block(index, value)
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["y"]))
    return Row(
        "two residual blocks, 64 at 56x56",
        nodes,
        {"x": numbers(1, 64, 56, 56)},
        constants,
        4 * 2 * 64 * 576 * 56**2,
    )


def rows(more: bool, chain: bool) -> Iterator[Row]:
    yield matmul(128, 768, 768)
    yield matmul(128, 3072, 768)
    yield conv(64, 64, 56, 3)
    yield conv(256, 256, 14, 3)
    yield conv(512, 512, 7, 3)
    yield conv(64, 256, 56, 1)
    if more:
        yield matmul(128, 768, 768, constant=False)
        yield matmul(128, 768, 3072)
        yield matmul(64, 384, 384)
        yield matmul(1, 768, 768)
        yield matmul(12, 64, 64)
        yield matmul(512, 512, 512, constant=False)
        yield conv(3, 64, 224, 7, stride=2)
        yield conv(3, 16, 224, 3, stride=2)
        yield conv(256, 64, 56, 1)
        yield conv(128, 128, 56, 3, stride=2)
        yield conv(128, 128, 28, 3, group=32)
        yield conv(96, 96, 112, 3, stride=2, group=96)
        yield conv(144, 144, 56, 3, group=144)
        yield conv(240, 240, 14, 5, group=240)
    if chain:
        yield residual_network()


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median, and how far the middle half of the rounds is spread around it."""

    median: float
    spread: float


def interleaved(first: Callable[[], Any], second: Callable[[], Any], rounds: int) -> tuple[Timing, Timing]:
    """Both measured in turns, the order swapped from round to round."""
    runs = (first, second)
    counts = []
    for fn in runs:
        fn()
        start = time.thread_time()
        fn()
        counts.append(max(1, math.ceil(1e-3 / max(1e-7, time.thread_time() - start))))
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            start = time.thread_time()
            for _ in range(counts[which]):
                runs[which]()
            times[which].append((time.thread_time() - start) / counts[which])
    return _timing(times[0]), _timing(times[1])


def _timing(times: list[float]) -> Timing:
    low, middle, high = statistics.quantiles(times, n=4)
    return Timing(middle, (high - low) / middle)


def measure(row: Row, rounds: int) -> float:
    model = row.model()
    start = time.perf_counter()
    ours = sardonyx.compile(model, threads=1)
    seconds = time.perf_counter() - start
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    got, want = ours.run(row.feeds)[0], theirs.run(None, row.feeds)[0]
    error = float(np.abs(got - want).max() / np.abs(want).max())
    us, they = interleaved(lambda: ours.run(row.feeds), lambda: theirs.run(None, row.feeds), rounds)
    ratio = they.median / us.median
    print(
        f"{row.name:40s} {_shown(us, row.operations)}   onnxruntime {_shown(they, row.operations)}"
        f"   ratio {ratio:5.2f}{' ?' if max(us.spread, they.spread) > _NOISE else '  '}"
        f"   error {error:.0e}   compiled in {seconds * 1e3:4.0f} ms",
        flush=True,
    )
    return ratio


def _shown(timing: Timing, operations: float) -> str:
    rate = operations / timing.median / 1e9
    return f"{timing.median * 1e6:9.1f} us {rate:4.0f} GFLOP/s +-{timing.spread * 50:3.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--more", action="store_true", help="other shapes as well")
    parser.add_argument("--chain", action="store_true", help="a small residual network as well")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains the text")
    parser.add_argument("--rounds", type=int, default=31, help="rounds of measuring (default 31)")
    options = parser.parse_args()
    chosen = [r for r in rows(options.more, options.chain) if options.only.lower() in r.name.lower()]
    ratios = [measure(row, options.rounds) for row in chosen]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\ngeometric mean of {len(ratios)} ratios: {mean:.2f}, least {min(ratios):.2f}")
        print("load of the machine, 1 and 5 minutes:", *(f"{x:.1f}" for x in os.getloadavg()[:2]))


if __name__ == "__main__":
    main()
