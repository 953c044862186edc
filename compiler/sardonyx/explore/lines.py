"""Stages as lines of text, each with the set of the model's nodes that it stems from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sardonyx.explore.graph import Graph
from sardonyx.ir.graph import Function, Location, Module
from sardonyx.ir.printer import function_lines

__all__ = ["Text", "located_lines", "module_text"]

_WIDEST = 4000  # characters of a line; what is longer is of no use on a screen


@dataclass
class Text:
    """Lines, and for each the number of its set of nodes."""

    lines: list[str] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)

    def add(self, line: str, nodes: int = 0) -> None:
        if len(line) > _WIDEST:
            line = f"{line[:_WIDEST]} … {len(line) - _WIDEST} more characters"
        self.lines.append(line)
        self.sets.append(nodes)

    def data(self) -> dict[str, object]:
        return {"text": "\n".join(self.lines), "sets": self.sets}


def located_lines(function: Function) -> list[tuple[str, Location]]:
    """The lines of a function with the location of the op that each belongs to."""
    lines, spans = function_lines(function, locations=False)
    locations = [Location()] * len(lines)
    for op, span in spans.items():  # outer before inner
        locations[span.start : span.stop] = [op.location] * len(span)
    return list(zip(lines, locations, strict=True))


def module_text(module: Module | Iterable[Function], graph: Graph) -> Text:
    """All functions below each other."""
    text = Text()
    functions = module.functions.values() if isinstance(module, Module) else module
    for number, function in enumerate(functions):
        if number:
            text.add("")
        for line, location in located_lines(function):
            text.add(line, graph.node_set(location))
    return text
