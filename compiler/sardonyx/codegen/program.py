"""Translates the program to one native function: dims, checks, arena, launches.

``int32 <name>_run(context, inputs, input_dims, outputs, output_dims)``: see docs/abi.md.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.codegen import binding
from sardonyx.codegen.debug_info import DebugInfo, Trace
from sardonyx.codegen.emitter import I64, PTR, Emitter, ModuleText, V, ltype
from sardonyx.codegen.floating_state import PARAMETERS
from sardonyx.codegen.scalars import llvm_type
from sardonyx.codegen.support import CHUNKS, ENTROPY, STATUS, STRINGS
from sardonyx.codegen.timing import Timer
from sardonyx.ir.graph import Block, Op, Value, walk
from sardonyx.kernels.faults import FaultKind
from sardonyx.passes.program import Program
from sardonyx_runtime.dims import Atom, Dim, DimLike, plain_symbol

__all__ = ["STATUS_CODES", "program_text"]

# Codes of the entry point; 16 and up are faults inside kernels (kernels/faults.py).
STATUS_CODES = {"dims": 1, "require": 2, "bind": 3, "memory": 4, "size": 5}

I8 = ltype("i", 8)
I32 = ltype("i", 32)
F64 = ltype("f", 64)
_MOST_BYTES = float(1 << 62)


class _Program:
    def __init__(
        self,
        program: Program,
        module: ModuleText,
        debug: DebugInfo | None = None,
        *,
        timed: bool = False,
    ) -> None:
        self.program = program
        self.e = Emitter(module)
        self.trace = None if debug is None else Trace(self.e.lines, debug)
        self.timer = Timer(program, self.e) if timed else None
        self.values: dict[Value, V] = {}
        self.symbols: dict[str, V] = {}
        self.dims: dict[DimLike | Atom, V] = {}
        self.slots: dict[Op, list[V]] = {}  # where control flow keeps the dims it binds
        self.current: list[V] = []  # the slots of the innermost

    # -- dims

    def dim(self, dim: DimLike) -> V:
        """The value of a dim; every subexpression is computed once."""
        e = self.e
        if isinstance(dim, int):
            return e.const(I64, dim)
        found = self.dims.get(dim)
        if found is None:
            total: V | None = None
            for monomial, coefficient in dim.terms:
                term: V | None = None
                for atom in monomial:
                    value = self.atom(atom)
                    term = value if term is None else e.imul(term, value)
                if term is None:
                    term = e.const(I64, coefficient)
                elif coefficient != 1:
                    term = e.imul(term, e.const(I64, coefficient))
                total = term if total is None else e.iadd(total, term)
            assert total is not None
            found = self.dims[dim] = total
        return found

    def atom(self, atom: Atom) -> V:
        if not atom.args:
            return self.symbols[atom.name]
        found = self.dims.get(atom)
        if found is None:
            found = self.dims[atom] = _ATOMS[atom.name](self.e, *(self.dim(a) for a in atom.args))
        return found

    def as_float(self, dim: DimLike) -> V:
        """A dim's value in floating point, to see whether the integer one overflowed."""
        e = self.e
        if isinstance(dim, int):
            return e.const(F64, float(dim))
        total = e.const(F64, 0.0)
        for monomial, coefficient in dim.terms:
            term = e.const(F64, float(coefficient))
            for atom in monomial:
                term = e.mul(term, e.sitofp(self.atom(atom), 64))
            total = e.add(total, term)
        return total

    def check_size(self, size: DimLike) -> None:
        """End the run if a size in bytes is beyond what 64 bits can count."""
        if isinstance(size, Dim):
            e = self.e
            huge = e.fcmp("ogt", self.as_float(size), e.const(F64, _MOST_BYTES))
            self.fail_if(huge, STATUS_CODES["size"], 0, self.dim(size))

    # -- faults

    def fail_if(self, condition: V, code: int, number: int, value: V, second: V | None = None) -> None:
        e = self.e
        bad, good = e.new_label("bad"), e.new_label("good")
        e.raw(f"  br i1 {condition.ref}, label %{bad}, label %{good}, !prof !0")
        e.label(bad)
        items = [e.const(I64, code), e.const(I64, number), value, second or e.const(I64, 0)]
        for i, item in enumerate(items):
            e.store(item, e.gep(I64, V(PTR, "%context"), e.const(I64, STATUS + i)))
        e.ret(e.const(I32, code))
        e.label(good)

    def check_status(self) -> None:
        """Return the fault a kernel has noted, if any."""
        e = self.e
        code = e.load(I64, e.gep(I64, V(PTR, "%context"), e.const(I64, STATUS)))
        bad, good = e.new_label("bad"), e.new_label("good")
        e.raw(f"  br i1 {e.icmp('ne', code, e.const(I64, 0)).ref}, label %{bad}, label %{good}, !prof !0")
        e.label(bad)
        e.ret(e.trunc_int(code, 32))
        e.label(good)

    # -- the function

    def build(self) -> None:
        e = self.e
        e.store(e.const(I64, 0), e.gep(I64, V(PTR, "%context"), e.const(I64, STATUS)))
        self.forget_strings()
        self.bind_inputs()
        self.reserve_slots()
        self.reserve_tables()
        most = max(
            (len(op.operands) for op in walk(self.program.main) if op.name == "loop.launch"), default=0
        )
        self.arguments = e.result(PTR, f"alloca [{most + 1} x i64], align 64")
        self.ops(self.program.main.body)
        if self.trace is not None:
            self.trace.attach()

    def ops(self, block: Block) -> None:
        if self.trace is not None:
            self.trace.run(block.ops, self.op)
            return
        for op in block.ops:
            self.op(op)

    def op(self, op: Op) -> None:
        emit = _TABLE[op.name]
        if self.timer is not None and self.timer.times(op):
            known = self.symbols.__contains__
            self.timer.around(op, lambda: emit(self, op), self.values.__getitem__, self.dim, known)
        else:
            emit(self, op)

    def reserve_slots(self) -> None:
        """Words for the dims that control flow binds; allocated at entry, for a loop would allocate each time."""
        e = self.e
        for op in walk(self.program.main):
            if op.name in ("loop.repeat", "loop.branch"):
                self.slots[op] = [e.result(PTR, "alloca i64, align 8") for _ in op.attributes["symbols"]]

    def bind_inputs(self) -> None:
        """Symbols take the sizes of the inputs; every other dim is compared with what it has to be."""
        e = self.e
        position = 0
        checks: list[tuple[int, int, DimLike, V]] = []
        for number, port in enumerate(self.program.inputs):
            for dim in port.shape:
                actual = e.load(I64, e.gep(I64, V(PTR, "%input_dims"), e.const(I64, position)))
                position += 1
                name = plain_symbol(dim)
                if name and name not in self.symbols:
                    self.symbols[name] = actual
                    self.fail_if(e.icmp("slt", actual, e.const(I64, 0)), STATUS_CODES["dims"], number, actual)
                else:
                    checks.append((number, position, dim, actual))
        for number, _, dim, actual in checks:
            want = self.dim(dim)
            self.fail_if(e.icmp("ne", actual, want), STATUS_CODES["dims"], number, actual, want)

    # -- control flow

    def scope(self) -> tuple[dict[str, V], dict[DimLike | Atom, V]]:
        """The dims known here; what is computed inside a body must not be used behind it."""
        return dict(self.symbols), dict(self.dims)

    def leave(self, scope: tuple[dict[str, V], dict[DimLike | Atom, V]]) -> None:
        self.symbols, self.dims = dict(scope[0]), dict(scope[1])

    def next(self, op: Op) -> None:
        """All values are computed before the first is stored: they may depend on the old ones."""
        e = self.e
        values = [self.dim(d) for d in op.attributes["values"]]
        for slot, value in zip(self.current, values, strict=True):
            e.store(value, slot)

    def truth(self, buffer: Value) -> V:
        byte = self.e.load(I8, self.values[buffer], align=1)
        return self.e.icmp("ne", byte, self.e.const(I8, 0))

    def branch(self, op: Op) -> None:
        e = self.e
        condition = self.truth(op.operands[0])
        labels, after = [e.new_label("then"), e.new_label("else")], e.new_label("join")
        e.cond_br(condition, *labels)
        outer, scope = self.current, self.scope()
        for label, region in zip(labels, op.regions, strict=True):
            e.label(label)
            self.current = self.slots[op]
            self.ops(region)
            self.leave(scope)
            e.br(after)
        e.label(after)
        self.current = outer
        for name, slot in zip(op.attributes["symbols"], self.slots[op], strict=True):
            self.symbols[name] = e.load(I64, slot)

    def repeat(self, op: Op) -> None:
        e, a, slots = self.e, op.attributes, self.slots[op]
        trip = self.dim(a["trip"]) if a["trip"] != -1 else e.const(I64, (1 << 63) - 1)
        for slot, first in zip(slots, a["first"], strict=True):
            e.store(self.dim(first), slot)
        started = self.truth(op.operands[0]) if a["conditional"] else e.const(ltype("i", 1), 1)
        before, head, inside, after = e.block, e.new_label("repeat"), e.new_label("pass"), e.new_label("done")
        e.br(head)
        e.label(head)
        index, going = V(I64, e.name("i")), V(ltype("i", 1), e.name("go"))
        place = len(e.lines)
        e.lines.extend(["", ""])  # the phis, once the way back is known
        e.cond_br(e.and_(going, e.icmp("slt", index, trip)), inside, after)
        e.label(inside)
        outer, scope = self.current, self.scope()
        self.current = slots
        self.symbols[a["index"]] = index
        for name, slot in zip(a["symbols"], slots, strict=True):
            self.symbols[name] = e.load(I64, slot)
        self.ops(op.regions[0])
        terminator = op.regions[0].terminator
        goes_on = self.truth(terminator.operands[0]) if a["conditional"] else e.const(ltype("i", 1), 1)
        following, back = e.iadd(index, e.const(I64, 1)), e.block
        e.br(head)
        edges = ((index, e.const(I64, 0), following), (going, started, goes_on))
        for i, (phi, first, later) in enumerate(edges):
            e.lines[place + i] = (
                f"  {phi.ref} = phi {phi.type.text} [ {first.ref}, %{before} ], [ {later.ref}, %{back} ]"
            )
        e.label(after)
        self.current = outer
        self.leave(scope)
        for name, slot in zip(a["results"], slots, strict=True):
            self.symbols[name] = e.load(I64, slot)
        count = plain_symbol(a["count"])
        if count and count not in self.symbols:
            self.symbols[count] = index

    def grow(self, op: Op) -> None:
        e, size = self.e, op.attributes["size"]
        self.check_size(size)
        pair = e.gep(I64, V(PTR, "%context"), e.const(I64, CHUNKS + 2 * op.attributes["chunk"]))
        self.e.module.declare("sdx_grow", "i32", "ptr, ptr, i64")
        code = e.call(I32, "sdx_grow", V(PTR, "%context"), pair, self.dim(size))
        assert code is not None
        self.fail_if(e.icmp("ne", code, e.const(I32, 0)), STATUS_CODES["memory"], 0, self.dim(size))

    def view(self, op: Op) -> None:
        e = self.e
        self.put(op, e.gep(I8, self.values[op.operands[0]], self.dim(op.attributes["offset"])))

    # -- ops

    def put(self, op: Op, value: V) -> None:
        self.values[op.result] = value

    def dim_op(self, op: Op) -> None:
        self.put(op, self.dim(op.attributes["value"]))

    def const(self, op: Op) -> None:
        self.put(op, self.e.const(I64, op.attributes["value"]))

    def status(self, op: Op) -> None:
        self.put(op, self.e.gep(I64, V(PTR, "%context"), self.e.const(I64, STATUS)))

    def _pointer(self, array: str, number: int) -> V:
        e = self.e
        return e.load(PTR, e.gep(PTR, V(PTR, array), e.const(I64, number)))

    def input(self, op: Op) -> None:
        self.put(op, self._pointer("%inputs", op.attributes["number"]))

    def output(self, op: Op) -> None:
        if op.attributes["late"]:
            e, size = self.e, op.attributes["size"]
            slot = e.gep(PTR, V(PTR, "%outputs"), e.const(I64, op.attributes["number"]))
            e.module.declare("sdx_allocate", "i32", "ptr, ptr, i64")
            self.check_size(size)
            code = e.call(I32, "sdx_allocate", V(PTR, "%context"), slot, self.dim(size))
            assert code is not None
            self.fail_if(e.icmp("ne", code, e.const(I32, 0)), STATUS_CODES["memory"], 0, self.dim(size))
        self.put(op, self._pointer("%outputs", op.attributes["number"]))

    def weights(self, op: Op) -> None:
        e = self.e
        base = e.load(PTR, V(PTR, "%context"), align=8)
        self.put(op, e.gep(ltype("i", 8), base, e.const(I64, op.attributes["offset"])))

    def arena(self, op: Op) -> None:
        e, size = self.e, op.attributes["size"]
        pair = e.gep(I64, V(PTR, "%context"), e.const(I64, CHUNKS + 2 * op.attributes["chunk"]))
        value = self.dim(size)
        self.check_size(size)
        self.e.module.declare("sdx_reserve", "i32", "ptr, ptr, i64")
        code = e.call(I32, "sdx_reserve", V(PTR, "%context"), pair, value)
        assert code is not None
        self.fail_if(e.icmp("ne", code, e.const(I32, 0)), STATUS_CODES["memory"], 0, value)

    def place(self, op: Op) -> None:
        e = self.e
        pair = e.gep(I64, V(PTR, "%context"), e.const(I64, CHUNKS + 2 * op.attributes["chunk"]))
        base = e.load(PTR, pair, align=8)
        self.put(op, e.gep(ltype("i", 8), base, self.dim(op.attributes["offset"])))

    def part(self, op: Op) -> None:
        whole = self.values[op.operands[0]]
        self.put(op, self.e.gep(ltype("i", 8), whole, self.dim(op.attributes["offset"])))

    def write_dims(self, op: Op) -> None:
        e, target = self.e, self.values[op.operands[0]]
        kind = llvm_type(op.attributes["dtype"])
        for i, dim in enumerate(op.attributes["values"]):
            value = self.dim(dim)
            e.store(e.trunc_int(value, kind.bits), e.gep(kind, target, e.const(I64, i)))

    def read_dims(self, op: Op) -> None:
        e = self.e
        rule = op.attributes.get("rule")
        if rule is not None:
            self.symbols.update(zip(op.attributes["symbols"], _RULES[rule](self, op), strict=True))
            return
        for name, wide in zip(op.attributes["symbols"], self.elements(op, 0), strict=True):
            self.symbols[name] = wide
            low = e.icmp("slt", wide, e.const(I64, op.attributes["minimum"]))
            self.fail_if(low, STATUS_CODES["bind"], op.attributes["node"], wide)

    def elements(self, op: Op, operand: int) -> list[V]:
        """The elements of an integer tensor, widened."""
        e, source = self.e, self.values[op.operands[operand]]
        dtype, count = op.attributes["dtypes"][operand], op.attributes["counts"][operand]
        kind = llvm_type(dtype)
        values = [e.load(kind, e.gep(kind, source, e.const(I64, i))) for i in range(count)]
        return [(e.sext if dtype.kind == "signed" else e.zext)(v, 64) for v in values]

    def reshape_rule(self, op: Op) -> list[V]:
        def fail(condition: V, value: V) -> None:
            self.fail_if(condition, STATUS_CODES["bind"], op.attributes["node"], value)

        source = [self.dim(d) for d in op.attributes["dims"]]
        target = self.elements(op, 0)
        return binding.reshape_target(self.e, target, source, allowzero=op.attributes["allowzero"], fail=fail)

    def slice_rule(self, op: Op) -> list[V]:
        spans = zip(
            self.elements(op, 0),
            self.elements(op, 1),
            op.attributes["dims"],
            op.attributes["steps"],
            strict=True,
        )
        return [
            v
            for start, end, dim, step in spans
            for v in binding.slice_span(self.e, start, end, self.dim(dim), step)
        ]

    def require(self, op: Op) -> None:
        e = self.e
        left, right = self.dim(op.attributes["left"]), self.dim(op.attributes["right"])
        bad = _RELATIONS[op.attributes["relation"]](e, left, right)
        self.fail_if(bad, STATUS_CODES["require"], op.attributes["message"], left, right)

    def external(self, op: Op) -> None:
        """Pointers and dims are put into arrays; what is not 0 ends the run."""
        e, inputs = self.e, op.attributes["inputs"]
        pointers, dims, words = self.tables
        position = 0
        for i, (operand, shape) in enumerate(zip(op.operands, op.attributes["shapes"], strict=True)):
            e.store(self.values[operand], e.gep(I64, pointers, e.const(I64, i)), align=8)
            e.store(e.gep(I64, words, e.const(I64, position)), e.gep(I64, dims, e.const(I64, i)), align=8)
            for dim in shape:
                e.store(self.dim(dim), e.gep(I64, words, e.const(I64, position)))
                position += 1
        e.module.declare(op.attributes["symbol"], "i32", "ptr, ptr, ptr, ptr")
        arguments = [e.gep(I64, table, e.const(I64, at)) for at in (0, inputs) for table in (pointers, dims)]
        code = e.call(I32, op.attributes["symbol"], *arguments)
        assert code is not None
        bad = e.icmp("ne", code, e.const(I32, 0))
        self.fail_if(bad, int(FaultKind.EXTERNAL), op.attributes["node"], e.sext(code, 64))

    def reserve_tables(self) -> None:
        """Room for the arguments of external functions: pointers, pointers to dims, dims."""
        calls = [op for op in walk(self.program.main) if op.name == "loop.external"]
        if calls:
            most = max(len(op.operands) for op in calls)
            dims = max(sum(map(len, op.attributes["shapes"])) for op in calls)
            self.tables = [self.e.result(PTR, f"alloca [{n + 1} x i64], align 8") for n in (most, most, dims)]

    def heap(self, op: Op) -> None:
        self.put(op, self.e.gep(I64, V(PTR, "%context"), self.e.const(I64, STRINGS)))

    def forget_strings(self) -> None:
        """The strings of the run before are no longer needed."""
        if any(op.name == "loop.heap" for op in walk(self.program.main)):
            self.e.module.declare("sdx_forget_strings", "void", "ptr")
            heap = self.e.gep(I64, V(PTR, "%context"), self.e.const(I64, STRINGS))
            self.e.raw(f"  call void @sdx_forget_strings(ptr {heap.ref})")

    def entropy(self, op: Op) -> None:
        """A key: the context's word, moved on by the golden ratio's bits and mixed (SplitMix64) with a number.

        G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
        """
        e = self.e
        word = e.gep(I64, V(PTR, "%context"), e.const(I64, ENTROPY))
        state = e.iadd(e.load(I64, word), e.const(I64, _signed(0x9E3779B97F4A7C15)))
        e.store(state, word)
        mixed = e.iadd(state, e.const(I64, op.attributes["number"]))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = e.xor(mixed, e.lshr(mixed, e.const(I64, shift)))
            mixed = e.imul(mixed, e.const(I64, _signed(factor)))
        e.store(e.xor(mixed, e.lshr(mixed, e.const(I64, 31))), self.values[op.operands[0]])

    def copy(self, op: Op) -> None:
        e = self.e
        target, source, size = (self.values[o] for o in op.operands)
        e.module.declare("llvm.memcpy.p0.p0.i64", "void", "ptr, ptr, i64, i1")
        e.raw(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target.ref}, ptr {source.ref}, i64 {size.ref}, i1 false)"
        )

    def launch(self, op: Op) -> None:
        e, kernel = self.e, op.attributes["kernel"]
        for i, operand in enumerate(op.operands):
            e.store(self.values[operand], e.gep(I64, self.arguments, e.const(I64, i)), align=8)
        e.module.declare(f"{kernel}.task", "void", "ptr, i64, i64")
        task = f"{kernel}.task" if self.timer is None else self.timer.task(op)
        e.module.declare("sdx_launch", "void", "ptr, ptr, ptr, i64, i64")
        amount, cost = self.dim(op.attributes["range"]), self.dim(op.attributes["cost"])
        e.raw(
            f"  call void @sdx_launch(ptr %context, ptr @{task}, ptr {self.arguments.ref}, "
            f"i64 {amount.ref}, i64 {cost.ref})"
        )
        if _may_fault(self.program, kernel):
            self.check_status()

    def return_(self, op: Op) -> None:
        e = self.e
        position = 0
        for port in self.program.outputs:
            for dim in port.shape:
                e.store(self.dim(dim), e.gep(I64, V(PTR, "%output_dims"), e.const(I64, position)))
                position += 1
        e.ret(e.const(I32, 0))


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _may_fault(program: Program, kernel: str) -> bool:
    return any(a.name == "status" for a in program.kernels[kernel].arguments)


