"""Operators that users add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sardonyx import model_cache
from sardonyx.core.external import ExternalFunction
from sardonyx.ops.extension import Shapes, define_operator, external_operator

__all__ = ["register_operator"]

F = TypeVar("F", bound=Callable[..., Any])


def register_operator(
    name: str,
    *,
    domain: str,
    since: int = 1,
    inputs: Sequence[str],
    outputs: Sequence[str],
    attributes: Mapping[str, Any] | None = None,
    types: Mapping[str, Sequence[str]] | None = None,
    library: str = "",
    symbol: str = "",
    address: int = 0,
    shapes: Shapes | None = None,
) -> Callable[[F], F]:
    """Add an operator of a domain of your own, from version ``since`` of the domain on.

    ``inputs`` and ``outputs`` are texts: ``"x: T"``, ``"bias?: T"`` (may be left out), ``"*xs: T"`` (any
    number).  T is an element type (``float``, ``int64`` ...), or a name in ``types``, which lists element
    types and stands for one of them throughout a node.  ``attributes`` maps names to defaults; to a type
    (``int``, ``list[float]`` ...) where a node has to give a value; ``"name?"`` to a type where it need not.

    Used as a decorator it registers a function that builds core ops, like the functions in
    ``sardonyx/ops``: it takes the builder, the inputs (None for one left out) and the attributes by keyword.

    With ``symbol`` (of ``library``, a path or a name as the system's loader takes it) or ``address`` the
    operator is a function in C, called natively; docs/extending.md has its signature.  ``shapes`` then gives
    the shapes of the outputs from those of the inputs and the attributes by keyword; without it all are the
    first input's.

    ValueError if the description is not understood or the operator is known already; CompileError if the
    symbol cannot be loaded.  While operators of users are registered, whole models are not kept in the
    cache on disk.
    """
    given: dict[str, Any] = {
        "name": name,
        "domain": domain,
        "since": since,
        "inputs": inputs,
        "outputs": outputs,
    }
    given |= {"attributes": attributes, "types": types}
    if not symbol and not address:

        def register(function: F) -> F:
            define_operator(function, **given)
            model_cache.suspend()
            return function

        return register
    function = ExternalFunction(library, symbol, address)
    define_operator(
        external_operator(name, domain, since, function, outputs, shapes, types or {}, inputs), **given
    )
    model_cache.suspend()

    def nothing_to_decorate(function: F) -> F:
        raise TypeError(f"{name} is the function {symbol or hex(address)} already")

    return nothing_to_decorate
