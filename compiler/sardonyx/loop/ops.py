"""Declarations of the loop level's ops.

A kernel is a function over buffers, indices and two last arguments ``begin`` and ``end``, the part of
its parallel range it is to do.  Machine values are vectors (``lanes`` 1: scalars) of element types;
16-bit floats are computed as f32 and rounded by ``loop.round``.  The program is a function of the
same level that binds dims, places buffers and launches kernels.
"""

from __future__ import annotations

import re

from sardonyx.core import elementwise
from sardonyx.ir.declare import Trait, declare, lookup

__all__ = ["SCALAR_KINDS"]

# The elementwise core kinds exist at this level under the same names, on vectors.
SCALAR_KINDS = (*elementwise.UNARY, *elementwise.BINARY, *elementwise.COMPARE, "is_nan", "is_inf", "select")


def _example(kind: str) -> str:
    """The core op's example on vectors."""
    declaration = lookup(f"core.{kind}")
    assert declaration is not None
    return re.sub(r"tensor<4x(\w+)>", r"vector<8x\1>", declaration.example.replace("core.", "loop.", 1))


for _kind in SCALAR_KINDS:
    declare(
        f"loop.{_kind}",
        "*xs",
        traits=[Trait.ELEMENTWISE],
        doc="the core op of this name on vectors",
        example=_example(_kind),
    )