def _floordiv(e: Emitter, a: V, b: V) -> V:
    zero, one = e.const(I64, 0), e.const(I64, 1)
    safe = e.select(e.icmp("eq", b, zero), one, b)
    quotient = e._binary("sdiv", a, safe)
    rest = e.isub(a, e.imul(quotient, safe))
    down = e.and_(e.icmp("ne", rest, zero), e.icmp("slt", e.xor(rest, safe), zero))
    return e.isub(quotient, e.zext(down, 64))


def _bcast(e: Emitter, a: V, b: V) -> V:
    return e.select(e.icmp("eq", a, e.const(I64, 1)), b, a)


_ATOMS: dict[str, Callable[..., V]] = {
    "floordiv": _floordiv,
    "max": Emitter.smax,
    "min": Emitter.smin,
    "bcast": _bcast,
}


def _not_broadcast(e: Emitter, a: V, b: V) -> V:
    one = e.const(I64, 1)
    return e.and_(e.icmp("ne", a, b), e.and_(e.icmp("ne", a, one), e.icmp("ne", b, one)))


_RELATIONS: dict[str, Callable[[Emitter, V, V], V]] = {
    "equal": lambda e, a, b: e.icmp("ne", a, b),
    "at_least": lambda e, a, b: e.icmp("slt", a, b),
    "broadcast": _not_broadcast,
}

