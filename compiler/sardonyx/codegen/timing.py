"""Instrumentation of the entry point: how long each launch takes, on which threads, and on how much memory.

Kernels stay as they are: a launch goes to a wrapper of the kernel's task, which looks at the clock before and
after each piece of work.  What is measured goes to a table whose address stands in the global ``sdx_profile``
of the module.  Its words (64 bits):

======  ==========================================================================
word    meaning
======  ==========================================================================
0       records noted so far (there may be room for fewer)
1       room for records
2       address of the records
3       nanoseconds of the last run
4 ...   a slot for each timed op, in the order of `TimingPlan.ops`
======  ==========================================================================

A slot: calls, nanoseconds on the calling thread, nanoseconds on all threads, the range of a launch, then for each
operand what was passed last (an address or an index), then for each operand the bytes of its memory (-1: not known).

A record: number of the timed op (-1: the whole run), thread, start, end (nanoseconds of the monotonic clock),
and the piece of the range, ``begin`` to ``end`` (-1 and -1: the whole launch).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sardonyx.codegen.emitter import I64, PTR, Emitter, V
from sardonyx.ir.graph import Op, Value, walk
from sardonyx.passes.program import Program
from sardonyx_runtime.dims import DimLike, product, symbols_of

__all__ = ["FIXED", "HEADER", "RECORD", "TABLE", "Timer", "TimingPlan", "clock_of", "timed_entry"]

TABLE = "sdx_profile"
HEADER = 4  # words in front of the slots
FIXED = 4  # words of a slot in front of the operands
RECORD = 6  # words of a record

_TIMED = ("loop.launch", "loop.external", "loop.copy")
_CLOCKS = {"linux": 1, "darwin": 6, "macosx": 6}  # CLOCK_MONOTONIC


@dataclass(frozen=True)
class TimingPlan:
    """The ops of a program that are timed, and where each one's slot is in the table."""

    ops: tuple[Op, ...]
    slots: tuple[int, ...]
    words: int  # of the whole table

    @classmethod
    def of(cls, program: Program) -> TimingPlan:
        ops = tuple(op for op in walk(program.main) if op.name in _TIMED)
        slots, at = [], HEADER
        for op in ops:
            slots.append(at)
            at += FIXED + 2 * len(op.operands)
        return cls(ops, tuple(slots), at)


def clock_of(triple: str) -> int | None:
    """The number of the monotonic clock for ``clock_gettime``; None where there is no such function."""
    return next((number for system, number in _CLOCKS.items() if system in triple), None)


class Timer:
    """Emits the measuring around the timed ops of a program."""

    def __init__(self, program: Program, emitter: Emitter) -> None:
        self.plan = TimingPlan.of(program)
        self._program = program
        self._e = emitter
        self._numbers = {op: number for number, op in enumerate(self.plan.ops)}
        self._sizes = _Sizes(program)

    def times(self, op: Op) -> bool:
        return op in self._numbers

    def task(self, op: Op) -> str:
        """The task that measures the pieces of a launch."""
        number, kernel = self._numbers[op], op.attributes["kernel"]
        name = f"sdx.timed.{number}"
        self._e.module.add_function(
            name, _WRAPPER.format(name=name, kernel=kernel, number=number, busy=self.plan.slots[number] + 2)
        )
        return name

    def around(
        self,
        op: Op,
        emit: Callable[[], None],
        operands: Callable[[Value], V],
        dim: Callable[[DimLike], V],
        known: Callable[[str], bool],
    ) -> None:
        """Emit an op between two looks at the clock."""
        e, number = self._e, self._numbers[op]
        table = e.load(PTR, V(PTR, f"@{TABLE}"), align=8)
        slot = e.gep(I64, table, e.const(I64, self.plan.slots[number]))
        count = len(op.operands)
        for i, operand in enumerate(op.operands):
            value = operands(operand)
            e.store(value, e.gep(I64, slot, e.const(I64, FIXED + i)), align=8)
            size = self._sizes.of(operand)
            if size is None or not all(known(s) for s in symbols_of(size)):
                size = -1
            bytes_ = dim(size)
            e.store(bytes_, e.gep(I64, slot, e.const(I64, FIXED + count + i)))
        if "range" in op.attributes:
            e.store(dim(op.attributes["range"]), e.gep(I64, slot, e.const(I64, 3)))
        start = e.call(I64, "sdx.clock")
        emit()
        stop = e.call(I64, "sdx.clock")
        assert start is not None and stop is not None
        calls, wall = (e.gep(I64, slot, e.const(I64, i)) for i in range(2))
        e.store(e.iadd(e.load(I64, calls), e.const(I64, 1)), calls)
        e.store(e.iadd(e.load(I64, wall), e.isub(stop, start)), wall)
        whole = e.const(I64, -1)
        e.call(None, "sdx.note", e.const(I64, number), start, stop, whole, whole)


