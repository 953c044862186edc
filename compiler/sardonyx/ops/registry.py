"""The registry of ONNX operators: for each, one function that builds core ops, per range of versions.

An operator's function takes the builder, then the node's inputs (None where one is left out; ``*xs``
for a variadic one), then its attributes as keyword-only parameters.  Defaults of attributes come from
the schema and are not repeated; an optional attribute without a default is ``= None``.  It returns a
value, or a tuple of values for several outputs (None for an output nobody asks for)::

    @onnx_op("GreaterOrEqual")
    def greater_or_equal(b: Builder, x: Value, y: Value) -> Value:
        return b.ge(*b.broadcast(x, y))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

__all__ = ["Entry", "end_before", "entries", "find", "onnx_op"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """One registered function: operator, domain, first and last version it serves."""

    op_type: str
    domain: str
    since: int
    until: int
    function: Callable[..., Any]


_LATEST = 1 << 30
_ENTRIES: dict[tuple[str, str], list[Entry]] = {}


def onnx_op(op_type: str, *, since: int = 1, until: int = _LATEST, domain: str = "") -> Callable[[F], F]:
    """Register the function for an operator at the opsets ``since`` to ``until``, both included."""

    def register(function: F) -> F:
        found = _ENTRIES.setdefault((domain, op_type), [])
        for other in found:
            if since <= other.until and other.since <= until:
                raise ValueError(f"{op_type} {since}..{until} overlaps {other.since}..{other.until}")
        found.append(Entry(op_type, domain, since, until, function))
        return function

    return register


def end_before(op_type: str, domain: str, since: int) -> None:
    """Let what serves an operator at the opset ``since`` and later ones end before it."""
    found = _ENTRIES.get((domain, op_type), [])
    found[:] = [replace(e, until=since - 1) if e.since < since <= e.until else e for e in found]


def find(op_type: str, domain: str, opset: int) -> Entry | None:
    """The entry that serves the operator at this opset, or None."""
    for entry in _ENTRIES.get((domain, op_type), ()):
        if entry.since <= opset <= entry.until:
            return entry
    return None


def entries() -> Iterator[Entry]:
    """All entries, by domain and name, oldest version first."""
    for key in sorted(_ENTRIES):
        yield from sorted(_ENTRIES[key], key=lambda e: e.since)
