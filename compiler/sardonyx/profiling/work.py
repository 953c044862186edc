"""How much a kernel does in one launch: arithmetic, memory, and the share of each ONNX node.

The loops of the kernel are counted, not run: their bounds follow from the arguments of the launch, the middle
pass of a loop stands for all of its passes, and of an unknown condition both sides count half.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sardonyx.ir.graph import Block, Function, Location, Op, Value
from sardonyx.ir.types import BufferType, IndexType, VectorType
from sardonyx.kernels.map import HEAVY
from sardonyx.loop.ops import SCALAR_KINDS

__all__ = ["Work", "work_of"]

_HEAVY = 16.0  # operations that a function like exp stands for in the shares of nodes
_PER_LANE = {
    "fma": 2.0,
    "muladd": 2.0,
    "dot_bytes": 8.0,
    "reduce_lanes": 1.0,
    **dict.fromkeys(SCALAR_KINDS, 1.0),
}
_MEMORY = frozenset({"load", "store", "gather", "scatter", "compress"})


@dataclass
class Work:
    """What one launch does.

    ``operations``: arithmetic on elements (a multiply-add is two), all types together; ``products``: those
    of them that are multiply-adds of floating-point numbers; ``double``: whether these are of 64 bits.
    ``traffic[i]``: bytes that are read from or written to the buffer argument i; -1 if its address is taken, so
    that nobody knows.  ``shares``: executed instructions by the nodes they stem from.
    """

    operations: float = 0.0
    products: float = 0.0
    double: bool = False
    traffic: dict[int, float] = field(default_factory=dict)
    shares: dict[Location, float] = field(default_factory=dict)


def work_of(kernel: Function, arguments: Sequence[int], range_: int) -> Work:
    """The work of a launch.

    ``arguments`` are what was passed for the kernel's arguments (of buffers, any number) without the last
    two, ``range_`` is the length of its parallel range.
    """
    counter = _Counter()
    given = [*arguments, 0, range_]
    for number, (argument, value) in enumerate(zip(kernel.arguments, given, strict=True)):
        if isinstance(argument.type, BufferType):
            counter.roots[argument] = number
        else:
            counter.values[argument] = value
    counter.block(kernel.body, 1.0)
    return counter.work


class _Counter:
    def __init__(self) -> None:
        self.work = Work()
        self.values: dict[Value, int] = {}  # indices and conditions that are known
        self.roots: dict[Value, int] = {}  # buffers, by the number of the argument they belong to
        self._shares: dict[Location, float] = defaultdict(float)
        self.work.shares = self._shares

    def block(self, block: Block, times: float) -> None:
        if times > 0:
            for op in block.ops:
                self.op(op, times)

    def op(self, op: Op, times: float) -> None:
        kind = op.kind
        if kind == "for":
            self._for(op, times)
        elif kind == "if":
            condition = self.values.get(op.operands[0])
            for region, taken in zip(op.regions, (1, 0), strict=True):
                part = 0.5 if condition is None else float(bool(condition) == bool(taken))
                self.block(region, times * part)
        elif kind == "while":
            self._carry(op.operands, (*op.regions[0].arguments, *op.results))
            self.block(op.regions[0], times)
        elif kind in _MEMORY:
            self._memory(op, times)
        elif kind == "offset":
            if op.operands[0] in self.roots:
                self.roots[op.result] = self.roots[op.operands[0]]
        elif kind == "address":
            root = self.roots.get(op.operands[0])
            if root is not None:
                self.work.traffic[root] = -1.0
        elif kind == "const" and not isinstance(op.attributes["value"], float):
            self.values[op.result] = int(op.attributes["value"])
        else:
            self._scalar(op, times)

    def _for(self, op: Op, times: float) -> None:
        low, high, step = (self.values.get(o) for o in op.operands[:3])
        body = op.regions[0]
        passes = 1
        if low is not None and high is not None and step:
            passes = max(0, -(-(high - low) // step))
            self.values[body.arguments[0]] = low + (passes - 1) // 2 * step
        self._carry(op.operands[3:], (*body.arguments[1:], *op.results))
        self.block(body, times * passes)

    def _carry(self, initial: Sequence[Value], carried: Sequence[Value]) -> None:
        """Buffers that go from pass to pass are parts of what they were at first."""
        for number, value in enumerate(carried):
            root = self.roots.get(initial[number % len(initial)])
            if root is not None:
                self.roots[value] = root

    def _memory(self, op: Op, times: float) -> None:
        value, buffer = (op.result, op.operands[0]) if op.results else (op.operands[0], op.operands[1])
        lanes = value.type.lanes if isinstance(value.type, VectorType) else 1
        root = self.roots.get(buffer)
        if root is not None and self.work.traffic.get(root, 0.0) >= 0:
            bytes_ = lanes * buffer.type.dtype.itemsize * times
            self.work.traffic[root] = self.work.traffic.get(root, 0.0) + bytes_
        self._shares[op.location] += times

    def _scalar(self, op: Op, times: float) -> None:
        kind = op.kind
        result = op.results[0] if op.results else None
        if result is None:
            return
        known = [self.values.get(o) for o in op.operands]
        compute = _INDEX.get(kind)
        if compute is not None and known and None not in known:
            self.values[result] = int(compute(*known))
        if isinstance(op.operands[-1].type if op.operands else None, IndexType):
            return
        per_lane = _PER_LANE.get(kind)
        if per_lane is None:
            self._shares[op.location] += times
            return
        operand = op.operands[-1].type
        lanes = operand.lanes if isinstance(operand, VectorType) else 1
        amount = per_lane * lanes * times
        self.work.operations += amount
        if kind in ("fma", "muladd") and operand.dtype.is_float:
            self.work.products += amount
            self.work.double |= operand.dtype.bits == 64
        self._shares[op.location] += times * (_HEAVY if kind in HEAVY else 1.0)


def _quotient(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


_INDEX: Mapping[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _quotient,
    "rem": lambda x, y: x - y * _quotient(x, y),
    "min": min,
    "max": max,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "not": lambda x: not x,
    "convert": lambda x: x,
    "select": lambda c, x, y: x if c else y,
}
