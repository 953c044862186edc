"""Dims: the normal form keeps values, equal polynomials are equal dims, and the text is parsed back."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sardonyx_runtime.dims import (
    Dim,
    DimError,
    broadcast_dim,
    ceildiv,
    evaluate,
    floordiv,
    maximum,
    minimum,
    modulo,
    parse_dim,
    product,
    substitute,
    symbol,
    symbols_of,
)

NAMES = ("batch", "h", "seq.len", "None")
B, H, W = symbol("batch"), symbol("h"), symbol("w")


def _broadcast(a: int, b: int) -> int:
    assume(a == b or 1 in (a, b))
    return b if a == 1 else a


def _divisor(function):
    def apply(a: int, b: int) -> int:
        assume(b != 0)
        return function(a, b)

    return apply


POLYNOMIAL = {"+": (operator.add,) * 2, "-": (operator.sub,) * 2, "*": (operator.mul,) * 2}
FUNCTIONS = POLYNOMIAL | {
    "max": (maximum, max),
    "min": (minimum, min),
    "bcast": (broadcast_dim, _broadcast),
    "floordiv": (floordiv, _divisor(operator.floordiv)),
    "ceildiv": (ceildiv, _divisor(lambda a, b: -(-a // b))),
    "mod": (modulo, _divisor(operator.mod)),
}


def trees(functions, leaves=8):
    """Expressions as tuples (function, left, right) over names and integers."""
    return st.recursive(
        st.sampled_from(NAMES) | st.integers(-6, 12),
        lambda inner: st.tuples(st.sampled_from(sorted(functions)), inner, inner),
        max_leaves=leaves,
    )


values = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})


def build(tree):
    """The dim of an expression; examples that divide by zero or do not broadcast are left out."""
    if isinstance(tree, tuple):
        left, right = build(tree[1]), build(tree[2])
        try:
            return FUNCTIONS[tree[0]][0](left, right)
        except DimError:
            assume(False)
    return symbol(tree) if isinstance(tree, str) else tree


def value(tree, at) -> int:
    """The value of an expression, by Python's own arithmetic."""
    if isinstance(tree, tuple):
        return FUNCTIONS[tree[0]][1](value(tree[1], at), value(tree[2], at))
    return at[tree] if isinstance(tree, str) else tree


@given(trees(FUNCTIONS), values)
def test_normal_form_keeps_the_value(tree, at):
    expected = value(tree, at)
    assert evaluate(build(tree), at) == expected


@given(trees(FUNCTIONS))
def test_text_is_parsed_back(tree):
    dim = build(tree)
    again = parse_dim(str(dim))
    assert again == dim
    assert type(again) is type(dim)
    assert hash(again) == hash(dim)


@given(trees(POLYNOMIAL), trees(POLYNOMIAL))
def test_equal_polynomials_are_equal_dims(first, second):
    """At a point far out, each power and product further than all before, only equal polynomials agree."""
    point = {name: 10 ** (20 * 9**i) for i, name in enumerate(NAMES)}
    assert (build(first) == build(second)) == (value(first, point) == value(second, point))


@given(trees(POLYNOMIAL, 4), trees(POLYNOMIAL, 4), trees(POLYNOMIAL, 4))
def test_ring_laws(x, y, z):
    a, b, c = build(x), build(y), build(z)
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a - a == 0
    assert isinstance(a - a, int)


@given(trees(FUNCTIONS, 4), trees(FUNCTIONS, 4), values)
def test_substitution(tree, inner, at):
    replacement = build(inner)
    size = value(inner, at)
    assume(size >= 0)
    expected = value(tree, at | {"h": size})
    try:
        found = substitute(build(tree), {"h": replacement})
    except DimError:
        assume(False)
    assert evaluate(found, at) == expected


