"""Einsum: every legal equation as transposes, reductions, broadcast products and matrix products.

The operands are combined from left to right.  What only one of them has and nobody needs is summed
first; a pair with a common summed letter is one (batched) matrix product, any other pair a product
of its elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.precision import one_rounding
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime.dims import DimLike, broadcast_dim, product

__all__: list[str] = []

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@dataclass(frozen=True)
class _Term:
    """A tensor with a label for each axis; labels of an ellipsis are numbers, counted from its end."""

    value: Value
    labels: tuple[str, ...]


@onnx_op("Einsum")
def einsum(b: Builder, *operands: Value, equation: str) -> Value:
    inputs, output = _parse(equation, operands)
    pairwise = len(operands) == 2 and not _sums_before(inputs, output)
    compute = _compute if pairwise or len(operands) == 1 else one_rounding(_compute)
    return compute(b, *operands, inputs=inputs, output=output, equation=equation)


def _parse(equation: str, operands: Sequence[Value]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The labels of each operand's axes, and of the result's."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        if not _TERM.fullmatch(term):
            raise CompileError(
                f"{term!r} in the equation {equation!r} is no term: letters and at most one ellipsis"
            )
    if len(terms) != len(operands):
        raise CompileError(f"the equation {equation!r} has {len(terms)} terms for {len(operands)} operands")
    inputs = []
    widest = 0
    for term, operand in zip(terms, operands, strict=True):
        letters = len(term.replace("...", ""))
        dots = operand.type.rank - letters
        if dots < 0 or (dots and "..." not in term):
            raise CompileError(
                f"the term {term!r} of the equation {equation!r} does not fit {operand.type.describe()}"
            )
        widest = max(widest, dots)
        inputs.append(_labels(term, dots))
    every = [label for labels in inputs for label in labels]
    if arrow:
        output = _labels(right, widest)
    else:
        once = sorted({label for label in every if every.count(label) == 1 and label.isalpha()})
        output = (*_labels("...", widest), *once)
    for label in output:
        if output.count(label) > 1 or (label not in every and label.isalpha()):
            raise CompileError(
                f"the letter {label!r} of the result of {equation!r} is repeated or in no operand"
            )
    return inputs, output


def _labels(term: str, dots: int) -> tuple[str, ...]:
    before, ellipsis, behind = term.partition("...")
    middle = [str(i) for i in reversed(range(dots))] if ellipsis else []
    return (*before, *middle, *behind)


def _sums_before(inputs: Sequence[tuple[str, ...]], output: tuple[str, ...]) -> bool:
    """Whether an operand of a pair has a letter to itself that is summed, which rounds once more."""
    first, second = inputs
    return any((label in first) != (label in second) and label not in output for label in (*first, *second))


def _compute(
    b: Builder, *operands: Value, inputs: Sequence[tuple[str, ...]], output: tuple[str, ...], equation: str
) -> Value:
    terms = [_diagonal(b, _Term(v, labels)) for v, labels in zip(operands, inputs, strict=True)]
    extents = _extents(b, terms, equation)
    terms = [_fitted(b, term, extents) for term in terms]
    total = terms[0]
    for position, term in enumerate(terms[1:], start=1):
        needed = {*output, *(label for later in terms[position + 1 :] for label in later.labels)}
        total = _combined(b, total, term, needed)
    total = _summed(b, total, set(output))
    missing = [label for label in output if label not in total.labels]
    value = b.reshape(total.value, (*total.value.type.shape, *(1,) * len(missing)))
    labels = (*total.labels, *missing)
    value = b.transpose(value, [labels.index(label) for label in output])
    return b.broadcast_to(value, tuple(extents[label] for label in output))


def _diagonal(b: Builder, term: _Term) -> _Term:
    """Repeated labels name one axis: the diagonal.

    (n, n) laid out in a row and cut into rows of n + 1 has the diagonal in its first column.
    """
    labels, value = list(term.labels), term.value
    for label in dict.fromkeys(term.labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rest = [i for i in range(len(labels)) if i not in (first, second)]
            value = b.transpose(value, (*rest, first, second))
            labels = [*(labels[i] for i in rest), label]
            *lead, n, other = value.type.shape
            if n != other:
                message = f"the letter {label!r} names axes of the extents {n} and {other}"
                if isinstance(n, int) and isinstance(other, int):
                    raise CompileError(message)
                b.require("equal", n, other, message)
                n = n if isinstance(n, int) else other
                value = b.assume_shape(value, (*lead, n, n))
            count = len(lead)
            row = b.reshape(value, (*lead, n * n))
            zero = b.constant(0, value.type.dtype)
            padded = b.op("core.pad", row, zero, low=(0,) * (count + 1), high=(*(0,) * count, n))
            table = b.reshape(padded, (*lead, n, n + 1))
            column = b.op(
                "core.slice", table, starts=(0,) * (count + 2), sizes=(*lead, n, 1), steps=(1,) * (count + 2)
            )
            value = b.reshape(column, (*lead, n))
    return _Term(value, tuple(labels))


def _extents(b: Builder, terms: Sequence[_Term], equation: str) -> dict[str, DimLike]:
    """The extent of each label: what all operands agree on, 1 giving way."""
    extents: dict[str, DimLike] = {}
    for term in terms:
        for label, dim in zip(term.labels, term.value.type.shape, strict=True):
            have = extents.get(label, 1)
            if have == dim or have == 1 or dim == 1:
                extents[label] = dim if have == 1 else have
                continue
            name = f"the letter {label!r}" if label.isalpha() else "an axis of the ellipsis"
            message = f"{name} of {equation!r} has the extents {have} and {dim}"
            if isinstance(have, int) and isinstance(dim, int):
                raise CompileError(message)
            if label.isalpha():
                b.require("equal", have, dim, message)
                extents[label] = have if isinstance(have, int) else dim
            else:
                b.require("broadcast", have, dim, message)
                extents[label] = broadcast_dim(have, dim)
    return extents


def _fitted(b: Builder, term: _Term, extents: dict[str, DimLike]) -> _Term:
    """The term without axes that only repeat, and with the agreed extents."""
    kept = [i for i, label in enumerate(term.labels) if term.value.type.shape[i] != 1 or extents[label] == 1]
    value = b.reshape(term.value, [term.value.type.shape[i] for i in kept])
    labels = tuple(term.labels[i] for i in kept)
    shape = [extents[label] for label in labels]
    for label, have, want in zip(labels, value.type.shape, shape, strict=True):
        if have != want and label.isalpha():
            value = b.assume_shape(
                value, [want if x == label else d for x, d in zip(labels, value.type.shape, strict=True)]
            )
    return _Term(b.broadcast_to(value, tuple(shape)), labels)


def _summed(b: Builder, term: _Term, needed: set[str]) -> _Term:
    axes = [i for i, label in enumerate(term.labels) if label not in needed]
    return _Term(b.reduce("sum", term.value, axes), tuple(label for label in term.labels if label in needed))


def _combined(b: Builder, x: _Term, y: _Term, needed: set[str]) -> _Term:
    x = _summed(b, x, needed | set(y.labels))
    y = _summed(b, y, needed | set(x.labels))
    common = [label for label in x.labels if label in y.labels]
    summed = [label for label in common if label not in needed]
    batch = [label for label in common if label in needed]
    left = [label for label in x.labels if label not in common]
    right = [label for label in y.labels if label not in common]
    if not summed:
        return _multiplied(b, x, y, [*x.labels, *right])
    result = b.op("core.contract", _matrix(b, x, batch, left, summed), _matrix(b, y, batch, summed, right))
    shape = [*_dims(x, batch), *_dims(x, left), *_dims(y, right)]
    return _Term(b.reshape(result, shape), (*batch, *left, *right))


def _dims(term: _Term, labels: Sequence[str]) -> list[DimLike]:
    return [term.value.type.shape[term.labels.index(label)] for label in labels]


def _matrix(
    b: Builder, term: _Term, batch: Sequence[str], rows: Sequence[str], columns: Sequence[str]
) -> Value:
    """The term as (batch..., rows, columns)."""
    order = [term.labels.index(label) for label in (*batch, *rows, *columns)]
    shape = (*_dims(term, batch), product(_dims(term, rows)), product(_dims(term, columns)))
    return b.reshape(b.transpose(term.value, order), shape)


def _multiplied(b: Builder, x: _Term, y: _Term, labels: Sequence[str]) -> _Term:
    """The product of the elements, over all labels."""
    extents = {
        **dict(zip(y.labels, y.value.type.shape, strict=True)),
        **dict(zip(x.labels, x.value.type.shape, strict=True)),
    }
    shape = tuple(extents[label] for label in labels)

    def spread(term: _Term) -> Value:
        present = [label for label in labels if label in term.labels]
        value = b.transpose(term.value, [term.labels.index(label) for label in present])
        with_ones = [extents[label] if label in term.labels else 1 for label in labels]
        return b.broadcast_to(b.reshape(value, with_ones), shape)

    return _Term(b.mul(spread(x), spread(y)), tuple(labels))
