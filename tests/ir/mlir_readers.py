"""Other programs that read MLIR: xDSL, and MLIR's own parser in the wheel of IREE's compiler.

Each reads a text with unregistered dialects allowed, verifies it, and prints what it has understood in the
generic form.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable

import pytest

__all__ = ["READERS", "each_reader", "through_mlir", "through_xdsl"]


def through_xdsl(text: str) -> str:
    """What xDSL prints of a module."""
    pytest.importorskip("xdsl", reason="needs xDSL (pip install xdsl)")
    context = importlib.import_module("xdsl.context").Context(allow_unregistered=True)
    context.load_dialect(importlib.import_module("xdsl.dialects.builtin").Builtin)
    context.load_dialect(importlib.import_module("xdsl.dialects.func").Func)
    module = importlib.import_module("xdsl.parser").Parser(context, text).parse_module()
    module.verify()
    for op in module.walk():  # xDSL may print the same name for two values: names are left out
        for value in (*op.results, *(a for region in op.regions for b in region.blocks for a in b.args)):
            value.name_hint = None
    printed = io.StringIO()
    printer = importlib.import_module("xdsl.printer").Printer
    printer(printed, print_generic_format=True, print_debuginfo=True).print_op(module)
    # xDSL gives the handle of a resource that is not in the text a number.
    return re.sub(r"(dense_resource<_?[0-9a-f]{16})_\d+>", r"\1>", printed.getvalue())


def through_mlir(text: str) -> str:
    """What MLIR prints of a module."""
    needs = "needs MLIR's parser (pip install iree-base-compiler)"
    ir = pytest.importorskip("iree.compiler.ir", reason=needs, exc_type=ImportError)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        assert module.operation.verify()
        printed: str = module.operation.get_asm(
            print_generic_op_form=True, enable_debug_info=True, use_local_scope=True
        )
    return printed


READERS: dict[str, Callable[[str], str]] = {"xdsl": through_xdsl, "mlir": through_mlir}
each_reader = pytest.mark.parametrize("through", READERS.values(), ids=READERS.keys())
