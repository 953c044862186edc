"""Chooses the kernel of an ensemble of decision trees."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.map import group_location
from sardonyx.kernels.target import Target
from sardonyx.kernels.tree_bits import BLOCK_BYTES, bits_kernel, tree_lanes
from sardonyx.kernels.tree_layout import bit_tables, leaf_counts, walk_tables
from sardonyx.kernels.tree_walk import walk_kernel

__all__ = ["trees_kernel"]

_MOST_LEAVES = 64
_MOST_TOTALS = 1 << 16  # bytes of the totals of a block


def trees_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a lone ``core.tree_ensemble``."""
    (op,) = region.ops[:-1]
    (x,), (result,) = operands, results
    attributes = op.attributes
    counts, heights = leaf_counts(attributes, _MOST_LEAVES)
    roots = attributes["roots"].array
    most = int(counts[roots[roots >= 0]].max(initial=1))
    width, lanes = x.type.shape[1], tree_lanes(x, target)
    kernel = KernelBuilder("trees", group_location(region))
    fits = (
        most <= _MOST_LEAVES
        and isinstance(width, int)
        and (width + lanes) * lanes * x.type.dtype.itemsize <= BLOCK_BYTES
        and attributes["targets"] * lanes * 8 <= _MOST_TOTALS
    )
    if fits:
        return bits_kernel(kernel, x, result, attributes, bit_tables(attributes, counts), target)
    return walk_kernel(kernel, x, result, attributes, walk_tables(attributes, heights))
