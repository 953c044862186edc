"""Declarations of operations: one per op, from which verifier, builder, folder and reference follow.

A declaration names the operands and attributes, gives the rule for the result types (a pure function
that raises :class:`TypeRuleError` with a message echoing the values), the NumPy meaning (``evaluate``),
and the algebraic facts as traits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sardonyx.ir.types import Type

if TYPE_CHECKING:
    from sardonyx.ir.graph import Op

__all__ = ["OpDecl", "Trait", "TypeRuleError", "VerifyError", "all_declarations", "declare", "lookup"]

InferRule = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Type]]
Evaluate = Callable[..., Any]


class TypeRuleError(ValueError):
    """Operand types or attributes break an op's rule; the message echoes them."""


class VerifyError(ValueError):
    """An operation or a function breaks an invariant."""


class Trait:
    """The facts that passes ask for."""

    ELEMENTWISE = "elementwise"  # result[i] depends on operand[i] only, all shapes equal
    MOVEMENT = "movement"  # every result element is one operand element (or a fill)
    COMMUTATIVE = "commutative"  # the first two operands may be swapped, bit for bit
    IDEMPOTENT = "idempotent"  # f(f(x)) is f(x)
    EXACT = "exact"  # the NumPy meaning gives the kernel's bits, so the folder may use it
    EFFECT = "effect"  # must not be removed although nothing uses its results
    TERMINATOR = "terminator"  # ends a block
    CAN_FAULT = "can_fault"  # may end the run with an error


@dataclass(frozen=True)
class OpDecl:
    """The declaration of one operation."""

    name: str
    operands: tuple[str, ...]  # names; "*xs" takes any number, "x?" may be left out
    attributes: tuple[str, ...]  # names; "x?" may be left out
    infer: InferRule | None  # None: the results are what the maker says
    evaluate: Evaluate | None  # (attributes, *arrays) -> array or tuple of arrays
    traits: frozenset[str] = frozenset()
    regions: int = 0
    doc: str = ""
    example: str = ""  # in the short text form; values that it does not define are arguments
    symbolic: Evaluate | None = None  # the meaning on arrays of dims, for integer shape arithmetic
    fault: Evaluate | None = None  # (attributes, *arrays) -> what is wrong with them, empty if nothing
    _arity: tuple[int, float] = field(default=(0, 0), repr=False)

    def __post_init__(self) -> None:
        least = sum(not o.startswith("*") and not o.endswith("?") for o in self.operands)
        most = float("inf") if any(o.startswith("*") for o in self.operands) else len(self.operands)
        object.__setattr__(self, "_arity", (least, most))

    @property
    def rule(self) -> str:
        """The rule of the result types in words: the first paragraph of the docstring of ``infer``."""
        text = inspect.getdoc(self.infer) if self.infer is not None else None
        return " ".join((text or "").partition("\n\n")[0].split())

    def result_types(self, operand_types: Sequence[Any], attributes: Mapping[str, Any]) -> Sequence[Type]:
        """The types of the results; TypeRuleError if the operands or attributes do not fit."""
        least, most = self._arity
        if not least <= len(operand_types) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise TypeRuleError(f"{self.name} takes {wanted} operands, got {len(operand_types)}")
        if self.infer is None:
            raise TypeRuleError(f"{self.name} has no rule for its results")
        return self.infer(operand_types, attributes)

    def verify(self, op: Op) -> None:
        """Check one operation against the declaration."""
        least, most = self._arity
        if not least <= len(op.operands) <= most:
            raise VerifyError(f"{self.name} has {len(op.operands)} operands; {self.operands} are declared")
        required = {a for a in self.attributes if not a.endswith("?")}
        known = {a.rstrip("?") for a in self.attributes}
        missing = required - op.attributes.keys()
        unknown = op.attributes.keys() - known
        if missing or unknown:
            raise VerifyError(f"{self.name}: attributes missing {sorted(missing)}, unknown {sorted(unknown)}")
        if len(op.regions) != self.regions and self.regions >= 0:
            raise VerifyError(f"{self.name} has {len(op.regions)} regions; {self.regions} declared")
        if self.infer is not None:
            try:
                types = self.infer([o.type for o in op.operands], op.attributes)
            except TypeRuleError as error:
                raise VerifyError(f"{self.name}: {error}") from error
            if tuple(types) != tuple(r.type for r in op.results):
                got = ", ".join(str(r.type) for r in op.results)
                raise VerifyError(
                    f"{self.name}: results are {got}; the rule gives {', '.join(map(str, types))}"
                )


_DECLARATIONS: dict[str, OpDecl] = {}


def declare(
    name: str,
    operands: str = "",
    attributes: str = "",
    *,
    infer: InferRule | None = None,
    evaluate: Evaluate | None = None,
    symbolic: Evaluate | None = None,
    traits: Sequence[str] = (),
    regions: int = 0,
    doc: str = "",
    example: str = "",
    fault: Evaluate | None = None,
) -> OpDecl:
    """Register an operation; operands and attributes are written as one string of names each."""
    if name in _DECLARATIONS:
        raise ValueError(f"{name} is declared twice")
    decl = OpDecl(
        name,
        tuple(operands.split()),
        tuple(attributes.split()),
        infer,
        evaluate,
        frozenset(traits),
        regions,
        doc,
        example,
        symbolic,
        fault,
    )
    _DECLARATIONS[name] = decl
    return decl


def lookup(name: str) -> OpDecl | None:
    """The declaration of an op, or None."""
    return _DECLARATIONS.get(name)


def all_declarations() -> Mapping[str, OpDecl]:
    """Every declaration by name."""
    return _DECLARATIONS


def has_trait(op: Op, trait: str) -> bool:
    """Whether the op is declared with the trait."""
    decl = _DECLARATIONS.get(op.name)
    return decl is not None and trait in decl.traits
