"""Every declared operation has an example, which parses, keeps to the declaration, and is MLIR."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sardonyx import core, loop
from sardonyx.ir.compare import same
from sardonyx.ir.declare import OpDecl, all_declarations, lookup
from sardonyx.ir.graph import Module, walk
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module, print_op
from sardonyx.ir.verifier import verify

from .examples import example_module
from .mlir_readers import each_reader

assert core.__all__ and loop.__all__  # the imports declare the ops
OWN = [d for d in all_declarations().values() if d.name.startswith(("core.", "loop."))]
each_declaration = pytest.mark.parametrize("declaration", OWN, ids=lambda d: d.name)


def without_functions_of_users(name: str) -> OpDecl | None:
    """Only a function that is registered may be called."""
    return None if name == "core.external_call" else lookup(name)


@each_declaration
def test_an_example_is_the_op(declaration: OpDecl) -> None:
    module = example_module(declaration)
    verify(module, lookup=without_functions_of_users)
    ops = [op for op in module.main.body.ops if op.name == declaration.name]
    assert print_op(ops[0]) == declaration.example
    required = {a for a in declaration.attributes if not a.endswith("?")}
    assert required <= ops[0].attributes.keys() <= {a.rstrip("?") for a in declaration.attributes}


@each_reader
def test_other_tools_read_the_examples(through: Callable[[str], str]) -> None:
    module = Module()
    for declaration in OWN:
        function = example_module(declaration).main
        function.name = declaration.name
        module.add(function)
    read = parse_module(through(print_module(module, generic=True)))
    assert same(module, read, names=False) is None
    assert {op.name for op in walk(read)} == {d.name for d in OWN}
