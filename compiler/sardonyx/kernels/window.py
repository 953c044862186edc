"""Windows: pooling over the spatial axes of a channels-last tensor, for every element type.

One output pixel at a time, several vectors of channels at once; kernel positions in the padding are left
out, which gives every reduction its identity there.  The range counts output pixels.

A maximum of floats is kept by one comparison, which passes NaNs over, and a mask of the lanes that have
met one: cheaper than a maximum that propagates them at every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sardonyx.core.reduction import identity
from sardonyx.ir.graph import Block, Value
from sardonyx.kernels.epilogue import Epilogue
from sardonyx.kernels.evaluator import Evaluator, Source
from sardonyx.kernels.geometry import clipped_range, geometry_of, unravel
from sardonyx.kernels.kernel import Kernel, KernelBuilder, compute_type
from sardonyx.kernels.lane_index import LaneIndex, uniform
from sardonyx.kernels.map import group_location, known_multiple, vector_lanes
from sardonyx.kernels.target import Target
from sardonyx.kernels.vector_loop import vector_loop
from sardonyx.loop.builder import Index
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import product
from sardonyx_runtime.dtypes import DType

__all__ = ["window_kernel"]

_VECTORS = 4  # vectors of channels at once


def window_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a group with one ``core.window_reduce``."""
    return _Window(region, operands, results, target).build()


