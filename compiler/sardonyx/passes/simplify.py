"""simplify: removes what nothing uses, merges equal ops, and applies the algebraic rules.

The rules are exact: no bit of a result changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sardonyx.ir.attributes import Dense
from sardonyx.ir.declare import Trait, has_trait
from sardonyx.ir.graph import Block, Module, Op, Value, blocks
from sardonyx.passes.budget import allowed

__all__ = ["Simplify", "remove_unused"]


def remove_unused(block: Block) -> bool:
    """Erase ops without effect whose results are unused; whether there were any."""
    changed = False
    for op in reversed(block.ops.copy()):
        keeps = has_trait(op, Trait.EFFECT) or has_trait(op, Trait.TERMINATOR)
        if not keeps and not any(r.uses for r in op.results):
            op.drop_uses()
            op.block = None
            changed = True
    if changed:
        block.ops = [o for o in block.ops if o.block is block]
    return changed


@dataclass(frozen=True)
class Simplify:
    """Dead code, common subexpressions, rewrite rules, until nothing changes."""

    name = "simplify"

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            for block in reversed(blocks(function)):  # inner bodies first: they may stop using outer values
                while _merge_equal(block) | _rewrite(block) | remove_unused(block):
                    changed = True
        return changed


def _merge_equal(block: Block) -> bool:
    seen: dict[Any, Op] = {}
    changed = False
    for op in block.ops:
        if (
            op.regions
            or has_trait(op, Trait.EFFECT)
            or has_trait(op, Trait.TERMINATOR)
            or len(op.results) != 1
        ):
            continue
        key = (op.name, op.operands, tuple(sorted((k, _hashable(v)) for k, v in op.attributes.items())))
        first = seen.setdefault(key, op)
        if first is not op and op.result.uses and allowed("simplify", "merge with an equal one", op):
            first.location = first.location | op.location
            op.result.replace_by(first.result)
            changed = True
    return changed


def _hashable(value: Any) -> Any:
    if isinstance(value, Dense):
        return (id(value.array), str(value.type)) if value.array.nbytes > 4096 else value
    if isinstance(value, float):
        return repr(value)
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class _Changed:
    """The op as it is to be: other operands, and other attributes unless they stay."""

    operands: tuple[Value, ...]
    attributes: dict[str, Any] | None = None


_Outcome = Value | _Changed | None  # use this value instead, change the op, nothing


def _reshape_of_reshape(op: Op) -> _Outcome:
    """reshape(reshape(x)) = reshape(x); reshape(x) to its own shape = x."""
    (x,) = op.operands
    if x.type == op.result.type:
        return x
    if x.op is not None and x.op.name == "core.reshape":
        if x.op.operands[0].type == op.result.type:
            return x.op.operands[0]
        return _Changed(x.op.operands)
    return None


def _transpose_of_transpose(op: Op) -> _Outcome:
    """transpose(transpose(x, p), q) = transpose(x, p[q]); the identity permutation = x."""
    (x,) = op.operands
    permutation = tuple(op.attributes["permutation"])
    if permutation == tuple(range(len(permutation))):
        return x
    if x.op is not None and x.op.name == "core.transpose":
        inner = x.op.attributes["permutation"]
        joint = tuple(inner[p] for p in permutation)
        if joint == tuple(range(len(joint))):
            return x.op.operands[0]
        return _Changed(x.op.operands, {"permutation": joint})
    return None


def _broadcast_of_broadcast(op: Op) -> _Outcome:
    """broadcast(broadcast(x)) = broadcast(x)."""
    (x,) = op.operands
    return _Changed(x.op.operands) if x.op is not None and x.op.name == "core.broadcast" else None


def _idempotent(op: Op) -> _Outcome:
    """f(f(x)) = f(x) for floor, abs, sign and the like."""
    (x,) = op.operands[:1]
    return x if x.op is not None and x.op.name == op.name else None


_RULES: dict[str, Callable[[Op], _Outcome]] = {
    "core.reshape": _reshape_of_reshape,
    "core.transpose": _transpose_of_transpose,
    "core.broadcast": _broadcast_of_broadcast,
}


def _rewrite(block: Block) -> bool:
    changed = False
    for op in block.ops:
        rule = _RULES.get(op.name) or (_idempotent if has_trait(op, Trait.IDEMPOTENT) else None)
        if rule is None or not op.result.uses:
            continue
        outcome = rule(op)
        if outcome is None or not allowed("simplify", rule.__name__.strip("_").replace("_", " "), op):
            continue
        changed = True
        if isinstance(outcome, _Changed):
            op.set_operands(outcome.operands)
            op.attributes = op.attributes if outcome.attributes is None else outcome.attributes
        else:
            if outcome.op is not None:
                outcome.op.location = outcome.op.location | op.location
            op.result.replace_by(outcome)
    return changed