_RULES: dict[str, Callable[[_Program, Op], list[V]]] = {
    "reshape": _Program.reshape_rule,
    "slice": _Program.slice_rule,
}

_TABLE: dict[str, Callable[[_Program, Op], None]] = {
    "loop.dim": _Program.dim_op,
    "loop.const": _Program.const,
    "loop.status": _Program.status,
    "loop.input": _Program.input,
    "loop.output": _Program.output,
    "loop.weights": _Program.weights,
    "loop.arena": _Program.arena,
    "loop.place": _Program.place,
    "loop.part": _Program.part,
    "loop.write_dims": _Program.write_dims,
    "loop.read_dims": _Program.read_dims,
    "loop.require": _Program.require,
    "loop.copy": _Program.copy,
    "loop.entropy": _Program.entropy,
    "loop.heap": _Program.heap,
    "loop.external": _Program.external,
    "loop.launch": _Program.launch,
    "loop.branch": _Program.branch,
    "loop.repeat": _Program.repeat,
    "loop.next": _Program.next,
    "loop.grow": _Program.grow,
    "loop.view": _Program.view,
    "loop.return": _Program.return_,
}


def program_text(
    program: Program, module: ModuleText, symbol: str, debug: DebugInfo | None = None, *, timed: bool = False
) -> str:
    """The LLVM text of the entry point; ``timed``: with the instrumentation of timing.py."""
    builder = _Program(program, module, debug, timed=timed)
    builder.build()
    place = "" if debug is None else f" !dbg !{debug.subprogram}"
    return f"define i32 @{symbol}({PARAMETERS}) nounwind{place} {{\n{builder.e.text()}\n}}\n"
