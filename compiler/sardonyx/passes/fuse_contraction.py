"""Groups around products: a contraction, convolution or window with the ops that follow it.

The group's elementwise ops run on the product's sums before they are stored; the movement in front of
its operands is read through (`kernels.views`).  Before groups are chosen, products take one form
(`passes.product_form`).
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, HasBody, Op, Value, users_in
from sardonyx.ir.types import Shape
from sardonyx.kernels.epilogue import output_strides
from sardonyx.kernels.views import view_of
from sardonyx.passes.budget import allowed
from sardonyx.passes.decisions import UNRECORDED, Decisions
from sardonyx.passes.product_form import PRODUCTS, copy_for, form_of, to_product_form
from sardonyx.passes.simplify import remove_unused

__all__ = ["contraction_groups"]

_MOST = 32  # ops of an epilogue


def contraction_groups(
    function: HasBody, most: int = _MOST, decisions: Decisions = UNRECORDED
) -> list[list[Op]]:
    """One list of ops (in program order) per product, with at most ``most`` behind it; rewrites the function so that they fit."""
    most = min(most, _MOST)
    body = function.body
    to_product_form(body)
    for op in body.ops.copy():
        if op.name == "core.contract":
            _own_views(body, op)
    remove_unused(body)
    absorbed = {op: _absorbed(op, decisions) for op in body.ops if op.name == "core.contract"}
    taken: set[Op] = set().union(*absorbed.values())
    groups: list[set[Op]] = []
    for op in body.ops.copy():
        if op.name not in PRODUCTS:
            continue
        form = form_of(op)
        members = {op, form} | absorbed.get(op, set())
        if form is not op:
            decisions.join(op, form, "the consumer only gives the product's result its shape")
        if op not in absorbed:
            for operand in op.operands:
                decisions.refuse(operand.op, op, f"{op.name} reads its operands from memory")
        members |= _grow(form, body.ops[body.ops.index(op) + 1 :], taken, most, decisions)
        _pull(body, members, taken, 2 * most if most > 1 else 1, decisions)
        taken |= members
        groups.append(members)
    for op in body.ops:
        if op.name == "core.transpose" and op not in taken and moves_last_axis(op):
            groups.append({op})
            decisions.refuse(
                op.operands[0].op, op, "another axis becomes innermost: such a transpose has its own kernel"
            )
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


def _absorbed(op: Op, decisions: Decisions) -> set[Op]:
    """The movement in front of both operands that the kernel reads through."""
    found: set[Op] = set()
    for operand in op.operands:
        root = _root(operand, op)
        user = op
        while operand is not root:
            assert operand.op is not None
            found.add(operand.op)
            decisions.join(operand.op, user, "the product reads through the producer, by other strides")
            user = operand.op
            operand = operand.op.operands[0]
        decisions.refuse(operand.op, user, "a product reads its operands from memory")
    return found


# -- the epilogue


def _grow(form: Op, later: list[Op], taken: set[Op], most: int, decisions: Decisions) -> set[Op]:
    """The ops after the product that its kernel does before it stores: as many as leave one result."""
    shape: Shape = form.result.type.shape
    members: set[Op] = {form}
    inside: set[Value] = {form.result}
    tainted: set[Value] = set()
    best: set[Op] = set()

    def objection(op: Op) -> str:
        """Why the op cannot be one of them; empty if it can."""
        if any(o in tainted for o in op.operands):
            return "the consumer needs the product by way of something outside of the kernel as well"
        if not has_trait(op, Trait.ELEMENTWISE):
            return f"{op.name} is not elementwise, so it cannot follow the product in registers"
        if op in taken:
            return "the consumer is a part of another product's kernel"
        if op.result.type.shape != shape:
            return f"the consumer's shape is not that of the product, {form.result.type.describe()}"
        if len(members) >= most:
            return f"the product is followed by {most} operations already"
        if not allowed("fuse", "compute behind a product", op):
            return "the budget of optimisation steps is used up"
        return ""

    assert form.block is not None
    waiting = users_in(form.block, form.results)  # once all of them are decided, nothing can join
    for op in later:
        if not waiting:
            break
        waiting.discard(op)
        if op is form or op.name in ("core.return", "core.yield"):
            continue
        depends = any(o in inside for o in op.operands)
        reason = objection(op) if depends else ""
        if depends and not reason:
            members.add(op)
            inside.add(op.result)
            waiting |= users_in(form.block, op.results)
            live = [m for m in members if any(u not in members for u in m.result.uses)]
            if len(live) == 1 and live[0] is op:
                best = set(members)
        elif depends or any(o in tainted for o in op.operands):
            tainted.update(op.results)
            _tell(op, members, decisions.refuse, reason)
    for op in members - best - {form}:
        _tell(op, members, decisions.refuse, "the kernel would have to store more than one result")
    best.discard(form)
    for op in best:
        _tell(
            op,
            best | {form},
            decisions.join,
            "the consumer is computed on the product's sums before they are stored",
        )
    tail = max(best, key=later.index) if best else form
    return best | _stored_through(tail, taken, decisions)


def _tell(op: Op, members: set[Op], tell: Callable[[Op, Op, str], None], reason: str) -> None:
    """Tell of an op and those of the members that it reads."""
    for operand in op.operands:
        if operand.op in members and operand.op is not None:
            tell(operand.op, op, reason)


def _stored_through(tail: Op, taken: set[Op], decisions: Decisions) -> set[Op]:
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
            if output_strides(user.result, tail.result):
                for first, second in zip([tail, *passed], passed, strict=False):
                    decisions.join(
                        first, second, "the transpose only changes where the product's rows are stored"
                    )
                return set(passed)
            decisions.refuse(op, user, "the product's columns would not lie next to each other in memory")
            return set()
        op = user
    return set()


def _pull(body: Block, members: set[Op], taken: set[Op], most: int, decisions: Decisions) -> None:
    """Add what only feeds the epilogue: broadcasts (copied if others use them too), ops of its shape."""
    shapes = {op.result.type.shape for op in members if has_trait(op, Trait.ELEMENTWISE)}
    pending = [op for op in members if has_trait(op, Trait.ELEMENTWISE)]

    def objection(producer: Op, operand: Value, op: Op) -> str:
        """Why a producer is not computed with the epilogue; empty if it is to be."""
        if producer in taken:
            return "the producer is a part of another product's kernel"
        if producer.block is not body:
            return "the producer stands outside of the loop or branch"
        if len(members) >= most:
            return f"the kernel has {most} operations already"
        if producer.name == "core.broadcast":
            return ""
        if producer.name == "core.reshape" and op.name == "core.broadcast" and len(operand.uses) == 1:
            return "" if _keeps_order_of_axes(producer) else "the reshape does more than add axes of extent 1"
        if not has_trait(producer, Trait.ELEMENTWISE):
            return f"{producer.name} is not elementwise"
        if producer.result.type.shape not in shapes:
            return "the producer's shape is not that of the product"
        # (What the product itself reads has to lie in memory.)
        if not all(u in members and has_trait(u, Trait.ELEMENTWISE) for u in operand.uses):
            return "something outside of the product's epilogue reads the producer's result too"
        return ""

    while pending:
        op = pending.pop()
        for operand in op.operands:
            producer = operand.op
            if producer is None or producer in members:
                continue
            reason = objection(producer, operand, op)
            if reason:
                decisions.refuse(producer, op, reason)
                continue
            if producer.name == "core.broadcast" and len(operand.uses) > 1:
                producer = copy_for(body, producer, op)
            members.add(producer)
            decisions.join(producer, op, "the producer only feeds what follows the product")
            if producer.name != "core.reshape":
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
