"""Translates a kernel of the loop level to an LLVM function: one entry per op in a table, no decisions.

A kernel ``k`` becomes two functions: ``k`` itself, with its arguments in registers, and ``k.task`` for
the thread pool, which takes them from an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sardonyx.codegen.convert import convert as convert_value
from sardonyx.codegen.convert import round_to
from sardonyx.codegen.debug_info import DebugInfo, Trace
from sardonyx.codegen.dot_bytes import dot_bytes
from sardonyx.codegen.emitter import I64, PTR, Emitter, LType, ModuleText, V, ltype
from sardonyx.codegen.scalars import SCALARS, llvm_type
from sardonyx.ir.graph import Function, Op, Value
from sardonyx.ir.types import BufferType, IndexType, VectorType
from sardonyx.loop.builder import INDEX
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

__all__ = ["translate_kernel"]

_INDEX_OPS = {"add": "add", "sub": "sub", "mul": "mul", "div": "sdiv", "rem": "srem"}
_INDEX_EXTREMES = {"min": Emitter.smin, "max": Emitter.smax}


def type_of(kind: Any) -> LType:
    """The LLVM type of a loop-level type."""
    if isinstance(kind, IndexType):
        return I64
    if isinstance(kind, BufferType):
        return PTR
    return llvm_type(kind.dtype, kind.lanes)


def _alignment(kind: LType) -> int:
    """What is known of an address; 0 stands for the type's own: vectors start anywhere, a complex128 at 8 bytes."""
    return 1 if kind.width > 1 else 8 if kind.bits > 64 else 0


def _memory_type(dtype: DType, lanes: int) -> LType:
    """The type of elements in memory: bool takes a byte."""
    return ltype("i", 8, lanes) if dtype is dtypes.boolean else llvm_type(dtype, lanes)


