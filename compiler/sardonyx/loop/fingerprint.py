"""A digest of a loop-level function that is blind to names, locations and tensors: equal code, equal digest."""

from __future__ import annotations

import hashlib

from sardonyx.ir.graph import Block, Function, Value

__all__ = ["fingerprint"]


def fingerprint(function: Function) -> str:
    """32 hexadecimal digits."""
    numbers: dict[Value, int] = {}
    parts: list[str] = []

    def block(body: Block) -> None:
        for argument in body.arguments:
            numbers[argument] = len(numbers)
            parts.append(str(argument.type))
        for op in body.ops:
            parts.append(op.name)
            parts.extend([str(numbers[o]) for o in op.operands])
            if op.attributes:
                parts.append(repr(sorted(op.attributes.items(), key=lambda item: item[0])))
            for result in op.results:
                numbers[result] = len(numbers)
                parts.append(str(result.type))
            for region in op.regions:
                parts.append("{")
                block(region)
                parts.append("}")

    block(function.body)
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
