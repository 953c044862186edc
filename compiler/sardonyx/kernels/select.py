"""Chooses the kernel for a group: the one place where schedules are picked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx.ir.graph import Op, Value
from sardonyx.kernels.contract import contract_kernels
from sardonyx.kernels.kernel import Kernel
from sardonyx.kernels.map import map_kernel
from sardonyx.kernels.rows import rows_kernel
from sardonyx.kernels.target import Target
from sardonyx.kernels.transpose import transpose_kernel

__all__ = ["kernels_of"]


def _map(op: Op, target: Target) -> Sequence[Kernel]:
    return [map_kernel(op.regions[0], op.operands, op.results, target)]


def _rows(op: Op, target: Target) -> Sequence[Kernel]:
    return [rows_kernel(op.regions[0], op.operands, op.results, target)]


def _contract(op: Op, target: Target) -> Sequence[Kernel]:
    return contract_kernels(op.regions[0], op.operands, op.results, target)


def _transpose(op: Op, target: Target) -> Sequence[Kernel]:
    return [transpose_kernel(op.regions[0], op.operands, op.results, target) or map_kernel(op.regions[0], op.operands, op.results, target)]


_KINDS: dict[str, Callable[[Op, Target], Sequence[Kernel]]] = {
    "map": _map,
    "rows": _rows,
    "contract": _contract,
    "transpose": _transpose,
}


def kernels_of(op: Op, target: Target) -> Sequence[Kernel]:
    """The kernels, in order, that compute a ``core.fused`` op; their arguments are its operands and results."""
    return _KINDS[op.attributes["kind"]](op, target)


def is_temporary(value: Value, op: Op) -> bool:
    """Whether a kernel argument is scratch memory of the group itself."""
    return value not in op.operands and value not in op.results
