"""What became of an ONNX node, as data and as text.  `explainer.py` finds it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = [
    "BufferFact",
    "Change",
    "Explanation",
    "FusionFact",
    "KernelFact",
    "OperationFact",
    "Section",
    "ValueFact",
    "sections",
]


@dataclass(frozen=True)
class ValueFact:
    """An input or output of the node: ``use`` says which; the type with its symbolic shape, empty if left out."""

    use: str
    name: str
    type: str


@dataclass(frozen=True)
class OperationFact:
    """A core operation that the node's definition made, its result types, and the rule that gave them."""

    operation: str
    types: tuple[str, ...]
    rule: str
    meaning: str


@dataclass(frozen=True)
class Change:
    """What a pass did to the node's operations: names, with the number where there are several."""

    label: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True)
class FusionFact:
    """A producer and a consumer, one of them of this node: whether one kernel holds both, and why.

    ``nodes`` are those of the other one; ``side`` is ``producer``, ``consumer`` (what the other one is), or
    ``itself`` where both are of this node.
    """

    side: str
    nodes: tuple[str, ...]
    producer: str
    consumer: str
    fused: bool
    reason: str


@dataclass(frozen=True)
class BufferFact:
    """Memory that a kernel is given.  ``bytes`` is an expression in the model's symbols.

    ``place`` is where it lies; ``life`` the first and last position in the program at which an arena place is
    in use, empty elsewhere.
    """

    name: str
    use: str
    place: str
    bytes: str
    life: tuple[int, ...]


@dataclass(frozen=True)
class KernelFact:
    """One launch of a kernel that does work of the node.

    ``schedule`` is the schedule's name and what was chosen within it; ``vector`` the widest access to memory;
    ``units`` the extent of the parallel range; ``cost`` the estimate for all of it, in hundredths of a
    nanosecond; both are expressions in the model's symbols, as are the bytes read and written.
    """

    symbol: str
    kind: str
    schedule: tuple[str, ...]
    vector: str
    nodes: tuple[str, ...]
    operations: int
    units: str
    cost: str
    read: str
    written: str
    buffers: tuple[BufferFact, ...]


@dataclass(frozen=True)
class Explanation:
    """What became of one ONNX node.  ``str()`` gives it as text.

    ``version`` is the operator's version in force at the model's ``opset``; ``path`` the graph that holds the
    node; ``outcome`` says in a sentence what is left of it.
    """

    node: str
    operator: str
    domain: str
    version: int
    opset: int
    path: str
    outcome: str
    values: tuple[ValueFact, ...]
    operations: tuple[OperationFact, ...]
    changes: tuple[Change, ...]
    fusion: tuple[FusionFact, ...]
    kernels: tuple[KernelFact, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON knows them."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n\n".join(_plain(section) for section in sections(self)) + "\n"


@dataclass(frozen=True)
class Section:
    """A part of the text: a title, and a table (without ``columns``, of names and values)."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sections(one: Explanation) -> list[Section]:
    """The text of an explanation in parts; those that would be empty are left out."""
    version = f", version {one.version}" if one.version else ""
    found = [
        Section(
            f"{one.node}: {one.operator} of {one.domain}{version}",
            (),
            tuple(
                fact
                for fact in (("outcome", one.outcome), ("graph", one.path), ("opset", str(one.opset or "")))
                if fact[1]
            ),
        ),
        Section(
            "types",
            ("use", "value", "type"),
            tuple((v.use, _clipped(v.name), v.type or "(left out)") for v in one.values),
        ),
        Section(
            "core operations",
            ("operation", "result", "rule of the result", "meaning"),
            tuple((_clipped(o.operation), ", ".join(o.types), o.rule, o.meaning) for o in one.operations),
        ),
        Section(
            "passes",
            ("pass", "took away", "added"),
            tuple((c.label, ", ".join(c.removed), ", ".join(c.added)) for c in one.changes),
        ),
        Section(
            "fusion",
            ("with", "operations", "one kernel", "because"),
            tuple(
                (
                    _with(f),
                    f"{_bare(f.producer)} -> {_bare(f.consumer)}",
                    "yes" if f.fused else "no",
                    f.reason,
                )
                for f in one.fusion
            ),
        ),
    ]
    for kernel in one.kernels:
        found += _kernel(kernel)
    return [section for section in found if section.rows]


def _with(fact: FusionFact) -> str:
    if fact.side == "itself":
        return "itself"
    arrow = "from" if fact.side == "producer" else "to"
    return f"{arrow} {_clipped(', '.join(fact.nodes)) or 'the graph'}"


def _clipped(text: str, most: int = 72) -> str:
    """A long text without its middle: names differ at their ends."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2 - 2]} ... {text[len(text) - most // 2 + 3 :]}"


def _bare(name: str) -> str:
    return name.removeprefix("core.")


def _kernel(kernel: KernelFact) -> list[Section]:
    facts = (
        ("kind of group", f"{kernel.kind}, {kernel.operations} operations"),
        ("schedule", "; ".join(kernel.schedule)),
        ("vectors", kernel.vector),
        ("nodes", ", ".join(kernel.nodes)),
        ("parallel range", f"{kernel.units} units"),
        ("estimated cost", f"{kernel.cost} hundredths of a nanosecond"),
        ("reads", f"{kernel.read} bytes"),
        ("writes", f"{kernel.written} bytes"),
    )
    rows = tuple(
        (_clipped(b.name), b.use, b.place, b.bytes, f"ops {b.life[0]} to {b.life[1]}" if b.life else "")
        for b in kernel.buffers
    )
    return [
        Section(f"kernel {kernel.symbol}", (), facts),
        Section(f"memory of {kernel.symbol}", ("buffer", "use", "place", "bytes", "in use"), rows),
    ]


def _plain(section: Section) -> str:
    rows = [section.columns, *section.rows] if section.columns else list(section.rows)
    return "\n".join([section.title, *_lines(rows)])


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
