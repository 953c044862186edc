"""Convolution as it is defined, for every numeric type: the twin of the fast kernels.

One output pixel at a time, in vectors of filters; taps in the padding are left out.  Integers wrap,
16-bit floats are summed in f32.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from sardonyx_runtime.dims import DimLike, product

__all__ = ["plain_convolve_kernel"]


def plain_convolve_kernel(
    region: Block, operands: Sequence[Value], results: Sequence[Value], target: Target
) -> Kernel:
    """The kernel of a group with one ``core.convolve``."""
    op = next(op for op in region.ops if op.name == "core.convolve")
    (form,) = [u for u in op.result.uses if u.name == "core.reshape"]
    x, w = op.operands
    g = geometry_of(op, [int(k) for k in w.type.shape[2:]])
    kernel = KernelBuilder("plain_convolve", group_location(region))
    kernel.all_equal = False
    b = kernel.b
    sources = {
        v: Source(kernel.buffer(o), v.type.shape) for v, o in zip(region.arguments, operands, strict=True)
    }
    out = kernel.buffer(results[0], name="out")
    total_type = compute_type(op.result.type.dtype)
    lanes = vector_lanes(target, [x.type.dtype, total_type])
    inner = Evaluator(kernel, sources, lanes)
    epilogue = Epilogue(kernel, region, sources, form.result, out, lanes, 1)
    pixels, groups = product(g.outputs), op.attributes["group"]
    filters: DimLike = w.type.shape[0] // groups
    depth = kernel.dim(w.type.shape[1])

    with b.loop(kernel.begin, kernel.end) as unit:
        image, pixel, group = unravel(kernel, unit.index, (x.type.shape[0], pixels, groups))
        starts, ranges = [], []
        for axis, place in enumerate(unravel(kernel, pixel, g.outputs)):
            starts.append(b.isub(b.imul(place, g.strides[axis]), kernel.dim(g.lows[axis])))
            ranges.append(
                clipped_range(b, starts[-1], kernel.dim(g.sizes[axis]), g.kernel[axis], g.dilations[axis])
            )

        def body(index: Index, mask: Value | None) -> None:
            multiple = lanes if groups == 1 else 1
            lane = LaneIndex(b.iadd(b.imul(group, kernel.dim(filters)), index), 1, multiple=multiple)
            inner.mask = mask

            def along(axis: int, taps: list[Index], total: Value) -> Value:
                if axis == g.rank:
                    return over_channels(taps, total)
                with b.loop(*ranges[axis], carried=[total]) as k:
                    b.yield_(along(axis + 1, [*taps, k.index], k.carried[0]))
                return k.results[0]

            def over_channels(taps: list[Index], total: Value) -> Value:
                places = [b.iadd(s, b.imul(k, d)) for s, k, d in zip(starts, taps, g.dilations, strict=True)]
                with b.loop(0, depth, carried=[total]) as c:
                    inner.forget()
                    channel = b.iadd(b.imul(group, depth), c.index)
                    spatial = [uniform(p) for p in places]
                    left = inner.at(x, (uniform(image), *spatial, uniform(channel)))
                    right = inner.at(w, (lane, uniform(c.index), *(uniform(k) for k in taps)))
                    left, right = (b.splat(b.convert(v, total_type), lanes) for v in (left, right))
                    b.yield_(b.muladd(left, right, c.carried[0]))
                return c.results[0]

            zero = b.const(0.0 if total_type.is_float else 0, total_type, lanes)
            total = along(0, [], zero)
            first = b.isub(lane.base, index)
            end = b.iadd(first, kernel.dim(filters))
            epilogue.store_tile([total], [image], [pixel], None, lane.base, end, [mask], multiple=multiple)

        vector_loop(b, 0, kernel.dim(filters), lanes, 1, known_multiple(filters), body)
    units = x.type.shape[0] * pixels * groups
    return kernel.finish(units, units * filters * w.type.shape[1] * product(g.kernel))
