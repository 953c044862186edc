"""Groups around products: a contraction, convolution or window with the ops that follow it.

The group's elementwise ops run on the product's sums before they are stored; the movement in front of
its operands is read through (`kernels.views`).  Before groups are chosen, products take one form
(`passes.product_form`).
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, HasBody, Op, Value
from sardonyx.ir.types import Shape
from sardonyx.kernels.epilogue import output_strides
from sardonyx.kernels.views import view_of
from sardonyx.passes.budget import allowed
from sardonyx.passes.product_form import PRODUCTS, copy_for, form_of, to_product_form
from sardonyx.passes.simplify import remove_unused

__all__ = ["contraction_groups"]

_MOST = 32  # ops of an epilogue


def contraction_groups(function: HasBody, most: int = _MOST) -> list[list[Op]]:
    """One list of ops (in program order) per product, with at most ``most`` behind it; rewrites the function so that they fit."""
    most = min(most, _MOST)
    body = function.body
    to_product_form(body)
    for op in body.ops.copy():
        if op.name == "core.contract":
            _own_views(body, op)
    remove_unused(body)
    absorbed = {op: _absorbed(op) for op in body.ops if op.name == "core.contract"}
    taken: set[Op] = set().union(*absorbed.values())
    groups: list[set[Op]] = []
    for op in body.ops.copy():
        if op.name not in PRODUCTS:
            continue
        form = form_of(op)
        members = {op, form} | absorbed.get(op, set())
        members |= _grow(form, body.ops[body.ops.index(op) + 1 :], taken, most)
        _pull(body, members, taken, 2 * most if most > 1 else 1)
        taken |= members
        groups.append(members)
    groups += [
        {op} for op in body.ops if op.name == "core.transpose" and op not in taken and moves_last_axis(op)
    ]
    order = {op: i for i, op in enumerate(body.ops)}
    return [sorted(members, key=order.__getitem__) for members in groups]


# -- operands: movement read through


def _own_views(body: Block, op: Op) -> None:
    """Movement in front of a product gets no other users: what others use as well is copied."""
    operands = []
    for operand in op.operands:
        operands.append(_copy_path(body, operand, _root(operand, op), op))
    op.set_operands(operands)


def _root(operand: Value, user: Op) -> Value:
    """The tensor whose memory an operand is a view of: a result of a product in its form at most.

    Words of bytes have to lie in memory as they are.
    """
    words = user.attributes.get("words", False)

    def stands(value: Value) -> bool:
        op = value.op
        if op is not None and op.block is not user.block:
            return True  # outside of the loop or branch that the product stands in
        if op is None or (words and op.name == "core.transpose" and moves_last_axis(op)):
            return op is not None
        return op.name == "core.reshape" and _form_behind(op.operands[0]) is op

    return view_of(operand, stands).root


def _form_behind(value: Value) -> Op | None:
    """The form of a product's result; None for other values."""
    return form_of(value.op) if value.op is not None and value.op.name in PRODUCTS else None


def _copy_path(body: Block, value: Value, root: Value, before: Op, shared: bool = False) -> Value:
    """``shared``: something on the way from here to the product has other users, so it is copied."""
    if value is root:
        return value
    op = value.op
    assert op is not None
    shared = shared or len(value.uses) > 1
    source = _copy_path(body, op.operands[0], root, before, shared)
    if not shared and source is op.operands[0]:
        return value
    copy = Op(op.name, (source, *op.operands[1:]), [value.type], dict(op.attributes), location=op.location)
    copy.result.name = value.name
    copy.block = body
    body.ops.insert(body.ops.index(before), copy)
    return copy.result


def _absorbed(op: Op) -> set[Op]:
    """The movement in front of both operands that the kernel reads through."""
    found: set[Op] = set()
    for operand in op.operands:
        root = _root(operand, op)
        while operand is not root:
            assert operand.op is not None
            found.add(operand.op)
            operand = operand.op.operands[0]
    return found


# -- the epilogue


def _grow(form: Op, later: list[Op], taken: set[Op], most: int) -> set[Op]:
    """The ops after the product that its kernel does before it stores: as many as leave one result."""
    shape: Shape = form.result.type.shape
    members: set[Op] = {form}
    inside: set[Value] = {form.result}
    tainted: set[Value] = set()
    best: set[Op] = set()
    for op in later:
        if op is form or op.name in ("core.return", "core.yield"):
            continue
        depends = any(o in inside for o in op.operands)
        spoiled = any(o in tainted for o in op.operands)
        fits = (
            has_trait(op, Trait.ELEMENTWISE)
            and op not in taken
            and op.result.type.shape == shape
            and len(members) < most
        )
        if depends and not spoiled and fits and allowed("fuse", "compute behind a product", op):
            members.add(op)
            inside.add(op.result)
            live = [m for m in members if any(u not in members for u in m.result.uses)]
            if len(live) == 1 and live[0] is op:
                best = set(members)
        elif depends or spoiled:
            tainted.update(op.results)
    best.discard(form)
    tail = max(best, key=later.index) if best else form
    return best | _stored_through(tail, taken)


def _stored_through(tail: Op, taken: set[Op]) -> set[Op]:
    """A transpose behind the group (and reshapes around it) that only changes where rows are stored."""
    passed: list[Op] = []
    op = tail
    while len(op.result.uses) == 1:
        (user,) = op.result.uses
        moves = user.name in ("core.reshape", "core.assume", "core.transpose")
        if not moves or user in taken or user.block is not tail.block:
            break
        passed.append(user)
        if user.name == "core.transpose":
            return set(passed) if output_strides(user.result, tail.result) else set()
        op = user
    return set()


def _pull(body: Block, members: set[Op], taken: set[Op], most: int) -> None:
    """Add what only feeds the epilogue: broadcasts (copied if others use them too), ops of its shape."""
    shapes = {op.result.type.shape for op in members if has_trait(op, Trait.ELEMENTWISE)}
    pending = [op for op in members if has_trait(op, Trait.ELEMENTWISE)]
    while pending and len(members) < most:
        op = pending.pop()
        for operand in op.operands:
            producer = operand.op
            if producer is None or producer in members or producer in taken or producer.block is not body:
                continue
            if producer.name == "core.broadcast":
                if len(operand.uses) > 1:
                    producer = copy_for(body, producer, op)
                members.add(producer)
                pending.append(producer)
            elif producer.name == "core.reshape" and op.name == "core.broadcast" and len(operand.uses) == 1:
                if _keeps_order_of_axes(producer):
                    members.add(producer)
            elif (
                has_trait(producer, Trait.ELEMENTWISE)
                and producer.result.type.shape in shapes
                # (What the product itself reads has to lie in memory.)
                and all(u in members and has_trait(u, Trait.ELEMENTWISE) for u in operand.uses)
            ):
                members.add(producer)
                pending.append(producer)


def moves_last_axis(op: Op) -> bool:
    """Whether a transpose changes which axis lies innermost: such ones have a kernel of their own."""
    shape, permutation = op.operands[0].type.shape, op.attributes["permutation"]
    order = [a for a in permutation if shape[a] != 1]
    return bool(order) and order != sorted(order) and order[-1] != max(order)


def _keeps_order_of_axes(op: Op) -> bool:
    """Whether a reshape only adds or drops axes of extent 1."""
    strip: Callable[[Shape], list[object]] = lambda shape: [d for d in shape if d != 1]  # noqa: E731
    return strip(op.operands[0].type.shape) == strip(op.result.type.shape)
