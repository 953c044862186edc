"""Declarations of the loop level's ops.

A kernel is a function over buffers, indices and two last arguments ``begin`` and ``end``, the part of
its parallel range it is to do.  Machine values are vectors (``lanes`` 1: scalars) of element types;
16-bit floats are computed as f32 and rounded by ``loop.round``.  The program is a function of the
same level that binds dims, places buffers and launches kernels.
"""

from __future__ import annotations

from sardonyx.core import elementwise
from sardonyx.ir.declare import Trait, declare

__all__ = ["SCALAR_KINDS"]

# The elementwise core kinds exist at this level under the same names, on vectors.
SCALAR_KINDS = (*elementwise.UNARY, *elementwise.BINARY, *elementwise.COMPARE, "is_nan", "is_inf", "select")

for _kind in SCALAR_KINDS:
    declare(f"loop.{_kind}", "*xs", traits=[Trait.ELEMENTWISE], doc="the core op of this name on vectors")

declare("loop.const", "", "value", doc="a constant, the same in every lane")
declare("loop.fma", "x y z", traits=[Trait.ELEMENTWISE], doc="x * y + z, rounded once")
declare(
    "loop.muladd",
    "x y z",
    traits=[Trait.ELEMENTWISE],
    doc="x * y + z inside sums of products: rounded once where the target has such an instruction, else twice",
)
declare(
    "loop.trailing_zeros",
    "x",
    traits=[Trait.ELEMENTWISE],
    doc="how many zeros stand below the lowest 1 of an integer that is not 0",
)
declare(
    "loop.dot_bytes",
    "x y z",
    traits=[Trait.ELEMENTWISE],
    doc="z plus the products of the four bytes of each 32-bit lane: those of x without a sign, those of y with one; exact",
)
declare(
    "loop.convert",
    "x",
    "to saturate? round_mode? infinity? exact?",
    doc="to another element type; `exact`: no rounding is needed",
)
declare("loop.bitcast", "x", "to", doc="the same bits as another element type of this width")
declare("loop.round", "x", "to", doc="an f32 rounded to a 16-bit float, kept as f32")
declare("loop.splat", "x", "lanes", doc="a scalar in every lane")
declare("loop.lanes", "", "lanes", doc="0, 1, 2 ... by lanes, as i64")
declare("loop.mask", "count", "lanes", doc="lanes whose number is below the count")
declare(
    "loop.shuffle",
    "x y",
    "picks",
    doc="lanes picked from x and y, whose lanes are numbered on from those of x",
)
declare("loop.reduce_lanes", "x", "kind", doc="all lanes combined into one element")
declare("loop.extract", "x", "lane", doc="one lane")
declare(
    "loop.load",
    "buffer index mask? other?",
    "lanes",
    doc="consecutive elements from index on; masked-off lanes give `other`",
)
declare(
    "loop.store",
    "value buffer index mask?",
    "streaming?",
    traits=[Trait.EFFECT],
    doc="write consecutive elements; `streaming`: past the caches, the place is aligned to a register",
)
declare("loop.fence", traits=[Trait.EFFECT], doc="streaming stores are seen by other threads from here on")
declare("loop.gather", "buffer indices mask?", doc="elements at the indices; masked-off lanes give 0")
declare(
    "loop.scatter", "value buffer indices mask?", traits=[Trait.EFFECT], doc="write elements at the indices"
)
declare(
    "loop.compress",
    "value buffer index mask",
    traits=[Trait.EFFECT],
    doc="write the lanes of the mask one behind another from index on; nothing else is written",
)
declare("loop.count", "mask", doc="how many lanes hold, as an index")
declare("loop.offset", "buffer index", doc="the buffer from an element on")
declare("loop.address", "buffer index", doc="the address of an element as an i64 scalar")
declare("loop.pointer", "address", doc="the buffer at an address, an i64 scalar")
declare("loop.local", "", "dtype size", doc="a small buffer on the stack, aligned to 64 bytes")
declare("loop.prefetch", "buffer index", traits=[Trait.EFFECT], doc="a hint that the element is read soon")
declare(
    "loop.for",
    "low high step *carried",
    "at_least_once?",
    regions=1,
    traits=[Trait.EFFECT],
    doc="for index = low; index < high; index += step; carried values go from pass to pass; `at_least_once`: low < high",
)
declare(
    "loop.if",
    "condition",
    "",
    regions=2,
    traits=[Trait.EFFECT],
    doc="one of two regions; their yields are the results",
)
declare(
    "loop.while",
    "*carried",
    "",
    regions=1,
    traits=[Trait.EFFECT],
    doc="repeat while the first value of the yield holds; carries the others",
)
declare("loop.yield", "*values", traits=[Trait.TERMINATOR], doc="ends a region")
declare(
    "loop.fault",
    "status condition value node",
    "code",
    traits=[Trait.EFFECT],
    doc="if the condition holds in any lane, note a fault of this code, with node and value, in the status buffer",
)
declare("loop.return", "*values", traits=[Trait.TERMINATOR], doc="ends a function")

