"""Trees of any size: several walks from root to leaf under way at a time.

A step of a walk waits for memory three times, so one walk alone keeps a core idle.  ``WALKS`` independent
ones overlap: those of neighbouring rows through one tree or, for the last few rows, those of one row through
neighbouring trees.  A walk that has come to its leaf stays there until the longest has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Value
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.tree_bits import COMBINE, finished
from sardonyx.kernels.tree_layout import WALKS, WalkTables, identity
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import ceildiv

__all__ = ["walk_kernel"]


def walk_kernel(
    kernel: KernelBuilder, x: Value, result: Value, attributes: Mapping[str, Any], tables: WalkTables
) -> Kernel:
    """The kernel of any ensemble."""
    return _Walk(kernel, x, result, attributes, tables).build()


@dataclass
class _Walk:
    kernel: KernelBuilder
    x: Value
    result: Value
    attributes: Mapping[str, Any]
    tables: WalkTables

    def build(self) -> Kernel:
        kernel, tables = self.kernel, self.tables
        self.b = b = kernel.b
        self.source, self.out = kernel.buffer(self.x, name="x"), kernel.buffer(self.result, name="out")
        rows, width = self.x.type.shape
        self.width = kernel.dim(width)
        self.targets: int = self.attributes["targets"]
        self.tracked = bool(self.attributes["nan_true"].array.any())
        self.nodes = kernel.constant(Dense(tables.nodes), "nodes")
        self.thresholds = kernel.constant(Dense(tables.thresholds), "thresholds")
        self.leaves = kernel.constant(Dense(tables.leaves), "leaves")
        self.heights = kernel.constant(Dense(tables.heights), "heights")
        self.leaf_first = kernel.constant(Dense(tables.leaf_first), "leaf_first")
        self.votes = kernel.constant(Dense(tables.votes), "votes")
        self.weights = kernel.constant(Dense(tables.weights), "weights")
        trees = len(self.attributes["roots"].array)
        self.groups = -(-trees // WALKS)
        self.totals = b.local(dtypes.f64, max(1, self.targets) * WALKS)
        with b.loop(kernel.begin, kernel.end) as unit:
            row = b.imul(unit.index, WALKS)
            have = b.isub(kernel.dim(rows), row)
            b.if_(
                b.icmp("ge", have, WALKS), lambda: self._rows(row, trees), lambda: self._one_by_one(row, have)
            )
        steps = int(tables.heights[self.groups :].sum())
        return kernel.finish(ceildiv(rows, WALKS), rows * 100 * (steps + trees))

    def _rows(self, row: Index, trees: int) -> Sequence[Value]:
        """``WALKS`` rows, tree by tree."""
        b = self.b
        bases = [b.imul(b.iadd(row, i), self.width) for i in range(WALKS)]
        self._start(WALKS)
        with b.loop(0, trees) as tree:
            height = b.to_index(b.load(self.heights, b.iadd(tree.index, self.groups)))
            root = b.index(b.imul(tree.index, 2))
            for i, leaf in enumerate(self._descend([root] * WALKS, bases, height)):
                self._vote(leaf, i)
        self._finish(row, WALKS)
        return ()

    def _one_by_one(self, row: Index, have: Index) -> Sequence[Value]:
        """The last rows, each through ``WALKS`` trees at a time."""
        b = self.b
        with b.loop(0, have) as rest:
            here = b.iadd(row, rest.index)
            base = b.imul(here, self.width)
            self._start(1)
            with b.loop(0, self.groups) as group:
                height = b.to_index(b.load(self.heights, group.index))
                first = b.imul(group.index, 2 * WALKS)
                roots = [b.index(b.iadd(first, 2 * i)) for i in range(WALKS)]
                for leaf in self._descend(roots, [base] * WALKS, height):
                    self._vote(leaf, 0)
            self._finish(here, 1)
        return ()

    def _descend(self, nodes: Sequence[Value], bases: Sequence[Index], height: Index) -> Sequence[Value]:
        b = self.b
        with b.loop(0, height, 1, nodes) as step:
            b.yield_(*[self._step(n, base) for n, base in zip(step.carried, bases, strict=True)])
        return step.results

    def _step(self, node: Value, base: Index) -> Value:
        b = self.b
        at = b.imul(node, 2)
        info = b.load(self.nodes, at)
        child = b.to_index(b.load(self.nodes, b.iadd(at, 1)))
        feature = b.to_index(b.scalar_op("shr", info, b.const(1, dtypes.i32)))
        x = b.load(self.source, b.iadd(base, feature))
        threshold = b.load(self.thresholds, node)
        flag = b.compare("ne", b.scalar_op("and", info, b.const(1, dtypes.i32)), b.const(0, dtypes.i32))
        if self.tracked:
            nan = b.scalar_op("and", b.scalar_op("is_nan", x, dtype=dtypes.boolean), flag)
            away = b.scalar_op("or", b.compare("gt", x, threshold), nan)
        else:
            beyond = b.scalar_op("not", b.compare("le", x, threshold))
            away = b.scalar_op("and", beyond, flag)
        return b.index(b.iadd(child, b.truth(away)))

    def _start(self, rows: int) -> None:
        b = self.b
        start = b.const(identity(self.attributes["kind"]), dtypes.f64)
        with b.loop(0, self.targets * rows) as place:
            b.store(start, self.totals, place.index)

    def _vote(self, node: Value, row: int) -> None:
        b = self.b
        leaf = b.to_index(b.load(self.leaves, node))
        first, last = (b.to_index(b.load(self.leaf_first, b.iadd(leaf, i))) for i in range(2))
        with b.loop(first, last) as vote:
            target = b.to_index(b.load(self.votes, vote.index))
            place = b.iadd(b.imul(target, 1), b.imul(self.targets, row))
            weight = b.convert(b.load(self.weights, vote.index), dtypes.f64)
            total = b.scalar_op(COMBINE[self.attributes["kind"]], b.load(self.totals, place), weight)
            b.store(total, self.totals, place)

    def _finish(self, row: Index, rows: int) -> None:
        b = self.b
        start = b.imul(row, self.targets)
        with b.loop(0, self.targets * rows) as place:
            total = b.load(self.totals, place.index)
            value = finished(b, total, self.attributes["kind"], self.out.type.dtype)
            b.store(value, self.out, b.iadd(start, place.index))
