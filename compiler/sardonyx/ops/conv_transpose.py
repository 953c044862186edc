"""ConvTranspose, as one ordinary convolution for all phases of the result.

With a stride s, the results whose index (before cropping) is q * s + r for one r, a phase, are a convolution
with every s-th tap of the kernel.  The filters of all phases, side by side and padded with zeros to
equally many taps, make one convolution of stride 1; its channels hold the phases, which then move into
the spatial axes (W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.convolution import add_bias, channels_first, channels_last, with_channels, with_kernel
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime.dims import DimLike, ceildiv, floordiv, maximum, product

__all__: list[str] = []


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: extents, and how it becomes a convolution of stride 1 and phases."""

    size: DimLike
    out: DimLike
    kernel: int
    stride: int
    dilation: int
    crop: DimLike  # results in front of the first one kept

    @property
    def span(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    @property
    def taps(self) -> int:
        """Taps of each phase."""
        return self.kernel if self.stride == 1 else -(-self.span // self.stride)

    @property
    def reach(self) -> int:
        """Places from the first tap to the last."""
        return self.span - 1 if self.stride == 1 else self.taps - 1

    @property
    def first(self) -> int:
        """The first place of a phase that is computed: those before are cropped."""
        return min(self.crop // self.stride, self.reach) if isinstance(self.crop, int) else 0

    @property
    def pads(self) -> tuple[DimLike, DimLike]:
        high = ceildiv(self.crop + self.out, self.stride) - self.size
        return self.reach - self.first, maximum(high, 0)


@onnx_op("ConvTranspose")
def conv_transpose(
    b: Builder,
    x: Value,
    w: Value,
    bias: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    output_padding: tuple[int, ...] | None = None,
    output_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Value:
    rank = x.type.rank
    if rank < 3 or w.type.rank != rank:
        raise CompileError(
            f"ConvTranspose takes x (n, c, spatial...) and weights of the same rank of at least 3, "
            f"not {x.type.describe()} and {w.type.describe()}"
        )
    w = with_kernel(b, w, kernel_shape)
    x, w = with_channels(b, x, w, 0, 1)
    channels = x.type.shape[1]
    if group < 1 or (isinstance(channels, int) and channels % group):
        raise CompileError(f"{channels} channels do not divide into {group} groups")
    axes = _axes(x, w, auto_pad, dilations, output_padding, output_shape, pads, strides)
    with b.folding():
        filters = _filters(b, w, axes, group)
    y = b.op(
        "core.convolve",
        channels_last(b, x),
        filters,
        strides=(1,) * len(axes),
        dilations=tuple(a.dilation if a.stride == 1 else 1 for a in axes),
        pads=(*(a.pads[0] for a in axes), *(a.pads[1] for a in axes)),
        group=group,
    )
    y = _interleaved(b, y, axes, group, w.type.shape[1])
    return channels_first(b, y if bias is None else add_bias(b, y, bias))


def _axes(
    x: Value,
    w: Value,
    auto_pad: str,
    dilations: Sequence[int] | None,
    output_padding: Sequence[int] | None,
    output_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> list[_Axis]:
    sizes, kernel = x.type.shape[2:], [int(k) for k in w.type.shape[2:]]
    count = len(kernel)
    dilations, strides = dilations or (1,) * count, strides or (1,) * count
    extra, around = output_padding or (0,) * count, pads or (0,) * (2 * count)
    shape: Sequence[DimLike | None] = output_shape or (None,) * count
    if len(shape) == count + 2:
        shape = shape[2:]
    for name, given, want in (
        ("dilations", dilations, count),
        ("strides", strides, count),
        ("output_padding", extra, count),
        ("output_shape", shape, count),
        ("pads", around, 2 * count),
    ):
        if len(given) != want:
            raise CompileError(
                f"{name} {list(given)} has {len(given)} entries; {count} spatial axes need {want}"
            )
    if any(v < 1 for v in (*kernel, *strides, *dilations)):
        raise CompileError(
            f"the kernel {kernel}, strides {list(strides)} and dilations {list(dilations)} have to be positive"
        )
    if auto_pad not in ("NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise CompileError(f"auto_pad {auto_pad!r} is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    same = auto_pad in ("SAME_UPPER", "SAME_LOWER")
    axes = []
    for i, size in enumerate(sizes):
        stride, span = strides[i], (kernel[i] - 1) * dilations[i] + 1
        full = (size - 1) * stride + span + extra[i]
        wanted = shape[i]
        out = wanted if wanted is not None else size * stride if same else None
        if out is None:
            low, high = (0, 0) if auto_pad == "VALID" else (around[i], around[i + count])
            out = full - low - high
            if isinstance(out, int) and out < 0:
                raise CompileError(f"the pads {list(around)} crop more than spatial axis {i} has")
            crop: DimLike = low
        else:
            total = maximum(full - out, 0)
            half = floordiv(total, 2)
            crop = half if auto_pad == "SAME_UPPER" else total - half
        axes.append(_Axis(size, out, kernel[i], stride, dilations[i], crop))
    return axes


def _filters(b: Builder, w: Value, axes: Sequence[_Axis], group: int) -> Value:
    """(c, m, kernel...) as (group, phases..., m, c / group, taps...), the taps in reverse."""
    for i, axis in enumerate(axes):
        w = _phases(b, w, 2 + 2 * i, axis)
    channels, outs = w.type.shape[0], w.type.shape[1]
    within = floordiv(channels, group)
    w = b.reshape(w, (group, within, outs, *w.type.shape[2:]))
    count = len(axes)
    taps, phases = [3 + 2 * i for i in range(count)], [4 + 2 * i for i in range(count)]
    w = b.transpose(w, (0, *phases, 2, 1, *taps))
    return b.reshape(w, (product(w.type.shape[: count + 2]), within, *(a.taps for a in axes)))


def _phases(b: Builder, w: Value, at: int, axis: _Axis) -> Value:
    """One kernel axis as two: the taps of a phase, last first, and the phases."""
    before, behind = w.type.shape[:at], w.type.shape[at + 1 :]

    def padded(value: Value, position: int, by: int) -> Value:
        high = [by if i == position else 0 for i in range(value.type.rank)]
        return b.op(
            "core.pad", value, b.constant(0, w.type.dtype), low=(0,) * value.type.rank, high=tuple(high)
        )

    if axis.stride == 1:
        w = b.reshape(w, (*before, axis.kernel, 1, *behind))
    else:
        if axis.dilation > 1:
            w = padded(b.reshape(w, (*before, axis.kernel, 1, *behind)), at + 1, axis.dilation - 1)
            w = b.reshape(w, (*before, axis.kernel * axis.dilation, *behind))
        missing = axis.taps * axis.stride - w.type.shape[at]
        if missing > 0:
            w = padded(w, at, missing)
        elif missing < 0:
            w = _part(b, w, at, 0, axis.taps * axis.stride)
        w = b.reshape(w, (*before, axis.taps, axis.stride, *behind))
    return _part(b, w, at, axis.taps - 1, axis.taps, step=-1)


def _part(b: Builder, x: Value, axis: int, start: DimLike, size: DimLike, step: int = 1) -> Value:
    one = [i == axis for i in range(x.type.rank)]
    return b.op(
        "core.slice",
        x,
        starts=tuple(start if o else 0 for o in one),
        sizes=tuple(size if o else d for o, d in zip(one, x.type.shape, strict=True)),
        steps=tuple(step if o else 1 for o in one),
    )


def _interleaved(b: Builder, y: Value, axes: Sequence[_Axis], group: int, outs: DimLike) -> Value:
    """(n, places..., group * phases * m) as (n, results..., group * m), cropped."""
    count = len(axes)
    places = y.type.shape[1:-1]
    if any(a.stride != 1 for a in axes):
        y = b.reshape(y, (y.type.shape[0], *places, group, *(a.stride for a in axes), outs))
        order = [p for i in range(count) for p in (1 + i, 2 + count + i)]
        y = b.transpose(y, (0, *order, 1 + count, 2 + 2 * count))
        full = [p * a.stride for p, a in zip(places, axes, strict=True)]
        y = b.reshape(y, (y.type.shape[0], *full, outs * group))
    for i, axis in enumerate(axes):
        start = axis.crop - axis.first * axis.stride
        if start != 0 or y.type.shape[1 + i] != axis.out:
            y = _part(b, y, 1 + i, start, axis.out)
    return y
