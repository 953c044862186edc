"""The one form of products: (batch..., rows, columns), reshapes behind their elementwise ops.

Contractions have it already.  Pointwise convolutions become contractions; other convolutions and windows
get a reshape to (images, pixels, channels) behind them.  Elementwise ops on the reshaped result then work
on the form itself, so that a group needs no index arithmetic.  Every rewrite is exact.
"""

from __future__ import annotations

import numpy as np

from sardonyx.core.builder import Builder
from sardonyx.ir.attributes import Dense
from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, Op, Value
from sardonyx.ir.types import Shape, TensorType
from sardonyx.kernels.contract import constant_matrices
from sardonyx.kernels.index_maps import reshape_groups
from sardonyx.kernels.views import view_of
from sardonyx_runtime.dims import product

__all__ = ["PRODUCTS", "copy_for", "form_of", "to_product_form"]

PRODUCTS = frozenset({"core.contract", "core.convolve", "core.window_reduce"})


def to_product_form(body: Block) -> None:
    """Bring every product of a block into the form."""
    _split_scalars(body)
    _fold_weights(body)
    _canonical(body)
    _sink_reshapes(body)


def _place(block: Block, builder: Builder, position: int) -> None:
    for one in builder.block.ops:
        one.block = block
    block.ops[position:position] = builder.block.ops


def _split_scalars(body: Block) -> None:
    """A number spread over a shape costs nothing: every user gets its own, so that none has to store it."""
    for op in body.ops.copy():
        if op.name == "core.broadcast" and _immediate(op.operands[0]):
            for user in list(op.result.uses)[1:]:
                copy_for(body, op, user)


def _fold_weights(body: Block) -> None:
    """Weights that are a constant moved about become a constant, which the kernel packs when it is made."""
    for op in body.ops.copy():
        if op.name != "core.convolve" or not op.operands[1].type.is_static:
            continue
        x, w = op.operands
        view = view_of(w)
        root = view.root.op
        if view.root is not w and root is not None and root.name == "core.constant":
            dense = root.attributes["value"]
            shape = tuple(int(d) for d in w.type.shape)
            array = np.broadcast_to(constant_matrices(view, shape, dense.array), shape)
            b = Builder(Block(), location=op.location)
            op.set_operands((x, b.constant(Dense(array, dense.dtype))))
            _place(body, b, body.ops.index(op))


def _canonical(body: Block) -> None:
    """1x1 convolutions become contractions; convolutions and windows get a reshape to (n, rows, columns)."""
    for op in body.ops.copy():
        if op.name == "core.convolve" and _is_pointwise(op):
            if not _channels_first(body, op):
                _contraction_of(body, op)
        elif op.name in ("core.convolve", "core.window_reduce"):
            _flatten(body, op)


def _is_pointwise(op: Op) -> bool:
    attributes, kernel = op.attributes, op.operands[1].type.shape[2:]
    ones = all(v == 1 for v in (*kernel, *attributes["strides"]))
    return ones and not any(attributes["pads"]) and attributes["group"] == 1


def _contraction_of(body: Block, op: Op) -> None:
    """A convolution of extent 1 is a matrix product of pixels by channels."""
    x, w = op.operands
    shape: Shape = op.result.type.shape
    b = Builder(Block(), location=op.location)
    n, filters, channels = shape[0], shape[-1], w.type.shape[1]
    rows = product(shape[1:-1])
    weights = b.transpose(b.reshape(w, (filters, channels)), (1, 0))
    extra = {"dtype": op.attributes["dtype"]} if "dtype" in op.attributes else {}
    flat = b.op(
        "core.contract",
        b.reshape(x, (n, rows, x.type.shape[-1])),
        b.broadcast_to(weights, (n, channels, filters)),
        **extra,
    )
    result = b.reshape(flat, shape)
    result.name = op.result.name
    _replace(body, op, b, result)


def _channels_first(body: Block, op: Op) -> bool:
    """A pointwise convolution alone between transposes works on channels first: filters are the rows.

    Whether it was one: convolve(transpose(x), w) transposed back = w times x of every image.
    """
    x, w = op.operands
    last = (0, *range(2, x.type.rank), 1)
    users = list(op.result.uses)
    back = (0, x.type.rank - 1, *range(1, x.type.rank - 1))
    turned = x.op is not None and x.op.name == "core.transpose" and x.op.attributes["permutation"] == last
    returned = all(u.name == "core.transpose" and u.attributes["permutation"] == back for u in users)
    if not turned or not users or not returned or "dtype" in op.attributes:
        return False
    assert x.op is not None
    n, filters, channels = x.type.shape[0], w.type.shape[0], w.type.shape[1]
    pixels = product(x.type.shape[1:-1])
    b = Builder(Block(), location=op.location)
    flat = b.op(
        "core.contract",
        b.broadcast_to(b.reshape(w, (filters, channels)), (n, filters, channels)),
        b.reshape(x.op.operands[0], (n, channels, pixels)),
    )
    result = b.reshape(flat, users[0].result.type.shape)
    result.name = users[0].result.name
    position = body.ops.index(users[0])
    for user in users:
        user.result.replace_by(result)
        user.drop_uses()
        user.block = None
    _place(body, b, position)
    body.ops = [o for o in body.ops if o.block is body]
    op.drop_uses()
    op.block = None
    body.ops.remove(op)
    return True


