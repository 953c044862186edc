"""fuse: groups core ops into kernels.

Elementwise ops and movement are pulled into the group of their users wherever that duplicates no real
work.  A group is a ``core.fused`` op whose region is plain core IR: its meaning stays visible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, HasBody, Module, Op, Region, Value, blocks
from sardonyx.passes.budget import allowed
from sardonyx.passes.collapse import collapse_region
from sardonyx.passes.decisions import UNRECORDED, Decisions
from sardonyx.passes.fuse_contraction import contraction_groups
from sardonyx.passes.fuse_rows import rows_groups
from sardonyx.passes.order import sort_block
from sardonyx.passes.simplify import remove_unused
from sardonyx_runtime import dtypes

__all__ = ["VIEWS", "Fuse", "make_group"]

_FREE = frozenset({"core.dims", "core.iota"})  # cost nothing to compute again
_HEAVY = frozenset(
    f"core.{k}"
    for k in (
        "exp expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf sigmoid softplus pow mod rem div sqrt"
    ).split()
)
VIEWS = frozenset({"core.reshape", "core.assume"})  # on their own they name the same memory anew
_SMALL = 1024  # elements of a concatenation up to which one kernel chooses among the parts
_FEW = 3  # parts of a larger one that a kernel may choose among
_PLAIN = VIEWS | {
    "core.slice",
    "core.broadcast",
    "core.unfold",
}  # movement without conditions: cheap however often it is done
_GATHERS = frozenset({"core.gather", "core.gather_elements", "core.gather_nd"})
_OUTSIDE = frozenset(
    {
        "core.require",
        "core.bind_dims",
        "core.return",
        "core.yield",
        "core.bind_result",
        "core.if",
        "core.loop",
        "core.constant",
        "core.entropy",
        "core.external_call",
    }
)


@dataclass(frozen=True)
class Fuse:
    """Requires: core level, simplified.  Ensures: every computing op stands in a ``core.fused``.

    ``max`` bounds the ops of one group.  ``decisions`` is told why ops were fused or not.
    """

    max: int = 64
    decisions: Decisions | None = field(default=None, repr=False, compare=False)
    name: str = field(default="fuse", init=False)

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            for block in blocks(function):
                changed |= remove_unused(block)
                changed |= _repeat_for_each_user(block)
                changed |= _Fuser(Region(block), self.max, self.decisions or UNRECORDED).run()
        return changed


def _repeat_for_each_user(block: Block) -> bool:
    """A single element that several ops want repeated is repeated by each of them: no memory is filled with it."""
    changed = False
    for op in block.ops.copy():
        if op.name != "core.broadcast" or op.operands[0].type.size != 1:
            continue
        for user in list(dict.fromkeys(op.result.uses))[1:]:
            if user.block is not block or not (
                has_trait(user, Trait.ELEMENTWISE) or has_trait(user, Trait.MOVEMENT)
            ):
                continue
            copy = Op(op.name, op.operands, [op.result.type], dict(op.attributes), location=op.location)
            copy.block = block
            block.ops.insert(block.ops.index(op) + 1, copy)
            user.set_operands([copy.result if o is op.result else o for o in user.operands])
            changed = True
    return changed


def is_scalar_constant(value: Value) -> bool:
    """A constant of one element: an immediate of the code."""
    op = value.op
    if op is None or op.name != "core.constant":
        return False
    dense = op.attributes["value"]
    return bool(dense.array.size == 1) and dense.dtype is not dtypes.string


class _Fuser:
    def __init__(self, function: HasBody, most: int, decisions: Decisions) -> None:
        self.function = function
        self.most = most
        self.decisions = decisions
        self.group_of: dict[Op, list[Op]] = {}

    def run(self) -> bool:
        body = self.function.body
        groups: list[list[Op]] = []
        for group in contraction_groups(self.function, self.most, self.decisions):
            groups.append(group)
            self.group_of.update(dict.fromkeys(group, group))
        for group in rows_groups(self.function, self.group_of, self.most, self.decisions):
            groups.append(group)
            self.group_of.update(dict.fromkeys(group, group))
        for op in reversed(body.ops.copy()):
            if op in self.group_of or op.name in _OUTSIDE or op.name in _FREE:
                continue
            if not self._fusible(op) or self._stays_alone(op):
                group = [op]
                self.group_of[op] = group
                for operand in op.operands:
                    self.decisions.refuse(operand.op, op, _alone(op))
            else:
                group = self._pull(op)
            groups.append(group)
        if self.decisions.enabled:
            self._settle()
        made = [group for group in reversed(groups) if not all(op.name in VIEWS for op in group)]
        for group in made:
            make_group(group, _kind(group))
        if made:
            sort_block(body)
        return bool(made)

    def _fusible(self, op: Op) -> bool:
        return has_trait(op, Trait.ELEMENTWISE) or has_trait(op, Trait.MOVEMENT) or op.name in _GATHERS

    def _stays_alone(self, op: Op) -> bool:
        """Ops whose operands are computed each by itself: views need no code, the parts of a concatenation a place."""
        return op.name in VIEWS or (op.name == "core.concat" and not _is_small(op.result))

    def _pull(self, root: Op) -> list[Op]:
        """The root and every producer that only this group uses."""
        group = [root]
        self.group_of[root] = group
        position = 0
        while position < len(group):
            op = group[position]
            position += 1
            for operand in op.operands:
                producer = operand.op
                if producer is None or self.group_of.get(producer) is group:
                    continue
                objection = self._objection(producer, operand, op, group)
                if objection:
                    self.decisions.refuse(producer, op, objection)
                    continue
                group.append(producer)
                self.group_of[producer] = group
                self.decisions.join(producer, op, "nothing outside of the kernel reads the producer's result")
        order = {op: i for i, op in enumerate(self.function.body.ops)}
        group.sort(key=order.__getitem__)
        return group

    def _objection(self, producer: Op, operand: Value, op: Op, group: list[Op]) -> str:
        """Why a producer is not computed in the group of its user; empty if it is to be."""
        expands = op.name == "core.broadcast" and op.operands[0].type.size != op.result.type.size
        if producer.name in _OUTSIDE | _FREE:
            return _known_place(producer, op)
        if producer in self.group_of:
            return "the producer is a part of another kernel already"
        if not self._fusible(producer):
            return f"{producer.name} is neither elementwise nor movement"
        if producer.block is not op.block:
            return "the producer stands outside of the loop or branch"
        if any(self.group_of.get(u) is not group for u in operand.uses):
            return "something outside of the kernel reads the producer's result too"
        if producer.name == "core.concat" and len(producer.operands) > _FEW and not _is_small(operand):
            return f"a concatenation of more than {_FEW} parts is made in memory"
        if expands and not self._cheap(producer):
            return "the broadcast would compute the producer again for every repetition"
        if op.name in _GATHERS and operand is op.operands[0] and not has_trait(producer, Trait.MOVEMENT):
            return "an element that is gathered often would be computed as often"
        if op.name == "core.unfold" and producer.name not in _PLAIN:
            return "overlapping windows would compute the producer several times"
        if len(group) >= self.most:
            return f"the kernel has {self.most} operations already"
        if not allowed("fuse", "pull into the group of its user", producer):
            return "the budget of optimisation steps is used up"
        return ""

    def _settle(self) -> None:
        """Tell the outcome for every pair of ops of the block."""
        for producer in self.function.body.ops:
            for result in producer.results:
                for consumer in result.uses:
                    mine, its = self.group_of.get(producer), self.group_of.get(consumer)
                    free = producer.name in _FREE or is_scalar_constant(result)
                    self.decisions.settle(
                        producer,
                        consumer,
                        fused=its is not None and (free or mine is its),
                        certain=_known_place(producer, consumer),
                        otherwise="both are in the kernel for the sake of another of its operations"
                        if mine is its
                        else "each kernel was complete before the other was looked at",
                    )

    def _cheap(self, op: Op) -> bool:
        """Cheap enough to be computed again for every repetition of a broadcast."""
        return has_trait(op, Trait.MOVEMENT) or (
            op.name not in _HEAVY
            and not any(
                o.op is not None and self._fusible(o.op) and not has_trait(o.op, Trait.MOVEMENT)
                for o in op.operands
            )
        )


def _alone(op: Op) -> str:
    """Why an op takes no producer into its group."""
    if op.name in VIEWS:
        return f"{op.name} on its own only names the memory anew"
    return f"{op.name} reads its operands from memory"


def _known_place(producer: Op, consumer: Op) -> str:
    """Where a pair is held apart or joined before any group is tried; empty if it depends on the groups."""
    if producer.name in _FREE:
        return "the producer costs nothing: every kernel that needs it computes it anew"
    if producer.name == "core.constant":
        if is_scalar_constant(producer.result):
            return "the constant is an immediate of the code"
        return "the constant lies among the weights"
    if consumer.block is not producer.block:
        return "the consumer stands inside of a loop or branch, and no kernel reaches into that"
    if consumer.name in _OUTSIDE:
        return f"{consumer.name} needs its operands in memory"
    if producer.name in _OUTSIDE:
        return f"{producer.name} leaves its results in memory"
    return ""


def _is_small(value: Value) -> bool:
    """A tensor that is not worth a kernel for each of its parts."""
    size = value.type.size
    return isinstance(size, int) and size <= _SMALL


def _kind(group: list[Op]) -> str:
    if len(group) == 1 and group[0].name == "core.transpose":
        return "transpose"
    if len(group) == 1 and group[0].name == "core.concat" and not _is_small(group[0].result):
        return "concat"
    for op in group:
        if op.name in _KINDS:
            return _KINDS[op.name]
    return "map"


_KINDS = {
    "core.reduce": "rows",
    "core.contract": "contract",
    "core.convolve": "convolve",
    "core.window_reduce": "window",
    "core.arg_reduce": "arg_reduce",
    "core.scatter_elements": "scatter",
    "core.scatter_nd": "scatter",
    "core.scan": "scan",
    "core.top_k": "top_k",
    "core.sort_rows": "sort_rows",
    "core.nonzero": "nonzero",
    "core.nms": "nms",
    "core.tree_ensemble": "trees",
    "core.mersenne_twister": "mersenne_twister",
    **{
        f"core.{k}": "text"
        for k in "string_equal string_concat string_matches find_string change_case count_parts string_part format parse".split()
    },
}


def make_group(group: list[Op], kind: str) -> Op:
    """Replace ops of one block by a ``core.fused`` op that holds clones of them."""
    block = group[-1].block
    assert block is not None
    inside = {r for op in group for r in op.results}
    inputs: list[Value] = []
    for op in group:
        for operand in op.operands:
            free = operand.op is not None and (operand.op.name in _FREE or is_scalar_constant(operand))
            if operand not in inside and operand not in inputs and not free:
                inputs.append(operand)
    region = Block([i.type for i in inputs], [i.name for i in inputs])
    inner: dict[Value, Value] = dict(zip(inputs, region.arguments, strict=True))

    def local(value: Value) -> Value:
        if value not in inner:
            op = value.op
            assert op is not None
            copy = Op(
                op.name,
                [local(o) for o in op.operands],
                [value.type],
                dict(op.attributes),
                location=op.location,
            )
            copy.result.name = value.name
            region.append(copy)
            inner[value] = copy.result
        return inner[value]

    results: list[Value] = []
    members = set(group)
    for op in group:
        operands = [local(o) for o in op.operands]
        copy = Op(op.name, operands, [r.type for r in op.results], dict(op.attributes), location=op.location)
        region.append(copy)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name = old.name
            inner[old] = new
            if any(user not in members for user in old.uses):
                results.append(old)
    region.append(Op("core.yield", [inner[r] for r in results]))
    location = group[-1].location
    for op in group[:-1]:
        location = location | op.location
    fused = Op("core.fused", inputs, [r.type for r in results], {"kind": kind}, [region], location)
    fused.block = block
    block.ops.insert(block.ops.index(group[-1]) + 1, fused)
    for old, new in zip(results, fused.results, strict=True):
        new.name = old.name
        old.replace_by(new)
    for op in group:
        op.drop_uses()
        op.block = None
    block.ops = [o for o in block.ops if o.block is block]
    if kind == "map":
        apart = {u.attributes["axis"] for r in fused.results for u in r.uses if u.name == "core.concat"}
        collapse_region(region, apart)
    return fused
