"""Fixing dims: inputs of symbolic shape become inputs of known shape, before anything is lowered."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from sardonyx.errors import CompileError
from sardonyx.ir.graph import Module
from sardonyx.ir.types import TensorType
from sardonyx.pipeline import level_of
from sardonyx_runtime.dims import substitute, symbols_of

__all__ = ["fix_dims"]


def fix_dims(module: Module, sizes: Mapping[str, int]) -> None:
    """Put sizes in the place of symbols in the inputs' types of a module.

    CompileError for a symbol that no input's shape has, for a size that is negative, and for a module whose
    nodes are lowered already.
    """
    if sizes and level_of(module) != "onnx":
        raise CompileError(
            "dims are fixed before nodes are lowered", hint="give the ONNX model, or its onnx level"
        )
    tensors = [a for a in module.main.arguments if isinstance(a.type, TensorType)]
    known = sorted({s for a in tensors for d in a.type.shape for s in symbols_of(d)})
    for name, size in sizes.items():
        if name not in known:
            close = get_close_matches(name, known, 1)
            meant = f"did you mean {close[0]!r}? " if close else ""
            raise CompileError(
                f"no input has a dim {name!r} to be fixed",
                hint=f"{meant}the symbols of the inputs' shapes are {', '.join(known) or 'none'}",
            )
        if size < 0:
            raise CompileError(f"the dim {name!r} cannot be {size}")
    for argument in tensors:
        shape = tuple(substitute(d, sizes) for d in argument.type.shape)
        argument.type = TensorType(argument.type.dtype, shape)
