"""Floor and GreaterOrEqual against onnxruntime, one thread, interleaved in one process.

    python tools/bench_elementwise.py                       all types, families and sizes, a summary
    python tools/bench_elementwise.py --types f32,bf16 --sizes 64,4194304 --rows
    python tools/bench_elementwise.py --copy                at 4,194,304 elements, against numpy's copy

Families of shapes (x, y) with N elements in the result: same, scalar left, scalar right, row, channel,
outer, general.  Each row is the median time of both, their ratio (above 1: we are faster), and the
summary is the geometric mean, the least ratio, and how many rows are below 1.  onnxruntime has no
kernel for some types; those rows are measured against numpy, which the summary says.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from bench_timing import medians
from onnx import TensorProto, helper

import sardonyx
from sardonyx_runtime import dtypes

Shape = tuple[int, ...]

TYPES = {
    "f32": dtypes.f32,
    "f64": dtypes.f64,
    "f16": dtypes.f16,
    "bf16": dtypes.bf16,
    "i8": dtypes.i8,
    "i64": dtypes.i64,
}


def families(size: int) -> dict[str, tuple[Shape, Shape]]:
    """Shapes of both operands whose result has about ``size`` elements."""
    side = max(1, math.isqrt(size))
    scale = max(1, round((size / 6720) ** 0.5))
    return {
        "same": ((size,), (size,)),
        "scalar left": ((), (size,)),
        "scalar right": ((size,), ()),
        "row": ((side, max(1, size // side)), (max(1, size // side),)),
        "channel": ((max(1, side // 8), 8, max(1, size // side)), (8, 1)),
        "outer": ((side, 1), (1, max(1, size // side))),
        "general": ((2, 1, 4 * scale, 1, 8, 1), (1, 3, 1, 5, 1, 7 * scale)),
    }


def model(op: str, dtype: dtypes.DType, shapes: list[Shape]) -> bytes:
    names = "xy"[: len(shapes)]
    inputs = [
        helper.make_tensor_value_info(n, dtype.onnx, [f"{n}{i}" if d > 1 else d for i, d in enumerate(s)])
        for n, s in zip(names, shapes, strict=True)
    ]
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        inputs = [
            helper.make_tensor_value_info(n, dtype.onnx, [f"d{i}" for i in range(len(shapes[0]))])
            for n in names
        ]
    elif len(shapes) == 2:
        inputs = [
            helper.make_tensor_value_info(n, dtype.onnx, list(s)) for n, s in zip(names, shapes, strict=True)
        ]
    to = dtype.onnx if op == "Floor" else TensorProto.BOOL
    output = helper.make_tensor_value_info("z", to, None)
    graph = helper.make_graph([helper.make_node(op, list(names), ["z"])], op, inputs, [output])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=9)
    return bytes(made.SerializeToString())


def values(dtype: dtypes.DType, shape: Shape, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    if dtype.is_integer:
        return rng.integers(-100, 100, shape).astype(dtype.numpy)
    return np.asarray(rng.standard_normal(shape) * 8).astype(dtype.numpy)


def peer(data: bytes, feeds: dict[str, Any], op: str) -> tuple[Callable[[], Any], str]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        session.run(None, feeds)
        return lambda: session.run(None, feeds), "onnxruntime"
    except Exception:
        arrays = list(feeds.values())
        return (lambda: np.floor(*arrays)) if op == "Floor" else (lambda: np.greater_equal(*arrays)), "numpy"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--sizes", default="1,64,1000,65536,1048576,4194304")
    parser.add_argument("--families", default="", help="comma-separated names; default all")
    parser.add_argument("--rows", action="store_true", help="print every row")
    parser.add_argument("--budget", type=float, default=0.3, help="seconds per row")
    parser.add_argument("--copy", action="store_true", help="compare with numpy's copy instead")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    ratios: dict[str, list[float]] = {"onnxruntime": [], "numpy": []}
    for type_name in options.types.split(","):
        dtype = TYPES[type_name]
        for size in map(int, options.sizes.split(",")):
            for op in ("Floor", "GreaterOrEqual"):
                if op == "Floor" and not dtype.is_float:
                    continue
                shapes_of = {"same": ((size,),)} if op == "Floor" else families(size)
                for family, shapes in shapes_of.items():
                    if options.families and family not in options.families.split(","):
                        continue
                    arrays = [values(dtype, s, rng) for s in shapes]
                    data = model(op, dtype, list(shapes))
                    ours = sardonyx.compile(data, threads=1)
                    feeds = dict(zip("xy", arrays, strict=False))
                    if options.copy:
                        copy(ours, feeds, arrays, op, type_name)
                        continue
                    other, name = peer(data, feeds, op)
                    a, b = medians(lambda run=ours.run, f=feeds: run(f), other, options.budget)
                    ratios[name].append(b / a)
                    if options.rows or b / a < 1:
                        print(
                            f"{op:15} {type_name:5} {family:13} N={size:<8} {a * 1e6:10.2f} us  {name} {b * 1e6:10.2f} us  ratio {b / a:.2f}",
                            flush=True,
                        )
    for name, found in ratios.items():
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            below = sum(r < 1 for r in found)
            print(
                f"against {name}: {len(found)} rows, geometric mean {mean:.2f}, least {min(found):.2f}, {below} below 1"
            )


def copy(ours: Any, feeds: dict[str, Any], arrays: list[Any], op: str, type_name: str) -> None:
    """Bytes per second of a run into a given array, against numpy's copy of one operand."""
    out = (
        [np.empty(a.shape, a.dtype.numpy) for a in ours.outputs]
        if all(isinstance(d, int) for a in ours.outputs for d in a.shape)
        else [ours.run(feeds)[0]]
    )
    target = np.empty_like(arrays[0])
    a, b = medians(lambda: ours.run(feeds, out=out), lambda: np.copyto(target, arrays[0]), 1.0)
    moved = sum(x.nbytes for x in arrays) + out[0].nbytes
    rate, copy_rate = moved / a, 2 * arrays[0].nbytes / b
    print(
        f"{op:15} {type_name:5} {rate / 1e9:7.1f} GB/s  copy {copy_rate / 1e9:7.1f} GB/s  ratio {rate / copy_rate:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
