"""Chooses the kernel for a group: the one place where schedules are picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx.ir.graph import Op, Value
from sardonyx.kernels.contract import contract_kernels
from sardonyx.kernels.convolve import convolve_kernels
from sardonyx.kernels.depthwise import depthwise_kernel, is_depthwise
from sardonyx.kernels.kernel import Kernel
from sardonyx.kernels.map import map_kernel
from sardonyx.kernels.mersenne_twister import mersenne_twister_kernel
from sardonyx.kernels.microkernel import is_fast
from sardonyx.kernels.nms import nms_kernel
from sardonyx.kernels.nonzero import nonzero_kernel
from sardonyx.kernels.plain_contract import plain_contract_kernel
from sardonyx.kernels.plain_convolve import plain_convolve_kernel
from sardonyx.kernels.rows import rows_kernel
from sardonyx.kernels.scan import scan_kernel
from sardonyx.kernels.scatter import scatter_kernels
from sardonyx.kernels.slots import Slot
from sardonyx.kernels.sort_rows import sort_rows_kernel
from sardonyx.kernels.target import Target
from sardonyx.kernels.text import text_kernel
from sardonyx.kernels.top_k import top_k_kernel
from sardonyx.kernels.transpose import transpose_kernel
from sardonyx.kernels.trees import trees_kernel
from sardonyx.kernels.views import view_of
from sardonyx.kernels.window import window_kernel
from sardonyx_runtime import dtypes

__all__ = ["kernels_of"]


def _map(op: Op, target: Target, slot: Slot | None = None) -> Sequence[Kernel]:
    return [map_kernel(op.regions[0], op.operands, op.results, target, slot)]


def _rows(op: Op, target: Target) -> Sequence[Kernel]:
    return [rows_kernel(op.regions[0], op.operands, op.results, target)]


def _only(op: Op, name: str) -> Op:
    (found,) = [inner for inner in op.regions[0].ops if inner.name == name]
    return found


def _has_fast_product(op: Op) -> bool:
    """Whether the register tile computes a product: a type it sums, something to compute."""
    return is_fast(op.operands[0].type.dtype) and "dtype" not in op.attributes and op.result.type.size != 0


def _has_fast_words(op: Op) -> bool:
    """Whether a product of words of bytes has its words as they are in memory."""
    words = bool(op.attributes.get("words", False)) and is_fast(dtypes.f32) and op.result.type.size != 0
    return words and view_of(op.operands[0]).strides[-1] == 1


def _contract(op: Op, target: Target) -> Sequence[Kernel]:
    inner = _only(op, "core.contract")
    if _has_fast_product(inner) or _has_fast_words(inner):
        return contract_kernels(op.regions[0], op.operands, op.results, target)
    return [plain_contract_kernel(op.regions[0], op.operands, op.results, target)]


def _convolve(op: Op, target: Target) -> Sequence[Kernel]:
    inner = _only(op, "core.convolve")
    w = inner.operands[1]
    arguments = (op.regions[0], op.operands, op.results, target)
    weights = dict(zip(op.regions[0].arguments, op.operands, strict=True)).get(w, w)
    if _has_fast_product(inner) and w.type.shape[1] != 0:
        if is_depthwise(inner, weights):
            return [depthwise_kernel(*arguments)]
        return convolve_kernels(*arguments)
    return [plain_convolve_kernel(*arguments)]


def _window(op: Op, target: Target) -> Sequence[Kernel]:
    return [window_kernel(op.regions[0], op.operands, op.results, target)]


def _transpose(op: Op, target: Target) -> Sequence[Kernel]:
    arguments = (op.regions[0], op.operands, op.results, target)
    return [transpose_kernel(*arguments) or map_kernel(*arguments)]


def _mersenne_twister(op: Op, target: Target) -> Sequence[Kernel]:
    return [mersenne_twister_kernel(op.regions[0], op.results[0])]


def _text(op: Op, target: Target) -> Sequence[Kernel]:
    return [text_kernel(op.regions[0], op.operands, op.results)]


def _trees(op: Op, target: Target) -> Sequence[Kernel]:
    return [trees_kernel(op.regions[0], op.operands, op.results, target)]


def _scatter(op: Op, target: Target) -> Sequence[Kernel]:
    return scatter_kernels(op.regions[0], op.operands, op.results, target)


def _single(make: Callable[..., Kernel]) -> Callable[[Op, Target], Sequence[Kernel]]:
    """The kernels of a kind of group that has one schedule."""
    return lambda op, target: [make(op.regions[0], op.operands, op.results, target)]


_KINDS: dict[str, Callable[[Op, Target], Sequence[Kernel]]] = {
    "map": _map,
    "rows": _rows,
    "contract": _contract,
    "convolve": _convolve,
    "window": _window,
    "transpose": _transpose,
    "scatter": _scatter,
    "scan": _single(scan_kernel),
    "top_k": _single(top_k_kernel),
    "sort_rows": _single(sort_rows_kernel),
    "nonzero": _single(nonzero_kernel),
    "nms": _single(nms_kernel),
    "text": _text,
    "trees": _trees,
    "mersenne_twister": _mersenne_twister,
}


def kernels_of(op: Op, target: Target, slot: Slot | None = None) -> Sequence[Kernel]:
    """The kernels, in order, that compute a ``core.fused`` op; their arguments are its operands and results.

    ``slot``: how the rows of the result of an elementwise group lie in memory, where not one behind another.
    """
    if slot is not None:
        return _map(op, target, slot)
    return _KINDS[op.attributes["kind"]](op, target)


def is_temporary(value: Value, op: Op) -> bool:
    """Whether a kernel argument is scratch memory of the group itself."""
    return value not in op.operands and value not in op.results
