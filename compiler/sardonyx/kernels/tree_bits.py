"""Trees of few leaves, all nodes at once: each tree keeps a word with a bit per leaf.

Every comparison of a tree is made, in any order.  A false one rules out the leaves under its true branch:
their bits are cleared.  The lowest bit left is the leaf (C. Lucchese et al., "QuickScorer: a fast algorithm
to rank documents with additive ensembles of regression trees", SIGIR 2015; T. Ye et al., "RapidScorer", KDD
2018, does it for many rows in a vector).  There is no branch to mispredict and no gather but that of the
leaves' weights: the rows of a block are turned first, so that a feature of neighbouring rows is one vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Value
from sardonyx.kernels.kernel import Kernel, KernelBuilder
from sardonyx.kernels.target import Target
from sardonyx.kernels.transpose import turn
from sardonyx.kernels.tree_layout import BitTables, identity
from sardonyx.loop.builder import For, Index, LoopBuilder
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import ceildiv

__all__ = ["BLOCK_BYTES", "bits_kernel", "tree_lanes"]

BLOCK_BYTES = 1 << 17  # of a block of rows: it should stay in the second level of the cache
_NEAR_BYTES = 3 << 14  # of a block that has more than one vector of rows
COMBINE = {"sum": "add", "min": "min", "max": "max"}


def tree_lanes(x: Value, target: Target) -> int:
    """Rows of a vector."""
    return max(1, target.vector_bytes // int(x.type.dtype.itemsize))


def bits_kernel(
    kernel: KernelBuilder,
    x: Value,
    result: Value,
    attributes: Mapping[str, Any],
    tables: BitTables,
    target: Target,
) -> Kernel:
    """The kernel of an ensemble whose trees have at most 64 leaves; x has a known number of features."""
    return _Bits(kernel, x, result, attributes, tables, tree_lanes(x, target)).build()


@dataclass
class _Bits:
    kernel: KernelBuilder
    x: Value
    result: Value
    attributes: Mapping[str, Any]
    tables: BitTables
    lanes: int

    def build(self) -> Kernel:
        kernel, tables, lanes = self.kernel, self.tables, self.lanes
        self.b = b = kernel.b
        self.rows, width = self.x.type.shape
        self.width = int(width)
        self.targets: int = self.attributes["targets"]
        column = -(-self.width // lanes) * lanes * lanes * self.x.type.dtype.itemsize
        self.vectors = next((v for v in (4, 2) if v * column <= _NEAR_BYTES), 1)
        self.height = lanes * self.vectors  # rows of a block
        self.source, self.out = kernel.buffer(self.x, name="x"), kernel.buffer(self.result, name="out")
        self.features = kernel.constant(Dense(tables.features * self.height), "features")
        self.thresholds = kernel.constant(Dense(tables.thresholds), "thresholds")
        self.masks = kernel.constant(Dense(tables.masks), "masks")
        self.ends = kernel.constant(Dense(tables.ends), "ends")
        self.votes = kernel.constant(Dense(tables.votes), "votes")
        self.weights = kernel.constant(Dense(tables.weights), "weights")
        self.block = b.local(self.x.type.dtype, -(-self.width // lanes) * lanes * self.height)
        self.totals = b.local(dtypes.f64, max(1, self.targets) * self.height)
        trees = len(tables.ends) // 3
        with b.loop(kernel.begin, kernel.end) as unit:
            row = b.imul(unit.index, self.height)
            have = b.isub(kernel.dim(self.rows), row)
            if self.vectors == 1:
                self._block(row, have, 1, trees)
            else:
                b.if_(
                    b.icmp("ge", have, self.height),
                    lambda: self._block(row, self.height, self.vectors, trees),
                    lambda: self._rest(row, have, trees),
                )
        return kernel.finish(
            ceildiv(self.rows, self.height), self.rows * (8 * len(tables.features) + 100 * trees)
        )

    def _rest(self, row: Index, have: Index, trees: int) -> Sequence[Value]:
        b = self.b
        with b.loop(0, have, self.lanes) as part:
            self._block(b.iadd(row, part.index), b.isub(have, part.index), 1, trees)
        return ()

    def _block(self, row: Index, have: Index, vectors: int, trees: int) -> Sequence[Value]:
        """``vectors`` vectors of rows; ``have`` of them are there, the last is repeated for the others."""
        self._turn_rows(row, have, vectors)
        self._start(vectors)
        self._trees(vectors, trees)
        self._finish(row, have, vectors)
        return ()

    def _turn_rows(self, row: Index, have: Index, vectors: int) -> None:
        b, lanes = self.b, self.lanes
        last = b.isub(have, 1)
        starts = [
            b.imul(b.iadd(row, i if isinstance(have, int) else b.imin(last, i)), self.kernel.dim(self.width))
            for i in range(vectors * lanes)
        ]

        def columns(first: Index, mask: Value | None) -> None:
            for v in range(vectors):
                lines = [
                    b.load(self.source, b.iadd(starts[v * lanes + i], first), lanes, mask)
                    for i in range(lanes)
                ]
                for i, line in enumerate(turn(b, lines)):
                    at = b.iadd(b.imul(b.iadd(first, i), self.height), v * lanes)
                    b.store(line, self.block, at)

        whole = self.width // lanes * lanes
        with b.loop(0, whole, lanes) as loop:
            columns(loop.index, None)
        if self.width > whole:
            columns(whole, b.mask(self.width - whole, lanes))

    def _start(self, vectors: int) -> None:
        b = self.b
        start = b.const(identity(self.attributes["kind"]), dtypes.f64, self.lanes)
        with b.loop(0, self.targets) as target:
            for v in range(vectors):
                b.store(start, self.totals, b.iadd(b.imul(target.index, self.height), v * self.lanes))

    def _trees(self, vectors: int, trees: int) -> None:
        b = self.b
        ones = b.const(-1, self.masks.type.dtype, self.lanes)
        tracked = (self.tables.ends[::3] != self.tables.ends[1::3]).any()
        zero = b.index(0)
        with b.loop(0, trees, 1, [zero, zero]) as tree:
            node, vote = tree.carried
            at = b.imul(tree.index, 3)
            middle, end, last = (b.to_index(b.load(self.ends, b.iadd(at, i))) for i in range(3))
            with b.loop(node, middle, 2, [ones] * vectors) as nodes:
                self._compare(nodes, vectors, nan_true=False)
            words = nodes.results
            if tracked:
                with b.loop(middle, end, 2, words) as nodes:
                    self._compare(nodes, vectors, nan_true=True)
                words = nodes.results
            leaves = [b.convert(b.value("trailing_zeros", (w,), w.type), dtypes.i64) for w in words]
            with b.loop(vote, last) as votes:
                self._vote(votes.index, leaves)
            b.yield_(end, last)

    def _compare(self, nodes: For, vectors: int, *, nan_true: bool) -> None:
        """Two nodes."""
        b, words = self.b, list(nodes.carried)
        for step in range(2):
            at = b.iadd(nodes.index, step)
            threshold = b.splat(b.load(self.thresholds, at), self.lanes)
            mask = b.splat(b.load(self.masks, at), self.lanes)
            line = b.to_index(b.load(self.features, at))
            for v in range(vectors):
                x = b.load(self.block, b.iadd(line, v * self.lanes), self.lanes)
                less = b.scalar_op("and", words[v], mask)
                if nan_true:
                    words[v] = b.scalar_op(
                        "select", b.compare("gt", x, threshold), less, words[v], dtype=less.type.dtype
                    )
                else:
                    words[v] = b.scalar_op(
                        "select", b.compare("le", x, threshold), words[v], less, dtype=less.type.dtype
                    )
        b.yield_(*words)

    def _vote(self, vote: Index, leaves: Sequence[Value]) -> None:
        b = self.b
        at = b.imul(vote, 2)
        line = b.imul(b.to_index(b.load(self.votes, at)), self.height)
        table = b.offset(self.weights, b.to_index(b.load(self.votes, b.iadd(at, 1))))
        for v, leaf in enumerate(leaves):
            place = b.iadd(line, v * self.lanes)
            weight = b.convert(b.gather(table, leaf), dtypes.f64)
            total = b.load(self.totals, place, self.lanes)
            b.store(b.scalar_op(COMBINE[self.attributes["kind"]], total, weight), self.totals, place)

    def _finish(self, row: Index, have: Index, vectors: int) -> None:
        b, lanes, targets = self.b, self.lanes, self.targets
        with b.loop(0, targets) as target:
            for v in range(vectors):
                total = b.load(self.totals, b.iadd(b.imul(target.index, self.height), v * lanes), lanes)
                value = finished(b, total, self.attributes["kind"], self.out.type.dtype)
                mask = None if isinstance(have, int) else b.mask(b.isub(have, v * lanes), lanes)
                first = b.iadd(b.imul(b.iadd(row, v * lanes), targets), target.index)
                if targets == 1:
                    b.store(value, self.out, first, mask)
                    continue
                places = b.scalar_op("mul", b.lanes(lanes), b.const(targets, dtypes.i64, lanes))
                places = b.scalar_op("add", places, b.splat(b.from_index(first, dtypes.i64), lanes))
                b.scatter(value, self.out, places, mask)


def finished(b: LoopBuilder, total: Value, kind: str, dtype: dtypes.DType) -> Value:
    """A total as a result: 0 where nothing voted."""
    if kind != "sum":
        nothing = b.compare("eq", total, b.const(identity(kind), dtypes.f64))
        total = b.scalar_op("select", nothing, b.const(0.0, dtypes.f64), total, dtype=dtypes.f64)
    return b.convert(total, dtype)