class _Translator:
    def __init__(self, emitter: Emitter, trace: Trace | None) -> None:
        self.e = emitter
        self.trace = trace
        self.values: dict[Value, V] = {}

    def ops(self, ops: Sequence[Op]) -> None:
        if self.trace is not None:
            self.trace.run(ops, self.op)
            return
        for op in ops:
            (_TABLE.get(op.kind) or _Translator.scalar)(self, op)

    def op(self, op: Op) -> None:
        (_TABLE.get(op.kind) or _Translator.scalar)(self, op)

    def get(self, value: Value) -> V:
        return self.values[value]

    def put(self, op: Op, value: V) -> None:
        self.values[op.results[0]] = value

    # -- values

    def scalar(self, op: Op) -> None:
        xs = [self.get(o) for o in op.operands]
        first = op.operands[-1].type
        if first is INDEX or isinstance(first, IndexType):
            self.put(op, self._index_op(op.kind, xs))
            return
        self.put(op, SCALARS[op.kind](self.e, first.dtype, xs))

    def _index_op(self, kind: str, xs: list[V]) -> V:
        if kind in _INDEX_OPS:
            return self.e._binary(_INDEX_OPS[kind], *xs)
        if kind in _INDEX_EXTREMES:
            return _INDEX_EXTREMES[kind](self.e, *xs)
        return SCALARS[kind](self.e, dtypes.i64, xs)

    def const(self, op: Op) -> None:
        kind = op.results[0].type
        value = op.attributes["value"]
        if isinstance(kind, VectorType) and kind.dtype is dtypes.bf16:
            raise TypeError("bf16 constants are f32 while they are computed with")
        self.put(op, self.e.const(type_of(kind), value))

    def convert(self, op: Op) -> None:
        x, to = self.get(op.operands[0]), op.results[0].type
        source = op.operands[0].type
        if isinstance(source, IndexType):
            self.put(op, x)
        elif isinstance(to, IndexType):
            wide = self.e.zext if source.dtype.kind in ("unsigned", "bool") else self.e.sext
            self.put(op, wide(x, 64))
        else:
            options = {k: v for k, v in op.attributes.items() if k != "to"}
            self.put(op, convert_value(self.e, x, source.dtype, to.dtype, **options))

    def round(self, op: Op) -> None:
        self.put(op, round_to(self.e, self.get(op.operands[0]), op.attributes["to"]))

    def bitcast(self, op: Op) -> None:
        x, to = self.get(op.operands[0]), type_of(op.results[0].type)
        source = op.operands[0].type.dtype
        bits = op.attributes["to"].bits
        if source.bits < 8:  # one element a byte: the same bits, the sign spread or cleared
            left = self.e.const(x.type, 8 - bits)
            shifted = self.e.shl(x, left)
            signed = op.attributes["to"].kind == "signed"
            self.put(op, self.e.ashr(shifted, left) if signed else self.e.lshr(shifted, left))
            return
        if source is dtypes.boolean or op.attributes["to"] is dtypes.boolean:
            self.put(op, x)
            return
        self.put(op, self.e.bitcast(x, to))

    def splat(self, op: Op) -> None:
        self.put(op, self.e.splat(self.get(op.operands[0]), op.attributes["lanes"]))

    def lanes(self, op: Op) -> None:
        self.put(op, self.e.iota(ltype("i", 64, op.attributes["lanes"])))

    def mask(self, op: Op) -> None:
        """Lanes below a count.  Small integers compare faster: the count is first cut to the lanes."""
        lanes = op.attributes["lanes"]
        e = self.e
        count = e.smin(self.get(op.operands[0]), e.const(I64, lanes))
        small = ltype("i", 32 if lanes <= 16 else 16 if lanes <= 32 else 8, lanes)
        narrow = e.trunc_int(count, small.bits)
        self.put(op, e.icmp("ult", e.iota(small), e.splat(narrow, lanes)))

    def shuffle(self, op: Op) -> None:
        x, y = (self.get(o) for o in op.operands)
        picks = ", ".join(f"i32 {p}" for p in op.attributes["picks"])
        to, t, count = type_of(op.results[0].type), x.type.text, len(op.attributes["picks"])
        self.put(op, self.e.result(to, f"shufflevector {t} {x.ref}, {t} {y.ref}, <{count} x i32> <{picks}>"))

    def extract(self, op: Op) -> None:
        self.put(op, self.e.extract(self.get(op.operands[0]), op.attributes["lane"]))

    def reduce_lanes(self, op: Op) -> None:
        """Halves are combined until one lane is left: a fixed tree, the same on every target."""
        x, dtype = self.get(op.operands[0]), op.operands[0].type.dtype
        e, kind = self.e, _COMBINE[op.attributes["kind"]]
        width = x.type.width
        while width > 1:
            width //= 2
            half = ltype(x.type.kind, x.type.bits, width)
            low = self._half(x, 0, width, half)
            high = self._half(x, width, width, half)
            x = SCALARS[kind](e, dtype, [low, high])
        self.put(op, x)

    def _half(self, x: V, start: int, width: int, half: LType) -> V:
        e = self.e
        if width == 1:
            return e.extract(x, start)
        picks = ", ".join(f"i32 {start + i}" for i in range(width))
        t = x.type.text
        return e.result(half, f"shufflevector {t} {x.ref}, {t} poison, <{width} x i32> <{picks}>")

    # -- memory

    def _address(self, buffer: Value, index: V) -> V:
        return self.e.gep(_memory_type(buffer.type.dtype, 1), self.get(buffer), index)

    def load(self, op: Op) -> None:
        e, buffer = self.e, op.operands[0]
        dtype = buffer.type.dtype
        kind = _memory_type(dtype, op.attributes["lanes"])
        address = self._address(buffer, self.get(op.operands[1]))
        if len(op.operands) > 2:
            other = self.get(op.operands[3]) if len(op.operands) > 3 else e.const(kind, 0)
            value = e.masked_load(kind, address, self.get(op.operands[2]), other, align=1)
        else:
            value = e.load(kind, address, align=_alignment(kind))
        self.put(op, self._from_memory(value, dtype))

    def _from_memory(self, value: V, dtype: DType) -> V:
        if dtype is dtypes.boolean:
            return self.e.icmp("ne", value, self.e.const(value.type, 0))
        return value

    def _to_memory(self, value: V, dtype: DType) -> V:
        return self.e.zext(value, 8) if dtype is dtypes.boolean else value

    def store(self, op: Op) -> None:
        value, buffer = op.operands[0], op.operands[1]
        stored = self._to_memory(self.get(value), buffer.type.dtype)
        address = self._address(buffer, self.get(op.operands[2]))
        if len(op.operands) > 3:
            self.e.masked_store(stored, address, self.get(op.operands[3]), align=1)
        elif op.attributes.get("streaming"):
            size = stored.type.width * stored.type.bits // 8
            self.e.raw(
                f"  store {stored.type.text} {stored.ref}, ptr {address.ref}, align {size}, !nontemporal !1"
            )
        else:
            self.e.store(stored, address, align=_alignment(stored.type))

    def fence(self, op: Op) -> None:
        self.e.raw("  fence seq_cst")

    def gather(self, op: Op) -> None:
        buffer = op.operands[0]
        dtype = buffer.type.dtype
        kind = _memory_type(dtype, op.results[0].type.lanes)
        mask = self.get(op.operands[2]) if len(op.operands) > 2 else None
        value = self.e.gather(kind, self.get(buffer), self.get(op.operands[1]), mask)
        self.put(op, self._from_memory(value, dtype))

    def scatter(self, op: Op) -> None:
        value, buffer = op.operands[0], op.operands[1]
        stored = self._to_memory(self.get(value), buffer.type.dtype)
        mask = self.get(op.operands[3]) if len(op.operands) > 3 else None
        self.e.scatter(stored, self.get(buffer), self.get(op.operands[2]), mask)

    def compress(self, op: Op) -> None:
        """LLVM's compressing store; a scalar is stored or not."""
        e = self.e
        value, buffer = op.operands[0], op.operands[1]
        stored = self._to_memory(self.get(value), buffer.type.dtype)
        address, mask = self._address(buffer, self.get(op.operands[2])), self.get(op.operands[3])
        if stored.type.width == 1:
            store, after = e.new_label("keep"), e.new_label("next")
            e.cond_br(mask, store, after)
            e.label(store)
            e.store(stored, address)
            e.br(after)
            e.label(after)
            return
        t = stored.type
        name = f"llvm.masked.compressstore.{t.suffix}"
        e.module.declare(name, "void", f"{t.text}, ptr, {mask.type.text}")
        e.raw(f"  call void @{name}({t.text} {stored.ref}, ptr {address.ref}, {mask.type.text} {mask.ref})")

    def count(self, op: Op) -> None:
        e, mask = self.e, self.get(op.operands[0])
        if mask.type.width == 1:
            self.put(op, e.zext(mask, 64))
            return
        bits = e.zext(e.bitcast(mask, ltype("i", mask.type.width)), 64)
        e.module.declare("llvm.ctpop.i64", "i64", "i64")
        self.put(op, e.result(I64, f"call i64 @llvm.ctpop.i64(i64 {bits.ref})"))

    def offset(self, op: Op) -> None:
        self.put(op, self._address(op.operands[0], self.get(op.operands[1])))

    def address(self, op: Op) -> None:
        pointer = self._address(op.operands[0], self.get(op.operands[1]))
        self.put(op, self.e.result(I64, f"ptrtoint ptr {pointer.ref} to i64"))

    def pointer(self, op: Op) -> None:
        self.put(op, self.e.result(PTR, f"inttoptr i64 {self.get(op.operands[0]).ref} to ptr"))

    def muladd(self, op: Op) -> None:
        x, y, z = (self.get(o) for o in op.operands)
        e = self.e
        if x.type.kind == "i":
            self.put(op, e.iadd(e.imul(x, y), z))
        elif e.module.has_fma:
            self.put(op, e.fma(x, y, z))
        else:
            self.put(op, e.add(e.mul(x, y), z))

    def dot_bytes(self, op: Op) -> None:
        self.put(op, dot_bytes(self.e, *(self.get(o) for o in op.operands)))

    def local(self, op: Op) -> None:
        kind = _memory_type(op.attributes["dtype"], 1)
        self.put(op, self.e.result(PTR, f"alloca [{op.attributes['size']} x {kind.text}], align 64"))

    def prefetch(self, op: Op) -> None:
        address = self._address(op.operands[0], self.get(op.operands[1]))
        self.e.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
        self.e.raw(f"  call void @llvm.prefetch.p0(ptr {address.ref}, i32 0, i32 3, i32 1)")

    def new_string(self, op: Op) -> None:
        self.e.module.declare("sdx_new_string", "i64", "ptr, i64")
        address = self.e.call(I64, "sdx_new_string", *(self.get(o) for o in op.operands))
        assert address is not None
        self.put(op, address)

    # -- control

    def for_(self, op: Op) -> None:
        e = self.e
        low, high, step = (self.get(o) for o in op.operands[:3])
        initial = [self.get(o) for o in op.operands[3:]]
        body = op.regions[0]
        before, head, inside, after = e.block, e.new_label("for"), e.new_label("body"), e.new_label("end")
        e.br(head)
        e.label(head)
        index = V(I64, e.name("i"))
        phis = [V(v.type, e.name("c")) for v in initial]
        place = len(e.lines)
        e.lines.extend([""] * (1 + len(phis)))  # the phis, once the back edge is known
        once = op.attributes.get("at_least_once", False)
        if not once:
            e.cond_br(e.icmp("slt", index, high), inside, after)
            e.label(inside)
        self.values[body.arguments[0]] = index
        if self.trace is not None:
            self.trace.index(op, body.arguments[0], index.ref)
        self.values.update(zip(body.arguments[1:], phis, strict=True))
        self.ops(body.ops[:-1])
        carried = [self.get(o) for o in body.terminator.operands]
        following = e.iadd(index, step)
        back = e.block
        if once:
            e.cond_br(e.icmp("slt", following, high), head, after)
        else:
            e.br(head)
        edges = [(index, low, following), *zip(phis, initial, carried, strict=True)]
        for i, (phi, first, later) in enumerate(edges):
            text = f"[ {first.ref}, %{before} ], [ {later.ref}, %{back} ]"
            e.lines[place + i] = f"  {phi.ref} = phi {phi.type.text} {text}"
        e.label(after)
        self.values.update(zip(op.results, carried if once else phis, strict=True))

    def while_(self, op: Op) -> None:
        """The body, then again while the first value of its yield holds."""
        e, body = self.e, op.regions[0]
        initial = [self.get(o) for o in op.operands]
        before, head, after = e.block, e.new_label("while"), e.new_label("end")
        e.br(head)
        e.label(head)
        phis = [V(v.type, e.name("c")) for v in initial]
        place = len(e.lines)
        e.lines.extend([""] * len(phis))  # once the back edge is known
        self.values.update(zip(body.arguments, phis, strict=True))
        self.ops(body.ops[:-1])
        again, *carried = (self.get(o) for o in body.terminator.operands)
        back = e.block
        e.cond_br(again, head, after)
        for i, (phi, first, later) in enumerate(zip(phis, initial, carried, strict=True)):
            e.lines[place + i] = (
                f"  {phi.ref} = phi {phi.type.text} [ {first.ref}, %{before} ], [ {later.ref}, %{back} ]"
            )
        e.label(after)
        self.values.update(zip(op.results, carried, strict=True))

    def if_(self, op: Op) -> None:
        e = self.e
        condition = self.get(op.operands[0])
        labels, after = [e.new_label("then"), e.new_label("else")], e.new_label("join")
        e.cond_br(condition, *labels)
        edges: list[tuple[list[V], str]] = []
        for label, region in zip(labels, op.regions, strict=True):
            e.label(label)
            self.ops(region.ops[:-1])
            edges.append(([self.get(o) for o in region.terminator.operands], e.block))
            e.br(after)
        e.label(after)
        for i, result in enumerate(op.results):
            incoming = [(values[i], label) for values, label in edges]
            self.values[result] = e.phi(type_of(result.type), *incoming)

    def fault(self, op: Op) -> None:
        """Note code, node and a value; the first thread to do so need not win, any fault is as good."""
        e = self.e
        status, condition, value, node = (self.get(o) for o in op.operands)
        hit = e.any(condition)
        note, after = e.new_label("fault"), e.new_label("fine")
        e.raw(f"  br i1 {hit.ref}, label %{note}, label %{after}, !prof !0")
        e.label(note)
        shown = e.extract(value, 0)
        for i, item in enumerate((e.const(I64, op.attributes["code"]), node, shown)):
            e.store(item, e.gep(I64, status, e.const(I64, i)))
        e.br(after)
        e.label(after)

    def return_(self, op: Op) -> None:
        self.e.ret()


_COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}

_TABLE: dict[str, Callable[[_Translator, Op], None]] = {
    "const": _Translator.const,
    "convert": _Translator.convert,
    "round": _Translator.round,
    "bitcast": _Translator.bitcast,
    "splat": _Translator.splat,
    "lanes": _Translator.lanes,
    "mask": _Translator.mask,
    "extract": _Translator.extract,
    "shuffle": _Translator.shuffle,
    "reduce_lanes": _Translator.reduce_lanes,
    "load": _Translator.load,
    "store": _Translator.store,
    "fence": _Translator.fence,
    "gather": _Translator.gather,
    "scatter": _Translator.scatter,
    "offset": _Translator.offset,
    "local": _Translator.local,
    "address": _Translator.address,
    "pointer": _Translator.pointer,
    "muladd": _Translator.muladd,
    "dot_bytes": _Translator.dot_bytes,
    "prefetch": _Translator.prefetch,
    "new_string": _Translator.new_string,
    "for": _Translator.for_,
    "if": _Translator.if_,
    "while": _Translator.while_,
    "compress": _Translator.compress,
    "count": _Translator.count,
    "fault": _Translator.fault,
    "return": _Translator.return_,
}


def translate_kernel(
    function: Function, symbol: str, module: ModuleText, debug: DebugInfo | None = None
) -> str:
    """The LLVM text of the kernel under a symbol, and of its task function for the thread pool."""
    emitter = Emitter(module)
    trace = None if debug is None else Trace(emitter.lines, debug)
    translator = _Translator(emitter, trace)
    parameters = []
    for i, argument in enumerate(function.arguments):
        ref = f"%a{i}"
        kind = type_of(argument.type)
        translator.values[argument] = V(kind, ref)
        parameters.append(f"{kind.text} {ref}")
    translator.ops(function.body.ops)
    place = ""
    if debug is not None and trace is not None:
        trace.attach()
        emitter.lines[1:1] = debug.parameters()  # behind the label of the entry block
        place = f" !dbg !{debug.subprogram}"
    attributes = module.attributes
    text = f"define void @{symbol}({', '.join(parameters)}) {attributes}{place} {{\n{emitter.text()}\n}}\n"
    return text + _task(function, symbol, attributes)


def _task(function: Function, symbol: str, attributes: str) -> str:
    """``symbol.task(arguments, begin, end)``: the kernel's arguments stand in an array of 64-bit words."""
    lines, passed = [], []
    for i, argument in enumerate(function.arguments[:-2]):
        kind = type_of(argument.type)
        lines.append(f"  %p{i} = getelementptr i64, ptr %args, i64 {i}")
        lines.append(f"  %a{i} = load {kind.text}, ptr %p{i}, align 8")
        passed.append(f"{kind.text} %a{i}")
    passed += ["i64 %begin", "i64 %end"]
    body = "\n".join(lines)
    return (
        f"define void @{symbol}.task(ptr %args, i64 %begin, i64 %end) {attributes} {{\n{body}\n"
        f"  tail call void @{symbol}({', '.join(passed)})\n  ret void\n}}\n"
    )