declare(
    "loop.const",
    "",
    "value",
    doc="a constant, the same in every lane",
    example="%y = loop.const {value = 0.5} : () -> vector<8xf32>",
)
declare(
    "loop.fma",
    "x y z",
    traits=[Trait.ELEMENTWISE],
    doc="x * y + z, rounded once",
    example="%r = loop.fma %x, %y, %z : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>",
)
declare(
    "loop.muladd",
    "x y z",
    traits=[Trait.ELEMENTWISE],
    doc="x * y + z inside sums of products: rounded once where the target has such an instruction, else twice",
    example="%r = loop.muladd %x, %y, %z : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>",
)
declare(
    "loop.trailing_zeros",
    "x",
    traits=[Trait.ELEMENTWISE],
    doc="how many zeros stand below the lowest 1 of an integer that is not 0",
    example="%y = loop.trailing_zeros %x : (i64) -> i64",
)
declare(
    "loop.dot_bytes",
    "x y z",
    traits=[Trait.ELEMENTWISE],
    doc="z plus the products of the four bytes of each 32-bit lane: those of x without a sign, those of y with one; exact",
    example="%r = loop.dot_bytes %x, %y, %z : (vector<8xi32>, vector<8xi32>, vector<8xi32>) -> vector<8xi32>",
)
declare(
    "loop.convert",
    "x",
    "to saturate? round_mode? infinity? exact?",
    doc="to another element type; `exact`: no rounding is needed",
    example="%y = loop.convert %x {to = i32} : (vector<8xf32>) -> vector<8xi32>",
)
declare(
    "loop.bitcast",
    "x",
    "to",
    doc="the same bits as another element type of this width",
    example="%y = loop.bitcast %x {to = i32} : (vector<8xf32>) -> vector<8xi32>",
)
declare(
    "loop.round",
    "x",
    "to",
    doc="an f32 rounded to a 16-bit float, kept as f32",
    example="%y = loop.round %x {to = f16} : (vector<8xf32>) -> vector<8xf32>",
)
declare(
    "loop.splat",
    "x",
    "lanes",
    doc="a scalar in every lane",
    example="%y = loop.splat %x {lanes = 8} : (f32) -> vector<8xf32>",
)
declare(
    "loop.lanes",
    "",
    "lanes",
    doc="0, 1, 2 ... by lanes, as i64",
    example="%y = loop.lanes {lanes = 8} : () -> vector<8xi64>",
)
declare(
    "loop.mask",
    "count",
    "lanes",
    doc="lanes whose number is below the count",
    example="%y = loop.mask %count {lanes = 8} : (index) -> vector<8xi1>",
)
declare(
    "loop.shuffle",
    "x y",
    "picks",
    doc="lanes picked from x and y, whose lanes are numbered on from those of x",
    example="%z = loop.shuffle %x, %y {picks = [0, 4, 1, 5]} : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>",
)
declare(
    "loop.reduce_lanes",
    "x",
    "kind",
    doc="all lanes combined into one element",
    example='%y = loop.reduce_lanes %x {kind = "sum"} : (vector<8xf32>) -> f32',
)
declare(
    "loop.extract",
    "x",
    "lane",
    doc="one lane",
    example="%y = loop.extract %x {lane = 0} : (vector<8xf32>) -> f32",
)
declare(
    "loop.load",
    "buffer index mask? other?",
    "lanes",
    doc="consecutive elements from index on; masked-off lanes give `other`",
    example="%y = loop.load %x, %i {lanes = 8} : (!sdx.buffer<f32>, index) -> vector<8xf32>",
)
declare(
    "loop.store",
    "value buffer index mask?",
    "streaming?",
    traits=[Trait.EFFECT],
    doc="write consecutive elements; `streaming`: past the caches, the place is aligned to a register",
    example="loop.store %y, %x, %i : (vector<8xf32>, !sdx.buffer<f32>, index) -> ()",
)
declare(
    "loop.fence",
    traits=[Trait.EFFECT],
    doc="streaming stores are seen by other threads from here on",
    example="loop.fence : () -> ()",
)
declare(
    "loop.gather",
    "buffer indices mask?",
    doc="elements at the indices; masked-off lanes give 0",
    example="%y = loop.gather %x, %i : (!sdx.buffer<f32>, vector<8xi64>) -> vector<8xf32>",
)
declare(
    "loop.scatter",
    "value buffer indices mask?",
    traits=[Trait.EFFECT],
    doc="write elements at the indices",
    example="loop.scatter %y, %x, %i : (vector<8xf32>, !sdx.buffer<f32>, vector<8xi64>) -> ()",
)
declare(
    "loop.compress",
    "value buffer index mask",
    traits=[Trait.EFFECT],
    doc="write the lanes of the mask one behind another from index on; nothing else is written",
    example="loop.compress %y, %x, %i, %mask : (vector<8xf32>, !sdx.buffer<f32>, index, vector<8xi1>) -> ()",
)
declare(
    "loop.count",
    "mask",
    doc="how many lanes hold, as an index",
    example="%n = loop.count %mask : (vector<8xi1>) -> index",
)
declare(
    "loop.offset",
    "buffer index",
    doc="the buffer from an element on",
    example="%y = loop.offset %x, %i : (!sdx.buffer<f32>, index) -> !sdx.buffer<f32>",
)
declare(
    "loop.address",
    "buffer index",
    doc="the address of an element as an i64 scalar",
    example="%a = loop.address %x, %i : (!sdx.buffer<f32>, index) -> i64",
)
declare(
    "loop.pointer",
    "address",
    doc="the buffer at an address, an i64 scalar",
    example="%x = loop.pointer %a : (i64) -> !sdx.buffer<f32>",
)
declare(
    "loop.local",
    "",
    "dtype size",
    doc="a small buffer on the stack, aligned to 64 bytes",
    example="%x = loop.local {dtype = f32, size = 16} : () -> !sdx.buffer<f32>",
)
declare(
    "loop.prefetch",
    "buffer index",
    traits=[Trait.EFFECT],
    doc="a hint that the element is read soon",
    example="loop.prefetch %x, %i : (!sdx.buffer<f32>, index) -> ()",
)
declare(
    "loop.for",
    "low high step *carried",
    "at_least_once?",
    regions=1,
    traits=[Trait.EFFECT],
    doc="for index = low; index < high; index += step; carried values go from pass to pass; `at_least_once`: low < high",
    example=(
        "%total = loop.for %low, %high, %step, %zero ({\n"
        "^bb0(%i: index, %sum: f32):\n"
        "  %x = loop.load %buffer, %i {lanes = 1} : (!sdx.buffer<f32>, index) -> f32\n"
        "  %next = loop.add %sum, %x : (f32, f32) -> f32\n"
        "  loop.yield %next : (f32) -> ()\n"
        "}) : (index, index, index, f32) -> f32"
    ),
)
declare(
    "loop.if",
    "condition",
    "",
    regions=2,
    traits=[Trait.EFFECT],
    doc="one of two regions; their yields are the results",
    example=(
        "%y = loop.if %c ({\n"
        "  loop.yield %x : (f32) -> ()\n"
        "}, {\n"
        "  %0 = loop.neg %x : (f32) -> f32\n"
        "  loop.yield %0 : (f32) -> ()\n"
        "}) : (i1) -> f32"
    ),
)
declare(
    "loop.while",
    "*carried",
    "",
    regions=1,
    traits=[Trait.EFFECT],
    doc="repeat while the first value of the yield holds; carries the others",
    example=(
        "%y = loop.while %x ({\n"
        "^bb0(%now: i64):\n"
        "  %next = loop.sub %now, %one : (i64, i64) -> i64\n"
        "  %more = loop.gt %next, %one : (i64, i64) -> i1\n"
        "  loop.yield %more, %next : (i1, i64) -> ()\n"
        "}) : (i64) -> i64"
    ),
)
declare(
    "loop.yield",
    "*values",
    traits=[Trait.TERMINATOR],
    doc="ends a region",
    example="loop.yield %x : (f32) -> ()",
)
declare(
    "loop.fault",
    "status condition value node",
    "code",
    traits=[Trait.EFFECT],
    doc="if the condition holds in any lane, note a fault of this code, with node and value, in the status buffer",
    example=(
        "loop.fault %status, %condition, %value, %node {code = 1}"
        " : (!sdx.buffer<i64>, vector<8xi1>, vector<8xi64>, index) -> ()"
    ),
)
declare(
    "loop.return",
    "*values",
    traits=[Trait.TERMINATOR],
    doc="ends a function",
    example="loop.return : () -> ()",
)