def _flatten(body: Block, op: Op) -> None:
    shape: Shape = op.result.type.shape
    b = Builder(Block(), location=op.location)
    flat = b.emit(
        "core.reshape",
        (op.result,),
        [TensorType(op.result.type.dtype, (shape[0], product(shape[1:-1]), shape[-1]))],
        {"shape": (shape[0], product(shape[1:-1]), shape[-1])},
    ).result
    back = b.emit("core.reshape", (flat,), [op.result.type], {"shape": shape}).result
    first = flat.op
    for user in list(op.result.uses):
        if user is not first:
            user.set_operands([back if o is op.result else o for o in user.operands])
    _place(body, b, body.ops.index(op) + 1)


def _replace(body: Block, op: Op, b: Builder, value: Value) -> None:
    op.result.replace_by(value)
    position = body.ops.index(op)
    op.drop_uses()
    op.block = None
    del body.ops[position]
    _place(body, b, position)


def form_of(op: Op) -> Op:
    """The op whose result has the shape (batch..., rows, columns): the product or the reshape behind it."""
    if op.name != "core.contract":
        for user in op.result.uses:
            if user.name == "core.reshape" and user.result.type.rank == 3:
                return user
    return op


# -- reshapes move behind elementwise ops


def _sink_reshapes(body: Block) -> None:
    """Elementwise ops on a reshaped product are done on the product itself, and reshaped afterwards."""
    inner_of: dict[Value, Value] = {}  # reshaped value -> the product's own form of it
    for op in body.ops.copy():
        if op.name in PRODUCTS:
            form = form_of(op).result
            inner_of.update({u.result: form for u in form.uses if u.name == "core.reshape"})
        elif op.name == "core.reshape" and op.operands[0] in inner_of:
            source = inner_of[op.operands[0]]
            op.set_operands((source,))
            inner_of[op.result] = source
        elif has_trait(op, Trait.ELEMENTWISE):
            found = next((o for o in op.operands if o in inner_of and _sinks(o)), None)
            if found is not None:
                _move(body, op, found, inner_of)


def _sinks(reshaped: Value) -> bool:
    """Whether all users of a reshaped product can work on the product's own shape."""
    shape = reshaped.type.shape
    return all(has_trait(u, Trait.ELEMENTWISE) and u.result.type.shape == shape for u in reshaped.uses)


def _move(body: Block, op: Op, reshaped: Value, inner_of: dict[Value, Value]) -> None:
    """Do the op on the inner shape, and put a reshape in its place, if all operands have that shape too."""
    inner, outer = inner_of[reshaped].type.shape, reshaped.type.shape
    b = Builder(Block(), location=op.location)
    operands = []
    for operand in op.operands:
        known = inner_of.get(operand)
        found = known if known is not None and known.type.shape == inner else _under(b, operand, inner, outer)
        if found is None:
            return
        operands.append(found)
    kind: TensorType = op.result.type
    done = b.emit(op.name, operands, [TensorType(kind.dtype, inner)], dict(op.attributes)).result
    result = b.emit("core.reshape", (done,), [kind], {"shape": outer}).result
    result.name = op.result.name
    _replace(body, op, b, result)
    inner_of[result] = done


def _under(b: Builder, value: Value, inner: Shape, outer: Shape) -> Value | None:
    """The value under the inner shape: a broadcast made anew, else a view."""
    op = value.op
    if op is not None and op.name == "core.broadcast":
        have = op.operands[0].type.shape
        merged = _merged((1,) * (len(outer) - len(have)) + tuple(have), inner, outer)
        return None if merged is None else b.broadcast_to(b.reshape(op.operands[0], merged), inner)
    return b.reshape(value, inner)


def _merged(have: Shape, inner: Shape, outer: Shape) -> Shape | None:
    """The shape under which a tensor that broadcasts to ``outer`` broadcasts to ``inner`` alike."""
    result = []
    for into, axes in reshape_groups(inner, outer):
        whole = all(have[a] == outer[a] for a in axes)
        single = all(have[a] == 1 for a in axes)
        if not (whole or single):
            return None
        result += [inner[i] if whole else 1 for i in into]
    return tuple(result)


def _immediate(value: Value) -> bool:
    return (
        value.op is not None
        and value.op.name == "core.constant"
        and value.op.attributes["value"].array.size == 1
    )


def copy_for(body: Block, op: Op, user: Op) -> Op:
    copy = Op(op.name, op.operands, [op.result.type], dict(op.attributes), location=op.location)
    copy.result.name = op.result.name
    copy.block = body
    body.ops.insert(body.ops.index(op) + 1, copy)
    user.set_operands([copy.result if o is op.result else o for o in user.operands])
    return copy
