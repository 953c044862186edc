"""Dims: integer expressions over named symbols, kept in one normal form.

A dim of a shape is either a plain ``int`` or a :class:`Dim`.  A ``Dim`` is a polynomial over
*atoms* with integer coefficients; an atom is a symbol (``batch``) or an opaque function of other
dims (``floordiv(h, 2)``).  Equal expressions have equal normal forms, so ``==`` and ``hash`` decide
equality of dims, and an expression that is constant is always a plain ``int``.

All symbols stand for sizes and are never negative; the simplifications rely on it.
"""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

__all__ = [
    "Atom",
    "Dim",
    "DimError",
    "DimLike",
    "broadcast_dim",
    "ceildiv",
    "evaluate",
    "floordiv",
    "maximum",
    "minimum",
    "modulo",
    "never_negative",
    "parse_dim",
    "plain_symbol",
    "product",
    "symbol",
    "symbols_of",
]


class DimError(ValueError):
    """A dim expression that cannot be parsed or evaluated."""


@dataclass(frozen=True, slots=True, order=False)
class Atom:
    """A symbol (``args`` empty) or an opaque function of dims (``floordiv``, ``max`` ...)."""

    name: str
    args: tuple[DimLike, ...] = ()

    def __str__(self) -> str:
        if self.args:
            return f"{self.name}({', '.join(map(str, self.args))})"
        # Bare only what Python's parser reads as this very name: no keyword, nothing that it normalises.
        plain = self.name.isascii() and self.name.isidentifier() and not keyword.iskeyword(self.name)
        return self.name if plain and self.name not in _FUNCTIONS else repr(self.name)

    def sort_key(self) -> str:
        return str(self)


Monomial = tuple[Atom, ...]


