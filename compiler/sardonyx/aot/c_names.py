"""Names and element types of a model as C and C++ know them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sardonyx.aot.identifiers import identifiers
from sardonyx_runtime.dtypes import DType

__all__ = ["c_identifiers", "c_type", "comment"]

# Words that are keywords in C or C++, or macros of the headers that ours includes.
_RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const "
    "consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if inline int long "
    "mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct "
    "switch template this thread_local throw true try typedef typeid typename typeof union unsigned using "
    "virtual void volatile wchar_t while xor xor_eq NULL errno linux unix context".split()
)

# By the IR's name of the element type: the type of one element in memory, and how many make up an element.
_TYPES = {
    "f32": "float",
    "f64": "double",
    "i1": "uint8_t",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "complex<f32>": "float",
    "complex<f64>": "double",
    "!sdx.string": "int64_t",
}


def c_type(dtype: DType) -> tuple[str, int]:
    """The C type in which elements are stored, and how many of it an element takes."""
    found = _TYPES.get(dtype.name)
    if found is None:
        sign = "" if dtype.kind == "signed" else "u"
        found = f"{sign}int{8 * dtype.itemsize}_t"
    return found, 2 if dtype.kind == "complex" else 1


def c_identifiers(names: Iterable[str], taken: Iterable[str] = (), *, upper: bool = False) -> list[str]:
    """A C identifier for each name, all different, none a keyword or one that is taken; ``upper``: in capitals."""
    return identifiers(names, {*_RESERVED, *taken}, upper=upper)


def comment(name: str) -> str:
    """A name as it can stand in a comment of C: quoted, ASCII, on one line, not ending the comment."""
    return json.dumps(name).replace("*", "\\u002a").replace("?", "\\u003f")