@given(trees(POLYNOMIAL, 4), st.integers(1, 12), st.integers(1, 12))
def test_divisions_in_lowest_terms(tree, b, c):
    a = build(tree)
    assert floordiv(floordiv(a, b), c) == floordiv(a, b * c)
    assert floordiv(a * c, b * c) == floordiv(a, b)
    assert floordiv(a * c + (c - 1), b * c) == floordiv(a, b)
    assert floordiv(a + b, b) == floordiv(a, b) + 1
    assert floordiv(a, -b) == floordiv(-a, b)
    assert floordiv(a * b, b) == a
    assert modulo(a + b, b) == modulo(a, b)
    assert ceildiv(a, b) == floordiv(a + b - 1, b)


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (B + 1, "batch+1"),
        (1 - B, "-batch+1"),
        (3 - 2 * B * H, "-2*batch*h+3"),
        (floordiv(H, 2), "floordiv(h, 2)"),
        (ceildiv(H, 2), "floordiv(h+1, 2)"),
        (ceildiv(H, -2), "-floordiv(h, 2)"),
        (maximum(B, 3), "max(3, batch)"),
        (symbol("seq.len") * 2, "2*'seq.len'"),
        (symbol("max"), "'max'"),
        (symbol("lambda"), "'lambda'"),
        (symbol("ﬁ"), "'ﬁ'"),
        (symbol("a'b"), '"a\'b"'),
    ],
)
def test_text(dim, text):
    assert str(dim) == text
    assert parse_dim(text) == dim


@pytest.mark.parametrize(
    "text", ["", "1+", "a b", "a.b", "f(a, b)", "max(a)", "True", "None", "1.5", "a**2", "a/b"]
)
def test_text_of_no_dim(text):
    with pytest.raises(DimError, match="is not a dim expression"):
        parse_dim(text)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (floordiv(2 * H + 3, 2), H + 1),
        (floordiv(6 * H, 2 * H), 3),
        (floordiv(H * B, H), B),
        (ceildiv(H * B, B), H),
        (ceildiv(0, B), 0),
        (floordiv(H * B + B - 1, B), H),
        (floordiv(floordiv(H, 2) + W, 3), floordiv(H + 2 * W, 6)),
        (modulo(4 * H, 2), 0),
        (modulo(4 * H + 1, 2), 1),
        (maximum(H, 0), H),
        (maximum(H + 1, H), H + 1),
        (minimum(H, 0), 0),
        (minimum(maximum(H, W), 0), 0),
        (maximum(H, H), H),
        (broadcast_dim(H, 1), H),
        (broadcast_dim(1, H), H),
        (broadcast_dim(H, 3), 3),
        (broadcast_dim(broadcast_dim(H, W), W), broadcast_dim(W, H)),
        (product([]), 1),
        (product([H, 2, W]), 2 * W * H),
    ],
)
def test_simplification(found, expected):
    assert found == expected
    assert type(found) is type(expected)


@given(st.integers(-20, 20), st.integers(-6, 6).filter(bool))
def test_constants_are_python_integers(a, b):
    assert floordiv(a, b) == a // b
    assert modulo(a, b) == a % b
    assert ceildiv(a, b) == math.ceil(a / b)


def test_errors_say_what_is_wrong():
    with pytest.raises(DimError, match="division of the dim h by zero"):
        floordiv(H, 0)
    with pytest.raises(DimError, match="by zero"):
        ceildiv(H, 0)
    with pytest.raises(DimError, match="2 and 3 do not broadcast"):
        broadcast_dim(2, 3)
    with pytest.raises(DimError, match="'h' of the dim h\\+1 has no value"):
        evaluate(H + 1, {})
    with pytest.raises(DimError, match="division by zero"):
        evaluate(floordiv(H, W), {"h": 3, "w": 0})
    with pytest.raises(DimError, match="needs a name"):
        symbol("")


def test_symbols():
    assert symbols_of(floordiv(H + 1, W) * B + 3) == {"h", "w", "batch"}
    assert symbols_of(3) == set()
    assert isinstance(H, Dim)
