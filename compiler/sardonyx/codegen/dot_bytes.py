"""Dot products of bytes: one instruction where the target has it, else exact twins of it."""

from __future__ import annotations

from sardonyx.codegen.emitter import Emitter, V, ltype

__all__ = ["dot_bytes"]

_WIDTHS = {4: "128", 8: "256", 16: "512"}
_PAIRS = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}
_PAIRS_NEED = {4: "sse2", 8: "avx2", 16: "avx512bw"}


def dot_bytes(e: Emitter, x: V, y: V, z: V) -> V:
    """z plus, in each 32-bit lane, the products of the bytes of x (no sign) and of y (with sign)."""
    lanes, features = x.type.width, e.module.features
    if lanes in _WIDTHS and ("avx512vnni" in features or ("avxvnni" in features and lanes < 16)):
        return _by_instruction(e, x, y, z, lanes)
    half = ltype("i", 16, 2 * lanes)
    a, c = e.bitcast(x, half), e.bitcast(y, half)
    eight = e.const(half, 8)
    low = _pairs(e, e.and_(a, e.const(half, 0xFF)), e.ashr(e.shl(c, eight), eight), lanes)
    high = _pairs(e, e.lshr(a, eight), e.ashr(c, eight), lanes)
    return e.iadd(z, e.iadd(low, high))


def _by_instruction(e: Emitter, x: V, y: V, z: V, lanes: int) -> V:
    name = f"llvm.x86.avx512.vpdpbusd.{_WIDTHS[lanes]}"
    kind = ltype("i", 8, 4 * lanes)
    e.module.declare(name, z.type.text, f"{z.type.text}, {kind.text}, {kind.text}")
    a, c = e.bitcast(x, kind), e.bitcast(y, kind)
    return e.result(
        z.type, f"call {z.type.text} @{name}({z.type.text} {z.ref}, {kind.text} {a.ref}, {kind.text} {c.ref})"
    )


def _pairs(e: Emitter, x: V, y: V, lanes: int) -> V:
    """The sums of the products of neighbouring 16-bit elements, as 32-bit lanes."""
    to = ltype("i", 32, lanes)
    if lanes in _PAIRS and _PAIRS_NEED[lanes] in e.module.features:
        name = f"llvm.x86.{_PAIRS[lanes]}"
        e.module.declare(name, to.text, f"{x.type.text}, {x.type.text}")
        return e.result(to, f"call {to.text} @{name}({x.type.text} {x.ref}, {x.type.text} {y.ref})")
    a, c, sixteen = e.bitcast(x, to), e.bitcast(y, to), e.const(to, 16)

    def low(v: V) -> V:
        return e.ashr(e.shl(v, sixteen), sixteen)

    return e.iadd(e.imul(low(a), low(c)), e.imul(e.ashr(a, sixteen), e.ashr(c, sixteen)))