class _Window:
    def __init__(
        self, region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
    ) -> None:
        self.region, self.results = region, results
        self.outer = dict(zip(region.arguments, operands, strict=True))
        self.op = next(op for op in region.ops if op.name == "core.window_reduce")
        self.x = self.op.operands[0]
        self.kind: str = self.op.attributes["kind"]
        self.dtype: DType = compute_type(self.x.type.dtype)
        self.g = geometry_of(self.op, self.op.attributes["window"])
        used = [self.x.type.dtype, self.op.result.type.dtype]
        self.lanes = vector_lanes(target, used)
        last = self.g.channels
        if isinstance(last, int) and last < self.lanes:
            self.lanes = 1 << max(0, (last - 1).bit_length())
        (self.form,) = [u for u in self.op.result.uses if u.name == "core.reshape"]

    def build(self) -> Kernel:
        kernel = self.kernel = KernelBuilder("window", group_location(self.region), baked=1)
        kernel.all_equal = False
        b, g = kernel.b, self.g
        self.b = b
        sources = {v: Source(kernel.buffer(o), v.type.shape) for v, o in self.outer.items()}
        out = kernel.buffer(self.results[0], name="out")
        kernel.note(f"{self.lanes} lanes of channels")
        self.input = Evaluator(kernel, sources, self.lanes)
        self.epilogue = Epilogue(kernel, self.region, sources, self.form.result, out, self.lanes, _VECTORS)
        pixels = product(g.outputs)
        with b.loop(kernel.begin, kernel.end) as unit:
            count = kernel.dim(pixels)
            image, pixel = b.idiv(unit.index, count), b.imod(unit.index, count)
            places = unravel(kernel, pixel, g.outputs)
            starts, ranges = [], []
            for axis, place in enumerate(places):
                start = b.isub(b.imul(place, g.strides[axis]), kernel.dim(g.lows[axis]))
                starts.append(start)
                ranges.append(
                    clipped_range(b, start, kernel.dim(g.sizes[axis]), g.kernel[axis], g.dilations[axis])
                )

            def body(index: Index, mask: Value | None) -> None:
                self._vectors(image, pixel, starts, ranges, index, [mask])

            channels = kernel.dim(g.channels)
            wide = self.lanes * _VECTORS
            done: Index = 0
            if not isinstance(g.channels, int) or g.channels >= wide:
                done = b.round_down(channels, wide)
                with b.loop(0, done, wide) as block:
                    self._vectors(image, pixel, starts, ranges, block.index, [None] * _VECTORS)
            if known_multiple(g.channels) % wide or not isinstance(g.channels, int):
                vector_loop(b, done, channels, self.lanes, 1, known_multiple(g.channels), body)
        images = self.x.type.shape[0]
        taps = math.prod(g.kernel)
        return kernel.finish(images * pixels, images * pixels * g.channels * taps)

    def _vectors(
        self,
        image: Index,
        pixel: Index,
        starts: list[Index],
        ranges: list[tuple[Index, Index]],
        channel: Index,
        masks: list[Value | None],
    ) -> None:
        """Reduce the window of one pixel for neighbouring vectors of channels."""
        b, g, lanes = self.b, self.g, self.lanes
        first = self._initial()

        def along(axis: int, places: list[Index], state: Sequence[Value]) -> list[Value]:
            if axis == g.rank:
                self.input.forget()
                found: list[Value] = []
                for j, mask in enumerate(masks):
                    self.input.mask = mask
                    lane = LaneIndex(b.iadd(channel, j * lanes), 1, multiple=lanes)
                    x = self.input.at(self.x, (uniform(image), *(uniform(p) for p in places), lane))
                    part = state[j * len(first) : (j + 1) * len(first)]
                    found += self._combine(part, b.splat(x, lanes), places)
                return found
            with b.loop(*ranges[axis], carried=state) as k:
                place = b.iadd(starts[axis], b.imul(k.index, g.dilations[axis]))
                b.yield_(*along(axis + 1, [*places, place], k.carried))
            return k.results

        state = along(0, [], first * len(masks))
        parts = [state[j * len(first) : (j + 1) * len(first)] for j in range(len(masks))]
        totals = [self._result(part) for part in parts]
        end = self.kernel.dim(g.channels)
        self.epilogue.store_tile(totals, [image], [pixel], None, channel, end, masks, multiple=lanes)

    @property
    def _tracks_nan(self) -> bool:
        return self.kind in ("max", "min") and self.dtype.is_float

    def _initial(self) -> list[Value]:
        b, lanes = self.b, self.lanes
        kind = "max" if self.kind == "arg_max" else self.kind
        value = identity(kind, self.x.type.dtype)
        first = b.const(float(value) if self.dtype.is_float else int(value), self.dtype, lanes)
        if self.kind == "arg_max":
            return [first, b.const(-1, dtypes.i64, lanes)]
        return [first, b.const(0, dtypes.boolean, lanes)] if self._tracks_nan else [first]

    def _result(self, state: Sequence[Value]) -> Value:
        if not self._tracks_nan:
            return state[-1]
        nan = self.b.const(float("nan"), self.dtype, self.lanes)
        return self.b.scalar_op("select", state[1], nan, state[0])

    def _combine(self, state: Sequence[Value], x: Value, places: list[Index]) -> list[Value]:
        b = self.b
        if self.kind == "arg_max":
            return self._first_largest(state, x, places)
        if not self._tracks_nan:
            return [b.scalar_op({"sum": "add"}.get(self.kind, self.kind), state[0], x)]
        better = b.compare("gt" if self.kind == "max" else "lt", x, state[0])
        seen = b.scalar_op("or", state[1], b.scalar_op("is_nan", x, dtype=dtypes.boolean))
        return [b.scalar_op("select", better, x, state[0]), seen]

    def _first_largest(self, state: Sequence[Value], x: Value, places: list[Index]) -> list[Value]:
        b = self.b
        best, found = state
        nothing = b.compare("lt", found, b.const(0, dtypes.i64, self.lanes))
        better = b.scalar_op("or", b.compare("gt", x, best), nothing)
        if self.dtype.is_float:
            new = b.scalar_op("is_nan", x, dtype=dtypes.boolean)
            old = b.scalar_op("not", b.scalar_op("is_nan", best, dtype=dtypes.boolean))
            better = b.scalar_op("or", better, b.scalar_op("and", new, old))
        index: Index = 0
        for place, size in zip(places, self.g.sizes, strict=True):
            index = b.iadd(b.imul(index, self.kernel.dim(size)), place)
        here = b.splat(b.from_index(index, dtypes.i64), self.lanes)
        return [b.scalar_op("select", better, x, best), b.scalar_op("select", better, here, found)]