# The program.
declare(
    "loop.dim",
    "",
    "value",
    doc="the value of a dim expression at run time",
    example='%n = loop.dim {value = #sdx.dim<"2*n">} : () -> index',
)
declare(
    "loop.status",
    "",
    "",
    doc="the status buffer: code, node, value of the first fault",
    example="%status = loop.status : () -> !sdx.buffer<i64>",
)
declare(
    "loop.input",
    "",
    "number dtype",
    doc="the memory of a graph input",
    example="%x = loop.input {number = 0, dtype = f32} : () -> !sdx.buffer<f32>",
)
declare(
    "loop.output",
    "",
    "number dtype size late",
    doc="the memory of a graph output, of `size` bytes; the run allocates it if `late` (the size is not known at entry)",
    example=(
        '%y = loop.output {number = 0, dtype = f32, size = #sdx.dim<"4*n">, late = false}'
        " : () -> !sdx.buffer<f32>"
    ),
)
declare(
    "loop.weights",
    "",
    "offset dtype",
    doc="a place in the constant blob, in bytes from its start",
    example="%w = loop.weights {offset = 64, dtype = f32} : () -> !sdx.buffer<f32>",
)
declare(
    "loop.allocate",
    "",
    "size dtype",
    doc="memory of `size` bytes, not placed yet",
    example='%t = loop.allocate {size = #sdx.dim<"4*n">, dtype = f32} : () -> !sdx.buffer<f32>',
)
declare(
    "loop.place",
    "",
    "chunk offset size? dtype",
    doc="memory at an offset in bytes of an arena chunk",
    example=(
        '%t = loop.place {chunk = 0, offset = 64, size = #sdx.dim<"4*n">, dtype = f32}'
        " : () -> !sdx.buffer<f32>"
    ),
)
declare(
    "loop.part",
    "whole",
    "offset dtype",
    doc="memory at an offset in bytes of a larger tensor",
    example="%t = loop.part %whole {offset = 16, dtype = f32} : (!sdx.buffer<f32>) -> !sdx.buffer<f32>",
)
declare(
    "loop.arena",
    "",
    "chunk size",
    traits=[Trait.EFFECT],
    doc="make an arena chunk at least `size` bytes long",
    example='loop.arena {chunk = 0, size = #sdx.dim<"4*n+64">} : () -> ()',
)
declare(
    "loop.branch",
    "condition",
    "symbols",
    regions=2,
    traits=[Trait.EFFECT],
    doc="one of two regions by the first byte of a buffer; its `loop.next` gives the values of the symbols",
    example=(
        "loop.branch %c {symbols = []} ({\n"
        "  loop.next {values = []} : () -> ()\n"
        "}, {\n"
        "  loop.next {values = []} : () -> ()\n"
        "}) : (!sdx.buffer<i1>) -> ()"
    ),
)
declare(
    "loop.repeat",
    "condition?",
    "index trip symbols first results count conditional",
    regions=1,
    traits=[Trait.EFFECT],
    doc="a region over and over; `loop.next` gives the next values of the symbols and the next condition",
    example=(
        'loop.repeat {index = "i", trip = 3, symbols = [], first = [], results = [], count = 3, conditional = false} ({\n'
        "  loop.next {values = []} : () -> ()\n"
        "}) : () -> ()"
    ),
)
declare(
    "loop.next",
    "condition?",
    "values",
    traits=[Trait.TERMINATOR, Trait.EFFECT],
    doc="ends a region of control flow",
    example='loop.next {values = #sdx.dims<"n+1">} : () -> ()',
)
declare(
    "loop.grow",
    "",
    "chunk size",
    traits=[Trait.EFFECT],
    doc="make a chunk at least `size` bytes long and keep what it holds",
    example='loop.grow {chunk = 1, size = #sdx.dim<"4*i+4">} : () -> ()',
)
declare(
    "loop.view",
    "buffer",
    "offset",
    doc="the same memory from an offset in bytes on",
    example='%y = loop.view %x {offset = #sdx.dim<"4*i">} : (!sdx.buffer<f32>) -> !sdx.buffer<f32>',
)
declare(
    "loop.write_dims",
    "buffer",
    "values dtype",
    traits=[Trait.EFFECT],
    doc="write dims into a buffer",
    example='loop.write_dims %x {values = #sdx.dims<"n", 3>, dtype = i64} : (!sdx.buffer<i64>) -> ()',
)
declare(
    "loop.read_dims",
    "*buffers",
    "symbols minimum dtypes counts node rule? dims? steps? allowzero?",
    traits=[Trait.EFFECT],
    doc="bind symbols to the elements of buffers, by the rules of `core.bind_dims`; a fault names the node",
    example=(
        'loop.read_dims %x {symbols = ["k"], minimum = 0, dtypes = [i64], counts = [1], node = 0}'
        " : (!sdx.buffer<i64>) -> ()"
    ),
)
declare(
    "loop.require",
    "",
    "relation left right message node",
    traits=[Trait.EFFECT],
    doc="end the run with a fault unless the relation (equal, broadcast, at_least) of two dims holds",
    example=(
        'loop.require {relation = "equal", left = #sdx.dim<"n">, right = #sdx.dim<"m">, message = 0, node = 0}'
        " : () -> ()"
    ),
)
declare(
    "loop.external",
    "*buffers",
    "symbol shapes inputs node",
    traits=[Trait.EFFECT],
    doc="call a user's function on buffers of the given shapes, the first `inputs` of which it reads",
    example=(
        'loop.external %x, %y {symbol = "scale", shapes = [[4], [4]], inputs = 1, node = 0}'
        " : (!sdx.buffer<f32>, !sdx.buffer<f32>) -> ()"
    ),
)
declare(
    "loop.new_string",
    "heap length",
    traits=[Trait.EFFECT],
    doc="the address of a new string of `length` bytes; 0 if there is no memory",
    example="%s = loop.new_string %heap, %length : (!sdx.buffer<i64>, index) -> i64",
)
declare(
    "loop.heap",
    "",
    "",
    doc="the words of the context for the memory of strings",
    example="%heap = loop.heap : () -> !sdx.buffer<i64>",
)
declare(
    "loop.entropy",
    "buffer",
    "number",
    traits=[Trait.EFFECT],
    doc="write a u64 that differs from run to run",
    example="loop.entropy %x {number = 0} : (!sdx.buffer<ui64>) -> ()",
)
declare(
    "loop.copy",
    "target source size",
    "",
    traits=[Trait.EFFECT],
    doc="copy bytes",
    example="loop.copy %target, %source, %size : (!sdx.buffer<f32>, !sdx.buffer<f32>, index) -> ()",
)
declare(
    "loop.launch",
    "*arguments",
    "kernel range cost",
    traits=[Trait.EFFECT],
    doc="run a kernel over its parallel range; `cost` (rough scalar operations) decides on threads",
    example=(
        'loop.launch %x, %y, %n {kernel = "k_0", range = #sdx.dim<"n">, cost = #sdx.dim<"8*n">}'
        " : (!sdx.buffer<f32>, !sdx.buffer<f32>, index) -> ()"
    ),
)
