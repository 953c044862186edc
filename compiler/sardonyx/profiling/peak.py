"""What this machine can do at most: multiply-adds a second, and bytes a second for each size of working set.

Both are measured by small native loops, on as many threads as the profile has, once a process.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from sardonyx.codegen.emitter import Emitter, ModuleText, V, ltype
from sardonyx.codegen.jit import JitLibrary
from sardonyx.codegen.objects import compile_text
from sardonyx.kernels.target import Target

__all__ = ["Peak", "peak_of"]

_SETS = (16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20)  # bytes read and written over and over
_WINDOW = 2e-4  # seconds of one measurement
_WINDOWS = 50


@dataclass(frozen=True)
class Peak:
    """The peak of ``threads`` threads together.

    ``operations``: of f32 multiply-adds, two operations each, a second; ``bandwidth``: pairs of bytes of a
    working set and bytes read and written a second by a copy within it.
    """

    threads: int
    operations: float
    bandwidth: tuple[tuple[int, float], ...]

    def bytes_per_second(self, working_set: float) -> float:
        """The bandwidth of the smallest measured working set that is not smaller than this one."""
        return next((rate for size, rate in self.bandwidth if size >= working_set), self.bandwidth[-1][1])


@cache
def peak_of(target: Target, threads: int) -> Peak:
    """Measure the peak, in some 100 ms."""
    library = JitLibrary({"peak": compile_text(_text(target), target)}, ["sdx_multiply", "sdx_copy"], target)
    multiply = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(library.address("sdx_multiply"))
    copy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        library.address("sdx_copy")
    )
    per_pass = 2 * _accumulators(target) * _lanes(target)
    operations = per_pass * _rate(lambda _, passes: multiply(passes), threads)
    bandwidth = []
    for size in _SETS:
        memory = [np.zeros(size + 64, np.uint8) for _ in range(threads)]
        addresses = [-(-m.__array_interface__["data"][0] // 64) * 64 for m in memory]
        rate = _rate(lambda i, passes, at=addresses, n=size // 2: copy(at[i], n, passes), threads)  # type: ignore[misc]
        bandwidth.append((size, size * rate))
    return Peak(threads, operations, tuple(bandwidth))


def _rate(run: Callable[[int, int], None], threads: int) -> float:
    """Passes a second of all threads together; ``run(thread, passes)`` does some on one.

    Every thread counts with its best window: short ones, so that some are not disturbed by other programs.
    """
    passes = 1
    while (seconds := _seconds(run, 0, passes)) < _WINDOW / 2:
        passes = max(2 * passes, min(1000 * passes, int(passes * _WINDOW / max(seconds, 1e-7))))
    best = [0.0] * threads

    def measure(thread: int) -> None:
        best[thread] = passes / min(_seconds(run, thread, passes) for _ in range(_WINDOWS))

    workers = [threading.Thread(target=measure, args=(i,)) for i in range(1, threads)]
    for worker in workers:
        worker.start()
    measure(0)
    for worker in workers:
        worker.join()
    return sum(best)


def _seconds(run: Callable[[int, int], None], thread: int, passes: int) -> float:
    start = time.perf_counter()
    run(thread, passes)
    return time.perf_counter() - start


def _lanes(target: Target) -> int:
    return target.vector_bytes // 4


def _accumulators(target: Target) -> int:
    """Enough to hide the latency of an instruction, few enough for the registers."""
    return 12 if target.registers <= 16 else 24


def _text(target: Target) -> str:
    """``sdx_multiply(passes)``: multiply-adds on registers; ``sdx_copy(memory, bytes, passes)``: one half to the other."""
    module = ModuleText(target.features, target.function_attributes)
    e = Emitter(module)
    kind = ltype("f", 32, _lanes(target))
    count = _accumulators(target)
    e.raw("  br label %loop")
    e.label("loop")
    names = [f"%s{i}" for i in range(count)]
    e.raw("  %n = phi i64 [ 0, %entry ], [ %next, %loop ]")
    for i, name in enumerate(names):
        start = e.const(kind, 1.0 + i / 64)
        e.raw(f"  {name} = phi {kind.text} [ {start.ref}, %entry ], [ {name}.next, %loop ]")
    factor, addend = e.const(kind, 0.5), e.const(kind, 0.75)
    for name in names:
        value = V(kind, name)
        total = e.fma(value, factor, addend) if target.has_fma else e.add(e.mul(value, factor), addend)
        e.raw(f"  {name}.next = select i1 true, {kind.text} {total.ref}, {kind.text} {total.ref}")
    e.raw("  %next = add i64 %n, 1\n  %more = icmp slt i64 %next, %passes")
    e.raw("  br i1 %more, label %loop, label %done")
    e.label("done")
    total = V(kind, f"{names[0]}.next")
    for name in names[1:]:  # a use, or the loop would go
        total = e.add(total, V(kind, f"{name}.next"))
    e.ret(e.extract(total, 0))
    attributes = target.function_attributes
    return (
        f'target triple = "{target.triple}"\n{module.render()}\n'
        f"define float @sdx_multiply(i64 %passes) {attributes} {{\n{e.text()}\n}}\n"
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        f"define void @sdx_copy(ptr %memory, i64 %bytes, i64 %passes) {attributes} {{\n"
        "entry:\n  %half = getelementptr i8, ptr %memory, i64 %bytes\n  br label %loop\n"
        "loop:\n  %n = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
        "  call void @llvm.memcpy.p0.p0.i64(ptr %half, ptr %memory, i64 %bytes, i1 false)\n"
        '  call void asm sideeffect "", "~{memory}"()\n'
        "  %next = add i64 %n, 1\n  %more = icmp slt i64 %next, %passes\n"
        "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n"
    )