# The program.
declare("loop.dim", "", "value", doc="the value of a dim expression at run time")
declare("loop.status", "", "", doc="the status buffer: code, node, value of the first fault")
declare("loop.input", "", "number dtype", doc="the memory of a graph input")
declare(
    "loop.output",
    "",
    "number dtype size late",
    doc="the memory of a graph output, of `size` bytes; the run allocates it if `late` (the size is not known at entry)",
)
declare("loop.weights", "", "offset dtype", doc="a place in the constant blob, in bytes from its start")
declare("loop.allocate", "", "size dtype", doc="memory of `size` bytes, not placed yet")
declare("loop.place", "", "chunk offset size? dtype", doc="memory at an offset in bytes of an arena chunk")
declare("loop.part", "whole", "offset dtype", doc="memory at an offset in bytes of a larger tensor")
declare(
    "loop.arena",
    "",
    "chunk size",
    traits=[Trait.EFFECT],
    doc="make an arena chunk at least `size` bytes long",
)
declare(
    "loop.branch",
    "condition",
    "symbols",
    regions=2,
    traits=[Trait.EFFECT],
    doc="one of two regions by the first byte of a buffer; its `loop.next` gives the values of the symbols",
)
declare(
    "loop.repeat",
    "condition?",
    "index trip symbols first results count conditional",
    regions=1,
    traits=[Trait.EFFECT],
    doc="a region over and over; `loop.next` gives the next values of the symbols and the next condition",
)
declare(
    "loop.next",
    "condition?",
    "values",
    traits=[Trait.TERMINATOR, Trait.EFFECT],
    doc="ends a region of control flow",
)
declare(
    "loop.grow",
    "",
    "chunk size",
    traits=[Trait.EFFECT],
    doc="make a chunk at least `size` bytes long and keep what it holds",
)
declare("loop.view", "buffer", "offset", doc="the same memory from an offset in bytes on")
declare("loop.write_dims", "buffer", "values dtype", traits=[Trait.EFFECT], doc="write dims into a buffer")
declare(
    "loop.read_dims",
    "*buffers",
    "symbols minimum dtypes counts node rule? dims? steps? allowzero?",
    traits=[Trait.EFFECT],
    doc="bind symbols to the elements of buffers, by the rules of `core.bind_dims`; a fault names the node",
)
declare(
    "loop.require",
    "",
    "relation left right message node",
    traits=[Trait.EFFECT],
    doc="end the run with a fault unless the relation (equal, broadcast, at_least) of two dims holds",
)
declare(
    "loop.external",
    "*buffers",
    "symbol shapes inputs node",
    traits=[Trait.EFFECT],
    doc="call a user's function on buffers of the given shapes, the first `inputs` of which it reads",
)
declare(
    "loop.new_string",
    "heap length",
    traits=[Trait.EFFECT],
    doc="the address of a new string of `length` bytes; 0 if there is no memory",
)
declare("loop.heap", "", "", doc="the words of the context for the memory of strings")
declare(
    "loop.entropy", "buffer", "number", traits=[Trait.EFFECT], doc="write a u64 that differs from run to run"
)
declare("loop.copy", "target source size", "", traits=[Trait.EFFECT], doc="copy bytes")
declare(
    "loop.launch",
    "*arguments",
    "kernel range cost",
    traits=[Trait.EFFECT],
    doc="run a kernel over its parallel range; `cost` (rough scalar operations) decides on threads",
)
