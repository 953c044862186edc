"""Attention (23, 24, 25): scaled products of queries and keys, a bias, softmax, a product with the values.

Heads of queries that share a head of keys stand on an axis of their own, so that keys are repeated by a
stride of 0 and never in memory.  The queries are taken in blocks of rows: the scores of a block are all
that exists at a time, so memory grows with the length and not with its square.  Only where the scores
are an output themselves do they exist as a whole.

The softmax is computed in ``softmax_precision``, by default in the type of the inputs, each step rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.core.builder import Builder
from sardonyx.core.control_builder import LoopBody, build_loop
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.registry import onnx_op
from sardonyx.ops.shape import concat
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike, broadcast_dim, floordiv, modulo
from sardonyx_runtime.dtypes import DType

__all__: list[str] = []

_BLOCK = 128  # rows of queries at a time
_WHOLE = 512  # up to so many rows, known at compile time, there is one block

_WITH_BIAS, _SOFTCAPPED, _AFTER_SOFTMAX = 1, 2, 3


@dataclass
class _Attention:
    b: Builder
    query: Value  # (batch, key heads, repeats, rows, size)
    key: Value  # (batch, key heads, 1, length, size)
    value: Value  # (batch, key heads, 1, length, value size)
    mask: (
        Value | None
    )  # (batch or 1, key heads or 1, repeats or 1, rows or 1, length), bool or the inputs' type
    lengths: Value | None  # valid keys of each batch entry
    offset: DimLike  # keys in front of the first query
    causal: bool
    left: int
    right: int
    softcap: float
    precision: DType
    mode: int

    def rows(self, b: Builder, query: Value, first: DimLike) -> tuple[Value, Value | None]:
        """The output for a block of queries that begins at a row, and the scores asked for."""
        dtype = query.type.dtype
        count, length = query.type.shape[3], self.key.type.shape[3]
        batch = query.type.shape[:3]
        keys = b.broadcast_to(
            b.transpose(self.key, (0, 1, 2, 4, 3)), (*batch, self.key.type.shape[4], length)
        )
        scores = b.op("core.contract", query, keys)
        shown: Value | None = scores
        if self.softcap:
            cap = b.full(self.softcap, scores)
            scores = b.mul(cap, b.tanh(b.div(scores, cap)))
            shown = scores
        bias, guard = self.bias(b, first, count, scores)
        if bias is not None:
            scores = b.add(scores, bias)
        if (
            self.mode == _AFTER_SOFTMAX
            or (self.mode == _WITH_BIAS and not self.softcap)
            or self.mode == _SOFTCAPPED
        ):
            shown = scores if self.mode != _AFTER_SOFTMAX else None
        if self.mode == _WITH_BIAS and self.softcap:
            shown = shown if shown is not None else scores
        weights = self.softmax(b, b.convert(scores, self.precision))
        if guard is not None:
            weights = b.select(guard, b.full(0, weights), weights)
        if self.mode == _AFTER_SOFTMAX:
            shown = b.convert(weights, dtype)
        values = b.broadcast_to(self.value, (*batch, length, self.value.type.shape[4]))
        return b.op("core.contract", b.convert(weights, dtype), values), shown

    def softmax(self, b: Builder, x: Value) -> Value:
        axis = (x.type.rank - 1,)
        top = b.reduce("max", x, axis, keepdims=True)
        # A row of -inf only would give NaN; it is zeroed by the guard, and here it must not disturb.
        safe = b.select(b.is_inf(top), b.full(0, top), top)
        e = b.exp(b.sub(*b.broadcast(x, safe)))
        return b.div(*b.broadcast(e, b.reduce("sum", e, axis, keepdims=True)))

    def bias(
        self, b: Builder, first: DimLike, count: DimLike, scores: Value
    ) -> tuple[Value | None, Value | None]:
        """What is added to the scores, and which rows may look at nothing at all."""
        dtype, shape = scores.type.dtype, scores.type.shape
        allowed = self.allowed(b, first, count, shape)
        bias: Value | None = None
        if self.mask is not None:
            mask = self.mask
            if mask.type.shape[3] != 1:
                starts = (0, 0, 0, first, 0)
                sizes = (*mask.type.shape[:3], count, mask.type.shape[4])
                mask = b.op("core.slice", mask, starts=starts, sizes=sizes, steps=(1,) * 5)
            mask = b.broadcast_to(mask, shape)
            if mask.type.dtype is dtypes.boolean:
                allowed = mask if allowed is None else b.and_(allowed, mask)
            else:
                bias = mask
        if allowed is not None:
            zero, never = b.full(0, scores), b.full(float("-inf"), scores)
            blocked = b.select(allowed, zero if bias is None else bias, never)
            bias = blocked
        if bias is None:
            return None, None
        certain = self.mask is None and self.lengths is None and self.left < 0  # each row sees a key
        if certain and ((isinstance(self.offset, int) and self.offset >= 0) or self.offset != 0):
            return bias, None
        top = b.reduce("max", bias, (4,), keepdims=True)
        empty = b.and_(b.is_inf(top), b.lt(top, b.full(0, top)))
        assert dtype is bias.type.dtype
        return bias, b.broadcast_to(empty, shape)

    def allowed(self, b: Builder, first: DimLike, count: DimLike, shape: Shape) -> Value | None:
        """Which keys a query may look at by position and length; None if all."""
        conditions: list[Value] = []
        plane = (count, shape[4])
        column = b.op("core.iota", shape=plane, axis=1, dtype=dtypes.i64)
        row = b.op("core.iota", shape=plane, axis=0, dtype=dtypes.i64)
        if self.causal or self.left >= 0 or self.right >= 0:
            shift = b.dims([first], scalar=True)
            row = b.add(row, b.broadcast_to(shift, plane))
            if self.lengths is not None:
                # The queries are the last ones of each entry's valid keys.
                total = b.dims([self.query.type.shape[3]], scalar=True)
                ahead = b.sub(*b.broadcast(self.lengths, total))
            else:
                ahead = b.dims([self.offset], scalar=True)
            place, column5 = b.broadcast(row, column)
            place = b.add(*b.broadcast(place, ahead))
            last, here = b.broadcast(place, column5)
            if self.causal:
                conditions.append(b.le(here, last))
            if self.left >= 0:
                conditions.append(b.le(b.sub(last, here), b.full(self.left, here)))
            if self.right >= 0:
                conditions.append(b.le(b.sub(here, last), b.full(self.right, here)))
        if self.lengths is not None:
            here, limit = b.broadcast(column, self.lengths)
            conditions.append(b.lt(here, limit))
        result: Value | None = None
        for condition in conditions:
            spread = b.broadcast_to(condition, shape)
            result = spread if result is None else b.and_(result, spread)
        return result


def _blocked(b: Builder, attention: _Attention) -> Value:
    """The output block by block: whole blocks in a loop, then the rows that are left."""
    shape = attention.query.type.shape
    rows, size = shape[3], attention.value.type.shape[4]

    def block(inner: Builder, first: DimLike, count: DimLike) -> Value:
        sizes = (*shape[:3], count, shape[4])
        query = inner.op(
            "core.slice", attention.query, starts=(0, 0, 0, first, 0), sizes=sizes, steps=(1,) * 5
        )
        return attention.rows(inner, query, first)[0]

    def body(inner: Builder, index: DimLike, carried: Sequence[Value]) -> LoopBody:
        return LoopBody(None, [], [block(inner, index * _BLOCK, _BLOCK)])

    whole = floordiv(rows, _BLOCK)
    _, (stacked,) = build_loop(b, whole, None, [], body)
    turned = b.transpose(stacked, (1, 2, 3, 0, 4, 5))
    head = b.reshape(turned, (*shape[:3], whole * _BLOCK, size))
    rest = modulo(rows, _BLOCK)
    if rest == 0:
        return head
    tail = block(b, whole * _BLOCK, rest)
    joined = b.op("core.concat", head, tail, axis=3)
    return b.assume_shape(joined, (*shape[:3], rows, size))


def _heads(b: Builder, x: Value, heads: int | None, what: str) -> Value:
    """(batch, heads, length, size), from (batch, length, heads * size) as well."""
    if x.type.rank == 4:
        return x
    if x.type.rank != 3 or not heads:
        raise CompileError(
            f"{what} is {x.type.describe()}; of rank 3 it needs the number of heads as an attribute"
        )
    width = x.type.shape[2]
    if isinstance(width, int) and width % heads:
        raise CompileError(f"{what} {x.type.describe()} does not divide into {heads} heads")
    split = b.reshape(x, (x.type.shape[0], x.type.shape[1], heads, floordiv(width, heads)))
    return b.transpose(split, (0, 2, 1, 3))


def _fitted(b: Builder, mask: Value, want: Sequence[DimLike]) -> Value:
    """The mask with these extents or 1; one that may turn out to be either is repeated, for the blocks take their
    rows from it."""
    have = mask.type.shape
    unsure = [not isinstance(h, int) and h != w for h, w in zip(have, want, strict=True)]
    if not any(unsure):
        return mask
    joint = tuple(broadcast_dim(h, w) if u else h for h, w, u in zip(have, want, unsure, strict=True))
    fitted = tuple(w if u else h for h, w, u in zip(have, want, unsure, strict=True))
    for one, other in zip(joint, fitted, strict=True):
        if one != other:
            b.require("equal", one, other, f"the mask {mask.type.describe()} does not fit the queries")
    return b.assume_shape(b.broadcast_to(mask, joint), fitted)


def _mask(b: Builder, mask: Value, query: Value, groups: DimLike, repeats: DimLike, length: DimLike) -> Value:
    """The mask with the axes (batch, key heads, repeats, rows, length); shorter ones allow no more keys."""
    batch, heads, rows, _ = query.type.shape
    have = mask.type.shape[-1]
    if have != length:
        missing = length - have
        if isinstance(missing, int) and missing < 0:
            raise CompileError(f"the mask {mask.type.describe()} is longer than the {length} keys")
        if not isinstance(missing, int):
            b.require("at_least", length, have, "the mask is longer than the keys")
        fill = b.constant(False if mask.type.dtype is dtypes.boolean else float("-inf"), mask.type.dtype)
        zeros = (0,) * mask.type.rank
        mask = b.op("core.pad", mask, fill, low=zeros, high=(*zeros[1:], missing))
    shape = (*(1,) * (4 - mask.type.rank), *mask.type.shape)
    flat = _fitted(b, b.reshape(mask, shape), (batch, shape[1], rows, shape[3]))
    shape = flat.type.shape
    if shape[1] == 1:
        return b.reshape(flat, (shape[0], 1, 1, *shape[2:]))
    if shape[1] != heads:
        if isinstance(shape[1], int) and isinstance(heads, int):
            raise CompileError(f"the mask {mask.type.describe()} is not for {heads} heads")
        # A symbol: the mask is for one head or for all of them.
        (joint,) = b.joint_shape((shape[1],), (heads,))
        b.require("equal", joint, heads, "the mask has neither one head nor those of the queries")
        spread = b.broadcast_to(flat, (shape[0], joint, *shape[2:]))
        flat = b.assume_shape(spread, (shape[0], heads, *shape[2:]))
    return b.reshape(flat, (shape[0], groups, repeats, *shape[2:]))


@onnx_op("Attention", since=23)
def attention(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    lengths: Value | None = None,
    *,
    is_causal: int,
    kv_num_heads: int | None = None,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int,
    scale: float | None = None,
    softcap: float,
    softmax_precision: int | None = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> tuple[Value | None, ...]:
    flat = query.type.rank == 3
    if (past_key is None) != (past_value is None):
        raise CompileError("past_key and past_value come together")
    if lengths is not None and past_key is not None:
        raise CompileError("nonpad_kv_seqlen and a past cache exclude each other")
    q = _heads(b, query, q_num_heads, "Q")
    k = _heads(b, key, kv_num_heads, "K")
    v = _heads(b, value, kv_num_heads, "V")
    dtype = q.type.dtype
    if past_key is not None and past_value is not None:
        k = concat(b, past_key, k, axis=2)
        v = concat(b, past_value, v, axis=2)
    batch, heads, rows, size = q.type.shape
    groups, length = k.type.shape[1], k.type.shape[2]
    if isinstance(heads, int) and isinstance(groups, int) and (groups == 0 or heads % groups):
        raise CompileError(f"{heads} heads of queries do not divide among {groups} heads of keys")
    repeats = floordiv(heads, groups)
    if scale is None:
        wide = b.convert(b.dims([size], scalar=True), dtypes.f64)
        root = b.convert(b.sqrt(b.div(b.constant(1.0, dtypes.f64), b.sqrt(wide))), dtype)
    else:
        root = b.constant(float(scale) ** 0.5, dtypes.f64)
        root = b.convert(root, dtype)
    scaled_q = b.mul(*b.broadcast(q, root))
    scaled_k = b.mul(*b.broadcast(k, root))
    made = _Attention(
        b,
        b.reshape(scaled_q, (batch, groups, repeats, rows, size)),
        b.reshape(scaled_k, (batch, groups, 1, length, size)),
        b.reshape(v, (batch, groups, 1, length, v.type.shape[3])),
        None if mask is None else _mask(b, mask, q, groups, repeats, length),
        None if lengths is None else b.reshape(lengths, (batch, 1, 1, 1, 1)),
        0 if past_key is None else past_key.type.shape[2],
        bool(is_causal),
        left_window_size,
        right_window_size,
        softcap,
        dtype if softmax_precision is None else dtypes.by_onnx(softmax_precision),
        qk_matmul_output_mode,
    )
    scores: Value | None = None
    if b.outputs >= 4 or (isinstance(rows, int) and rows <= _WHOLE):
        y, shown = made.rows(b, made.query, 0)
        if b.outputs >= 4 and shown is not None:
            scores = b.reshape(shown, (batch, heads, rows, length))
    else:
        y = _blocked(b, made)
    y = b.reshape(y, (batch, heads, rows, v.type.shape[3]))
    if flat:
        y = b.reshape(b.transpose(y, (0, 2, 1, 3)), (batch, rows, heads * v.type.shape[3]))
    return y, k, v, scores