class _Sizes:
    """Bytes of the memory that a buffer of the program names; None where they are not known."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._weights = {offset: dense.array.nbytes for offset, dense in program.weights.items}

    def of(self, value: Value) -> DimLike | None:
        op = value.op
        if op is None:
            return None
        a = op.attributes
        if op.name == "loop.input":
            port = self._program.inputs[a["number"]]
            size: DimLike | None = product(port.shape) * port.dtype.itemsize
            return size
        if op.name == "loop.weights":
            return self._weights.get(a["offset"])
        if op.name in ("loop.output", "loop.place"):
            return a.get("size")
        if op.name in ("loop.part", "loop.view"):
            whole = self.of(op.operands[0])
            return None if whole is None else whole - a["offset"]
        return None if op.name in ("loop.heap", "loop.status") else 0


_WRAPPER = """define internal void @{name}(ptr %args, i64 %begin, i64 %end) nounwind {{
  %start = call i64 @sdx.clock()
  call void @{kernel}.task(ptr %args, i64 %begin, i64 %end)
  %stop = call i64 @sdx.clock()
  %table = load ptr, ptr @sdx_profile
  %busy.at = getelementptr i64, ptr %table, i64 {busy}
  %spent = sub i64 %stop, %start
  %before = atomicrmw add ptr %busy.at, i64 %spent monotonic
  call void @sdx.note(i64 {number}, i64 %start, i64 %stop, i64 %begin, i64 %end)
  ret void
}}
"""

_ENTRY = """
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()

@sdx.nowhere = internal global [{words} x i64] zeroinitializer, align 8
@sdx_profile = global ptr @sdx.nowhere, align 8

define internal i64 @sdx.clock() nounwind {{
  %time = alloca [2 x i64], align 8
  %r = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}

; A record, if there is room for it.
define internal void @sdx.note(i64 %number, i64 %start, i64 %stop, i64 %begin, i64 %end) nounwind {{
  %table = load ptr, ptr @sdx_profile
  %at = atomicrmw add ptr %table, i64 1 monotonic
  %room.at = getelementptr i64, ptr %table, i64 1
  %room = load i64, ptr %room.at
  %fits = icmp slt i64 %at, %room
  br i1 %fits, label %write, label %done
write:
  %records.at = getelementptr i64, ptr %table, i64 2
  %records = load ptr, ptr %records.at
  %first = mul i64 %at, {record}
  %r0 = getelementptr i64, ptr %records, i64 %first
  store i64 %number, ptr %r0
  %thread = call i64 @pthread_self()
  %r1 = getelementptr i64, ptr %r0, i64 1
  store i64 %thread, ptr %r1
  %r2 = getelementptr i64, ptr %r0, i64 2
  store i64 %start, ptr %r2
  %r3 = getelementptr i64, ptr %r0, i64 3
  store i64 %stop, ptr %r3
  %r4 = getelementptr i64, ptr %r0, i64 4
  store i64 %begin, ptr %r4
  %r5 = getelementptr i64, ptr %r0, i64 5
  store i64 %end, ptr %r5
  br label %done
done:
  ret void
}}

define internal i32 @{name}({parameters}) nounwind {{
  %start = call i64 @sdx.clock()
  %code = call i32 @{body}({parameters})
  %stop = call i64 @sdx.clock()
  %table = load ptr, ptr @sdx_profile
  %spent.at = getelementptr i64, ptr %table, i64 3
  %spent = sub i64 %stop, %start
  store i64 %spent, ptr %spent.at
  call void @sdx.note(i64 -1, i64 %start, i64 %stop, i64 -1, i64 -1)
  ret i32 %code
}}
"""


def timed_entry(plan: TimingPlan, name: str, body: str, parameters: str, clock: int) -> str:
    """A function that measures a whole run, and what the rest of the instrumentation calls."""
    return _ENTRY.format(
        words=plan.words, name=name, body=body, parameters=parameters, clock=clock, record=RECORD
    )
