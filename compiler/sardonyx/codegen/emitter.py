"""A small, fast emitter of LLVM IR text: one method per instruction, the same for every width.

Why text: ``llvmlite.ir`` has no bfloat type and spends more time building a kernel than LLVM spends
compiling it, while LLVM's own parser reads text at tens of megabytes a second. Values are `V` (type
and reference); a reference is an SSA name or a literal, so constants cost no instruction. Nothing
here folds or simplifies: LLVM does.

No instruction carries a fast-math flag; contraction to FMA happens only where `Emitter.fma` is
called.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

_SCALAR_TEXT = {("f", 16): "half", ("f", 32): "float", ("f", 64): "double", ("p", 64): "ptr"}


@dataclass(frozen=True, slots=True)
class LType:
    """An LLVM first-class type: a scalar, or a fixed vector of `width` scalars.

    `kind` is 'f' (IEEE float of 16, 32 or 64 bits), 'i' (integer of any width in bits) or 'p'
    (opaque pointer, written with bits=64). bfloat16 travels as 'i', 16: LLVM's own bfloat
    conversions flush denormals on some hosts.
    """

    kind: str
    bits: int
    width: int = 1
    text: str = field(init=False, compare=False)
    element_text: str = field(init=False, compare=False)
    suffix: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        element = f"i{self.bits}" if self.kind == "i" else _SCALAR_TEXT[self.kind, self.bits]
        stem = "p0" if self.kind == "p" else f"{self.kind}{self.bits}"
        vector = self.width > 1
        object.__setattr__(self, "element_text", element)
        object.__setattr__(self, "text", f"<{self.width} x {element}>" if vector else element)
        object.__setattr__(self, "suffix", f"v{self.width}{stem}" if vector else stem)

    def with_kind(self, kind: str, bits: int) -> LType:
        """The type of another element kind with this width."""
        return ltype(kind, bits, self.width)

    def with_width(self, width: int) -> LType:
        """The type of `width` such elements."""
        return ltype(self.kind, self.bits, width)

    @property
    def element(self) -> LType:
        """The scalar type of one lane."""
        return ltype(self.kind, self.bits, 1)

    @property
    def as_int(self) -> LType:
        """The integer type of the same size and width (the type of the bits)."""
        return ltype("i", self.bits, self.width)

    @property
    def mask(self) -> LType:
        """The type of a comparison of two such values."""
        return ltype("i", 1, self.width)


@cache
def ltype(kind: str, bits: int, width: int = 1) -> LType:
    """The (shared) LType of these fields; quicker than constructing one."""
    return LType(kind, bits, width)


PTR = ltype("p", 64)
I1 = ltype("i", 1)
I32 = ltype("i", 32)
I64 = ltype("i", 64)


class V:
    """A typed operand: `ref` is an SSA name ("%v12"), a global ("@table") or a literal constant."""

    __slots__ = ("ref", "type")

    def __init__(self, type: LType, ref: str) -> None:
        self.type = type
        self.ref = ref

    def __repr__(self) -> str:
        return f"V({self.type.text} {self.ref})"


def float_literal(bits: int, value: float) -> str:
    """`value` rounded once to a float of `bits` bits, as LLVM writes it exactly (hexadecimal, never
    decimal).

    LLVM writes float in the bits of the double of the same value, half as 0xH and its own 16 bits.
    """
    if bits == 16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if bits == 32:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class ModuleText:
    """What the functions of one module share: declarations, constant tables, helper functions; each
    named once.

    `features` are LLVM feature names of the target ("avx512f", ...): a few places pick a better
    instruction by them; results never depend on them. `attributes` is put on every helper function
    (for instance `"prefer-vector-width"="512"`): helpers take vectors as arguments, so they must
    agree with their callers.
    `has_fma` says that multiplying and adding with one rounding is an instruction.
    `has_f16_conversions` says that the target converts between half and float by itself; without,
    LLVM would call a compiler's run-time library, so sardonyx.codegen.convert uses integers.
    """

    __slots__ = (
        "_constants",
        "_declarations",
        "_functions",
        "attributes",
        "features",
        "has_f16_conversions",
        "has_fma",
    )

    def __init__(
        self,
        features: Collection[str] = (),
        attributes: str = "",
        has_f16_conversions: bool = True,
        has_fma: bool = False,
    ) -> None:
        self.features = frozenset(features)
        self.has_fma = has_fma
        self.has_f16_conversions = has_f16_conversions
        self.attributes = attributes
        self._declarations: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._functions: dict[str, str] = {}

    def declare(self, name: str, result: str, parameters: str) -> None:
        """Declares the function `name` once."""
        if name not in self._declarations:
            self._declarations[name] = f"declare {result} @{name}({parameters})"

    def table(self, name: str, element: LType, values: Sequence[float] | Sequence[int]) -> V:
        """A private constant array under `name`; returns its address. The first definition of a
        name stays.
        """
        if name not in self._constants:
            if element.kind == "f":
                cells = [f"{element.text} {float_literal(element.bits, v)}" for v in values]
            else:
                cells = [f"{element.text} {int(v)}" for v in values]
            self._constants[name] = (
                f"@{name} = private unnamed_addr constant [{len(cells)} x {element.text}]"
                f" [{', '.join(cells)}], align 64"
            )
        return V(PTR, f"@{name}")

    def has_function(self, name: str) -> bool:
        """Whether a helper function of this name is already there."""
        return name in self._functions

    def add_function(self, name: str, text: str) -> None:
        """Adds the whole text of a helper function under its name; a name is defined once."""
        self._functions.setdefault(name, text)

    def render(self) -> str:
        """Everything collected, as module-level text (without the caller's own functions)."""
        parts: Iterable[str] = (
            *self._constants.values(),
            *self._declarations.values(),
            *self._functions.values(),
        )
        return "\n".join(parts) + "\n"


class Emitter:
    """Appends the instructions of one function body to `lines`.

    `block` is the label of the block that instructions go to now. Some emitting functions (a
    guarded slow path) end the block and open another, so a caller that writes a phi must ask for
    `block` after the value was emitted.
    """

    __slots__ = ("_count", "_out", "block", "lines", "module")

    def __init__(self, module: ModuleText, block: str = "entry") -> None:
        self.module = module
        self.lines: list[str] = [f"{block}:"]
        self._out = self.lines.append
        self._count = 0
        self.block = block

    # -- text --------------------------------------------------------------------------------------

    def raw(self, line: str) -> None:
        """Appends one line as it is."""
        self._out(line)

    def name(self, hint: str = "v") -> str:
        """A fresh SSA name."""
        self._count += 1
        return f"%{hint}{self._count}"

    def result(self, type: LType, instruction: str) -> V:
        """Appends `%fresh = instruction` and returns its value."""
        self._count += 1
        ref = f"%v{self._count}"
        self._out(f"  {ref} = {instruction}")
        return V(type, ref)

    def text(self) -> str:
        """The body so far."""
        return "\n".join(self.lines)

    # -- constants ---------------------------------------------------------------------------------

    def const(self, type: LType, value: float | int) -> V:
        """`value` in every lane: a float rounded once to the type, an integer modulo 2**bits."""
        bits = type.bits
        if type.kind == "f":
            literal = float_literal(bits, value)
        elif type.kind == "i":
            literal = ("true" if int(value) & 1 else "false") if bits == 1 else str(_signed(int(value), bits))
        else:
            literal = "null"
        if type.width > 1:
            literal = "zeroinitializer" if literal == "null" else f"splat ({type.element_text} {literal})"
        return V(type, literal)

    def poison(self, type: LType) -> V:
        """An undefined value, the start of inserts."""
        return V(type, "poison")

    def iota(self, type: LType) -> V:
        """0, 1, 2 ... by lanes, of an integer vector type (0 for a scalar)."""
        if type.width == 1:
            return V(type, "0")
        return V(type, "<" + ", ".join(f"{type.element_text} {i}" for i in range(type.width)) + ">")

    # -- float arithmetic --------------------------------------------------------------------------

    def _binary(self, opcode: str, a: V, b: V) -> V:
        self._count += 1
        ref = f"%v{self._count}"
        self._out(f"  {ref} = {opcode} {a.type.text} {a.ref}, {b.ref}")
        return V(a.type, ref)

    def add(self, a: V, b: V) -> V:
        """a + b"""
        return self._binary("fadd", a, b)

    def sub(self, a: V, b: V) -> V:
        """a - b"""
        return self._binary("fsub", a, b)

    def mul(self, a: V, b: V) -> V:
        """a * b"""
        return self._binary("fmul", a, b)

    def div(self, a: V, b: V) -> V:
        """a / b"""
        return self._binary("fdiv", a, b)

    def rem(self, a: V, b: V) -> V:
        """C's fmod (sign of the dividend); LLVM calls the C library for it, lane by lane."""
        return self._binary("frem", a, b)

    def neg(self, a: V) -> V:
        """-a, of NaN and zero too (a flip of the sign bit)."""
        return self.result(a.type, f"fneg {a.type.text} {a.ref}")

    # -- integer arithmetic: wraps; undefined only where said ---------------------------------

    def iadd(self, a: V, b: V) -> V:
        """a + b modulo 2**bits"""
        return self._binary("add", a, b)

    def isub(self, a: V, b: V) -> V:
        """a - b modulo 2**bits"""
        return self._binary("sub", a, b)

    def imul(self, a: V, b: V) -> V:
        """a * b modulo 2**bits"""
        return self._binary("mul", a, b)

    def sdiv(self, a: V, b: V) -> V:
        """Signed quotient towards zero; undefined for b = 0 and for the lowest value by -1"""
        return self._binary("sdiv", a, b)

    def udiv(self, a: V, b: V) -> V:
        """Unsigned quotient; undefined for b = 0"""
        return self._binary("udiv", a, b)

    def srem(self, a: V, b: V) -> V:
        """Signed remainder with the sign of a; undefined where `sdiv` is"""
        return self._binary("srem", a, b)

    def urem(self, a: V, b: V) -> V:
        """Unsigned remainder; undefined for b = 0"""
        return self._binary("urem", a, b)

    def and_(self, a: V, b: V) -> V:
        """Bitwise and"""
        return self._binary("and", a, b)

    def or_(self, a: V, b: V) -> V:
        """Bitwise or"""
        return self._binary("or", a, b)

    def xor(self, a: V, b: V) -> V:
        """Bitwise exclusive or"""
        return self._binary("xor", a, b)

    def not_(self, a: V) -> V:
        """Bitwise complement"""
        return self._binary("xor", a, self.const(a.type, -1))

    def shl(self, a: V, b: V) -> V:
        """a << b; poison where b >= bits"""
        return self._binary("shl", a, b)

    def lshr(self, a: V, b: V) -> V:
        """Logical a >> b; poison where b >= bits"""
        return self._binary("lshr", a, b)

    def ashr(self, a: V, b: V) -> V:
        """Arithmetic a >> b; poison where b >= bits"""
        return self._binary("ashr", a, b)

    # -- intrinsics --------------------------------------------------------------------------------

    def intrinsic(self, stem: str, *operands: V, result: LType | None = None) -> V:
        """`llvm.<stem>.<type>` overloaded on, and taking, operands of one type."""
        t = operands[0].type
        out = t if result is None else result
        name = f"llvm.{stem}.{t.suffix}"
        self.module.declare(name, out.text, ", ".join([t.text] * len(operands)))
        arguments = ", ".join([f"{t.text} {v.ref}" for v in operands])
        return self.result(out, f"call {out.text} @{name}({arguments})")

    def abs(self, a: V) -> V:
        """|a|: clears the sign bit, of NaN too"""
        return self.intrinsic("fabs", a)

    def sqrt(self, a: V) -> V:
        """Correctly rounded square root"""
        return self.intrinsic("sqrt", a)

    def floor(self, a: V) -> V:
        """Round to integral towards -inf"""
        return self.intrinsic("floor", a)

    def ceil(self, a: V) -> V:
        """Round to integral towards +inf"""
        return self.intrinsic("ceil", a)

    def trunc(self, a: V) -> V:
        """Round to integral towards zero"""
        return self.intrinsic("trunc", a)

    def rint(self, a: V) -> V:
        """Round to integral, ties to even"""
        return self.intrinsic("roundeven", a)

    def copysign(self, a: V, b: V) -> V:
        """|a| with the sign of b"""
        return self.intrinsic("copysign", a, b)

    def fma(self, a: V, b: V, c: V) -> V:
        """a * b + c rounded once"""
        t = a.type
        self.module.declare(f"llvm.fma.{t.suffix}", t.text, f"{t.text}, {t.text}, {t.text}")
        self._count += 1
        ref = f"%v{self._count}"
        x = t.text
        self._out(f"  {ref} = call {x} @llvm.fma.{t.suffix}({x} {a.ref}, {x} {b.ref}, {x} {c.ref})")
        return V(t, ref)

    def smin(self, a: V, b: V) -> V:
        """Signed minimum"""
        return self.intrinsic("smin", a, b)

    def smax(self, a: V, b: V) -> V:
        """Signed maximum"""
        return self.intrinsic("smax", a, b)

    def umin(self, a: V, b: V) -> V:
        """Unsigned minimum"""
        return self.intrinsic("umin", a, b)

    def umax(self, a: V, b: V) -> V:
        """Unsigned maximum"""
        return self.intrinsic("umax", a, b)

    def count_leading_zeros(self, a: V) -> V:
        """Leading zero bits; bits where a is zero"""
        t = a.type
        name = f"llvm.ctlz.{t.suffix}"
        self.module.declare(name, t.text, f"{t.text}, i1")
        return self.result(t, f"call {t.text} @{name}({t.text} {a.ref}, i1 false)")

    def count_trailing_zeros(self, a: V) -> V:
        """Trailing zero bits; poison where a is zero"""
        t = a.type
        name = f"llvm.cttz.{t.suffix}"
        self.module.declare(name, t.text, f"{t.text}, i1")
        return self.result(t, f"call {t.text} @{name}({t.text} {a.ref}, i1 true)")

    def any(self, mask: V) -> V:
        """i1: whether any lane of an i1 vector is set."""
        if mask.type.width == 1:
            return mask
        whole = ltype("i", mask.type.width)
        return self.icmp("ne", self.bitcast(mask, whole), self.const(whole, 0))

    # -- comparison, choice, conversion ------------------------------------------------------------

    def fcmp(self, predicate: str, a: V, b: V) -> V:
        """LLVM float comparison: oeq ogt oge olt ole one ord, ueq ugt uge ult ule une uno."""
        return self.result(a.type.mask, f"fcmp {predicate} {a.type.text} {a.ref}, {b.ref}")

    def icmp(self, predicate: str, a: V, b: V) -> V:
        """LLVM integer comparison: eq ne ugt uge ult ule sgt sge slt sle."""
        return self.result(a.type.mask, f"icmp {predicate} {a.type.text} {a.ref}, {b.ref}")

    def select(self, mask: V, a: V, b: V) -> V:
        """a where mask, else b; the mask may be one i1 for the whole vector."""
        x = a.type.text
        return self.result(a.type, f"select {mask.type.text} {mask.ref}, {x} {a.ref}, {x} {b.ref}")

    def _convert(self, opcode: str, a: V, to: LType) -> V:
        if a.type is to or a.type == to:
            return a
        return self.result(to, f"{opcode} {a.type.text} {a.ref} to {to.text}")

    def bitcast(self, a: V, to: LType) -> V:
        """The same bits as another type of the same total size."""
        return self._convert("bitcast", a, to)

    def fpext(self, a: V, bits: int) -> V:
        """To a wider float (exact)."""
        return self._convert("fpext", a, a.type.with_kind("f", bits))

    def fptrunc(self, a: V, bits: int) -> V:
        """To a narrower float, to nearest even."""
        return self._convert("fptrunc", a, a.type.with_kind("f", bits))

    def sitofp(self, a: V, bits: int) -> V:
        """Signed integer to float, to nearest even."""
        return self._convert("sitofp", a, a.type.with_kind("f", bits))

    def uitofp(self, a: V, bits: int) -> V:
        """Unsigned integer to float, to nearest even."""
        return self._convert("uitofp", a, a.type.with_kind("f", bits))

    def fptosi(self, a: V, bits: int) -> V:
        """Raw truncation to signed; poison out of range (see sardonyx.codegen.convert for the
        guarded form).
        """
        return self._convert("fptosi", a, a.type.with_kind("i", bits))

    def fptoui(self, a: V, bits: int) -> V:
        """Raw truncation to unsigned; poison out of range."""
        return self._convert("fptoui", a, a.type.with_kind("i", bits))

    def sext(self, a: V, bits: int) -> V:
        """Sign extension"""
        return self._convert("sext", a, a.type.with_kind("i", bits))

    def zext(self, a: V, bits: int) -> V:
        """Zero extension"""
        return self._convert("zext", a, a.type.with_kind("i", bits))

    def trunc_int(self, a: V, bits: int) -> V:
        """The low bits"""
        return self._convert("trunc", a, a.type.with_kind("i", bits))

    # -- vectors -----------------------------------------------------------------------------------

    def splat(self, scalar: V, width: int) -> V:
        """A scalar in every lane of a vector (itself at width 1)."""
        if width == 1:
            return scalar
        t = ltype(scalar.type.kind, scalar.type.bits, width)
        one = self.insert(self.poison(t), scalar, 0)
        zeros = f"<{width} x i32> zeroinitializer"
        return self.result(t, f"shufflevector {t.text} {one.ref}, {t.text} poison, {zeros}")

    def extract(self, vector: V, lane: int | V) -> V:
        """One lane (the value itself at width 1)."""
        if vector.type.width == 1:
            return vector
        index = f"{lane.type.text} {lane.ref}" if isinstance(lane, V) else f"i32 {lane}"
        return self.result(vector.type.element, f"extractelement {vector.type.text} {vector.ref}, {index}")

    def insert(self, vector: V, scalar: V, lane: int | V) -> V:
        """The vector with one lane replaced (the scalar itself at width 1)."""
        t = vector.type
        if t.width == 1:
            return scalar
        index = f"{lane.type.text} {lane.ref}" if isinstance(lane, V) else f"i32 {lane}"
        return self.result(
            t, f"insertelement {t.text} {vector.ref}, {scalar.type.text} {scalar.ref}, {index}"
        )

    # -- memory: `align` in bytes, the element's size unless given ---------------------------------

    def load(self, type: LType, pointer: V, align: int = 0) -> V:
        """A value of `type` at `pointer`."""
        return self.result(type, f"load {type.text}, ptr {pointer.ref}, align {align or _size(type)}")

    def store(self, value: V, pointer: V, align: int = 0) -> None:
        """Writes `value` at `pointer`."""
        t = value.type
        self._out(f"  store {t.text} {value.ref}, ptr {pointer.ref}, align {align or _size(t)}")

    def masked_load(self, type: LType, pointer: V, mask: V, other: V, align: int = 0) -> V:
        """Lanes under `mask` from memory; the others from `other`, their memory untouched."""
        x, m = _vector_text(type), _vector_text(mask.type)
        name = f"llvm.masked.load.v{type.width}{type.element.suffix}.p0"
        self.module.declare(name, x, f"ptr, i32, {m}, {x}")
        mask, other = self._as_vector(mask), self._as_vector(other)
        where = f"ptr {pointer.ref}, i32 {align or _size(type)}"
        call = f"call {x} @{name}({where}, {m} {mask.ref}, {x} {other.ref})"
        return self._from_vector(type, call)

    def masked_store(self, value: V, pointer: V, mask: V, align: int = 0) -> None:
        """Writes the lanes under `mask` to consecutive memory."""
        t = value.type
        x, m = _vector_text(t), _vector_text(mask.type)
        name = f"llvm.masked.store.v{t.width}{t.element.suffix}.p0"
        self.module.declare(name, "void", f"{x}, ptr, i32, {m}")
        value, mask = self._as_vector(value), self._as_vector(mask)
        where = f"ptr {pointer.ref}, i32 {align or _size(t)}"
        self._out(f"  call void @{name}({x} {value.ref}, {where}, {m} {mask.ref})")

    def gather(self, type: LType, base: V, index: V, mask: V | None = None) -> V:
        """base[index] by lanes, `index` (signed) counting elements; masked-off lanes give zero."""
        pointers = self.gep(type, base, index)
        if mask is None and type.width == 1:
            return self.load(type, pointers)
        t = type
        mask = self.const(t.mask, 1) if mask is None else mask
        x, m, p = _vector_text(t), _vector_text(mask.type), _vector_text(pointers.type)
        name = f"llvm.masked.gather.v{t.width}{t.element.suffix}.v{t.width}p0"
        self.module.declare(name, x, f"{p}, i32, {m}, {x}")
        pointers, mask = self._as_vector(pointers), self._as_vector(mask)
        arguments = f"{p} {pointers.ref}, i32 {_size(t)}, {m} {mask.ref}, {x} zeroinitializer"
        return self._from_vector(t, f"call {x} @{name}({arguments})")

    def scatter(self, value: V, base: V, index: V, mask: V | None = None) -> None:
        """Write lanes to base[index]; of lanes with one index the last wins."""
        pointers = self.gep(value.type, base, index)
        if mask is None and value.type.width == 1:
            self.store(value, pointers)
            return
        t = value.type
        mask = self.const(t.mask, 1) if mask is None else mask
        x, m, p = _vector_text(t), _vector_text(mask.type), _vector_text(pointers.type)
        name = f"llvm.masked.scatter.v{t.width}{t.element.suffix}.v{t.width}p0"
        self.module.declare(name, "void", f"{x}, {p}, i32, {m}")
        value, pointers, mask = self._as_vector(value), self._as_vector(pointers), self._as_vector(mask)
        self.raw(f"  call void @{name}({x} {value.ref}, {p} {pointers.ref}, i32 {_size(t)}, {m} {mask.ref})")

    def gep(self, element: LType, base: V, index: V) -> V:
        """The address of element `index` of an array of `element`'s scalars; a vector index gives a
        vector of them.
        """
        to = ltype("p", 64, index.type.width)
        return self.result(
            to,
            f"getelementptr {element.element_text}, ptr {base.ref}, {index.type.text} {index.ref}",
        )

    def _as_vector(self, a: V) -> V:
        """A scalar as a vector of one lane, which the masked intrinsics need; a vector as it is."""
        if a.type.width > 1:
            return a
        x = _vector_text(a.type)
        return self.result(a.type, f"insertelement {x} poison, {a.type.text} {a.ref}, i32 0")

    def _from_vector(self, type: LType, instruction: str) -> V:
        loaded = self.result(type, instruction)
        if type.width > 1:
            return loaded
        return self.result(type, f"extractelement {_vector_text(type)} {loaded.ref}, i32 0")

    # -- control -----------------------------------------------------------------------------------

    def call(self, result: LType | None, function: str, *operands: V) -> V | None:
        """Calls `@function` (declare it in the module); None for a void function."""
        arguments = ", ".join([f"{v.type.text} {v.ref}" for v in operands])
        if result is None:
            self._out(f"  call void @{function}({arguments})")
            return None
        return self.result(result, f"call {result.text} @{function}({arguments})")

    def new_label(self, hint: str = "block") -> str:
        """A fresh label, not yet placed."""
        self._count += 1
        return f"{hint}{self._count}"

    def label(self, label: str) -> None:
        """Opens the block `label`; the block before must have been ended."""
        self._out(f"{label}:")
        self.block = label

    def br(self, label: str) -> None:
        """Jumps to `label`."""
        self._out(f"  br label %{label}")

    def cond_br(self, condition: V, then: str, otherwise: str) -> None:
        """Jumps by an i1."""
        self._out(f"  br i1 {condition.ref}, label %{then}, label %{otherwise}")

    def phi(self, type: LType, *incoming: tuple[V, str]) -> V:
        """The value that came with the edge: (value, label of the predecessor) for each."""
        edges = ", ".join([f"[ {v.ref}, %{label} ]" for v, label in incoming])
        return self.result(type, f"phi {type.text} {edges}")

    def ret(self, value: V | None = None) -> None:
        """Returns."""
        self._out("  ret void" if value is None else f"  ret {value.type.text} {value.ref}")


def _size(type: LType) -> int:
    """Bytes of one element, the alignment memory has at the least."""
    return max(1, type.bits // 8)


def _vector_text(type: LType) -> str:
    """The text of the type as a vector even at width 1."""
    return f"<{type.width} x {type.element_text}>"


def _signed(value: int, bits: int) -> int:
    """The representative of `value` modulo 2**bits that LLVM prints: signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
