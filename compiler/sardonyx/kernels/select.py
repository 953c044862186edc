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
from sardonyx.kernels.sort_rows import sort_rows_kernel
from sardonyx.kernels.target import Target
from sardonyx.kernels.top_k import top_k_kernel
from sardonyx.kernels.transpose import transpose_kernel
from sardonyx.kernels.trees import trees_kernel
from sardonyx.kernels.window import window_kernel

__all__ = ["kernels_of"]


def _map(op: Op, target: Target) -> Sequence[Kernel]:
    return [map_kernel(op.regions[0], op.operands, op.results, target)]


def _rows(op: Op, target: Target) -> Sequence[Kernel]:
    return [rows_kernel(op.regions[0], op.operands, op.results, target)]


def _only(op: Op, name: str) -> Op:
    (found,) = [inner for inner in op.regions[0].ops if inner.name == name]
    return found


def _contract(op: Op, target: Target) -> Sequence[Kernel]:
    inner = _only(op, "core.contract")
    if is_fast(inner.operands[0].type.dtype) and "dtype" not in inner.attributes:
        return contract_kernels(op.regions[0], op.operands, op.results, target)
    return [plain_contract_kernel(op.regions[0], op.operands, op.results, target)]


def _convolve(op: Op, target: Target) -> Sequence[Kernel]:
    inner = _only(op, "core.convolve")
    x, w = inner.operands
    arguments = (op.regions[0], op.operands, op.results, target)
    weights = dict(zip(op.regions[0].arguments, op.operands, strict=True)).get(w, w)
    if is_fast(x.type.dtype) and "dtype" not in inner.attributes:
        if is_depthwise(inner, weights):
            return [depthwise_kernel(*arguments)]
        if w.type.shape[1] != 0:
            return convolve_kernels(*arguments)
    return [plain_convolve_kernel(*arguments)]


def _window(op: Op, target: Target) -> Sequence[Kernel]:
    return [window_kernel(op.regions[0], op.operands, op.results, target)]


def _transpose(op: Op, target: Target) -> Sequence[Kernel]:
    return [transpose_kernel(op.regions[0], op.operands, op.results, target) or map_kernel(op.regions[0], op.operands, op.results, target)]


def _mersenne_twister(op: Op, target: Target) -> Sequence[Kernel]:
    return [mersenne_twister_kernel(op.regions[0], op.results[0])]


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
    "trees": _trees,
    "mersenne_twister": _mersenne_twister,
}


def kernels_of(op: Op, target: Target) -> Sequence[Kernel]:
    """The kernels, in order, that compute a ``core.fused`` op; their arguments are its operands and results."""
    return _KINDS[op.attributes["kind"]](op, target)


def is_temporary(value: Value, op: Op) -> bool:
    """Whether a kernel argument is scratch memory of the group itself."""
    return value not in op.operands and value not in op.results
