"""The examples of the declarations as modules: what an example does not define is an argument."""

from __future__ import annotations

import re

from sardonyx.ir.declare import OpDecl, Trait
from sardonyx.ir.graph import Module
from sardonyx.ir.parser import parse_module

__all__ = ["example_module"]

_OP = re.compile(r"^( *)(?:(%[\w, %]+) = )?\w+\.\w+ ?((?:%\w+(?:, )?)*)")
_ARGUMENT = re.compile(r"(%\w+): ")


def example_module(declaration: OpDecl) -> Module:
    """The example in a function of its own."""
    text = declaration.example
    lines = text.splitlines()
    taken: dict[str, str] = {}
    made: set[str] = set()
    for number, line in enumerate(lines):
        if line.lstrip().startswith("^bb0"):
            made.update(_ARGUMENT.findall(line))
            continue
        match = _OP.match(line)
        if match is None:
            continue
        indent, results, operands = match.groups()
        end = line  # where the signature stands: an op with regions has it at their end
        if line.endswith("({"):
            end = next(one for one in lines[number + 1 :] if one.startswith(f"{indent}}}) :"))
        types = _split(end.rpartition(" : (")[2].rpartition(") -> ")[0])
        made.update((results or "").split(", "))
        taken |= dict(zip(filter(None, operands.split(", ")), types, strict=True))
    arguments = ", ".join(f"{name}: {kind}" for name, kind in taken.items() if name not in made)
    level = declaration.name.partition(".")[0]
    ends = Trait.TERMINATOR in declaration.traits
    results = list(taken.values()) if ends and declaration.operands else []
    arrow = f" -> ({', '.join(results)})" if results else ""
    end = "" if ends else f"\n{level}.return : () -> ()"
    return parse_module(f"func @main({arguments}){arrow} {{\n{text}{end}\n}}\n")


def _split(types: str) -> list[str]:
    """Types between commas that stand in no brackets."""
    found, depth = [""], 0
    for char in types:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return [t.strip() for t in found if t.strip()]