@dataclass(frozen=True, eq=False)
class Dim:
    """A non-constant polynomial: pairs of (monomial, coefficient), sorted, no zero coefficient."""

    terms: tuple[tuple[Monomial, int], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: DimLike) -> DimLike:
        return _sum([self, other])

    __radd__ = __add__

    def __neg__(self) -> DimLike:
        return _scale(self, -1)

    def __sub__(self, other: DimLike) -> DimLike:
        return _sum([self, _scale(other, -1)])

    def __rsub__(self, other: DimLike) -> DimLike:
        return _sum([other, _scale(self, -1)])

    def __mul__(self, other: DimLike) -> DimLike:
        return _product(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> DimLike:
        return floordiv(self, other)

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return floordiv(other, self)

    def __mod__(self, other: DimLike) -> DimLike:
        return modulo(self, other)

    @cached_property
    def _text(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            factors = [str(a) for a in monomial]
            size = abs(coefficient)
            if size != 1 or not factors:
                factors.insert(0, str(size))
            sign = "-" if coefficient < 0 else "+"
            parts.append(f"{sign}{'*'.join(factors)}")
        text = "".join(parts)
        return text[1:] if text.startswith("+") else text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Dim({self._text})"


DimLike = int | Dim


def symbol(name: str) -> Dim:
    """The dim that is the named symbol."""
    if not name:
        raise DimError("a symbol needs a name")
    return Dim((((Atom(name),), 1),))


def _terms(dim: DimLike) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(dim, Dim):
        return dim.terms
    return (((), int(dim)),) if dim else ()


def _from_terms(terms: Mapping[Monomial, int]) -> DimLike:
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    # The constant goes last; the others in a stable textual order.
    kept.sort(key=lambda t: (not t[0], tuple(a.sort_key() for a in t[0])))
    return Dim(tuple(kept))


def _sum(dims: Iterable[DimLike]) -> DimLike:
    terms: dict[Monomial, int] = {}
    for dim in dims:
        for monomial, coefficient in _terms(dim):
            terms[monomial] = terms.get(monomial, 0) + coefficient
    return _from_terms(terms)


def _scale(dim: DimLike, factor: int) -> DimLike:
    if isinstance(dim, int):
        return dim * factor
    return _from_terms({m: c * factor for m, c in dim.terms})


def _product(a: DimLike, b: DimLike) -> DimLike:
    terms: dict[Monomial, int] = {}
    for ma, ca in _terms(a):
        for mb, cb in _terms(b):
            monomial = tuple(sorted(ma + mb, key=Atom.sort_key))
            terms[monomial] = terms.get(monomial, 0) + ca * cb
    return _from_terms(terms)


def product(dims: Iterable[DimLike]) -> DimLike:
    """The product of all dims; 1 for none."""
    result: DimLike = 1
    for dim in dims:
        result = result * dim
    return result


def _divide_monomial(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _exact_quotient(a: DimLike, b: DimLike) -> DimLike | None:
    """a / b where b is one term and divides every term of a; else None."""
    terms_b = _terms(b)
    if len(terms_b) != 1:
        return 1 if a == b else None
    (mb, cb) = terms_b[0]
    quotient: dict[Monomial, int] = {}
    for ma, ca in _terms(a):
        rest = _divide_monomial(ma, mb)
        if rest is None or ca % cb:
            return None
        quotient[rest] = ca // cb
    return _from_terms(quotient)


def _function(name: str, *args: DimLike) -> DimLike:
    return Dim((((Atom(name, args),), 1),))


def floordiv(a: DimLike, b: DimLike) -> DimLike:
    """a // b, rounded down.  A divisor that divides a symbolically cancels."""
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            raise DimError(f"division of the dim {a} by zero")
        return a // b
    if b == 1 or a == 0:
        return a
    if b == 0:
        raise DimError(f"division of the dim {a} by zero")
    exact = _exact_quotient(a, b)
    if exact is not None:
        return exact
    if isinstance(b, int) and isinstance(a, Dim):
        # Take whole multiples out: (2*n + 3) // 2 == n + 1 + (1 // 2).
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, coefficient in a.terms:
            q, r = divmod(coefficient, b)
            whole[monomial], rest[monomial] = q, r
        remainder = _from_terms(rest)
        if isinstance(remainder, int):
            return _from_terms(whole) + remainder // b
        outer = _from_terms(whole)
        if b < 0:
            return outer + floordiv(-remainder, -b)
        return outer + _reduced_floordiv(remainder, b)
    if isinstance(a, Dim) and isinstance(b, Dim):
        # Whole multiples here too: (h*b + b - 1) // b == h + 1 + (-1 // b).
        parts = [(_exact_quotient(term, b), term) for term in (_from_terms({m: c}) for m, c in a.terms)]
        outer = _sum([q for q, _ in parts if q is not None])
        if outer != 0:
            return outer + floordiv(_sum([term for q, term in parts if q is None]), b)
    if a == -1 and never_negative(b):
        return -1
    return _function("floordiv", a, b)


def _reduced_floordiv(a: Dim, b: int) -> DimLike:
    """floordiv of a dim without whole multiples of the positive constant b, in lowest terms.

    (g*x + k) // (g*c) is (x + k//g) // c, and (x//c + y) // b is (x + c*y) // (c*b).
    """
    factors = [(m, c) for m, c in a.terms if m]
    constant = sum(c for m, c in a.terms if not m)
    common = math.gcd(b, *(c for _, c in factors))
    if common > 1:
        lowest = {m: c // common for m, c in factors}
        return floordiv(_from_terms(lowest | {(): constant // common}), b // common)
    for monomial, coefficient in factors:
        atom = monomial[0]
        if coefficient == len(monomial) == 1 and atom.name == "floordiv" and atom.args:
            inner, divisor = atom.args
            if isinstance(divisor, int):  # always positive in the normal form
                others = _sum([a, _from_terms({monomial: -1})])
                return floordiv(inner + others * divisor, divisor * b)
    return _function("floordiv", a, b)


def ceildiv(a: DimLike, b: DimLike) -> DimLike:
    """a / b, rounded up: in one form with the floordiv(a + b - 1, b) that models compute."""
    if isinstance(b, int) and b < 0:
        return _scale(floordiv(a, -b), -1)
    exact = _exact_quotient(a, b) if b != 0 else None
    if exact is not None:
        return exact
    return floordiv(_sum([a, b, -1]), b) if never_negative(b) else -floordiv(-a, b)


def modulo(a: DimLike, b: DimLike) -> DimLike:
    """a - b * (a // b): the sign of the divisor."""
    return _sum([a, _scale(_product(b, floordiv(a, b)), -1)])


def never_negative(dim: DimLike) -> bool:
    """Whether the dim is known to be at least 0 for all values of its symbols."""
    return all(c >= 0 and all(_atom_never_negative(a) for a in m) for m, c in _terms(dim))


def _atom_never_negative(atom: Atom) -> bool:
    if not atom.args:
        return True
    if atom.name == "max":
        return any(map(never_negative, atom.args))
    return all(map(never_negative, atom.args))


def maximum(a: DimLike, b: DimLike) -> DimLike:
    """The larger of two dims."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if a == b or never_negative(_sum([a, _scale(b, -1)])):
        return a
    if never_negative(_sum([b, _scale(a, -1)])):
        return b
    return _function("max", *_ordered(a, b))


_BEYOND = 1 << 62  # more elements than any axis has: "to the end" in many a Slice


def minimum(a: DimLike, b: DimLike) -> DimLike:
    """The smaller of two dims."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    for limit, other in ((a, b), (b, a)):
        if isinstance(limit, int) and limit >= _BEYOND:
            return other
    if a == b or never_negative(_sum([b, _scale(a, -1)])):
        return a
    if never_negative(_sum([a, _scale(b, -1)])):
        return b
    return _function("min", *_ordered(a, b))


def _ordered(a: DimLike, b: DimLike) -> tuple[DimLike, DimLike]:
    return (a, b) if str(a) <= str(b) else (b, a)


def broadcast_dim(a: DimLike, b: DimLike) -> DimLike:
    """The extent of two dims broadcast against each other (NumPy's rule).

    Two constants must agree or one be 1, else :class:`DimError`.  A symbol against a constant other
    than 1 has to be that constant or 1, so the result is the constant.  Two unlike symbols give
    ``bcast(a, b)``, whose value is b where a is 1, else a; that they agree is for a run-time check.
    """
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) and isinstance(b, int):
        raise DimError(f"{a} and {b} do not broadcast")
    if isinstance(a, int):
        return a
    if isinstance(b, int):
        return b
    for first, second in ((a, b), (b, a)):
        # bcast(bcast(x, y), x) adds nothing.
        if len(first.terms) == 1 and first.terms[0][1] == 1 and len(first.terms[0][0]) == 1:
            atom = first.terms[0][0][0]
            if atom.name == "bcast" and second in atom.args:
                return first
    return _function("bcast", *_ordered(a, b))


def _bcast_value(a: int, b: int) -> int:
    return b if a == 1 else a


_FUNCTIONS: dict[str, tuple[Callable[[DimLike, DimLike], DimLike], Callable[[int, int], int]]] = {
    "floordiv": (floordiv, lambda a, b: a // b),
    "max": (maximum, max),
    "min": (minimum, min),
    "bcast": (broadcast_dim, _bcast_value),
    "ceildiv": (ceildiv, lambda a, b: -(-a // b)),
    "mod": (modulo, lambda a, b: a % b),
}


def evaluate(dim: DimLike, values: Mapping[str, int]) -> int:
    """The value of a dim for the given values of its symbols; DimError names a missing symbol."""
    if isinstance(dim, int):
        return dim
    total = 0
    for monomial, coefficient in dim.terms:
        term = coefficient
        for atom in monomial:
            if atom.args:
                a, b = (evaluate(x, values) for x in atom.args)
                if atom.name == "floordiv" and b == 0:
                    raise DimError(f"division by zero in {atom}")
                term *= _FUNCTIONS[atom.name][1](a, b)
            else:
                if atom.name not in values:
                    raise DimError(f"the symbol {atom.name!r} of the dim {dim} has no value")
                term *= values[atom.name]
        total += term
    return total


def substitute(dim: DimLike, replacement: Mapping[str, DimLike]) -> DimLike:
    """The dim with symbols replaced by dims, normalised anew."""
    if isinstance(dim, int):
        return dim
    total: DimLike = 0
    for monomial, coefficient in dim.terms:
        term: DimLike = coefficient
        for atom in monomial:
            if atom.args:
                args = [substitute(x, replacement) for x in atom.args]
                term = term * _FUNCTIONS[atom.name][0](*args)
            else:
                term = term * replacement.get(atom.name, Dim((((atom,), 1),)))
        total = total + term
    return total


def symbols_of(dim: DimLike) -> set[str]:
    """The names of all symbols in a dim."""
    if isinstance(dim, int):
        return set()
    found: set[str] = set()
    for monomial, _ in dim.terms:
        for atom in monomial:
            if atom.args:
                found.update(*(symbols_of(a) for a in atom.args))
            else:
                found.add(atom.name)
    return found


def plain_symbol(dim: DimLike) -> str:
    """The name of a dim that is one symbol alone; empty for any other."""
    if isinstance(dim, int) or len(dim.terms) != 1:
        return ""
    ((monomial, coefficient),) = dim.terms
    return monomial[0].name if coefficient == 1 and len(monomial) == 1 and not monomial[0].args else ""


def parse_dim(text: str) -> DimLike:
    """The dim written as text: the inverse of ``str``.  Symbols that are no identifiers are quoted."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise DimError(f"{text!r} is not a dim expression") from error
    return _from_ast(tree, text)


_BINARY: dict[type[ast.operator], Callable[[DimLike, DimLike], DimLike]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: floordiv,
    ast.Mod: modulo,
}


def _from_ast(node: ast.expr, text: str) -> DimLike:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int(number)):
            return number
        case ast.Constant(value=str(name)):
            return symbol(name)
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_from_ast(operand, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_from_ast(left, text), _from_ast(right, text))
        case ast.Call(func=ast.Name(id=name), args=[a, b]) if name in _FUNCTIONS:
            return _FUNCTIONS[name][0](_from_ast(a, text), _from_ast(b, text))
    raise DimError(f"{text!r} is not a dim expression")
